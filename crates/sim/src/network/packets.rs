//! The packets that are somewhere in the network.
//!
//! Simulated applications send zeros, so only their number is kept. A packet is then its headers, and its checksum is only
//! made only when needed: when a wire damages it, a capture writes it down, or it leaves through a gateway. Packets from a
//! gateway have real bytes, and keep them.

use super::NetworkError;
use std::net::SocketAddrV4;
use transom_router::window::ChecksumState;
use transom_stack::Transmit;
use transom_tcp::ZEROS;
use transom_wire::checksum::pseudo_header;
use transom_wire::ip::{Ecn, peek_ecn, set_ecn};
use transom_wire::offload::{Segmenter, TxChecksum, TxOffload};
use transom_wire::{IpPacket, Ipv4Header, Protocol, UdpHeader, UdpPacket};

/// The longest headers kept in place: IPv4 or IPv6, and TCP with all its options.
const MAX_HEADERS: usize = 40 + 60;

/// The name of a packet in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketId(u32);

/// A packet.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    headers: [u8; MAX_HEADERS],
    header_len: u8,
    /// Zeros behind the headers.
    zeros: u32,
    /// All of a packet that is not just headers and zeros.
    whole: Option<Box<[u8]>>,
    offload: TxOffload,
    origin: Origin,
    /// How many copies of it are on their way.
    copies: u8,
}

/// The state of a packet's checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A host of the network has sent it: they are right, or will be once they are made.
    Within,
    /// It has come in through a gateway: they are what its sender has made of them.
    Outside,
    /// A wire has damaged it.
    Damaged,
}

impl Packet {
    /// A packet that a host sends.
    pub(super) fn of(transmit: &Transmit<'_>) -> Self {
        let mut packet = Packet {
            headers: [0; MAX_HEADERS],
            header_len: 0,
            zeros: 0,
            whole: None,
            offload: transmit.offload,
            origin: Origin::Within,
            copies: 1,
        };
        let len: usize = transmit.payload.iter().map(|slice| slice.len()).sum();
        let is_zeros = transmit.payload.iter().all(|slice| {
            // Looking at them would cost as much as carrying them.
            let (zeros, ours) = (ZEROS.as_ptr_range(), slice.as_ptr_range());
            let is_part = zeros.start <= ours.start && ours.end <= zeros.end;
            is_part || ZEROS.starts_with(slice)
        });
        match packet.headers.get_mut(..transmit.headers.len()) {
            Some(headers) if is_zeros => {
                headers.copy_from_slice(transmit.headers);
                packet.header_len = transmit.headers.len() as u8;
                packet.zeros = len as u32;
            }
            _ => packet.whole = Some(transmit.to_vec().into_boxed_slice()),
        }
        packet
    }

    /// A UDP datagram of `payload` zeros; `None` if it were longer than an IP packet can be.
    pub(super) fn datagram(src: SocketAddrV4, dst: SocketAddrV4, payload: u16) -> Option<Self> {
        let mut headers = [0; MAX_HEADERS];
        let udp = UdpHeader { src_port: src.port(), dst_port: dst.port() };
        let len = UdpHeader::LEN + usize::from(payload);
        let ip = Ipv4Header::new(*src.ip(), *dst.ip(), Protocol::UDP);
        let ip_len = ip.emit(len, &mut headers).ok()?;
        let udp_len = udp.emit(payload.into(), headers.get_mut(ip_len..)?).ok()?;
        let sum = pseudo_header((*src.ip()).into(), (*dst.ip()).into(), Protocol::UDP, len as u32);
        let field = headers.get_mut(ip_len + UdpHeader::CHECKSUM_OFFSET..)?.first_chunk_mut()?;
        *field = sum.0.to_be_bytes();
        let checksum =
            TxChecksum::Partial { start: ip_len as u16, offset: UdpHeader::CHECKSUM_OFFSET as u16 };
        Some(Packet {
            headers,
            header_len: (ip_len + udp_len) as u8,
            zeros: payload.into(),
            whole: None,
            offload: TxOffload { checksum, segmentation: None },
            origin: Origin::Within,
            copies: 1,
        })
    }

    /// The port that a sound datagram is for, and the length of its payload.
    pub(super) fn as_datagram(&self) -> Option<(u16, usize)> {
        if let Some(whole) = &self.whole {
            let ip = IpPacket::parse(whole).ok()?;
            if ip.protocol() != Protocol::UDP || ip.fragment().is_some() {
                return None;
            }
            let udp = UdpPacket::parse(ip.payload()).ok()?;
            let sound = udp.checksum_ok(ip.src(), ip.dst());
            return sound.then_some((udp.header.dst_port, udp.payload.len()));
        }
        // Protocol and destination port of an IPv4 packet without options, as all of ours are.
        let headers = self.headers.get(..self.header_len.into())?;
        match *headers {
            [0x45, _, _, _, _, _, _, _, _, protocol, ..] if protocol == Protocol::UDP.0 => {
                let port = headers.get(22..)?.first_chunk()?;
                Some((u16::from_be_bytes(*port), self.zeros()))
            }
            _ => None,
        }
    }

    /// A packet that a wire has damaged.
    pub(super) fn damaged(bytes: Vec<u8>) -> Self {
        Self::whole(bytes, Origin::Damaged)
    }

