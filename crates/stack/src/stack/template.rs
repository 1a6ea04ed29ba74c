//! The constant parts of a connection's packets, prepared once.
//!
//! Almost every packet of a connection differs from the one before in the same few fields. On the way out the rest is copied from here, and
//! the checksums continue from the sums of the constant parts. On the way in, a packet is first compared with the expected one. If it is a
//! plain segment of the expected flow, its few variable fields are read directly, without parsing. Every other packet takes the ordinary
//! way, which gives the same result.

use super::transmit::IpFields;
use crate::flow::FlowKey;
use core::net::IpAddr;
use core::ops::Range;
use transom_tcp::Transmit;
use transom_wire::checksum::{Sum, pseudo_header};
use transom_wire::offload::{
    RxChecksum, RxOffload, SegmentKind, Segmentation, TxChecksum, TxOffload,
};
use transom_wire::{Flags, Ipv4Header, Ipv6Header, Options, Protocol, Seq, TcpHeader, Timestamps};

/// Room for the headers of one packet: IPv6, and TCP with all its options.
pub(super) const MAX_HEADERS: usize = 40 + 60;

/// NOP, NOP, timestamps of ten bytes: how every stack sends them.
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];

/// The invariable part of one connection's packets.
#[derive(Debug)]
pub(super) struct Template {
    /// IP header and the two ports, as sent; lengths and checksums are zero.
    bytes: [u8; 44],
    ip_len: u8,
    v4: bool,
    /// Whether the packets need an identification: they may be fragmented.
    identified: bool,
    /// The sum of the IPv4 header.
    ip_sum: Sum,
    /// The sum of the pseudo-header without the length.
    pseudo: Sum,
    /// The sum of the two ports.
    ports: Sum,
}

