//! Large transfers to and from the kernel's TCP over TUN, without a path in between: nothing may be lost, so nothing may
//! be sent twice.

use std::thread;

use crate::support::{Lab, ROLES, Role, VERSIONS, Version, both_ways};
use transom_device::tun::TunOffload;

const MIB: u64 = 1 << 20;

fn alone(offload: TunOffload, version: Version, bytes: u64) {
    let Some(lab) = Lab::direct(offload) else { return };
    for role in ROLES {
        let info = both_ways(&lab, version, role, bytes, false, bytes ^ role as u64);
        assert_eq!(info.counters.retransmitted_segments, 0, "{version:?} {role:?}: {info:?}");
        assert_eq!(info.counters.bytes_accepted, bytes);
        assert!(info.sack && info.timestamps && info.window_scale.is_some(), "{info:?}");
    }
    let counters = lab.stack.counters();
    assert_eq!((counters.bad_checksum, counters.bad_tcp, counters.malformed), (0, 0, 0));
}

#[test]
fn one_connection_over_ipv4() {
    alone(TunOffload::Segmentation, Version::V4, 256 * MIB);
}

#[test]
fn one_connection_over_ipv6() {
    alone(TunOffload::Segmentation, Version::V6, 256 * MIB);
}

#[test]
fn one_connection_with_checksum_offload_alone() {
    alone(TunOffload::Checksum, Version::V4, 64 * MIB);
    alone(TunOffload::Checksum, Version::V6, 64 * MIB);
}

#[test]
fn one_connection_without_offload() {
    alone(TunOffload::None, Version::V4, 256 * MIB);
    alone(TunOffload::None, Version::V6, 256 * MIB);
}

fn many(offload: TunOffload) {
    let Some(lab) = Lab::direct(offload) else { return };
    thread::scope(|scope| {
        for nth in 0..50u64 {
            let lab = &lab;
            scope.spawn(move || {
                let version = VERSIONS[nth as usize % 2];
                let role = if nth / 2 % 2 == 0 { Role::Client } else { Role::Server };
                both_ways(lab, version, role, 5 * MIB + nth * 1001, true, nth);
            });
        }
    });
    let counters = lab.stack.counters();
    assert_eq!((counters.bad_checksum, counters.bad_tcp, counters.malformed), (0, 0, 0));
    // One of them was the lab's own.
    assert_eq!(counters.active_opens, 27);
    assert_eq!(counters.passive_opens, 24);
}

#[test]
fn fifty_connections_at_once() {
    many(TunOffload::Segmentation);
}

#[test]
fn fifty_connections_at_once_without_offload() {
    many(TunOffload::None);
}
