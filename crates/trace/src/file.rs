//! Capture files: pcap, with times in micro- or nanoseconds, and pcapng, of either byte order.
//!
//! `Blocks` gives one block after the other as it stands in the file, so that a program can copy what it does not know. A block with
//! a packet comes with its `Frame`. The lengths of a block are checked before anything is read by them. A block that makes no sense,
//! or of an unknown kind, is counted and left out. A file that ends early gives what there is (`Blocks::damage`).

use std::io::{self, Read};

use pcap_parser::pcapng::{Block, OptionCode, SHB_MAGIC};
use pcap_parser::{PcapHeader, parse_block_be, parse_block_le, parse_pcap_header};
use transom_tcp::time::Instant;

pub(crate) mod pcapng;

use pcapng::{Found, Section};

/// The longest block that is read: far more than any packet, and little enough for any memory.
const LONGEST: u32 = 1 << 26;
/// The length of the header of a pcap file.
const PCAP_HEADER: usize = 24;

/// Why a file is no capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It does not begin as one.
    #[error("this is neither a pcap nor a pcapng file")]
    Magic,
    /// It cannot be read.
    #[error("cannot read the capture")]
    Io(#[from] io::Error),
}

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// When it was captured, since 1970-01-01 00:00 UTC.
    pub(crate) at: Instant,
    /// How it begins: a LINKTYPE value of the registry of the pcap format.
    pub(crate) link: u16,
    /// The bytes that the capture kept.
    pub(crate) bytes: &'a [u8],
    /// How long the packet was, in bytes; never less than what was kept.
    pub(crate) original: u32,
}

/// A part of a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item<'a> {
    /// The block, or the record of a pcap file, as it stands in the file. The header of a pcap file is no item.
    pub(crate) raw: &'a [u8],
    /// The packet in it, if it has one.
    pub(crate) frame: Option<Frame<'a>>,
    /// Whether its numbers begin with the high byte.
    pub(crate) big_endian: bool,
    /// Whether it is a block of pcapng.
    pub(crate) is_block: bool,
}

impl Item<'_> {
    /// The comments on a packet. Those that are no text are left out.
    pub(crate) fn comments(&self) -> Vec<String> {
        let options = match self.block() {
            Some(Block::EnhancedPacket(packet)) => packet.options,
            _ => return pcapng::comments_of_old(self.raw, self.big_endian),
        };
        let comments = options.iter().filter(|one| one.code == OptionCode::Comment);
        comments.filter_map(|one| one.as_str().ok().map(str::to_owned)).collect()
    }

    /// The name of the interface that the block describes, if it does.
    pub(crate) fn interface_name(&self) -> Option<String> {
        match self.block()? {
            Block::InterfaceDescription(one) => Some(one.if_name()?.ok()?.to_owned()),
            _ => None,
        }
    }

    fn block(&self) -> Option<Block<'_>> {
        if !self.is_block {
            return None;
        }
        let parsed =
            if self.big_endian { parse_block_be(self.raw) } else { parse_block_le(self.raw) };
        Some(parsed.ok()?.1)
    }
}

/// The two forms of captures.
#[derive(Debug)]
enum Form {
    Pcap(PcapHeader),
    PcapNg(Section),
}

/// A capture file, block by block.
#[derive(Debug)]
pub(crate) struct Blocks<R> {
    reader: R,
    form: Form,
    /// The block at hand. Its first bytes may have been read already.
    block: Vec<u8>,
    begun: bool,
    ended: bool,
    bad_blocks: u64,
    unknown_blocks: u64,
    /// Packets without a time, and the time of the last one that had one.
    timeless: u64,
    last: Instant,
    cut: bool,
    too_long: Option<u32>,
}

impl<R: Read> Blocks<R> {
    /// Begins to read. A buffer around the reader saves time.
    pub(crate) fn new(mut reader: R) -> Result<Self, FileError> {
        let mut block = Vec::new();
        fill(&mut reader, &mut block, 4)?;
        let big = || u32::from_be_bytes(block.first_chunk().copied().unwrap_or_default());
        let form = if block.len() == 4 && big() == SHB_MAGIC {
            Form::PcapNg(Section::default())
        } else {
            fill(&mut reader, &mut block, PCAP_HEADER)?;
            let (_, header) = parse_pcap_header(&block).map_err(|_| FileError::Magic)?;
            block.clear();
            Form::Pcap(header)
        };
        let begun = !block.is_empty();
        Ok(Blocks {
            reader,
            form,
            block,
            begun,
            ended: false,
            bad_blocks: 0,
            unknown_blocks: 0,
            timeless: 0,
            last: Instant::ZERO,
            cut: false,
            too_long: None,
        })
    }

    /// Whether the file is one of pcapng.
    pub(crate) fn is_pcapng(&self) -> bool {
        matches!(self.form, Form::PcapNg(_))
    }

