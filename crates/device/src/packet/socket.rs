//! The packet socket itself.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use libc::sock_filter;
use rustix::io::Errno;

use crate::af_packet::{self, Membership};
use crate::interface::IpPrefix;
use crate::link::{Mac, solicited_node};
use crate::many;

/// Bytes of the receive buffer: several windows of 6 MB.
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
        let socket = af_packet::open(RECEIVE_BUFFER)?;
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER);
        af_packet::attach_filter(&socket, filter)?;
        af_packet::bind(&socket, index)?;
        Ok(PacketSocket { socket })
    }

    /// Lets a program that is loaded decide what it hears.
    #[cfg(feature = "bpf")]
    pub(super) fn attach(&self, program: BorrowedFd<'_>) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let (level, option) = (libc::SOL_SOCKET, libc::SO_ATTACH_BPF);
        crate::socket_option::set(&self.socket, level, option, &program.as_raw_fd())
    }

    /// Has the interface take in what is for a station of our own, and questions about its addresses.
    pub(super) fn join(&self, index: u32, mac: Mac, addresses: &[IpPrefix]) -> io::Result<()> {
        let groups = addresses.iter().filter_map(|own| match own.address() {
            IpAddr::V4(_) => None,
            IpAddr::V6(own) => Some((Membership::Multicast, solicited_node(own).1)),
        });
        for (kind, station) in std::iter::once((Membership::Unicast, mac)).chain(groups) {
            af_packet::join(&self.socket, index, kind, Some(station))?;
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

    /// Sends frames by one system call. Says how many were sent; an error is that of the first.
    pub(super) fn send_many(&self, frames: &[IoSlice<'_>]) -> Result<usize, Errno> {
        // A lone one needs none of what several need.
        if frames.len() == 1 {
            return self.send(frames).map(|()| 1);
        }
        many::send(&self.socket, frames)
    }

    /// Receives a frame into each of these buffers by one system call, and its length into the same place of `lengths`. Says how many there were.
    pub(super) fn receive_many(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        lengths: &mut [usize; many::MOST_RECEIVED],
    ) -> Result<usize, Errno> {
        loop {
            match many::receive(&self.socket, buffers, lengths) {
                Err(Errno::INTR) => {}
                outcome => return outcome,
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
