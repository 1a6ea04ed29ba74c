//! The blocks of a pcapng section: interfaces, and the three kinds of blocks that carry packets.

use pcap_parser::pcapng::{
    Block, EPB_MAGIC, IDB_MAGIC, InterfaceDescriptionBlock, OptionCode, SHB_MAGIC, SPB_MAGIC,
};
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{parse_block_be, parse_block_le};
use transom_tcp::time::Instant;

use super::{Frame, time, word};

/// The block that carried packets before the enhanced one did. The library does not read it.
pub(super) const OLD_PACKET: u32 = 2;
/// Where its packet begins; in an enhanced block it is the same place.
const DATA: usize = 28;
/// Blocks that carry no packets of a network, by their registered types: names, statistics, times of IRIG, frames of ARINC 429, journals,
/// secrets, and events of processes.
const WITHOUT_PACKETS: [std::ops::RangeInclusive<u32>; 4] =
    [4..=5, 7..=10, 0x201..=0x233, 0x8000_0001..=0x8000_0002];

/// An interface of a section.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u16,
    /// Units of a second; none if they are none.
    resolution: Option<u64>,
    /// Seconds to add.
    offset: i64,
    snap_len: u32,
}

/// The section at hand.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) big_endian: bool,
    interfaces: Vec<Interface>,
}

/// What a block has.
pub(super) enum Found<'a> {
    /// A packet, and whether the block says its time.
    Packet((Frame<'a>, bool)),
    /// No packet.
    Nothing,
    /// It makes no sense.
    Bad,
    /// Nobody knows: its type is unknown, or one for anybody's use.
    Unknown,
}

/// A block that makes no sense.
struct Bad;

/// Units of a second: a power of two if the highest bit is set, else of ten. The library takes no power of two.
fn resolution(option: u8) -> Option<u64> {
    let power = u32::from(option & 0x7f);
    if option & 0x80 == 0 { 10u64.checked_pow(power) } else { 1u64.checked_shl(power) }
}

/// Seconds to add to each time. The library reads them in one byte order only.
fn offset(interface: &InterfaceDescriptionBlock<'_>, big_endian: bool) -> i64 {
    let found = interface.options.iter().find(|one| one.code == OptionCode::IfTsoffset);
    let bytes = found.and_then(|one| one.as_bytes().ok()?.first_chunk().copied());
    let bytes: [u8; 8] = bytes.unwrap_or_default();
    if big_endian { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) }
}

