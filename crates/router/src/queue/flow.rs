//! The flow of a packet, for queues that keep flows apart.
//!
//! A queue knows numbers only. [`FlowHasher`] makes them of a packet's addresses, protocol and ports with a keyed hash: an attacker chooses the
//! addresses, and must not choose whose queue they share (RFC 8290, section 5.3). Packets without readable ports are a flow for each pair of
//! addresses and protocol: fragments, whose ports only the first one has, and protocols without ports.

use siphasher::sip::SipHasher13;

use core::hash::Hasher;
use transom_wire::Protocol;

/// The flow of a packet: keyed hashes of what its header says. The default is that of packets of which nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// Of addresses, protocol and ports.
    pub(crate) id: u64,
    /// Of the source address.
    pub(crate) source: u64,
    /// Of the destination address.
    pub(crate) destination: u64,
}

#[cfg(test)]
impl Flow {
    /// A flow with this number, between hosts with these numbers.
    pub(crate) const fn numbered(id: u64, source: u64, destination: u64) -> Self {
        Flow { id, source, destination }
    }
}

/// Finds the flow of packets.
#[derive(Clone, Debug)]
pub struct FlowHasher {
    secret: [u8; 16],
}

impl FlowHasher {
    /// One with a secret key, which nobody outside should know.
    pub const fn new(secret: [u8; 16]) -> Self {
        FlowHasher { secret }
    }

    fn hash(&self, parts: &[&[u8]]) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        parts.iter().for_each(|part| hasher.write(part));
        hasher.finish()
    }

    /// The flow of a packet that begins with its IP header. What is no IP packet is of the flow of such packets.
    pub fn flow(&self, packet: &[u8]) -> Flow {
        let Some(Tuple { source, destination, protocol, ports }) = Tuple::of(packet) else {
            return Flow::default();
        };
        Flow {
            id: self.hash(&[source, destination, &[protocol], ports]),
            source: self.hash(&[source]),
            destination: self.hash(&[destination]),
        }
    }
}

/// What tells flows apart.
#[derive(Debug, PartialEq, Eq)]
struct Tuple<'a> {
    source: &'a [u8],
    destination: &'a [u8],
    protocol: u8,
    ports: &'a [u8],
}

impl<'a> Tuple<'a> {
    fn of(packet: &'a [u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Tuple::ipv4(packet),
            6 => Tuple::ipv6(packet),
            _ => None,
        }
    }

    fn ipv4(packet: &'a [u8]) -> Option<Self> {
        let ip: &[u8; 20] = packet.first_chunk()?;
        // More fragments, or not the first one.
        let fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff != 0;
        let at = usize::from(ip[0] & 15) * 4;
        let (source, destination) = (packet.get(12..16)?, packet.get(16..20)?);
        let ports = if fragment || at < 20 { &[] } else { ports(packet, ip[9], at) };
        Some(Tuple { source, destination, protocol: ip[9], ports })
    }

    fn ipv6(packet: &'a [u8]) -> Option<Self> {
        let ip: &[u8; 40] = packet.first_chunk()?;
        let (source, destination) = (packet.get(8..24)?, packet.get(24..40)?);
        let (mut next, mut at) = (ip[6], 40);
        for _ in 0..transom_wire::MAX_EXTENSION_HEADERS {
            match Protocol(next) {
                Protocol::HOP_BY_HOP | Protocol::ROUTING | Protocol::DESTINATION_OPTIONS => {}
                _ => break,
            }
            let Some(header) = packet.get(at..).and_then(|rest| rest.first_chunk::<8>()) else {
                break;
            };
            next = header[0];
            at += (usize::from(header[1]) + 1) * 8;
        }
        Some(Tuple { source, destination, protocol: next, ports: ports(packet, next, at) })
    }
}

/// The ports behind a network header that ends at `at`, of a protocol that begins with them.
fn ports(packet: &[u8], protocol: u8, at: usize) -> &[u8] {
    /// Datagram congestion control protocol, stream control transmission protocol, UDP-Lite.
    const OTHERS: [u8; 3] = [33, 132, 136];
    let has_ports =
        matches!(Protocol(protocol), Protocol::TCP | Protocol::UDP) || OTHERS.contains(&protocol);
    packet.get(at..at + 4).filter(|_| has_ports).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn four(protocol: u8, fragment: u16, ports: [u8; 4]) -> Vec<u8> {
        let mut packet = Vec::from([0x45, 0, 0, 28, 0, 0]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(ports);
        packet
    }

    #[test]
    fn flows_differ_by_addresses_protocol_and_ports() {
        let hasher = FlowHasher::new([7; 16]);
        let tcp = hasher.flow(&four(6, 0, [0, 80, 1, 2]));
        let other_port = hasher.flow(&four(6, 0, [0, 80, 1, 3]));
        let udp = hasher.flow(&four(17, 0, [0, 80, 1, 2]));
        assert!(tcp.id != other_port.id && tcp.id != udp.id);
        assert_eq!((tcp.source, tcp.destination), (udp.source, udp.destination));
        assert_ne!(tcp.source, tcp.destination);
        // All fragments are one flow, and so is what has no ports.
        let first = hasher.flow(&four(6, 0x2000, [0, 80, 1, 2]));
        assert_eq!(first, hasher.flow(&four(6, 0x00b9, [9, 9, 9, 9])));
        assert_eq!(hasher.flow(&four(1, 0, [1; 4])), hasher.flow(&four(1, 0, [2; 4])));
        // Somebody without the key sees other numbers.
        assert_ne!(FlowHasher::new([8; 16]).flow(&four(6, 0, [0, 80, 1, 2])), tcp);
    }

    #[test]
    fn extension_headers_are_passed_over() {
        let six = |next: u8, behind: &[u8]| {
            let mut packet = Vec::from([0x60, 0, 0, 0, 0, 20, next, 64]);
            packet.extend([1; 16]);
            packet.extend([2; 16]);
            packet.extend(behind);
            packet
        };
        let plain = six(17, &[0, 53, 4, 0]);
        let with_options = six(60, &[17, 0, 0, 0, 0, 0, 0, 0, 0, 53, 4, 0]);
        let hasher = FlowHasher::new([7; 16]);
        assert_eq!(hasher.flow(&plain), hasher.flow(&with_options));
        // A fragment's ports are behind a header that is not passed over.
        assert_eq!(Tuple::of(&six(44, &[17, 0, 0, 1, 0, 0, 0, 0, 0, 53])).unwrap().ports, &[]);
    }

    #[test]
    fn unreadable_packets_are_one_flow() {
        let hasher = FlowHasher::new([7; 16]);
        for packet in [&[][..], &[0x45], &[0x60; 39], &[0x10; 60]] {
            assert_eq!(hasher.flow(packet), Flow::default());
        }
        // A header length that lies, and ports that are cut off.
        let mut lying = four(6, 0, [0, 80, 1, 2]);
        lying[0] = 0x41;
        assert_eq!(Tuple::of(&lying).unwrap().ports, &[]);
        assert_eq!(Tuple::of(&four(6, 0, [1; 4])[..22]).unwrap().ports, &[]);
    }
}
