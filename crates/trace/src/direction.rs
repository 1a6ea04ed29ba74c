//! One way of a connection: the data that one end sent, and how the other end acknowledged it, as the capture saw it.
//!
//! Positions count from the SYN at zero, so the first byte of data is at one. If the capture begins later, they count from the first position
//! that it saw, and may be negative.

use std::collections::VecDeque;

use transom_tcp::time::{Duration, Instant};
use transom_wire::{Seq, TcpHeader};

use crate::numbers::Numbers;
use crate::ranges::Ranges;

/// A SACK block that is further from all other numbers than the largest window (RFC 7323 section 2.3) is none.
const FURTHEST: i64 = 65_535 << 14;
/// So many values of the timestamps option wait for their echo.
const MOST_STAMPS: usize = 1 << 16;

/// The kind of a segment with data, seen from where the capture was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It carries data behind all that was seen before.
    New,
    /// It carries data that was seen before, at least in part.
    Retransmitted,
    /// It fills a hole: the network changed the order, or its first transmission was lost before the point of the capture.
    FillsHole,
    /// It asks for an acknowledgement only: a keep-alive or a probe of a closed window.
    Probe,
}

/// A segment that takes sequence space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// Where it begins.
    pub start: i64,
    /// Where it ends.
    pub end: i64,
    /// Its kind.
    pub kind: Kind,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acked {
    /// When.
    pub at: Instant,
    /// Up to where.
    pub position: i64,
    /// The receive window in bytes, if its scale is known.
    pub window: Option<u64>,
}

/// A SACK block (RFC 2018).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sacked {
    /// When.
    pub at: Instant,
    /// Where it begins.
    pub start: i64,
    /// Where it ends.
    pub end: i64,
    /// Whether it reports data that had arrived before (RFC 2883).
    pub duplicate: bool,
}

/// Counts of one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Segments with data.
    pub segments: u64,
    /// Bytes of data that were not seen before.
    pub bytes: u64,
    /// Bytes of data that were seen before.
    pub resent: u64,
    /// Segments that carried data again, in part or whole.
    pub retransmissions: u64,
    /// Segments that filled a hole.
    pub filled: u64,
    /// Keep-alives and probes of a closed window.
    pub probes: u64,
    /// Acknowledgements of nothing new, without data and with the same window, while data was outstanding.
    pub duplicate_acks: u64,
    /// How often the receiver closed its window.
    pub zero_windows: u64,
    /// Acknowledgements of data that the capture has not seen.
    pub unseen: u64,
}

/// The data that one end sent, and its acknowledgements.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Segments that take sequence space, in the order of the file.
    pub sent: Vec<Sent>,
    /// Acknowledgements of them.
    pub acks: Vec<Acked>,
    /// SACK blocks about them.
    pub sacks: Vec<Sacked>,
    /// Bytes that were sent and not acknowledged, after each change.
    pub in_flight: Vec<(Instant, u64)>,
    /// Round-trip times by Karn's rule, from the capture to the receiver and back: from the last segment that an acknowledgement covers, if
    /// all that it newly covers was sent once and not reported by a SACK block before.
    pub rtt: Vec<(Instant, Duration)>,
    /// Round-trip times by the timestamps option: since the echoed value was seen first.
    pub stamped: Vec<(Instant, Duration)>,
    /// Counts.
    pub counts: Counts,
    /// The initial sequence number, if the SYN was seen.
    pub(crate) isn: Option<Seq>,
    pub(crate) numbers: Numbers,
    seen: Ranges,
    outstanding: VecDeque<Outstanding>,
    stamps: VecDeque<(u32, Instant)>,
    last_window: Option<u16>,
}

/// A segment that waits for its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Outstanding {
    start: i64,
    end: i64,
    at: Instant,
    /// Whether it may give a round-trip time.
    clean: bool,
}

/// An acknowledgement as it arrived.
pub(crate) struct Arrived<'a> {
    pub(crate) at: Instant,
    pub(crate) header: &'a TcpHeader,
    /// The window in bytes, if its scale is known.
    pub(crate) window: Option<u64>,
    /// Whether it takes no sequence space itself.
    pub(crate) is_bare: bool,
}

impl Way {
    /// Whether nothing has been sent or acknowledged on it.
    pub(crate) fn is_unused(&self) -> bool {
        self.sent.is_empty() && self.acks.is_empty()
    }

    /// Whether it has segments of which no SYN was seen.
    pub(crate) fn is_old(&self) -> bool {
        self.isn.is_none() && !self.sent.is_empty()
    }

    /// The SYN has this number: it is at zero.
    pub(crate) fn begin(&mut self, isn: Seq) {
        self.isn = Some(isn);
        let shift = self.numbers.begin(isn);
        if shift == 0 {
            return;
        }
        for one in &mut self.sent {
            (one.start, one.end) = (one.start + shift, one.end + shift);
        }
        self.acks.iter_mut().for_each(|one| one.position += shift);
        for one in &mut self.sacks {
            (one.start, one.end) = (one.start + shift, one.end + shift);
        }
        for one in &mut self.outstanding {
            (one.start, one.end) = (one.start + shift, one.end + shift);
        }
        self.seen.shift(shift);
    }

