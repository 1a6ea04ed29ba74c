//! Departure of packets: whose turn it is, and the headers in front of the payload.

use super::{Reply, Stack};
use crate::flow::FlowKey;
use crate::stack::comment::Comments;
use crate::stack::receive::Origin;
use crate::stack::template::MAX_HEADERS;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::Range;
use transom_tcp::time::Instant;
use transom_tcp::{Pos, Profile, Publisher as _};
use transom_wire::checksum::{Sum, pseudo_header};
use transom_wire::offload::{RxOffload, SegmentKind, Segmentation, TxChecksum, TxOffload};
use transom_wire::{IpHeader, Protocol};

/// A packet (or a super-segment) to send: headers, up to two pieces of payload, and the work for the device.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Transmit<'a> {
    /// IP and transport header, or a whole packet.
    pub headers: &'a [u8],
    /// The payload behind them.
    pub payload: [&'a [u8]; 2],
    /// The work for the device.
    pub offload: TxOffload,
    /// The sender's state, for readers of a capture. Empty unless it is [enabled](crate::config::StackConfig::comments), and for packets without a
    /// connection.
    pub comment: &'a str,
}

impl Transmit<'_> {
    /// The packet in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        [self.headers, self.payload[0], self.payload[1]].concat()
    }
}

/// Room for the headers of one packet, reused.
#[derive(Debug)]
pub(super) struct Scratch {
    bytes: [u8; MAX_HEADERS],
    /// A whole packet that is not a connection's.
    packet: Vec<u8>,
    comment: String,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Scratch { bytes: [0; MAX_HEADERS], packet: Vec::new(), comment: String::new() }
    }
}

/// How many transmissions a connection has before the next one's turn.
const BURST: u32 = 16;

/// The fields of an IP header.
#[derive(Clone, Copy, Debug)]
pub(super) struct IpFields {
    pub(super) hop_limit: u8,
    pub(super) dscp: u8,
    /// IPv4 packets of a connection are not to be fragmented.
    pub(super) dont_fragment: bool,
}

impl IpFields {
    /// [RFC1122-3.2.1.6-1] [RFC1122-3.2.1.7-3] [RFC1122-3.2.1.7-4]
    pub(super) fn of(profile: &Profile) -> Self {
        let &Profile { hop_limit, dscp, path_mtu_discovery, .. } = profile;
        IpFields { hop_limit, dscp, dont_fragment: path_mtu_discovery.dont_fragment() }
    }
}

/// Writes IP and TCP headers in front of a payload, as the template of a connection whose packets are not to be fragmented does. Returns their length and what is left to the device.
/// [RFC8200-8.4-1]
pub(super) fn write_headers(
    out: &mut [u8; MAX_HEADERS],
    key: &FlowKey,
    ip_fields: &IpFields,
    transmit: &transom_tcp::Transmit<'_>,
    device_completes: bool,
) -> Option<(usize, TxOffload)> {
    let transom_tcp::Transmit { header, payload, segment_size, ecn } = transmit;
    let payload_len = transmit.payload_len();
    let tcp_len = header.header_len();
    let traffic_class = ip_fields.dscp << 2 | ecn.bits();
    let ip = IpHeader::new(key.local, key.remote, Protocol::TCP);
    let ip = IpHeader { traffic_class, hop_limit: ip_fields.hop_limit, ..ip };
    let ip_len = ip.emit(tcp_len + payload_len, out).ok()?;
    let headers = ip_len + tcp_len;
    let tcp = out.get_mut(ip_len..headers)?;
    header.emit(tcp).ok()?;
    let pseudo =
        pseudo_header(key.local, key.remote, Protocol::TCP, (tcp_len + payload_len) as u32);
    // [MUST-2]
    let (field, checksum) = if device_completes {
        (pseudo.0, TxChecksum::Partial { start: ip_len as u16, offset: 16 })
    } else {
        let sum = Sum::of_slices(&[tcp, payload[0], payload[1]]);
        ((pseudo + sum).checksum(), TxChecksum::Complete)
    };
    tcp.get_mut(16..18)?.copy_from_slice(&field.to_be_bytes());
    let kind = if key.local.is_ipv4() { SegmentKind::Tcp4 } else { SegmentKind::Tcp6 };
    let segmentation = segment_size.map(|segment_size| Segmentation {
        kind,
        segment_size,
        header_len: headers as u16,
    });
    Some((headers, TxOffload { checksum, segmentation }))
}

/// The next packet to send.
enum Settled {
    /// The reused packet.
    Packet,
    /// Headers of this length, and nothing else.
    Headers(usize, TxOffload),
    /// Headers of this length in front of this part of a connection's stream.
    Segment(usize, TxOffload, u32, Range<Pos>),
}

