//! Listeners: where connections come from, and the tokens that tell a program of them.

use std::collections::VecDeque;
use std::io;
use std::net::{self, IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use transom_net::TcpListener;

use crate::outer::{OuterConnection, kernel_socket};

/// A call that waits for a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingAccept {
    pub(crate) id: u64,
    pub(crate) thread: u32,
    /// Where the peer's address goes, and its length.
    pub(crate) address: (u64, u64),
    /// The flags of `accept4`.
    pub(crate) flags: i32,
}

/// A listener.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) local: SocketAddr,
    pub(crate) sources: Vec<Source>,
    /// Connections that wait. For each of them a token lies in the pair.
    pub(crate) queue: VecDeque<OuterConnection>,
    pub(crate) waiting: VecDeque<PendingAccept>,
    pub(crate) backlog: usize,
}

/// Where connections come from.
#[derive(Debug)]
pub(crate) enum Source {
    Transom(TcpListener),
    Kernel(net::TcpListener),
}

impl Source {
    /// The next connection, if there is one.
    pub(crate) fn accept(&self) -> Option<OuterConnection> {
        match self {
            Source::Transom(listener) => {
                let (stream, _) = listener.accept().ok()?;
                stream.set_nonblocking(true).ok()?;
                Some(OuterConnection::Transom(stream))
            }
            Source::Kernel(listener) => {
                let (stream, _) = listener.accept().ok()?;
                stream.set_nonblocking(true).ok()?;
                Some(OuterConnection::Kernel(stream))
            }
        }
    }
}

/// A socket of the kernel's with an address.
pub(crate) fn bind_kernel(local: SocketAddr, v6_only: bool) -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = kernel_socket(local.is_ipv6())?;
    rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
    if local.is_ipv6() {
        rustix::net::sockopt::set_ipv6_v6only(&socket, v6_only)?;
    }
    rustix::net::bind(&socket, &local)?;
    let socket = net::TcpListener::from(socket);
    let local = socket.local_addr()?;
    Ok((socket.into(), local))
}

/// Lets a socket of the kernel's listen.
pub(crate) fn listen_kernel(socket: OwnedFd, backlog: usize) -> io::Result<Source> {
    rustix::net::listen(&socket, i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(Source::Kernel(socket.into()))
}

/// Listeners of the kernel's at loopback, for a program that listens everywhere. Where the kernel has somebody there already, there is none.
pub(crate) fn listen_at_loopback(local: SocketAddr, v6_only: bool, backlog: usize) -> Vec<Source> {
    let v4 = IpAddr::from(Ipv4Addr::LOCALHOST);
    let v6 = IpAddr::from(Ipv6Addr::LOCALHOST);
    let addresses = match (local.is_ipv6(), v6_only) {
        (false, _) => vec![v4],
        (true, true) => vec![v6],
        (true, false) => vec![v4, v6],
    };
    let listen = |address| {
        let (socket, _) = bind_kernel(SocketAddr::new(address, local.port()), true).ok()?;
        listen_kernel(socket, backlog).ok()
    };
    addresses.into_iter().filter_map(listen).collect()
}
