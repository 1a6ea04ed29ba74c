//! Has the peers of a process that was killed hear of it.
//!
//! The kernel answers what they send with a reset, as the port is nobody's any more. Those that only wait would wait on. So each is sent a bare ACK
//! that is not in its window: it answers with what it does expect (RFC 9293, section 3.10.7.4), and that the kernel answers with a reset.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};
use transom_wire::checksum;

/// Raw sockets, one for each version of IP. The kernel writes the IP header.
#[derive(Debug)]
pub(super) struct Farewell {
    v4: Option<OwnedFd>,
    v6: Option<OwnedFd>,
}

/// Bytes of a TCP header without options.
const TCP: usize = 20;
const ACK: u8 = 16;

impl Farewell {
    /// In the calling thread's network namespace. A version of IP that the kernel does not have is left out.
    pub(super) fn open() -> Self {
        let open = |family| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket =
                rustix::net::socket_with(family, SocketType::RAW, flags, Some(ipproto::TCP))
                    .ok()?;
            // It hears all TCP segments of the host otherwise: none fits.
            rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 0).ok()?;
            Some(socket)
        };
        Farewell { v4: open(AddressFamily::INET), v6: open(AddressFamily::INET6) }
    }

    /// Says farewell to the other end of a connection.
    pub(super) fn say(&self, own: SocketAddr, other: SocketAddr) -> io::Result<()> {
        let socket = if own.is_ipv4() { &self.v4 } else { &self.v6 };
        let socket = socket.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let segment = probe(own, other);
        let mut to = other;
        // A raw socket's port is a protocol.
        to.set_port(0);
        from(socket, own.ip(), &to, &segment)
    }
}

/// Sends from an address, whatever the routes say.
fn from(socket: &OwnedFd, source: IpAddr, to: &SocketAddr, bytes: &[u8]) -> io::Result<()> {
    use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg_addr};
    rustix::net::bind(socket, &SocketAddr::new(source, 0))?;
    let parts = [io::IoSlice::new(bytes)];
    let mut control = SendAncillaryBuffer::default();
    sendmsg_addr(socket, to, &parts, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// A bare ACK, as old as it can be to whoever expects something else.
fn probe(own: SocketAddr, other: SocketAddr) -> [u8; TCP] {
    let mut segment = [0; TCP];
    segment[..2].copy_from_slice(&own.port().to_be_bytes());
    segment[2..4].copy_from_slice(&other.port().to_be_bytes());
    segment[12] = (TCP as u8 / 4) << 4;
    segment[13] = ACK;
    // Both addresses are of one version: the guard has seen a segment between them.
    let (from, to, protocol) = (own.ip(), other.ip(), transom_wire::Protocol::TCP);
    let _ = checksum::fill(from, to, protocol, &mut segment, 16);
    segment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_a_segment() {
        let (own, other) = ("192.0.2.1:80".parse().unwrap(), "192.0.2.2:4000".parse().unwrap());
        let segment = probe(own, other);
        assert_eq!(segment[..4], [0, 80, 15, 160]);
        let tcp = transom_wire::Protocol::TCP;
        assert!(checksum::verify(own.ip(), other.ip(), tcp, &segment));
    }
}
