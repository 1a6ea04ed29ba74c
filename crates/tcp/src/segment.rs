//! The input and output of a connection.

use crate::packet::Payload;
use crate::time::Instant;
use transom_wire::{Ecn, Flags, Seq, TcpHeader};

/// A received segment, or several in a row merged by the device into one.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// The TCP header; for a merged super-segment, that of the first with the flags of all.
    pub header: &'a TcpHeader,
    /// The data.
    pub payload: Payload<'a>,
    /// For a super-segment, how many payload bytes each segment had (but the last).
    pub segment_size: Option<u16>,
    /// The ECN codepoint of the packet, the same for all that were merged.
    pub ecn: Ecn,
}

impl Segment<'_> {
    /// SEG.LEN: sequence space occupied, counting SYN and FIN.
    pub(crate) fn sequence_len(&self) -> u64 {
        let flags = self.header.flags;
        self.payload.len() as u64
            + u64::from(flags.contains(Flags::SYN))
            + u64::from(flags.contains(Flags::FIN))
    }
}

/// A segment (or a super-segment to be cut by the device) ready to leave.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// The TCP header, its checksum still to be computed.
    pub header: TcpHeader,
    /// The data, borrowed from the send buffer, in at most two pieces.
    pub payload: [&'a [u8]; 2],
    /// For a super-segment, how many payload bytes each segment takes (but the last).
    pub segment_size: Option<u16>,
    /// The ECN codepoint for the packet.
    pub ecn: Ecn,
}

impl Transmit<'_> {
    /// Bytes of payload.
    pub fn payload_len(&self) -> usize {
        self.payload[0].len() + self.payload[1].len()
    }
}

/// The answer to a segment for which there is no connection (RFC 9293 section 3.10.7.1): a reset, unless the
/// segment is one itself.
pub fn reset_for(segment: &Segment<'_>) -> Option<TcpHeader> {
    let TcpHeader { src_port, dst_port, seq, ack, flags, .. } = *segment.header;
    if flags.contains(Flags::RST) {
        return None;
    }
    let base = TcpHeader { src_port: dst_port, dst_port: src_port, ..TcpHeader::default() };
    Some(if flags.contains(Flags::ACK) {
        TcpHeader { seq: ack, flags: Flags::RST, ..base }
    } else {
        TcpHeader {
            seq: Seq::new(0),
            ack: seq + segment.sequence_len() as u32,
            flags: Flags::RST | Flags::ACK,
            ..base
        }
    })
}

/// The timestamp clock of RFC 7323 section 5.4: milliseconds, from a separate starting point for each connection,
/// which hides the host's uptime.
pub(crate) fn timestamp_value(now: Instant, offset: u32) -> u32 {
    (now.as_millis() as u32).wrapping_add(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(flags: Flags) -> TcpHeader {
        TcpHeader {
            src_port: 1,
            dst_port: 2,
            seq: Seq::new(100),
            ack: Seq::new(700),
            flags,
            ..TcpHeader::default()
        }
    }

    #[test]
    fn resets_are_formed_as_section_3_10_7_1_says() {
        let answer = |flags, payload: &[u8]| {
            let header = header(flags);
            reset_for(&Segment {
                header: &header,
                payload: Payload::borrowed(payload),
                segment_size: None,
                ecn: transom_wire::Ecn::NotEct,
            })
        };
        let reset = answer(Flags::ACK, b"abc").unwrap();
        assert_eq!((reset.seq.get(), reset.flags), (700, Flags::RST));
        assert_eq!((reset.src_port, reset.dst_port), (2, 1));
        let reset = answer(Flags::SYN | Flags::FIN, b"abc").unwrap();
        assert_eq!((reset.seq.get(), reset.ack.get()), (0, 105));
        assert_eq!(reset.flags, Flags::RST | Flags::ACK);
        assert_eq!(answer(Flags::RST | Flags::ACK, b""), None, "a reset is never answered by one");
    }
}
