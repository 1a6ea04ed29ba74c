//! IEEE 802.11: frames with data, behind what capturing cards put before them.

use super::{NoIp, byte, chunk, ip, llc};

/// The frame control field (IEEE 802.11 9.2.4.1), low byte first.
const TYPE: u16 = 0x000c;
const DATA: u16 = 0x0008;
/// Of a frame with data: it has none; it has a field for its quality of service.
const WITHOUT_DATA: u16 = 0x0040;
const QUALITY: u16 = 0x0080;
const BOTH_DIRECTIONS: u16 = 0x0300;
const PROTECTED: u16 = 0x4000;
const ORDER: u16 = 0x8000;
/// Of the quality-of-service field: several packets in one frame.
const AGGREGATE: u8 = 0x80;

/// A frame that begins here. `is_padded` if the card brings its header to a multiple of four bytes.
pub(super) fn data(frame: &[u8], at: usize, is_padded: bool) -> Result<usize, NoIp> {
    let control = chunk(frame, at).map(u16::from_le_bytes)?;
    // What is encrypted cannot be read.
    if control & TYPE != DATA || control & (WITHOUT_DATA | PROTECTED) != 0 {
        return Err(NoIp::Other);
    }
    let mut length = 24;
    if control & BOTH_DIRECTIONS == BOTH_DIRECTIONS {
        length += 6;
    }
    if control & QUALITY != 0 {
        if byte(frame, at + length)? & AGGREGATE != 0 {
            return Err(NoIp::Other);
        }
        length += 2;
        if control & ORDER != 0 {
            length += 4;
        }
    }
    if is_padded {
        length = length.next_multiple_of(4);
    }
    llc(frame, at + length)
}

/// A radiotap header: its length, and flags that say whether the frame is padded.
pub(super) fn radiotap(frame: &[u8]) -> Result<usize, NoIp> {
    const TIME: u32 = 1;
    const FLAGS: u32 = 2;
    const PADDED: u8 = 0x20;
    /// Another word of bits follows.
    const MORE: u32 = 1 << 31;
    let length = usize::from(chunk(frame, 2).map(u16::from_le_bytes)?);
    let word = |at: usize| chunk(frame, at).map(u32::from_le_bytes);
    let present = word(4)?;
    let mut at = 4;
    while at < length && word(at)? & MORE != 0 {
        at += 4;
    }
    at += 4;
    if present & TIME != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let is_padded = present & FLAGS != 0 && at < length && byte(frame, at)? & PADDED != 0;
    data(frame, length, is_padded)
}

/// Per-packet information: its length, and the kind of link of what follows.
pub(super) fn ppi(frame: &[u8]) -> Result<usize, NoIp> {
    const PPI: u16 = 192;
    let length = usize::from(chunk(frame, 2).map(u16::from_le_bytes)?);
    let link = chunk(frame, 4).map(u32::from_le_bytes)?;
    let rest = frame.get(length..).ok_or(NoIp::Short)?;
    match u16::try_from(link) {
        // Headers do not nest.
        Ok(link) if link != PPI => Ok(length + ip(link, rest)?),
        _ => Err(NoIp::Link),
    }
}