    /// The next block; none at the end of the file.
    pub(crate) fn next_item(&mut self) -> io::Result<Option<Item<'_>>> {
        if !self.next_bytes()? {
            return Ok(None);
        }
        Ok(Some(match &mut self.form {
            Form::Pcap(header) => {
                let frame = pcap_frame(header, &self.block);
                let big_endian = header.is_bigendian();
                Item { raw: &self.block, frame, big_endian, is_block: false }
            }
            Form::PcapNg(section) => {
                let found = section.read(&self.block);
                let frame = match found {
                    Found::Packet(frame) => Some(frame),
                    Found::Nothing => None,
                    Found::Bad => {
                        self.bad_blocks += 1;
                        None
                    }
                    Found::Unknown => {
                        self.unknown_blocks += 1;
                        None
                    }
                };
                // A block without a time has that of the packet before it.
                let frame = frame.map(|(mut frame, has_time)| {
                    if has_time {
                        self.last = frame.at;
                    } else {
                        self.timeless += 1;
                        frame.at = self.last;
                    }
                    frame
                });
                let big_endian = section.big_endian;
                Item { raw: &self.block, frame, big_endian, is_block: true }
            }
        }))
    }

    /// The damage of the file, and what was left out, in sentences. Complete only at its end.
    pub(crate) fn damage(&self) -> Vec<String> {
        let mut damage = Vec::new();
        if self.bad_blocks > 0 {
            damage.push(format!("{} blocks make no sense and were left out.", self.bad_blocks));
        }
        if self.unknown_blocks > 0 {
            damage.push(format!(
                "{} blocks are of kinds that are not known; packets in them are missing.",
                self.unknown_blocks
            ));
        }
        if self.timeless > 0 {
            damage.push(format!(
                "{} packets have no time of their own; they count as captured with the one before.",
                self.timeless
            ));
        }
        if self.cut {
            damage.push("The file ends in the middle of a block.".into());
        }
        if let Some(length) = self.too_long {
            damage.push(format!(
                "A block claims to have {length} bytes. The rest of the file was not read."
            ));
        }
        damage
    }

    /// Reads the bytes of the next block.
    fn next_bytes(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        self.ended = true;
        if !std::mem::take(&mut self.begun) {
            self.block.clear();
        }
        let head = match &self.form {
            Form::Pcap(header) if header.is_modified_format() => 24,
            Form::Pcap(_) => 16,
            Form::PcapNg(_) => 12,
        };
        fill(&mut self.reader, &mut self.block, head)?;
        if self.block.len() < head {
            self.cut = !self.block.is_empty();
            return Ok(false);
        }
        let (whole, least) = match &mut self.form {
            Form::Pcap(header) => {
                let kept = word(&self.block, 8, header.is_bigendian());
                (kept.saturating_add(head as u32), head as u32)
            }
            Form::PcapNg(section) => {
                // A section says in which order its bytes are. Its type reads the same both ways.
                if word(&self.block, 0, true) == SHB_MAGIC {
                    section.big_endian = word(&self.block, 8, true) == 0x1A2B_3C4D;
                }
                (word(&self.block, 4, section.big_endian), 12)
            }
        };
        let unaligned = self.is_pcapng() && !whole.is_multiple_of(4);
        if whole < least || whole > LONGEST || unaligned {
            self.too_long = Some(whole);
            return Ok(false);
        }
        fill(&mut self.reader, &mut self.block, whole as usize)?;
        if self.block.len() < whole as usize {
            self.cut = true;
            return Ok(false);
        }
        self.ended = false;
        Ok(true)
    }
}

/// Reads until there are this many bytes, or the file ends. Memory is taken as the bytes come.
fn fill(reader: &mut impl Read, bytes: &mut Vec<u8>, length: usize) -> io::Result<()> {
    let missing = length.saturating_sub(bytes.len());
    reader.take(missing as u64).read_to_end(bytes).map(drop)
}

/// A number of 32 bits.
fn word(bytes: &[u8], at: usize, big_endian: bool) -> u32 {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk().copied()).unwrap_or_default();
    if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// Nanoseconds since 1970, of ticks of which there are `resolution` in a second.
fn time(ticks: u64, resolution: u64, offset: i64) -> Instant {
    let nanos = i128::from(ticks) * 1_000_000_000 / i128::from(resolution.max(1));
    let nanos = nanos + i128::from(offset) * 1_000_000_000;
    Instant::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

fn pcap_frame<'a>(header: &PcapHeader, record: &'a [u8]) -> Option<Frame<'a>> {
    let big = header.is_bigendian();
    let [seconds, part, kept, original] = [0, 4, 8, 12].map(|at| word(record, at, big));
    let resolution = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
    let ticks = u64::from(seconds) * resolution + u64::from(part);
    let bytes = record.get(record.len().checked_sub(kept as usize)?..)?;
    Some(Frame {
        at: time(ticks, resolution, 0),
        // The upper bits say how long the check sequences of frames are.
        link: header.network.0 as u16,
        bytes,
        original: original.max(kept),
    })
}
