//! The packet socket itself.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use libc::{sock_filter, sock_fprog};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::interface::IpPrefix;
use crate::link::{Mac, solicited_node};

/// Options of `linux/if_packet.h`.
const ADD_MEMBERSHIP: libc::c_int = 1;
const VNET_HDR: libc::c_int = 15;
const IGNORE_OUTGOING: libc::c_int = 23;
const MULTICAST: libc::c_ushort = 0;
const UNICAST: libc::c_ushort = 3;
/// What the socket holds for us: several windows of 6 MB.
const RECEIVE_BUFFER: usize = 32 << 20;
const SEND_BUFFER: usize = 4 << 20;

/// A socket that hears what a filter lets pass.
#[derive(Debug)]
pub(super) struct PacketSocket {
    socket: OwnedFd,
}

impl PacketSocket {
    /// Opens one on the interface with this number.
    pub(super) fn open(index: u32, filter: &[sock_filter]) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Nothing comes before it is bound.
        let socket = rustix::net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?;
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER);
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER);
        set_option(&socket, libc::SOL_PACKET, VNET_HDR, &1i32)?;
        set_option(&socket, libc::SOL_PACKET, IGNORE_OUTGOING, &1i32)?;
        let len = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // The kernel only reads it.
        let program = sock_fprog { len, filter: filter.as_ptr().cast_mut() };
        set_option(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
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
        if result == 0 { Ok(PacketSocket { socket }) } else { Err(io::Error::last_os_error()) }
    }

    /// Has the interface take in what is for a station of our own, and questions about its addresses.
    pub(super) fn join(&self, index: u32, mac: Mac, addresses: &[IpPrefix]) -> io::Result<()> {
        let groups = addresses.iter().filter_map(|own| match own.address() {
            IpAddr::V4(_) => None,
            IpAddr::V6(own) => Some((MULTICAST, solicited_node(own).1)),
        });
        for (kind, [a, b, c, d, e, f]) in std::iter::once((UNICAST, mac)).chain(groups) {
            let membership = Membership {
                index: index as i32,
                kind,
                length: 6,
                address: [a, b, c, d, e, f, 0, 0],
            };
            set_option(&self.socket, libc::SOL_PACKET, ADD_MEMBERSHIP, &membership)?;
        }
        Ok(())
    }

    pub(super) fn send(&self, parts: &[IoSlice<'_>]) -> Result<(), Errno> {
        loop {
            match rustix::io::writev(&self.socket, parts) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    pub(super) fn receive(&self, parts: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
        loop {
            match rustix::io::readv(&self.socket, parts) {
                Err(Errno::INTR) => {}
                outcome => return outcome,
            }
        }
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// `struct packet_mreq`.
#[repr(C)]
struct Membership {
    index: i32,
    kind: libc::c_ushort,
    length: libc::c_ushort,
    address: [u8; 8],
}

fn set_option<T>(
    socket: &OwnedFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    let value = std::ptr::from_ref(value).cast();
    // SAFETY: the kernel reads `length` bytes at the address, which are those of `value`; and of a `sock_fprog`, the instructions that it
    // points to, which the caller has borrowed until this returns.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
