//! PPP: its protocol field, with and without the header of HDLC.

use super::{NoIp, by_type, byte, labels, number};

/// The address and the control field of HDLC (RFC 1662 section 3.1).
const HDLC: [u8; 2] = [0xff, 0x03];

/// A frame of PPP, whose address and control field may have been left out (RFC 1661 section 6.6).
pub(super) fn frame(frame: &[u8], at: usize) -> Result<usize, NoIp> {
    let has_both = frame.get(at..).is_some_and(|rest| rest.starts_with(&HDLC));
    protocol(frame, if has_both { at + 2 } else { at })
}

/// PPP in HDLC, or the other frames that such a line may carry: an address, a control field and a type of Ethernet.
pub(super) fn hdlc(bytes: &[u8], at: usize) -> Result<usize, NoIp> {
    match byte(bytes, at)? {
        0x0f | 0x8f => by_type(bytes, at + 2, at + 4),
        _ => frame(bytes, at),
    }
}

/// A protocol and its packet. The field has one byte when its first one would be zero (RFC 1661 sections 2 and 6.5): the lowest bit of the
/// last byte is set, and of no other.
pub(super) fn protocol(frame: &[u8], at: usize) -> Result<usize, NoIp> {
    let first = byte(frame, at)?;
    let (kind, next) =
        if first & 1 == 1 { (u16::from(first), at + 1) } else { (number(frame, at)?, at + 2) };
    match kind {
        // RFC 1332, RFC 5072.
        0x0021 | 0x0057 => Ok(next),
        // RFC 3032 section 4.3.
        0x0281 | 0x0283 => labels(frame, next),
        _ => Err(NoIp::Other),
    }
}
