//! What any holder of a descriptor of a TUN device may do with it (linux/if_tun.h).

use std::ffi::c_int;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, Updater, ioctl, opcode};

const TUNSETIFF: Opcode = opcode::write::<c_int>(b'T', 202);
const TUNSETPERSIST: Opcode = opcode::write::<c_int>(b'T', 203);
const TUNSETCARRIER: Opcode = opcode::write::<c_int>(b'T', 226);
const IFF_TUN: u16 = 1;
const IFF_MULTI_QUEUE: u16 = 0x100;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;

/// `struct ifreq`, as far as TUN uses it.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    padding: [u8; 22],
}

/// Makes a descriptor of `/dev/net/tun` one of a device that is there, as another queue of it (`multi_queue`) or as its only one. `protocol` leaves out
/// `IFF_NO_PI`: four more bytes with the packet's protocol come before each packet.
pub(crate) fn attach(
    tun: impl AsFd,
    name: &str,
    multi_queue: bool,
    protocol: bool,
) -> Result<(), Errno> {
    let mut flags = IFF_TUN | IFF_VNET_HDR;
    if multi_queue {
        flags |= IFF_MULTI_QUEUE;
    }
    if !protocol {
        flags |= IFF_NO_PI;
    }
    let mut request = InterfaceRequest { name: [0; 16], flags, padding: [0; 22] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq`, than which this is no shorter, and in which any bytes are valid.
    unsafe { ioctl(tun, Updater::<TUNSETIFF, _>::new(&mut request)) }
}

/// Makes a device outlive its last descriptor, or not.
pub(crate) fn set_persistent(tun: impl AsFd, persistent: bool) {
    // SAFETY: TUNSETPERSIST takes its argument by value; every integer is valid.
    unsafe { ioctl(tun, IntegerSetter::<TUNSETPERSIST>::new_usize(persistent.into())) }.unwrap();
}

/// Turns the carrier of a device on or off.
pub(crate) fn set_carrier(tun: impl AsFd, carrier: bool) {
    // SAFETY: TUNSETCARRIER reads one int.
    unsafe { ioctl(tun, Setter::<TUNSETCARRIER, c_int>::new(carrier.into())) }.unwrap();
}
