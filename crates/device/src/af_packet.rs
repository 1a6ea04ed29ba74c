//! The common part of sockets of AF_PACKET (packet(7)).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use libc::{sock_filter, sock_fprog};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::socket_option;

/// Options of `linux/if_packet.h`.
const ADD_MEMBERSHIP: libc::c_int = 1;
const VNET_HDR: libc::c_int = 15;
const IGNORE_OUTGOING: libc::c_int = 23;

/// Frames that the interface takes in for the socket, beside its own.
#[derive(Clone, Copy, Debug)]
#[repr(u16)]
pub(crate) enum Membership {
    /// Those for a group.
    Multicast = 0,
    /// All.
    Promiscuous = 1,
    /// Those for one more station.
    Unicast = 3,
}

/// `struct packet_mreq`.
#[repr(C)]
struct Request {
    index: i32,
    kind: libc::c_ushort,
    length: libc::c_ushort,
    address: [u8; 8],
}

/// Opens a socket that has a virtio-net header before each frame, and does not hear what leaves. Nothing comes before it is bound.
pub(crate) fn open(receive_buffer: usize) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
    socket_option::set_receive_buffer(&socket, receive_buffer);
    socket_option::set(&socket, libc::SOL_PACKET, VNET_HDR, &1i32)?;
    socket_option::set(&socket, libc::SOL_PACKET, IGNORE_OUTGOING, &1i32)?;
    Ok(socket)
}

/// Binds the socket to the interface with this number, for all protocols.
pub(crate) fn bind(socket: &OwnedFd, index: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes at the address, which are those of `address`.
    let result =
        unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has the interface take in more, until the socket is closed. `station` is the address of a station or group, if it is for one.
pub(crate) fn join(
    socket: &OwnedFd,
    index: u32,
    membership: Membership,
    station: Option<[u8; 6]>,
) -> io::Result<()> {
    let [a, b, c, d, e, f] = station.unwrap_or_default();
    let request = Request {
        index: index as i32,
        kind: membership as u16,
        length: if station.is_some() { 6 } else { 0 },
        address: [a, b, c, d, e, f, 0, 0],
    };
    socket_option::set(socket, libc::SOL_PACKET, ADD_MEMBERSHIP, &request)
}

/// Has the socket hear only what a program of classic BPF lets pass.
pub(crate) fn attach_filter(socket: &OwnedFd, filter: &[sock_filter]) -> io::Result<()> {
    let len = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel only reads it.
    let program = sock_fprog { len, filter: filter.as_ptr().cast_mut() };
    socket_option::set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}
