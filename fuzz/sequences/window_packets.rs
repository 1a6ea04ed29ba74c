//! Packets for the scripts of window control, and what is asked of one that has passed.
//!
//! Where the TCP header is and what may have changed is found here once more, by other means than the router's own.

use std::net::{IpAddr, SocketAddr};
use transom_router::window::{ChecksumState, Verdict};
use transom_wire::checksum::{self, Sum};
use transom_wire::{Flags, IpPacket, Options, Protocol, Seq, TcpHeader};

/// Payload up to this long is there; of a longer one the headers are alone.
const WHOLE: usize = 64;

/// A packet that passes the router.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    /// It, or its headers.
    pub(super) bytes: Vec<u8>,
    pub(super) len: usize,
    pub(super) checksum: ChecksumState,
    /// A host of the script's has sent it as it is, as part of the connection that it has now.
    pub(super) honest: bool,
}

/// What a segment says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Words {
    pub(super) flags: Flags,
    pub(super) seq: Seq,
    pub(super) ack: Seq,
    pub(super) window: u16,
    pub(super) options: Options,
    pub(super) payload: usize,
    /// With an option of IPv4, or an extension header of IPv6.
    pub(super) longer: bool,
}

/// The packet, right in all respects.
pub(super) fn packet(from: SocketAddr, to: SocketAddr, words: &Words) -> Arrival {
    let header = TcpHeader {
        src_port: from.port(),
        dst_port: to.port(),
        seq: words.seq,
        ack: words.ack,
        flags: words.flags,
        window: words.window,
        options: words.options,
        ..TcpHeader::default()
    };
    let mut tcp = vec![0; 60];
    let header_len = header.emit(&mut tcp).unwrap();
    let there = if words.payload > WHOLE { 0 } else { words.payload };
    tcp.resize(header_len + there, 0xa5);
    checksum::fill(from.ip(), to.ip(), Protocol::TCP, &mut tcp, 16).unwrap();
    let (mut bytes, behind) = (Vec::new(), header_len + words.payload);
    match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let header = if words.longer { 24 } else { 20 };
            // A super-segment too long for the field has zero there.
            let total = u16::try_from(header + behind).unwrap_or(0).to_be_bytes();
            bytes.extend([0x40 | (header / 4) as u8, 0, total[0], total[1], 0, 0, 0x40, 0]);
            bytes.extend([64, 6, 0, 0]);
            bytes.extend(from.octets());
            bytes.extend(to.octets());
            // No operation.
            bytes.resize(header, 1);
            let sum = Sum::of(&bytes).checksum().to_be_bytes();
            bytes[10..12].copy_from_slice(&sum);
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let extension = [6u8, 0, 1, 4, 0, 0, 0, 0];
            let (next, more): (u8, &[u8]) = if words.longer { (0, &extension) } else { (6, &[]) };
            let payload = u16::try_from(more.len() + behind).unwrap_or(0).to_be_bytes();
            bytes.extend([0x60, 0, 0, 0, payload[0], payload[1], next, 64]);
            bytes.extend(from.octets());
            bytes.extend(to.octets());
            bytes.extend(more);
        }
        _ => unreachable!("one kind of addresses"),
    }
    let len = bytes.len() + behind;
    bytes.extend(tcp);
    Arrival { bytes, len, checksum: ChecksumState::Complete, honest: true }
}

/// Where TCP begins, in what has been found to be TCP.
fn tcp_at(bytes: &[u8]) -> usize {
    if bytes[0] >> 4 == 4 {
        return usize::from(bytes[0] & 15) * 4;
    }
    let (mut at, mut next) = (40, bytes[6]);
    while next != 6 {
        next = bytes[at];
        at += 8 + 8 * usize::from(bytes[at + 1]);
    }
    at
}

/// The window and the checksum of a header.
fn fields(bytes: &[u8], tcp: usize) -> (u16, u16) {
    let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    (word(tcp + 14), word(tcp + 16))
}

fn is_sound(bytes: &[u8]) -> bool {
    IpPacket::parse(bytes).is_ok_and(|ip| ip.transport_checksum_ok())
}

/// What must hold for any packet that has passed, whatever is known of its flow. The two windows, if it was rewritten.
pub(super) fn check_passed(
    before: &[u8],
    after: &[u8],
    checksum: ChecksumState,
    verdict: Verdict,
) -> Option<(u16, u16)> {
    assert_eq!(before.len(), after.len());
    if !verdict.rewritten {
        assert_eq!(before, after);
        return None;
    }
    let tcp = tcp_at(before);
    let fields_at = tcp + 14..tcp + 18;
    let others = |bytes: &[u8]| [&bytes[..fields_at.start], &bytes[fields_at.end..]].concat();
    assert_eq!(others(before), others(after), "more than window and checksum");
    let flags = Flags::from_bits_truncate(before[tcp + 13].into());
    let plain = match flags.contains(Flags::SYN) {
        true => !flags.contains(Flags::FIN),
        false => flags.contains(Flags::ACK),
    };
    assert!(plain && !flags.contains(Flags::RST), "{flags:?}");
    let ((was, sum), (is, new_sum)) = (fields(before, tcp), fields(after, tcp));
    assert!(is < was, "{is} instead of the receiver's {was}");
    match checksum {
        ChecksumState::ToBeMade => assert_eq!(sum, new_sum, "nobody will look at it"),
        ChecksumState::Complete => {
            // The checksum is the complement of a sum of which the window is a part (RFC 1071).
            let rest = |window: u16, sum: u16| (u32::from(window) + u32::from(sum)) % 0xffff;
            assert_eq!(
                rest(was, sum),
                rest(is, new_sum),
                "what was wrong by something is so still"
            );
            assert!(is_sound(after) || !is_sound(before), "right before, wrong now");
        }
    }
    Some((was, is))
}
