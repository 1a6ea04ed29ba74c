//! The properties of a socket that another process has passed.

use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::net::{AddressFamily, SocketType, ipproto, sockopt};

use crate::socket_option;

/// A TCP socket as the kernel sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortSocket {
    /// The address and port that it is bound to.
    pub local: SocketAddr,
    /// The kernel's number for it, which no other socket gets until the next boot.
    pub cookie: u64,
    /// The kernel's number for its network namespace.
    pub namespace: u64,
    /// Whether it listens.
    pub listening: bool,
    /// Whether it is connected.
    pub connected: bool,
    /// Whether it may be bound to addresses that are not the host's (`IP_FREEBIND`, `IP_TRANSPARENT` and those of IPv6).
    pub foreign_addresses: bool,
    /// Whether it belongs to one interface only (`SO_BINDTODEVICE`).
    pub bound_to_interface: bool,
    /// Whether it is for IPv6 only.
    pub only_v6: bool,
}

impl PortSocket {
    /// Looks at a socket.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if it is no TCP socket of IPv4 or IPv6, else the kernel's refusal.
    pub fn examine(socket: impl AsFd) -> io::Result<Self> {
        let socket = socket.as_fd();
        let domain = sockopt::socket_domain(socket)?;
        let internet = domain == AddressFamily::INET || domain == AddressFamily::INET6;
        let tcp = sockopt::socket_protocol(socket)? == Some(ipproto::TCP);
        if !internet || !tcp || sockopt::socket_type(socket)? != SocketType::STREAM {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no TCP socket"));
        }
        let local = SocketAddr::try_from(rustix::net::getsockname(socket)?)?;
        let v6 = domain == AddressFamily::INET6;
        let mut foreign = flag(socket, libc::IPPROTO_IP, libc::IP_FREEBIND)?
            || flag(socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT)?;
        if v6 {
            foreign |= flag(socket, libc::IPPROTO_IPV6, libc::IPV6_FREEBIND)?
                || flag(socket, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT)?;
        }
        Ok(PortSocket {
            local,
            cookie: cookie_of(socket)?,
            namespace: namespace_of(socket)?,
            listening: sockopt::socket_acceptconn(socket)?,
            connected: rustix::net::getpeername(socket).is_ok_and(|peer| peer.is_some()),
            foreign_addresses: foreign,
            bound_to_interface: flag(socket, libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX)?,
            only_v6: v6 && sockopt::ipv6_v6only(socket)?,
        })
    }
}

/// The kernel's number for the network namespace of a socket (`SO_NETNS_COOKIE`, Linux 5.14).
///
/// # Errors
/// The kernel's refusal.
pub fn namespace_of(socket: impl AsFd) -> io::Result<u64> {
    socket_option::read(socket, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE)
}

/// The kernel's number for a socket, which no other one gets until the next boot (`SO_COOKIE`).
///
/// # Errors
/// The kernel's refusal: the descriptor is no socket, for one.
pub fn cookie_of(socket: impl AsFd) -> io::Result<u64> {
    Ok(sockopt::socket_cookie(socket)?)
}

/// Whether an option that is an int is not zero.
fn flag(socket: impl AsFd, level: c_int, name: c_int) -> io::Result<bool> {
    let mut value = [0; size_of::<c_int>()];
    socket_option::get(socket, level, name, &mut value)?;
    Ok(value != [0; size_of::<c_int>()])
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};

    use super::*;

    #[test]
    fn sockets_are_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let found = PortSocket::examine(&listener).unwrap();
        assert!(found.listening && !found.connected && !found.foreign_addresses);
        assert_eq!(found.local, listener.local_addr().unwrap());
        let stream = TcpStream::connect(found.local).unwrap();
        let other = PortSocket::examine(&stream).unwrap();
        assert!(other.connected && !other.listening);
        assert_ne!(other.cookie, found.cookie);
        assert_eq!(cookie_of(&stream).unwrap(), other.cookie);
        assert_eq!(namespace_of(&stream).unwrap(), other.namespace);
        assert_eq!(other.namespace, found.namespace);
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let error = PortSocket::examine(&udp).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(PortSocket::examine(std::io::stdin()).is_err());
    }
}
