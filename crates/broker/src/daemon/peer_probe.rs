//! Probes that reset the connections of an ended holder, and find out whether they are reset.
//!
//! After the end of a lease the kernel resets any segment in its connections. A peer that only waits sends none, and would wait on. So the broker sends
//! each peer a bare ACK outside its window. The peer answers with an ACK (RFC 9293, section 3.10.7.4), and the kernel resets that. A peer without the
//! connection answers with a RST whose sequence number is the probe's acknowledgement number (section 3.10.7.1). That number is random: who did not
//! see the probe cannot forge the answer (as in RFC 5961, section 5).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto};
use transom_wire::checksum;

use super::layout::Flow;

/// Raw sockets, one for each version of IP. They carry whole packets, and so hear nothing: to hear TCP they would get a copy of every packet of the
/// host's.
#[derive(Debug)]
pub(super) struct ProbeSockets {
    v4: Option<OwnedFd>,
    v6: Option<OwnedFd>,
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

    /// Sends a probe to the peer of a connection, with these numbers.
    pub(super) fn send(&self, flow: &Flow, sequence: u32, acknowledged: u32) -> io::Result<()> {
        let Flow { own, peer: other } = *flow;
        let socket = if own.is_ipv4() { &self.v4 } else { &self.v6 };
        let socket = socket.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let packet =
            packet(own, other, sequence, acknowledged).ok_or(io::ErrorKind::InvalidInput)?;
        // The route may depend on the source. A raw socket's port is a protocol.
        rustix::net::bind(socket, &SocketAddr::new(own.ip(), 0))?;
        rustix::net::sendto(socket, &packet, SendFlags::NOSIGNAL, &SocketAddr::new(other.ip(), 0))?;
        Ok(())
    }
}

/// The probe in an IP packet; `None` if the two are not of one version. The kernel fills in the length, the number and the checksum of an IPv4
/// header (raw(7)).
fn packet(own: SocketAddr, other: SocketAddr, sequence: u32, acknowledged: u32) -> Option<Vec<u8>> {
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
    packet.extend(probe(own, other, sequence, acknowledged));
    Some(packet)
}

/// The sequence number of a probe. Those of one connection are far apart: at most one of them is in a window.
pub(super) fn sequence(nonce: u32, attempt: u32) -> u32 {
    // An odd factor: all of these are different.
    nonce.rotate_left(13).wrapping_add(attempt.wrapping_mul(0x6000_0001))
}

/// A bare ACK.
fn probe(
    own: SocketAddr,
    other: SocketAddr,
    sequence: u32,
    acknowledged: u32,
) -> [u8; TCP_HEADER_LEN] {
    let mut segment = [0; TCP_HEADER_LEN];
    segment[..2].copy_from_slice(&own.port().to_be_bytes());
    segment[2..4].copy_from_slice(&other.port().to_be_bytes());
    segment[4..8].copy_from_slice(&sequence.to_be_bytes());
    segment[8..12].copy_from_slice(&acknowledged.to_be_bytes());
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
    fn a_probe_is_a_segment() {
        let (own, other) = ("192.0.2.1:80".parse().unwrap(), "192.0.2.2:4000".parse().unwrap());
        let segment = probe(own, other, 0x0102_0304, 0x0506_0708);
        assert_eq!(segment[..12], [0, 80, 15, 160, 1, 2, 3, 4, 5, 6, 7, 8]);
        let mut whole = packet(own, other, 0x0102_0304, 0x0506_0708).unwrap();
        assert_eq!(whole[20..], segment);
        // As the kernel fills it in.
        whole[3] = 40;
        assert!(transom_wire::IpPacket::parse(&whole).unwrap().transport_checksum_ok());
        let v6 = "[2001:db8::1]:80".parse().unwrap();
        assert_eq!(packet(v6, v6, 0, 0).unwrap().len(), 60);
        assert_eq!(packet(own, v6, 0, 0), None);
    }

    #[test]
    fn the_sequence_numbers_of_a_connections_probes_are_far_apart() {
        for first in 0..4u32 {
            for second in first + 1..first + 4 {
                let apart = sequence(7, second).wrapping_sub(sequence(7, first));
                assert!(apart.min(apart.wrapping_neg()) > 1 << 29, "{first} {second}");
            }
        }
    }
}