impl Stack {
    /// The next packet to send at `now`; `None` when there is none until the next call that changes the stack. The caller
    /// must send what it is given, or drop it as a network would.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'_>> {
        let Some(settled) = self.settle_next(now) else {
            self.tell_counts();
            return None;
        };
        self.counters.packets_sent += 1;
        match settled {
            Settled::Packet => Some(Transmit {
                headers: &self.scratch.packet,
                payload: [&[]; 2],
                offload: TxOffload::default(),
                comment: "",
            }),
            Settled::Headers(len, offload) => Some(Transmit {
                headers: self.scratch.bytes.get(..len)?,
                payload: [&[]; 2],
                offload,
                comment: "",
            }),
            Settled::Segment(len, offload, index, range) => {
                let payload = self.slots.get(index)?.connection.payload(range);
                let comment = &self.scratch.comment;
                Some(Transmit {
                    headers: self.scratch.bytes.get(..len)?,
                    payload,
                    offload,
                    comment,
                })
            }
        }
    }

    fn settle_next(&mut self, now: Instant) -> Option<Settled> {
        loop {
            if let Some(packet) = self.loopback.pop_front() {
                self.receive(now, &packet, RxOffload::default(), Origin::Ourselves);
            } else if let Some(reply) = self.replies.pop_front() {
                if let Some(settled) = self.settle_reply(reply) {
                    return Some(settled);
                }
            } else {
                let index = *self.ready.front()?;
                if self.turn >= BURST && self.ready.len() > 1 {
                    self.ready.rotate_left(1);
                    self.turn = 0;
                } else if let Some(settled) = self.settle_segment(now, index) {
                    self.turn += 1;
                    return Some(settled);
                } else {
                    self.ready.pop_front();
                    self.turn = 0;
                    self.touched_quietly(index, now);
                    self.settle(index);
                }
            }
        }
    }

    fn settle_reply(&mut self, reply: Reply) -> Option<Settled> {
        match reply {
            Reply::Packet(packet) => {
                if !self.has_every_address() && is_to_local(&self.config.addresses, &packet) {
                    self.loopback.push_back(packet);
                    return None;
                }
                self.scratch.packet = packet;
                Some(Settled::Packet)
            }
            Reply::Segment(key, ip_fields, header, ecn) => {
                if !self.is_local(key.local) {
                    self.counters.unsent_without_address += 1;
                    return None;
                }
                let to_self = self.is_loop(&key);
                let completes = self.config.offload.tx_checksum && !to_self;
                let out = &mut self.scratch.bytes;
                let transmit =
                    transom_tcp::Transmit { header, payload: [&[]; 2], segment_size: None, ecn };
                let (len, offload) = write_headers(out, &key, &ip_fields, &transmit, completes)?;
                if to_self {
                    self.loopback.push_back(self.scratch.bytes.get(..len)?.to_vec());
                    return None;
                }
                Some(Settled::Headers(len, offload))
            }
        }
    }

    fn settle_segment(&mut self, now: Instant, index: u32) -> Option<Settled> {
        let subject = self.subject(index, now);
        loop {
            let slot = self.slots.get_mut(index)?;
            let Some(prepared) = slot.connection.prepare(now) else {
                // Why nothing leaves was found out just now.
                slot.connection.publish_turn(&mut self.log.recorder(subject));
                return None;
            };
            slot.follow_connection();
            let of_probe = slot.template_of_probe(&prepared);
            let comments = self.config.comments.then_some(&mut self.scratch.comment);
            let mut watchers = (self.log.recorder(subject), Comments::new(comments));
            if watchers.is_on() {
                watchers.publish(&slot.connection, prepared.event());
            }
            slot.connection.publish_turn(&mut watchers);
            let mut transmit = slot.connection.transmit(&prepared);
            let to_self = slot.to_self;
            if to_self {
                // On the way to ourselves nothing has to be cut.
                transmit.segment_size = None;
            }
            let template = of_probe.as_ref().or(slot.template.as_ref())?;
            let (len, offload) = template.write(
                &mut self.scratch.bytes,
                &transmit,
                self.config.offload.tx_checksum && !to_self,
                slot.ident,
            )?;
            if !slot.ip_fields.dont_fragment {
                let size = usize::from(transmit.segment_size.unwrap_or(u16::MAX)).max(1);
                let packets = transmit.payload_len().div_ceil(size).max(1);
                slot.ident = slot.ident.wrapping_add(packets as u16);
            }
            if slot.homeless {
                self.counters.unsent_without_address += 1;
                continue;
            }
            if !to_self {
                return Some(Settled::Segment(len, offload, index, prepared.range()));
            }
            let headers = self.scratch.bytes.get(..len)?;
            let packet = [headers, transmit.payload[0], transmit.payload[1]].concat();
            self.loopback.push_back(packet);
        }
    }

    /// Collects signals that sending may have caused, without another turn in the ready queue.
    fn touched_quietly(&mut self, index: u32, now: Instant) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.ready = true;
            self.touched(index, now);
        }
    }
}

/// Whether a packet we built is for ourselves.
fn is_to_local(addresses: &[(IpAddr, u8)], packet: &[u8]) -> bool {
    transom_wire::IpPacket::parse(packet)
        .is_ok_and(|ip| addresses.iter().any(|&(address, _)| address == ip.dst()))
}