    /// A packet that came in through a gateway.
    pub(super) fn from_outside(bytes: Vec<u8>) -> Self {
        Self::whole(bytes, Origin::Outside)
    }

    fn whole(bytes: Vec<u8>, origin: Origin) -> Self {
        Packet {
            headers: [0; MAX_HEADERS],
            header_len: 0,
            zeros: 0,
            whole: Some(bytes.into_boxed_slice()),
            offload: TxOffload::default(),
            origin,
            copies: 1,
        }
    }

    pub(super) fn is_damaged(&self) -> bool {
        self.origin == Origin::Damaged
    }

    pub(super) fn is_from_outside(&self) -> bool {
        self.origin == Origin::Outside
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        match &self.whole {
            Some(whole) => whole.len(),
            None => usize::from(self.header_len) + self.zeros as usize,
        }
    }

    /// Its headers, or all of it.
    pub(super) fn headers(&self) -> &[u8] {
        match &self.whole {
            Some(whole) => whole,
            None => self.headers.get(..self.header_len.into()).unwrap_or_default(),
        }
    }

    pub(super) fn headers_mut(&mut self) -> &mut [u8] {
        match &mut self.whole {
            Some(whole) => whole,
            None => self.headers.get_mut(..self.header_len.into()).unwrap_or_default(),
        }
    }

    /// Its ECN codepoint.
    pub(super) fn ecn(&self) -> Ecn {
        peek_ecn(self.headers())
    }

    /// Writes a codepoint into its header.
    pub(super) fn set_ecn(&mut self, ecn: Ecn) {
        // A header that a wire has damaged beyond recognition cannot be changed, and is not going to be understood either.
        let _ = set_ecn(self.headers_mut(), ecn);
    }

    /// The checksum field, as a router finds it.
    pub(super) fn checksum_state(&self) -> ChecksumState {
        match self.offload.checksum {
            TxChecksum::Partial { .. } => ChecksumState::ToBeMade,
            _ => ChecksumState::Complete,
        }
    }

    /// The zeros behind its headers.
    pub(super) fn zeros(&self) -> usize {
        self.zeros as usize
    }

    /// Its bytes as they are on the wire, checksums included, when it is needed no more.
    pub(super) fn into_bytes(self) -> Result<Vec<u8>, NetworkError> {
        match self.whole {
            // Only a packet of a simulated host still lacks checksums.
            Some(whole) if self.origin != Origin::Within => Ok(whole.into_vec()),
            _ => self.bytes(),
        }
    }

    /// Its bytes as they are on the wire, checksums included.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, NetworkError> {
        let zeros = ZEROS.get(..self.zeros()).unwrap_or_default();
        let mut segmenter = Segmenter::new(self.headers(), [zeros, &[]], &self.offload)?;
        let mut bytes = vec![0; segmenter.headers_len()];
        let Some(segment) = segmenter.next_segment(&mut bytes)? else { return Ok(bytes) };
        bytes.truncate(segment.header_len);
        segment.payload.iter().for_each(|slice| bytes.extend_from_slice(slice));
        Ok(bytes)
    }
}

/// All packets in the network, by name.
#[derive(Debug, Default)]
pub(super) struct Packets {
    places: Vec<Option<Packet>>,
    free: Vec<u32>,
    /// All copies of all packets.
    copies: usize,
}

impl Packets {
    pub(super) fn insert(&mut self, packet: Packet) -> PacketId {
        self.copies += usize::from(packet.copies);
        match self.free.pop() {
            Some(place) => {
                if let Some(slot) = self.places.get_mut(place as usize) {
                    *slot = Some(packet);
                }
                PacketId(place)
            }
            None => {
                self.places.push(Some(packet));
                // Memory ends long before the numbers do.
                PacketId((self.places.len() - 1) as u32)
            }
        }
    }

    pub(super) fn get_mut(&mut self, id: PacketId) -> Option<&mut Packet> {
        self.places.get_mut(id.0 as usize)?.as_mut()
    }

    /// There is one more copy of it.
    pub(super) fn duplicate(&mut self, id: PacketId) {
        if let Some(packet) = self.get_mut(id) {
            packet.copies += 1;
            self.copies += 1;
        }
    }

    /// The packet, for changing one copy of it alone.
    pub(super) fn own(&mut self, id: PacketId) -> PacketId {
        match self.get_mut(id) {
            Some(packet) if packet.copies > 1 => {
                packet.copies -= 1;
                let copy = Packet { copies: 1, ..packet.clone() };
                self.copies -= 1;
                self.insert(copy)
            }
            _ => id,
        }
    }

    /// Takes a packet of which there is one copy.
    pub(super) fn take(&mut self, id: PacketId) -> Option<Packet> {
        let packet = self.places.get_mut(id.0 as usize)?.take()?;
        self.free.push(id.0);
        self.copies -= usize::from(packet.copies);
        Some(packet)
    }

    /// One copy of it has arrived or is lost.
    pub(super) fn release(&mut self, id: PacketId) {
        let Some(slot) = self.places.get_mut(id.0 as usize) else { return };
        let Some(packet) = slot else { return };
        packet.copies -= 1;
        self.copies -= 1;
        if packet.copies == 0 {
            *slot = None;
            self.free.push(id.0);
        }
    }

    /// How many there are, each copy by itself.
    pub(super) fn len(&self) -> usize {
        self.copies
    }
}