impl Template {
    pub(super) fn new(key: &FlowKey, ip_fields: &IpFields) -> Option<Self> {
        let mut bytes = [0; 44];
        let traffic_class = ip_fields.dscp << 2;
        let (ip_len, v4) = match (key.local, key.remote) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let header = Ipv4Header {
                    traffic_class,
                    ttl: ip_fields.hop_limit,
                    dont_fragment: ip_fields.dont_fragment,
                    ..Ipv4Header::new(src, dst, Protocol::TCP)
                };
                (header.emit(0, &mut bytes).ok()?, true)
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let header = Ipv6Header {
                    traffic_class,
                    hop_limit: ip_fields.hop_limit,
                    ..Ipv6Header::new(src, dst, Protocol::TCP)
                };
                (header.emit(0, &mut bytes).ok()?, false)
            }
            _ => return None,
        };
        if v4 {
            bytes[2..4].fill(0); // total length
            bytes[10..12].fill(0); // checksum
        }
        bytes[ip_len..ip_len + 2].copy_from_slice(&key.local_port.to_be_bytes());
        bytes[ip_len + 2..ip_len + 4].copy_from_slice(&key.remote_port.to_be_bytes());
        Some(Template {
            ip_sum: Sum::of(&bytes[..ip_len]),
            pseudo: pseudo_header(key.local, key.remote, Protocol::TCP, 0),
            ports: Sum(key.local_port) + Sum(key.remote_port),
            bytes,
            ip_len: ip_len as u8,
            v4,
            identified: v4 && !ip_fields.dont_fragment,
        })
    }

    fn ip_len(&self) -> usize {
        usize::from(self.ip_len)
    }

    /// Writes the headers of a segment with `payload`. `ident` is the identification of a packet that may be fragmented, the first one of a
    /// super-segment. Returns their length and what is left to the device.
    pub(super) fn write(
        &self,
        out: &mut [u8; MAX_HEADERS],
        transmit: &Transmit<'_>,
        device_completes: bool,
        ident: u16,
    ) -> Option<(usize, TxOffload)> {
        let Transmit { header, payload, segment_size, ecn } = transmit;
        let ident = if self.identified { ident } else { 0 };
        let ip_len = self.ip_len();
        out[..44].copy_from_slice(&self.bytes);
        let codepoint = ecn.bits();
        out[1] |= if self.v4 { codepoint } else { codepoint << 4 };
        let tcp = &mut out[ip_len..];
        // The header's sum is taken from the values: reading back what was just written would have to wait for it.
        let (tcp_len, tcp_sum) = match header.options {
            Options {
                timestamps: Some(stamps),
                mss: None,
                window_scale: None,
                sack_permitted: false,
                user_timeout: None,
                fast_open: None,
                partial: None,
                acc_ecn: None,
                sack,
            } if sack.is_empty() => {
                let tcp = tcp.first_chunk_mut::<32>()?;
                let offset_and_flags = (8 << 12) | (header.flags.bits() & 0x01ff);
                let words = [header.seq.get(), header.ack.get(), stamps.value, stamps.echo];
                tcp[4..8].copy_from_slice(&words[0].to_be_bytes());
                tcp[8..12].copy_from_slice(&words[1].to_be_bytes());
                tcp[12..14].copy_from_slice(&offset_and_flags.to_be_bytes());
                tcp[14..16].copy_from_slice(&header.window.to_be_bytes());
                tcp[18..20].copy_from_slice(&header.urgent.to_be_bytes());
                tcp[20..24].copy_from_slice(&TIMESTAMPS);
                tcp[24..28].copy_from_slice(&words[2].to_be_bytes());
                tcp[28..32].copy_from_slice(&words[3].to_be_bytes());
                let long: u64 = words.into_iter().map(u64::from).sum();
                let short = u64::from(offset_and_flags)
                    + u64::from(header.window)
                    + u64::from(header.urgent)
                    + 0x0101
                    + 0x080a;
                (32, self.ports + Sum::of_value(long + short))
            }
            _ => {
                let len = header.emit(tcp).ok()?;
                (len, Sum::of(tcp.get(..len)?))
            }
        };
        let len = u16::try_from(tcp_len + payload[0].len() + payload[1].len()).ok()?;
        if self.v4 {
            let total = len.checked_add(ip_len as u16)?;
            out[2..4].copy_from_slice(&total.to_be_bytes());
            out[4..6].copy_from_slice(&ident.to_be_bytes());
            let sum = self.ip_sum + Sum(total) + Sum(ident) + Sum(u16::from(codepoint));
            let checksum = sum.checksum();
            out[10..12].copy_from_slice(&checksum.to_be_bytes());
        } else {
            out[4..6].copy_from_slice(&len.to_be_bytes());
        }
        let pseudo = self.pseudo + Sum(len);
        let headers = ip_len + tcp_len;
        // [MUST-2]
        let (field, checksum) = if device_completes {
            (pseudo.0, TxChecksum::Partial { start: ip_len as u16, offset: 16 })
        } else {
            let sum = tcp_sum + Sum::of_slices(payload);
            ((pseudo + sum).checksum(), TxChecksum::Complete)
        };
        out.get_mut(ip_len + 16..ip_len + 18)?.copy_from_slice(&field.to_be_bytes());
        let kind = if self.v4 { SegmentKind::Tcp4 } else { SegmentKind::Tcp6 };
        let segmentation = segment_size.map(|segment_size| Segmentation {
            kind,
            segment_size,
            header_len: headers as u16,
        });
        Some((headers, TxOffload { checksum, segmentation }))
    }

    /// Reads a packet that is an ordinary segment of this connection: no IP options, no fragment, ACK and perhaps PSH, and
    /// timestamps as the only option. `None` if it is anything else, or damaged.
    pub(super) fn read(
        &self,
        packet: &[u8],
        offload: RxOffload,
    ) -> Option<(TcpHeader, Range<usize>)> {
        let ip_len = self.ip_len();
        let (ip, transport) = packet.split_at_checked(ip_len)?;
        let tcp = transport.first_chunk::<32>()?;
        let len = u16::try_from(transport.len()).ok()?;
        if self.v4 {
            let ip = ip.first_chunk::<20>()?;
            let flags_and_offset = u16::from_be_bytes([ip[6], ip[7]]);
            let plain = ip[0] == 0x45
                && usize::from(u16::from_be_bytes([ip[2], ip[3]])) == packet.len()
                && flags_and_offset & 0xbfff == 0
                && ip[9] == Protocol::TCP.0
                && ip[12..16] == self.bytes[16..20]
                && ip[16..20] == self.bytes[12..16]
                && Sum::of(ip).is_valid();
            if !plain {
                return None;
            }
        } else {
            let ip = ip.first_chunk::<40>()?;
            let plain = ip[0] >> 4 == 6
                && u16::from_be_bytes([ip[4], ip[5]]) == len
                && ip[6] == Protocol::TCP.0
                && ip[8..24] == self.bytes[24..40]
                && ip[24..40] == self.bytes[8..24];
            if !plain {
                return None;
            }
        }
        let ports = &self.bytes[ip_len..ip_len + 4];
        let plain = tcp[0..2] == ports[2..4]
            && tcp[2..4] == ports[0..2]
            && tcp[12] == 0x80
            && tcp[13] & !(Flags::PSH.bits() as u8) == Flags::ACK.bits() as u8
            && tcp[20..24] == TIMESTAMPS;
        if !plain {
            return None;
        }
        // [MUST-3]
        if offload.checksum == RxChecksum::Unverified
            && !(self.pseudo + Sum(len) + Sum::of(transport)).is_valid()
        {
            return None;
        }
        let word = |at: usize| {
            tcp.get(at..).and_then(|rest| rest.first_chunk::<4>()).map(|b| u32::from_be_bytes(*b))
        };
        let header = TcpHeader {
            src_port: u16::from_be_bytes([tcp[0], tcp[1]]),
            dst_port: u16::from_be_bytes([tcp[2], tcp[3]]),
            seq: Seq::new(word(4)?),
            ack: Seq::new(word(8)?),
            flags: Flags::from_bits_truncate(u16::from(tcp[13])),
            window: u16::from_be_bytes([tcp[14], tcp[15]]),
            urgent: 0,
            options: Options {
                timestamps: Some(Timestamps { value: word(24)?, echo: word(28)? }),
                ..Options::default()
            },
        };
        Some((header, ip_len + 32..packet.len()))
    }
}

#[cfg(test)]
#[path = "template/tests.rs"]
mod tests;