    /// A segment that takes `space` bytes of the sequence space, `data` of them data.
    pub(crate) fn sent(&mut self, at: Instant, header: &TcpHeader, space: u32, data: u32) {
        let start = self.numbers.place(header.seq);
        let end = start + i64::from(space);
        self.numbers.advance(header.seq, start);
        let front = self.numbers.front.unwrap_or(start);
        // One byte at most, and that was acknowledged already (RFC 9293 sections 3.8.4 and 3.8.6.1).
        let is_old = self.numbers.acked.is_some_and(|acked| start == acked - 1) && end <= front;
        if is_old && data == space && space <= 1 {
            self.counts.probes += 1;
            self.sent.push(Sent { at, start, end, kind: Kind::Probe });
            return;
        }
        if space == 0 {
            return;
        }
        if let Some(stamps) = header.options.timestamps
            && self
                .stamps
                .back()
                .is_none_or(|&(last, _)| (stamps.value.wrapping_sub(last) as i32) > 0)
        {
            if self.stamps.len() == MOST_STAMPS {
                self.stamps.pop_front();
            }
            self.stamps.push_back((stamps.value, at));
        }
        let covered = self.seen.add(start, end);
        let kind = match covered {
            0 if start >= front => Kind::New,
            0 => Kind::FillsHole,
            _ => Kind::Retransmitted,
        };
        self.sent.push(Sent { at, start, end, kind });
        let again = covered.min(data.into());
        self.counts.segments += u64::from(data > 0);
        self.counts.bytes += u64::from(data) - again;
        self.counts.resent += again;
        match kind {
            Kind::New => {
                self.outstanding.push_back(Outstanding { start, end, at, clean: true });
            }
            Kind::Retransmitted => {
                self.counts.retransmissions += 1;
                self.spoil(start, end);
                if end > front {
                    self.outstanding.push_back(Outstanding { start: front, end, at, clean: false });
                }
            }
            Kind::FillsHole | Kind::Probe => self.counts.filled += 1,
        }
        self.numbers.front = Some(front.max(end));
        self.note_in_flight(at);
    }

    /// What lies in this range gives no round-trip time.
    fn spoil(&mut self, start: i64, end: i64) {
        let first = self.outstanding.partition_point(|one| one.end <= start);
        for one in self.outstanding.iter_mut().skip(first).take_while(|one| one.start < end) {
            one.clean = false;
        }
    }

    fn note_in_flight(&mut self, at: Instant) {
        if let (Some(front), Some(acked)) = (self.numbers.front, self.numbers.acked) {
            self.in_flight.push((at, u64::try_from(front - acked).unwrap_or(0)));
        }
    }

    /// An acknowledgement of this way's data.
    pub(crate) fn acknowledged(&mut self, arrived: &Arrived<'_>) {
        let Arrived { at, header, window, is_bare } = *arrived;
        let position = self.numbers.place(header.ack);
        let before = self.numbers.acked;
        self.numbers.told(position, window, header.window);
        if self.numbers.front.is_some_and(|front| position > front) {
            self.counts.unseen += 1;
        }
        self.acks.push(Acked { at, position, window });
        if header.window == 0 && self.last_window.is_some_and(|last| last > 0) {
            self.counts.zero_windows += 1;
        }
        let same_window = self.last_window == Some(header.window);
        self.last_window = Some(header.window);
        if before.is_none_or(|before| position > before) {
            self.numbers.advance(header.ack, position);
            self.numbers.acked = Some(position);
            self.sample(at, position);
            if let Some(stamps) = header.options.timestamps {
                self.sample_stamp(at, stamps.echo);
            }
        } else if before == Some(position) && is_bare && same_window && !self.outstanding.is_empty()
        {
            self.counts.duplicate_acks += 1;
        }
        let blocks: Vec<(i64, i64)> = header
            .options
            .sack
            .iter()
            .filter_map(|block| {
                Some((self.numbers.locate(block.left)?, self.numbers.locate(block.right)?))
            })
            .collect();
        // Reports of what cannot have been sent are left out.
        let highest = self.numbers.front.unwrap_or(i64::MAX).max(position);
        let lowest = position - FURTHEST;
        for (number, &(start, end)) in blocks.iter().enumerate() {
            if start >= end || end > highest.saturating_add(FURTHEST) || start < lowest {
                continue;
            }
            // RFC 2883 section 4: the first block, below the acknowledgement or within the second one.
            let within = |&(low, high): &(i64, i64)| low <= start && end <= high;
            let duplicate = number == 0 && (end <= position || blocks.get(1).is_some_and(within));
            self.sacks.push(Sacked { at, start, end, duplicate });
            self.spoil(start, end);
        }
        self.note_in_flight(at);
    }

    /// Karn's rule (RFC 6298 section 3).
    fn sample(&mut self, at: Instant, position: i64) {
        let mut newest = None;
        let mut clean = true;
        while let Some(first) = self.outstanding.front_mut() {
            if first.end > position {
                // Its beginning is acknowledged: merged segments are acknowledged in parts.
                first.start = first.start.max(position);
                break;
            }
            clean &= first.clean;
            newest = Some(first.at);
            self.outstanding.pop_front();
        }
        if let (true, Some(sent)) = (clean, newest) {
            self.rtt.push((at, at.since(sent)));
        }
    }

    /// RFC 7323 section 4: the echo tells which transmission made the acknowledgement.
    fn sample_stamp(&mut self, at: Instant, echo: u32) {
        while let Some(&(value, sent)) = self.stamps.front() {
            match value.wrapping_sub(echo) as i32 {
                0 => {
                    self.stamped.push((at, at.since(sent)));
                    return;
                }
                before if before < 0 => self.stamps.pop_front(),
                _ => return,
            };
        }
    }
}
