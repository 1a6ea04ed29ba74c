//! A capture of the same host, with the decisions of a log as comments on its packets.
//!
//! Everything else in the capture stays byte for byte as it is: other options, statistics, the names of hosts, and the block with secrets of
//! TLS, by which Wireshark decrypts.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::SocketAddr;

use transom_stack::log::{FlowEvent, Line, What};
use transom_wire::{Flags, Seq};

use super::{ConvertError, Log};
use crate::file::{Blocks, pcapng};
use crate::segment::Segment;

/// The position of a SYN in the log.
const SYN: i64 = 1 << 32;
/// The longest transmission that one record stands for.
const LONGEST: i64 = 1 << 17;
/// Where the data of a packet begins in its block.
const DATA: usize = 28;

/// The transmissions of one connection, by where they begin: where they end, and their records as text, in their order.
#[derive(Default)]
struct Transmissions {
    by_start: BTreeMap<i64, Vec<(i64, usize)>>,
    texts: Vec<String>,
}

/// The connection as the capture shows it.
struct Followed {
    log: usize,
    /// The number of its SYN.
    isn: Seq,
    /// A sequence number and its position: the furthest of those that a record stands for.
    reference: (Seq, i64),
    /// How often a position has been seen.
    seen: BTreeMap<i64, usize>,
}

/// The result of [`annotate`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotated {
    /// How many packets got a comment.
    pub commented: u64,
    /// How many packets have a record, and stand in a block that takes no comment.
    pub without_room: u64,
    /// The damage of the capture, in sentences. Blocks that make no sense are copied as they are; what follows a cut is missing.
    pub damage: Vec<String>,
}

/// Copies the pcapng file `capture` to `out`. Each packet that a record of the log stands for gets the record as a comment, in its line of
/// JSON. The capture must have the SYN of a connection: it tells the first sequence number.
///
/// # Errors
/// If `capture` is no pcapng file, or reading or writing fails.
pub fn annotate(
    log: &Log,
    capture: impl Read,
    mut out: impl Write,
) -> Result<Annotated, ConvertError> {
    let mut blocks = Blocks::new(capture)?;
    if !blocks.is_pcapng() {
        let what = "only a pcapng file has comments; `editcap in.pcap out.pcapng` makes one";
        return Err(ConvertError::Form(what.into()));
    }
    let (ends, transmissions) = transmissions(log);
    let mut followed: BTreeMap<[SocketAddr; 2], Followed> = BTreeMap::new();
    let mut scratch = Vec::new();
    let mut annotated = Annotated::default();
    while let Some(item) = blocks.next_item()? {
        let text = item.frame.and_then(|frame| {
            let segment = Segment::of(&frame, &mut scratch).ok()?;
            comment(&segment, &ends, &transmissions, &mut followed)
        });
        match text {
            Some(text) if pcapng::takes_comments(item.raw, item.big_endian) => {
                let kept = item.frame.map_or(0, |frame| frame.bytes.len());
                out.write_all(&with_comment(item.raw, kept, text, item.big_endian))?;
                annotated.commented += 1;
            }
            Some(_) => {
                annotated.without_room += 1;
                out.write_all(item.raw)?;
            }
            None => out.write_all(item.raw)?,
        }
    }
    annotated.damage = blocks.damage();
    Ok(annotated)
}

type Ends = BTreeMap<[SocketAddr; 2], Vec<usize>>;

/// The transmissions of each connection of the log, and the places of the connections between two ends.
fn transmissions(log: &Log) -> (Ends, Vec<Transmissions>) {
    let mut ends: Ends = BTreeMap::new();
    let mut all: Vec<Transmissions> = Vec::new();
    let mut places: BTreeMap<u64, usize> = BTreeMap::new();
    for (sequence, record) in &log.records {
        let place = *places.entry(record.connection).or_insert_with(|| {
            all.push(Transmissions::default());
            all.len() - 1
        });
        match &record.what {
            What::Opened { local, remote } => {
                ends.entry([*local, *remote]).or_default().push(place);
            }
            What::Flow(FlowEvent::Sent | FlowEvent::Retransmitted, values) => {
                let Some(here) = all.get_mut(place) else { continue };
                let start = values.position as i64;
                let end = start.saturating_add(values.bytes.into());
                let text = Line { record, sequence: *sequence }.to_string();
                here.by_start.entry(start).or_default().push((end, here.texts.len()));
                here.texts.push(text);
            }
            _ => {}
        }
    }
    (ends, all)
}

/// The record that stands for a segment, if there is one.
fn comment<'a>(
    segment: &Segment,
    ends: &Ends,
    all: &'a [Transmissions],
    followed: &mut BTreeMap<[SocketAddr; 2], Followed>,
) -> Option<&'a str> {
    let key = [segment.source, segment.destination];
    let places = ends.get(&key)?;
    let header = &segment.header;
    let space = header.segment_len(segment.length);
    if space == 0 {
        return None;
    }
    if header.flags.contains(Flags::SYN) {
        let reference = (header.seq, SYN);
        match followed.get_mut(&key) {
            // The same SYN again.
            Some(known) if known.isn == header.seq => {}
            known => {
                // Connections between the same ends follow each other.
                let number = known.map_or(0, |known| known.log + 1);
                let fresh =
                    Followed { log: number, isn: header.seq, reference, seen: BTreeMap::new() };
                followed.insert(key, fresh);
            }
        }
    }
    let known = followed.get_mut(&key)?;
    let (near, there) = known.reference;
    let position = there + i64::from(header.seq.get().wrapping_sub(near.get()) as i32);
    let here = all.get(*places.get(known.log)?)?;
    let mut covering: Vec<usize> = here
        .by_start
        .range(position.saturating_sub(LONGEST)..=position)
        .flat_map(|(_, records)| records)
        .filter(|(end, _)| *end > position)
        .map(|(_, number)| *number)
        .collect();
    covering.sort_unstable();
    let times = known.seen.get(&position).copied().unwrap_or(0);
    // A position that no record has is not believed, and moves nothing.
    let number = covering.get(times).or_else(|| covering.last())?;
    if position > there {
        known.reference = (header.seq, position);
    }
    known.seen.insert(position, times + 1);
    here.texts.get(*number).map(String::as_str)
}

/// The block with one more option, in front of its others.
fn with_comment(raw: &[u8], kept: usize, text: &str, big_endian: bool) -> Vec<u8> {
    let half = |value: u16| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let word = |value: u32| if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
    let options = (DATA + kept.next_multiple_of(4)).min(raw.len().saturating_sub(4));
    let rest = raw.get(options..raw.len().saturating_sub(4)).unwrap_or_default();
    let mut block = raw.get(..options).unwrap_or_default().to_vec();
    let length = text.len().min(usize::from(u16::MAX));
    block.extend([half(1), half(length as u16)].concat());
    block.extend(text.as_bytes().get(..length).unwrap_or_default());
    block.resize(block.len().next_multiple_of(4), 0);
    if rest.is_empty() {
        // The end of the options.
        block.extend([0; 4]);
    }
    block.extend(rest);
    let whole = word(block.len() as u32 + 4);
    block.extend(whole);
    if let Some(place) = block.get_mut(4..8) {
        place.copy_from_slice(&whole);
    }
    block
}
