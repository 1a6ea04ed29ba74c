//! Which frames the kernel copies to us: a program of classic BPF (socket(7), SO_ATTACH_FILTER), so that the traffic of others costs nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libc::sock_filter;

use crate::interface::IpPrefix;
use crate::link::{Mac, solicited_node};

/// So many addresses have room in the program, whose jumps are short.
pub(super) const MOST_ADDRESSES: usize = 16;

const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const LOAD_HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Whether a VLAN tag was taken off (linux/filter.h).
const VLAN_TAG_PRESENT: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_VLAN_TAG_PRESENT) as u32;
/// Places in a frame.
const ETHERTYPE: u32 = 12;
const ARP_TARGET: u32 = 38;

/// Takes all of a frame, or none of it.
const ALL: u32 = 0x4_0000;
const NONE: u32 = 0;

fn instruction(code: u32, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Goes on with the next instruction if the accumulator is `k`, and otherwise leaves `skip` out.
fn unless(k: u32, skip: u8) -> sock_filter {
    sock_filter { code: EQUAL as u16, jt: 0, jf: skip, k }
}

/// The frames of the link that are for the station `mac`, and questions about `addresses`. Frames of VLANs are not the link's.
pub(super) fn program(mac: Mac, addresses: &[IpPrefix]) -> Vec<sock_filter> {
    let mut program = without_tags();
    program.extend(to_station(mac));
    program.extend(about(addresses));
    program
}

/// Questions about `addresses` alone.
#[cfg(feature = "xdp")]
pub(super) fn questions(addresses: &[IpPrefix]) -> Vec<sock_filter> {
    let mut program = without_tags();
    program.extend(about(addresses));
    program
}

/// Drops what a VLAN tag was taken from.
fn without_tags() -> Vec<sock_filter> {
    vec![
        instruction(LOAD_WORD, VLAN_TAG_PRESENT),
        unless(0, 1),
        sock_filter { code: (libc::BPF_JMP | libc::BPF_JA) as u16, jt: 0, jf: 0, k: 1 },
        instruction(RETURN, NONE),
    ]
}

/// Takes questions about any of these, and nothing else.
fn about(addresses: &[IpPrefix]) -> Vec<sock_filter> {
    let mut program = Vec::new();
    for own in addresses {
        match own.address() {
            IpAddr::V4(own) => program.extend(arp_for(own)),
            IpAddr::V6(own) => program.extend(to_station(group(own))),
        }
    }
    program.push(instruction(RETURN, NONE));
    program
}

/// No frames at all.
pub(super) fn nothing() -> Vec<sock_filter> {
    vec![instruction(RETURN, NONE)]
}

fn group(own: Ipv6Addr) -> Mac {
    solicited_node(own).1
}

/// Takes frames to a station.
fn to_station([a, b, c, d, e, f]: Mac) -> [sock_filter; 5] {
    [
        instruction(LOAD_WORD, 0),
        unless(u32::from_be_bytes([a, b, c, d]), 3),
        instruction(LOAD_HALF, 4),
        unless(u16::from_be_bytes([e, f]).into(), 1),
        instruction(RETURN, ALL),
    ]
}

/// Takes questions about an address.
fn arp_for(own: Ipv4Addr) -> [sock_filter; 5] {
    [
        instruction(LOAD_HALF, ETHERTYPE),
        unless(libc::ETH_P_ARP as u32, 3),
        instruction(LOAD_WORD, ARP_TARGET),
        unless(own.to_bits(), 1),
        instruction(RETURN, ALL),
    ]
}
