//! Has the peers of a process that was killed hear of it.
//!
//! The kernel answers what they send with a reset, as the port is nobody's any more. Those that only wait would wait on. So each is sent a bare ACK
//! that is not in its window: it answers with what it does expect (RFC 9293, section 3.10.7.4), and that the kernel answers with a reset.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto};
use transom_wire::checksum;

/// Raw sockets, one for each version of IP. They carry whole packets, and so hear nothing: to hear TCP they would get a copy of every packet of the
/// host's.
#[derive(Debug)]
pub(super) struct Farewell {
    v4: Option<OwnedFd>,
    v6: Option<OwnedFd>,
}

/// The pause after some farewells.
pub(super) const PAUSE: Duration = Duration::from_millis(10);
/// So many are said before a pause.
const AT_ONCE: usize = 200;
/// So many wait. Peers beyond that hear of the end when they send something.
const MOST: usize = 65_536;

/// Connections whose peers have not been told yet: the own end, and the other one.
#[derive(Debug, Default)]
pub(super) struct Farewells(VecDeque<(SocketAddr, SocketAddr)>);

impl Farewells {
    pub(super) fn add(&mut self, flows: Vec<(SocketAddr, SocketAddr)>) {
        let room = MOST - self.0.len().min(MOST);
        self.0.extend(flows.into_iter().take(room));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells some of them. Whether more are left, after a pause.
    pub(super) fn say_some(&mut self, farewell: &Farewell) -> bool {
        for (own, other) in self.0.drain(..self.0.len().min(AT_ONCE)) {
            // A peer that cannot be reached hears of it when it sends something.
            let _ = farewell.say(own, other);
        }
        !self.is_empty()
    }
}

/// Bytes of a TCP header without options.
const TCP: usize = 20;
const ACK: u8 = 16;
/// The usual limit of hops.
const HOPS: u8 = 64;

impl Farewell {
    /// In the calling thread's network namespace. A version of IP that the kernel does not have is left out.
    pub(super) fn open() -> Self {
        let open = |family| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (kind, protocol) = (SocketType::RAW, Some(ipproto::RAW));
            let socket = rustix::net::socket_with(family, kind, flags, protocol).ok()?;
            // Packets of the protocol 255, which nobody uses, come here all the same.
            rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 0).ok()?;
            Some(socket)
        };
        Farewell { v4: open(AddressFamily::INET), v6: open(AddressFamily::INET6) }
    }

    /// Says farewell to the other end of a connection.
    pub(super) fn say(&self, own: SocketAddr, other: SocketAddr) -> io::Result<()> {
        let socket = if own.is_ipv4() { &self.v4 } else { &self.v6 };
        let socket = socket.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let packet = packet(own, other).ok_or(io::ErrorKind::InvalidInput)?;
        // The route may depend on the source. A raw socket's port is a protocol.
        rustix::net::bind(socket, &SocketAddr::new(own.ip(), 0))?;
        rustix::net::sendto(socket, &packet, SendFlags::NOSIGNAL, &SocketAddr::new(other.ip(), 0))?;
        Ok(())
    }
}

/// The probe in an IP packet; `None` if the two are not of one version. The kernel fills in the length, the number and the checksum of an IPv4
/// header (raw(7)).
fn packet(own: SocketAddr, other: SocketAddr) -> Option<Vec<u8>> {
    let mut packet = Vec::with_capacity(60);
    match (own.ip(), other.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            packet.extend([0x45, 0, 0, 0, 0, 0, 0, 0, HOPS, transom_wire::Protocol::TCP.0, 0, 0]);
            packet.extend(from.octets());
            packet.extend(to.octets());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            packet.extend([0x60, 0, 0, 0, 0, TCP as u8, transom_wire::Protocol::TCP.0, HOPS]);
            packet.extend(from.octets());
            packet.extend(to.octets());
        }
        _ => return None,
    }
    packet.extend(probe(own, other));
    Some(packet)
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
    fn farewells_are_said_in_pieces_and_so_many_wait() {
        let end: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let mut farewells = Farewells::default();
        farewells.add(vec![(end, end); MOST]);
        farewells.add(vec![(end, end); 10]);
        assert_eq!(farewells.0.len(), MOST);
        // Nothing is sent without sockets.
        let silent = Farewell { v4: None, v6: None };
        assert!(farewells.say_some(&silent));
        assert_eq!(farewells.0.len(), MOST - AT_ONCE);
        while farewells.say_some(&silent) {}
        assert!(farewells.is_empty());
    }

    #[test]
    fn a_probe_is_a_segment() {
        let (own, other) = ("192.0.2.1:80".parse().unwrap(), "192.0.2.2:4000".parse().unwrap());
        let segment = probe(own, other);
        assert_eq!(segment[..4], [0, 80, 15, 160]);
        let tcp = transom_wire::Protocol::TCP;
        assert!(checksum::verify(own.ip(), other.ip(), tcp, &segment));
        assert_eq!(packet(own, other).unwrap()[20..], segment);
        let v6 = "[2001:db8::1]:80".parse().unwrap();
        assert_eq!(packet(v6, v6).unwrap().len(), 60);
        assert_eq!(packet(own, v6), None);
    }
}
