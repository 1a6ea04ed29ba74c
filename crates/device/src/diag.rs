//! The TCP connections of a network namespace, whichever program has them: the kernel's `sock_diag`.
//!
//! [`Diag::tcp`] asks for those that there are now, with their `TCP_INFO`. A connection that ends between two such looks would take
//! what it has counted with it, so [`Endings`] hears of each as it ends (sock_diag(7); `NETLINK_ADD_MEMBERSHIP` to
//! `SKNLGRP_INET_TCP_DESTROY`, which takes `CAP_NET_ADMIN` in the namespace). Both look at the namespace that the thread which opened them was
//! in.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use rustix::net::netlink::SOCK_DIAG;

use crate::kernel_tcp::{KernelTcpInfo, KernelTcpState};
use crate::netlink::{Netlink, Request, find_attribute};

/// `SOCK_DIAG_BY_FAMILY` of linux/sock_diag.h.
const BY_FAMILY: u16 = 20;
/// The groups that are told of the end of TCP sockets: `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY`, numbered from one.
const DESTROY_GROUPS: u32 = 1 << 0 | 1 << 2;
/// Extensions of linux/inet_diag.h: `TCP_INFO`, and the name of the congestion control.
const INFO: u16 = 2;
const CONGESTION: u16 = 4;
/// Bytes of `struct inet_diag_msg`.
const MESSAGE_LEN: usize = 72;
/// Bytes of `struct inet_diag_sockid`.
const SOCKET_ID_LEN: usize = 48;

/// A TCP socket of the kernel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// Its own address and port. IPv4 addresses are shown as such also where the program uses IPv6.
    pub local: SocketAddr,
    /// The peer's; unspecified for a listener.
    pub remote: SocketAddr,
    /// A number that no other socket of the machine has or had.
    pub cookie: u64,
    /// Where it is in its life.
    pub state: KernelTcpState,
    /// The name of its congestion control.
    pub congestion: Option<String>,
    /// What the kernel tells of it; nothing in TIME-WAIT and before the handshake is complete.
    pub info: Option<KernelTcpInfo>,
}

/// Looks at the sockets of a network namespace.
#[derive(Debug)]
pub struct Diag {
    netlink: Netlink,
}

impl Diag {
    /// Of the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// When the kernel gives no netlink socket.
    pub fn open() -> io::Result<Self> {
        Ok(Diag { netlink: Netlink::open_to(SOCK_DIAG)? })
    }

    /// All TCP sockets, over IPv4 and IPv6, in no particular order.
    ///
    /// # Errors
    /// The kernel's refusal: it was built without `CONFIG_INET_DIAG`, for one.
    pub fn tcp(&mut self) -> io::Result<Vec<TcpSocket>> {
        let mut sockets = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            // struct inet_diag_req_v2: family, protocol, extensions, padding, states, and no socket in particular.
            let mut body = [0; 8 + SOCKET_ID_LEN];
            body[0] = family as u8;
            body[1] = libc::IPPROTO_TCP as u8;
            body[2] = 1 << (INFO - 1) | 1 << (CONGESTION - 1);
            body[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
            let request = Request::new(BY_FAMILY, libc::NLM_F_DUMP, &body);
            self.netlink.dump(request, |answer| sockets.extend(parse(answer)))?;
        }
        Ok(sockets)
    }
}

/// Hears of the TCP sockets of a network namespace that have ended.
#[derive(Debug)]
pub struct Endings {
    netlink: Netlink,
}

impl Endings {
    /// Of the network namespace that the calling thread is in, from now on.
    ///
    /// # Errors
    /// The kernel's refusal, [`io::ErrorKind::PermissionDenied`] without `CAP_NET_ADMIN`.
    pub fn open() -> io::Result<Self> {
        Ok(Endings { netlink: Netlink::listen_to(Some(SOCK_DIAG), DESTROY_GROUPS)? })
    }

    /// The sockets that have ended since the last call, as they were then.
    ///
    /// # Errors
    /// The system's; for one (`ENOBUFS`) when too many have ended for the kernel to remember.
    pub fn take(&mut self) -> io::Result<Vec<TcpSocket>> {
        let mut sockets = Vec::new();
        self.netlink.hear(|message| sockets.extend(parse(message)))?;
        Ok(sockets)
    }
}

/// A `struct inet_diag_msg` and its attributes.
fn parse(message: &[u8]) -> Option<TcpSocket> {
    let (header, attributes) = message.split_at_checked(MESSAGE_LEN)?;
    let port = |at: usize| Some(u16::from_be_bytes(*header.get(at..)?.first_chunk()?));
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: &[u8; 16] = header.get(at..)?.first_chunk()?;
        Some(match i32::from(*header.first()?) {
            libc::AF_INET => IpAddr::from(*bytes.first_chunk::<4>()?),
            _ => Ipv6Addr::from(*bytes).to_canonical(),
        })
    };
    let cookie = u64::from_ne_bytes(*header.get(44..)?.first_chunk()?);
    let congestion = find_attribute(attributes, CONGESTION).map(|name| {
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    });
    Some(TcpSocket {
        local: (address(8)?, port(4)?).into(),
        remote: (address(24)?, port(6)?).into(),
        cookie,
        state: KernelTcpState(*header.get(1)?),
        congestion,
        info: find_attribute(attributes, INFO).and_then(KernelTcpInfo::parse),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn both_ends_of_a_connection_are_found_with_what_they_have_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let there = listener.local_addr().unwrap();
        let mut sender = TcpStream::connect(there).unwrap();
        let (mut receiver, here) = listener.accept().unwrap();
        sender.write_all(&[1; 3000]).unwrap();
        receiver.read_exact(&mut [0; 3000]).unwrap();
        let sockets = Diag::open().unwrap().tcp().unwrap();
        let find = |local, remote| {
            sockets.iter().find(|one| one.local == local && one.remote == remote).unwrap()
        };
        let (from, to) = (find(here, there), find(there, here));
        assert_eq!(from.state, KernelTcpState::ESTABLISHED);
        assert_eq!(to.info.unwrap().bytes_received, Some(3000));
        assert!(from.info.unwrap().mss > 500);
        assert!(from.congestion.as_ref().is_some_and(|name| !name.is_empty()));
        assert_ne!(from.cookie, to.cookie);
        let listening = sockets.iter().find(|one| one.local == there && one.remote.port() == 0);
        assert_eq!(listening.unwrap().state, KernelTcpState::LISTEN);
    }

    #[test]
    fn what_makes_no_sense_is_no_socket() {
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&[2; 71]), None);
        let mut message = [0; 72];
        message[0] = libc::AF_INET6 as u8;
        message[1] = 10;
        message[4..6].copy_from_slice(&80u16.to_be_bytes());
        message[8 + 10..8 + 16].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 7]);
        let socket = parse(&message).unwrap();
        // A program that uses IPv6 for everything is reached over IPv4 all the same.
        assert_eq!(socket.local, "10.0.0.7:80".parse().unwrap());
        assert_eq!((socket.state, socket.info), (KernelTcpState::LISTEN, None));
    }
}
