//! Probes that reset the connections of a process that was killed.
//!
//! After the end of a lease the kernel resets any segment to its ports. A peer that only waits sends none, and would wait on. So the broker sends each
//! peer a bare ACK outside its window. The peer answers with an ACK (RFC 9293, section 3.10.7.4), and the kernel resets that.

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
pub(super) struct ProbeSockets {
    v4: Option<OwnedFd>,
    v6: Option<OwnedFd>,
}

/// The pause after a batch of probes.
pub(super) const PAUSE: Duration = Duration::from_millis(10);
/// The most probes in a batch.
const PROBES_PER_BATCH: usize = 200;
/// The most pending probes. Peers beyond that get their reset when they send something.
const MAX_PENDING: usize = 65_536;

/// Connections that still have to be probed: the own endpoint, and the peer's.
#[derive(Debug, Default)]
pub(super) struct PendingProbes(VecDeque<(SocketAddr, SocketAddr)>);

impl PendingProbes {
    pub(super) fn add(&mut self, flows: Vec<(SocketAddr, SocketAddr)>) {
        let room = MAX_PENDING - self.0.len().min(MAX_PENDING);
        self.0.extend(flows.into_iter().take(room));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sends a batch of probes. Returns whether more are left, for after a pause.
    pub(super) fn send_batch(&mut self, probe_sockets: &ProbeSockets) -> bool {
        for (own, other) in self.0.drain(..self.0.len().min(PROBES_PER_BATCH)) {
            // A peer that cannot be reached gets its reset when it sends something.
            let _ = probe_sockets.send(own, other);
        }
        !self.is_empty()
    }
}

/// Bytes of a TCP header without options.
const TCP_HEADER_LEN: usize = 20;
const ACK: u8 = 16;
/// The usual limit of hops.
const HOP_LIMIT: u8 = 64;

impl ProbeSockets {
    /// Opens the sockets in the calling thread's network namespace. A version of IP that the kernel does not have is left out.
    pub(super) fn open() -> Self {
        let open = |family| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (kind, protocol) = (SocketType::RAW, Some(ipproto::RAW));
            let socket = rustix::net::socket_with(family, kind, flags, protocol).ok()?;
            // Packets of the protocol 255, which nobody uses, come here all the same.
            rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 0).ok()?;
            Some(socket)
        };
        ProbeSockets { v4: open(AddressFamily::INET), v6: open(AddressFamily::INET6) }
    }

    /// Sends a probe to the peer of a connection.
    pub(super) fn send(&self, own: SocketAddr, other: SocketAddr) -> io::Result<()> {
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
    let protocol = transom_wire::Protocol::TCP.0;
    let mut packet = Vec::with_capacity(60);
    match (own.ip(), other.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            packet.extend([0x45, 0, 0, 0, 0, 0, 0, 0, HOP_LIMIT, protocol, 0, 0]);
            packet.extend(from.octets());
            packet.extend(to.octets());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            packet.extend([0x60, 0, 0, 0, 0, TCP_HEADER_LEN as u8, protocol, HOP_LIMIT]);
            packet.extend(from.octets());
            packet.extend(to.octets());
        }
        _ => return None,
    }
    packet.extend(probe(own, other));
    Some(packet)
}

/// A bare ACK with sequence and acknowledgement number 0.
fn probe(own: SocketAddr, other: SocketAddr) -> [u8; TCP_HEADER_LEN] {
    let mut segment = [0; TCP_HEADER_LEN];
    segment[..2].copy_from_slice(&own.port().to_be_bytes());
    segment[2..4].copy_from_slice(&other.port().to_be_bytes());
    segment[12] = (TCP_HEADER_LEN as u8 / 4) << 4;
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
    fn probes_are_sent_in_batches_and_their_number_is_bounded() {
        let end: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let mut pending_probes = PendingProbes::default();
        pending_probes.add(vec![(end, end); MAX_PENDING]);
        pending_probes.add(vec![(end, end); 10]);
        assert_eq!(pending_probes.0.len(), MAX_PENDING);
        // Nothing is sent without sockets.
        let silent = ProbeSockets { v4: None, v6: None };
        assert!(pending_probes.send_batch(&silent));
        assert_eq!(pending_probes.0.len(), MAX_PENDING - PROBES_PER_BATCH);
        while pending_probes.send_batch(&silent) {}
        assert!(pending_probes.is_empty());
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
