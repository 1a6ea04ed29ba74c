//! The arrived parts of a sequence space: RCV.NXT, the ranges beyond it, and the range that SACK reports first.
//!
//! It does not depend on the order in which data reaches the application, so the peer cannot tell the difference.
//! Acknowledgements, SACK blocks (RFC 2018) and duplicates (RFC 2883) come from here alone.

use crate::packet::Payload;
use crate::pos::Pos;
use crate::ranges::RangeSet;
use core::ops::Range;
use transom_wire::{SackBlock, SackBlocks, Seq};

/// The most disjoint ranges held beyond RCV.NXT.
pub(super) const MAX_GAPS: usize = 1024;

/// The most holes that the reader has not noted. With that many, RCV.NXT does not move over a further one. A peer that gives up all but a
/// few bytes must not fill the memory with the rest.
pub(super) const MAX_HOLES: usize = 1024;

/// The arrived data.
#[derive(Debug)]
pub(crate) struct Received {
    /// RCV.NXT.
    pub(super) next: Pos,
    /// The ranges beyond it.
    pub(super) early: RangeSet,
    /// Places in the most recently changed early ranges, newest first (RFC 2018 section 4); [`NOWHERE`] if there are fewer.
    recent: [Pos; 4],
    /// RCV.NXT is behind the FIN.
    ended: bool,
}

/// A position without data.
const NOWHERE: Pos = Pos::INITIAL;

impl Received {
    /// Nothing yet, with `next` to come.
    pub(super) fn new(next: Pos) -> Self {
        Received { next, early: RangeSet::default(), recent: [NOWHERE; 4], ended: false }
    }

    /// The part of `at..end` that lies behind RCV.NXT and has arrived before, if any.
    pub(super) fn behind(&self, at: Pos, end: Pos) -> Option<(Pos, Pos)> {
        let upto = end.min(self.next);
        (at < upto).then_some((at, upto))
    }

    /// The end of the data that has arrived in order.
    pub(super) fn data_end(&self) -> Pos {
        self.next - u64::from(self.ended)
    }

    /// Whether something is missing before what has arrived.
    pub(super) fn has_gap(&self) -> bool {
        !self.early.is_empty()
    }

    /// The first part of `range`, which does not begin before RCV.NXT, that has arrived already.
    pub(super) fn duplicate(&self, range: &Range<Pos>) -> Option<(Pos, Pos)> {
        let held = self.early.overlapping(range)?;
        Some((range.start.max(held.start), range.end.min(held.end)))
    }

    /// Whether `range` would exceed the number of separate ranges.
    pub(super) fn exceeds_gap_limit(&self, range: &Range<Pos>) -> bool {
        range.start > self.next
            && self.early.len() >= MAX_GAPS
            && self.early.would_add_a_range(range)
    }

    /// Whether `range`, which begins at RCV.NXT, touches no range beyond it.
    pub(super) fn stands_alone(&self, range: &Range<Pos>) -> bool {
        self.early.first().is_none_or(|first| first.start >= range.end)
    }

    /// The first part of `range` that has not arrived.
    pub(super) fn missing(&self, range: Range<Pos>) -> Option<Range<Pos>> {
        self.early.gaps(range).next()
    }

    /// The first part of a segment from `from` on that has not arrived: its range, its payload, and its offset in `payload`, which is at
    /// `at`. Held data stays as it is, so a segment is accepted by its missing parts.
    pub(super) fn missing_part<'a>(
        &self,
        from: Pos,
        at: Pos,
        payload: &Payload<'a>,
    ) -> Option<(Range<Pos>, Payload<'a>, usize)> {
        let gap = self.missing(from..at + payload.len() as u64)?;
        let offset = gap.start.since(at) as usize;
        let part = payload.slice(offset..gap.end.since(at) as usize);
        // A part that is small against the whole is not worth the whole's buffer.
        let part = if part.len() * 2 < payload.len() { part.to_be_copied() } else { part };
        Some((gap, part, offset))
    }

    /// RCV.NXT moves over this many bytes that arrived in order.
    pub(super) fn advance(&mut self, bytes: u64) {
        self.next += bytes;
    }

    /// RCV.NXT moves over the FIN.
    pub(super) fn end(&mut self) {
        self.next += 1;
        self.ended = true;
    }

    /// RCV.NXT moves over the ranges that it has reached. Returns its new position.
    pub(super) fn join(&mut self) -> Pos {
        while let Some(first) = self.early.first()
            && first.start <= self.next
        {
            self.next = self.next.max(first.end);
            self.early.remove_below(self.next);
        }
        let next = self.next;
        for slot in &mut self.recent {
            if *slot < next {
                *slot = NOWHERE;
            }
        }
        next
    }

    /// `range` arrived, beyond RCV.NXT.
    pub(super) fn insert(&mut self, range: Range<Pos>) {
        self.early.insert(range);
    }

    /// The segment at `pos` changed the range with `pos`: SACK reports it first.
    pub(super) fn remember(&mut self, pos: Pos) {
        let Some(range) = self.early.containing(pos) else { return };
        let mut kept =
            self.recent.into_iter().filter(|&other| other != NOWHERE && !range.contains(&other));
        let mut next = || kept.next().unwrap_or(NOWHERE);
        self.recent = [pos, next(), next(), next()];
    }

    /// The SACK blocks to report (RFC 2018 section 4): most recent first, as many as fit.
    pub(crate) fn sack_blocks(
        &self,
        blocks: &mut SackBlocks,
        room: usize,
        to_wire: &dyn Fn(Pos) -> Seq,
    ) {
        let mut reported: [Option<Pos>; 4] = [None; 4];
        let older = self.early.iter().rev().map(|range| range.start);
        for pos in self.recent.into_iter().chain(older) {
            if blocks.len() >= room {
                return;
            }
            let Some(range) = self.early.containing(pos) else { continue };
            if reported.contains(&Some(range.start)) {
                continue;
            }
            if let Some(slot) = reported.iter_mut().find(|slot| slot.is_none()) {
                *slot = Some(range.start);
            }
            blocks.push(SackBlock { left: to_wire(range.start), right: to_wire(range.end) });
        }
    }

    /// Forgets what has arrived beyond RCV.NXT.
    pub(super) fn forget_early(&mut self) {
        self.early = RangeSet::default();
        self.recent = [NOWHERE; 4];
    }

    /// Gives unused memory back.
    pub(super) fn release(&mut self) {
        if self.early.is_empty() {
            self.early.shrink();
        }
    }

    /// Bytes of memory owned.
    pub(super) fn memory(&self) -> usize {
        self.early.memory()
    }
}