impl Section {
    /// Reads a block, whose length has been checked.
    pub(super) fn read<'a>(&mut self, raw: &'a [u8]) -> Found<'a> {
        let kind = word(raw, 0, self.big_endian);
        let packet = match kind {
            SHB_MAGIC => {
                self.interfaces.clear();
                return Found::Nothing;
            }
            IDB_MAGIC => {
                return match self.describe(raw) {
                    Ok(()) => Found::Nothing,
                    Err(Bad) => Found::Bad,
                };
            }
            EPB_MAGIC => self.enhanced(raw),
            SPB_MAGIC => self.simple(raw),
            OLD_PACKET => self.old(raw),
            kind if WITHOUT_PACKETS.iter().any(|range| range.contains(&kind)) => {
                return Found::Nothing;
            }
            _ => return Found::Unknown,
        };
        match packet {
            Ok(frame) => Found::Packet((frame, kind != SPB_MAGIC)),
            Err(Bad) => Found::Bad,
        }
    }

    fn parse<'a>(&self, raw: &'a [u8]) -> Result<Block<'a>, Bad> {
        let parsed = if self.big_endian { parse_block_be(raw) } else { parse_block_le(raw) };
        parsed.map(|(_, block)| block).map_err(|_| Bad)
    }

    fn interface(&self, number: u32) -> Result<Interface, Bad> {
        self.interfaces.get(number as usize).copied().ok_or(Bad)
    }

    fn describe(&mut self, raw: &[u8]) -> Result<(), Bad> {
        let Block::InterfaceDescription(one) = self.parse(raw)? else { return Err(Bad) };
        let described = Interface {
            link: one.linktype.0 as u16,
            resolution: resolution(one.if_tsresol),
            offset: offset(&one, self.big_endian),
            snap_len: one.snaplen,
        };
        self.interfaces.push(described);
        Ok(())
    }

    fn enhanced<'a>(&self, raw: &'a [u8]) -> Result<Frame<'a>, Bad> {
        let Block::EnhancedPacket(packet) = self.parse(raw)? else { return Err(Bad) };
        let on = self.interface(packet.if_id)?;
        let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
        // The block has been checked: the packet lies behind its first bytes.
        let bytes = raw.get(DATA..DATA + packet.packet_data().len()).ok_or(Bad)?;
        Ok(Frame {
            at: time(ticks, on.resolution.ok_or(Bad)?, on.offset),
            link: on.link,
            bytes,
            original: packet.origlen.max(packet.caplen),
        })
    }

    fn simple<'a>(&self, raw: &'a [u8]) -> Result<Frame<'a>, Bad> {
        let Block::SimplePacket(packet) = self.parse(raw)? else { return Err(Bad) };
        let on = self.interface(0)?;
        let mut kept = packet.packet_data().len();
        if on.snap_len > 0 {
            kept = kept.min(on.snap_len as usize);
        }
        // What pads the packet is not part of it.
        kept = kept.min(packet.origlen as usize);
        let bytes = raw.get(12..12 + kept).ok_or(Bad)?;
        let original = packet.origlen;
        Ok(Frame { at: Instant::ZERO, link: on.link, bytes, original })
    }

    /// Two halves with the interface and the packets dropped so far, then as an enhanced block.
    fn old<'a>(&self, raw: &'a [u8]) -> Result<Frame<'a>, Bad> {
        let (body, _) = raw.split_last_chunk::<4>().ok_or(Bad)?;
        let half = body.get(8..10).and_then(|bytes| bytes.first_chunk().copied()).ok_or(Bad)?;
        let number =
            if self.big_endian { u16::from_be_bytes(half) } else { u16::from_le_bytes(half) };
        let on = self.interface(number.into())?;
        let [high, low, kept, original] =
            [12, 16, 20, 24].map(|at| word(body, at, self.big_endian));
        let end = DATA.checked_add(kept as usize).ok_or(Bad)?;
        let bytes = body.get(DATA..end).ok_or(Bad)?;
        let ticks = u64::from(high) << 32 | u64::from(low);
        Ok(Frame {
            at: time(ticks, on.resolution.ok_or(Bad)?, on.offset),
            link: on.link,
            bytes,
            original: original.max(kept),
        })
    }
}

/// Whether a block can have a comment on its packet.
pub(crate) fn takes_comments(raw: &[u8], big_endian: bool) -> bool {
    matches!(word(raw, 0, big_endian), EPB_MAGIC | OLD_PACKET)
}

/// The comments on the packet of a block of the older kind.
pub(super) fn comments_of_old(raw: &[u8], big_endian: bool) -> Vec<String> {
    const COMMENT: u16 = 1;
    if word(raw, 0, big_endian) != OLD_PACKET {
        return Vec::new();
    }
    let Some((body, _)) = raw.split_last_chunk::<4>() else { return Vec::new() };
    let mut at = DATA + (word(body, 20, big_endian) as usize).next_multiple_of(4);
    let mut comments = Vec::new();
    while let Some([a, b, c, d]) = body.get(at..).and_then(|rest| rest.first_chunk().copied()) {
        let half = |two| if big_endian { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) };
        let (kind, length) = (half([a, b]), usize::from(half([c, d])));
        if kind == 0 {
            break;
        }
        let value = body.get(at + 4..at + 4 + length).map(std::str::from_utf8);
        if kind == COMMENT
            && let Some(Ok(text)) = value
        {
            comments.push(text.to_owned());
        }
        at += 4 + length.next_multiple_of(4);
    }
    comments
}
