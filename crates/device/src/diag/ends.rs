//! The ends of TCP sockets, as the kernel tells them (`SKNLGRP_INET_TCP_DESTROY` and its twin of linux/sock_diag.h, Linux 4.4).
//!
//! The kernel tells of a socket when it frees it (`__sk_free()`). That is one moment in a socket's life, and not always that of `close(2)`:
//!
//! | the program closes | told |
//! |---|---|
//! | a socket in SYN-SENT, a listener, one that was never connected | at once |
//! | a connection, before its peer does | when its FIN is acknowledged and the rest of its life is a TIME-WAIT, of which nothing is told |
//! | a connection after its peer, with data that is not acknowledged | when the last byte is acknowledged, or the kernel gives up |
//! | a connection that was destroyed or reset | at once; it was not told when the reset came, as its program still had it |
//!
//! Sockets of the kernel's own, connections that no program has accepted, and those in TIME-WAIT are not told. The port of a socket that was bound or connected is
//! told also when it has been given back. A socket that never was has port 0.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SOCK_DIAG;

use super::{TcpSocket, parse};
use crate::netlink::{Netlink, messages};
use crate::socket_option;

/// Both groups, numbered from one.
const GROUPS: u32 = 1 << 0 | 1 << 2;
/// More than one message takes: a header of 16 bytes, 72 of the socket, and about 300 of `TCP_INFO`, which grows.
const LONGEST: usize = 4096;
/// So many are taken at once at most. The rest stays for the next call.
const TURN: usize = 1024;
/// About 4,000 ends. The kernel counts about a kilobyte for each.
const BUFFER: usize = 4 << 20;

/// Whether a look was told everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "when ends were missed, the caller has to look at all sockets"]
pub enum Outcome {
    /// All that ended since the last look was told, or is told by the next look.
    Complete,
    /// Too many have ended for the kernel to remember. Some will never be told: compare with [`Diag::cookies`](super::Diag::cookies).
    Missed,
}

/// Hears of the TCP sockets of a network namespace that have ended.
#[derive(Debug)]
pub struct DestroyEvents {
    netlink: Netlink,
    buffer: Box<[u8]>,
}

impl DestroyEvents {
    /// Of the network namespace that the calling thread is in, from now on.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn open() -> io::Result<Self> {
        let netlink = Netlink::listen(SOCK_DIAG, GROUPS)?;
        socket_option::set_receive_buffer(&netlink, BUFFER);
        Ok(Self::on(netlink))
    }

    /// With a socket that another process has opened by [`DestroyEvents::open`].
    pub(crate) fn from_descriptor(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self::on(Netlink::from_descriptor(socket, libc::NETLINK_SOCK_DIAG)?))
    }

    fn on(netlink: Netlink) -> Self {
        DestroyEvents { netlink, buffer: vec![0; LONGEST].into() }
    }

    /// Hands the sockets that have ended since the last call to `each`, as they were then, 1,024 at most. The descriptor stays readable if there are more. It does
    /// not wait.
    ///
    /// # Errors
    /// The system's.
    pub fn take(&mut self, mut each: impl FnMut(TcpSocket)) -> io::Result<Outcome> {
        let mut outcome = Outcome::Complete;
        for _ in 0..TURN {
            match self.netlink.receive(&mut self.buffer) {
                Ok(length) => messages(self.buffer.get(..length).unwrap_or_default())
                    .filter_map(|message| parse(message.payload()))
                    .for_each(&mut each),
                // The kernel says so once, and goes on with what it has.
                Err(Errno::NOBUFS) => outcome = Outcome::Missed,
                Err(Errno::AGAIN) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(outcome)
    }
}

impl AsFd for DestroyEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
    }
}
