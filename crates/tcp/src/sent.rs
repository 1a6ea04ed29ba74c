//! The sender's scoreboard: data that was sent and is not yet acknowledged.
//!
//! One record per transmission (a super-segment is one record), in sequence order. Records are split when an acknowledgement or a
//! retransmission covers a part of them. They are split only at multiples of the segment size or at edges that the sender chose,
//! so a peer cannot cut them into tiny ones. Every change updates the byte counters, so the flight size of RFC 6675's `SetPipe`
//! is a constant-time query.
//!
//! Which records are *lost* is not decided here: a recovery unit marks them.

use crate::ack_context::Newest;
use crate::pos::Pos;
use crate::ranges::RangeSet;
use crate::rate::{DeliveryRate, PendingSample, RateSample, RateStamp};
use crate::time::{Duration, Instant};
use alloc::collections::VecDeque;
use core::ops::Range;

mod giving_up;
mod losses;

/// The state of a transmission, as far as the acknowledgements show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentStatus {
    /// Selectively acknowledged: the receiver has it.
    pub(crate) sacked: bool,
    /// Believed to have left the network without arriving.
    pub(crate) lost: bool,
    /// Sent again, and that transmission may still arrive.
    pub(crate) retransmitted: bool,
    /// Lost, and never to be sent again. The receiver's cumulative acknowledgement of it does not say that it arrived.
    pub(crate) given_up: bool,
}

impl SegmentStatus {
    /// Lost, and waiting to be sent again.
    fn is_to_be_repaired(&self) -> bool {
        let SegmentStatus { sacked, lost, retransmitted, given_up } = *self;
        lost && !retransmitted && !sacked && !given_up
    }
}

/// One transmission that is not yet cumulatively acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Sequence space covered (data, and the FIN as one unit).
    pub start: Pos,
    /// One past the end.
    pub end: Pos,
    /// When it first left.
    pub first_sent: Instant,
    /// When it last left.
    pub last_sent: Instant,
    /// How many times it left.
    pub transmissions: u16,
    /// Its state.
    pub status: SegmentStatus,
    /// Marked lost, and not yet reported.
    changed: bool,
    stamp: RateStamp,
}

impl Sent {
    /// Bytes of sequence space covered.
    pub(crate) fn len(&self) -> u64 {
        self.end.since(self.start)
    }

    /// Whether it covers nothing (it never does).
    fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// The changes of one acknowledgement on the scoreboard.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    /// Bytes newly covered by the cumulative acknowledgement.
    pub(crate) acked: u64,
    /// Bytes newly covered by selective acknowledgement.
    pub(crate) sacked: u64,
    /// Bytes of `acked` that had not been selectively acknowledged before, without those given up.
    pub(crate) acked_not_sacked: u64,
    /// Bytes of `acked` that had been given up.
    pub(crate) given_up: u64,
    /// Round-trip time of the most recently sent, never retransmitted record that was delivered (Karn's rule).
    pub(crate) rtt: Option<Duration>,
    /// Whether any newly delivered byte had been retransmitted.
    pub(crate) included_retransmission: bool,
    /// The latest transmissions that were newly delivered.
    pub(crate) newest: Newest,
    /// The lowest position newly delivered that was never sent again.
    pub(crate) lowest_original: Option<Pos>,
    /// The earliest `first_sent` among newly delivered records.
    rtt_sent_at: Option<Instant>,
    /// The delivery-rate sample under construction.
    pub(crate) rate: PendingSample,
}

/// With this many records none is split any more to mark a part of it as selectively acknowledged. A super-segment holds more than
/// a thousand segments of the smallest size, and every split moves the records behind it. Without a bound a peer could make its
/// acknowledgements ever more expensive.
const MAX_RECORDS: usize = 8192;

/// Records of everything between SND.UNA and SND.NXT.
#[derive(Debug)]
pub(crate) struct SentList {
    list: VecDeque<Sent>,
    sacked: RangeSet,
    start: Pos,
    end: Pos,
    sacked_bytes: u64,
    lost_bytes: u64,
    retransmitted_bytes: u64,
    /// No record below this is lost and waiting to be retransmitted.
    next_lost_hint: Pos,
    /// Every unsacked record below this is marked lost already.
    marked_lost_upto: Pos,
    /// No loss below this is still to be reported.
    changed_from: Pos,
    /// When the last transmission left.
    latest: Instant,
    delivery: DeliveryRate,
}

impl SentList {
    /// An empty scoreboard; the first record will start at `start`.
    pub(crate) fn new(start: Pos, now: Instant) -> Self {
        SentList {
            list: VecDeque::new(),
            sacked: RangeSet::default(),
            start,
            end: start,
            sacked_bytes: 0,
            lost_bytes: 0,
            retransmitted_bytes: 0,
            next_lost_hint: start,
            marked_lost_upto: start,
            changed_from: Pos::MAX,
            latest: now,
            delivery: DeliveryRate::new(now),
        }
    }

    /// When a transmission leaves that is made at `now`. Several leave at one reading of the clock, and RACK takes those that leave
    /// together for sent in the order of their positions (RFC 8985 section 6.2, RACK_sent_after). That is true of new data. A
    /// retransmission leaves a nanosecond after what left before it.
    fn leave(&mut self, again: bool, now: Instant) -> Instant {
        let follows = again && now <= self.latest;
        self.latest = now.max(self.latest) + Duration::from_nanos(u64::from(follows));
        self.latest
    }

    /// The oldest unacknowledged position, SND.UNA.
    pub(crate) fn start(&self) -> Pos {
        self.start
    }

    /// When data, or a FIN, last left; before that, when the list was made.
    pub(crate) fn latest(&self) -> Instant {
        self.latest
    }

    /// The next position to send, SND.NXT.
    pub(crate) fn end(&self) -> Pos {
        self.end
    }

    /// FlightSize of RFC 5681: everything sent and not cumulatively acknowledged, in bytes.
    pub(crate) fn outstanding(&self) -> u64 {
        self.end.since(self.start)
    }

    /// RFC 6675's pipe: bytes believed to be in the network.
    pub(crate) fn in_flight(&self) -> u64 {
        (self.outstanding() + self.retransmitted_bytes)
            .saturating_sub(self.sacked_bytes + self.lost_bytes)
    }

    /// Bytes selectively acknowledged and not yet cumulatively.
    pub(crate) fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// Bytes marked lost.
    pub(crate) fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// Bytes of which a retransmission is in the network.
    pub(crate) fn retransmitted_bytes(&self) -> u64 {
        self.retransmitted_bytes
    }

    /// The selectively acknowledged ranges.
    pub(crate) fn sacked(&self) -> &RangeSet {
        &self.sacked
    }

    /// The records, oldest first.
    pub(crate) fn records(&self) -> impl DoubleEndedIterator<Item = &Sent> + '_ {
        self.list.iter()
    }

    /// The record that covers `pos`.
    pub(crate) fn at(&self, pos: Pos) -> Option<&Sent> {
        self.list.get(self.index_of(pos)).filter(|record| record.start <= pos)
    }

    /// The last record below `upto` that is not selectively acknowledged, without a walk over those that are.
    pub(crate) fn last_unsacked(&self, upto: Pos) -> Option<&Sent> {
        let last = upto.min(self.end) - 1;
        let last = self.sacked.containing(last).map_or(last, |range| range.start - 1);
        self.at(last)
    }

    /// The oldest record.
    pub(crate) fn first(&self) -> Option<&Sent> {
        self.list.front()
    }

    /// The delivery account.
    pub(crate) fn delivery(&self) -> &DeliveryRate {
        &self.delivery
    }

    /// The sample of the delivery rate that an acknowledgement gave, if any; see [`DeliveryRate::finish`].
    pub(crate) fn rate_sample(
        &mut self,
        pending: PendingSample,
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        self.delivery.finish(pending, min_rtt)
    }

    /// The application had nothing more to send while the window would have allowed it.
    pub(crate) fn on_app_limited(&mut self) {
        self.delivery.on_app_limited(self.in_flight());
    }

    fn index_of(&self, pos: Pos) -> usize {
        self.list.partition_point(|record| record.end <= pos)
    }

    fn account(&mut self, record: &Sent, add: bool) {
        let len = record.len();
        let SegmentStatus { sacked, lost, retransmitted, given_up: _ } = record.status;
        for (flag, counter) in [
            (sacked, &mut self.sacked_bytes),
            (lost, &mut self.lost_bytes),
            (retransmitted, &mut self.retransmitted_bytes),
        ] {
            if flag {
                *counter = if add { *counter + len } else { counter.saturating_sub(len) };
            }
        }
    }

    fn set_status(&mut self, index: usize, status: SegmentStatus) {
        let Some(&record) = self.list.get(index) else { return };
        self.account(&record, false);
        let record = Sent { status, ..record };
        self.account(&record, true);
        self.list[index] = record;
    }

    /// Marks the record at `index` lost, with no retransmission of it in the network but one that left in vain or was not needed.
    fn mark_lost(&mut self, index: usize, retransmitted: bool) {
        let Some(record) = self.list.get_mut(index) else { return };
        record.changed = true;
        self.changed_from = self.changed_from.min(record.start);
        self.next_lost_hint = self.next_lost_hint.min(record.start);
        let given_up = record.status.given_up;
        self.set_status(
            index,
            SegmentStatus { sacked: false, lost: true, retransmitted, given_up },
        );
    }

    /// Splits the record at `index` at position `at`, if `at` is inside it.
    fn split(&mut self, index: usize, at: Pos) {
        if let Some(record) = self.list.get_mut(index)
            && record.start < at
            && at < record.end
        {
            let tail = Sent { start: at, ..*record };
            record.end = at;
            self.list.insert(index + 1, tail);
        }
    }

    /// New data up to `end` leaves at `now`.
    pub(crate) fn push(&mut self, end: Pos, now: Instant) {
        debug_assert!(end > self.end, "a transmission covers something");
        let left = self.leave(false, now);
        let stamp = self.delivery.on_send(now, end.since(self.end), self.in_flight());
        self.list.push_back(Sent {
            start: self.end,
            end,
            first_sent: left,
            last_sent: left,
            transmissions: 1,
            status: SegmentStatus::default(),
            changed: false,
            stamp,
        });
        self.end = end;
    }

    /// Up to `max_len` bytes starting at `start`, a record's or a segment's, leave again at `now`; returns what is
    /// covered. `segment` is the segment size at which a longer record may be split. Records that follow are included
    /// while they too wait for retransmission.
    pub(crate) fn retransmit(
        &mut self,
        start: Pos,
        max_len: u64,
        segment: u64,
        now: Instant,
    ) -> Range<Pos> {
        let max_len = if max_len > segment { max_len - max_len % segment.max(1) } else { max_len };
        let limit = start + max_len.max(1);
        let mut first = self.index_of(start);
        if self.list.get(first).is_some_and(|record| record.start < start) {
            self.split(first, start);
            first += 1;
        }
        let mut index = first;
        let mut upto = start;
        while let Some(&record) = self.list.get(index) {
            let wanted = record.status.is_to_be_repaired();
            if upto >= limit || (index > first && !wanted) {
                break;
            }
            if record.end > limit {
                self.split(index, limit);
            }
            let bytes = record.end.min(limit).since(record.start);
            let stamp = self.delivery.on_send(now, bytes, self.in_flight());
            self.set_status(index, SegmentStatus { retransmitted: true, ..record.status });
            let left = self.leave(true, now);
            if let Some(record) = self.list.get_mut(index) {
                record.transmissions = record.transmissions.saturating_add(1);
                record.last_sent = left;
                record.stamp = stamp;
                upto = record.end;
            }
            index += 1;
        }
        start..upto
    }

    fn deliver(&mut self, record: &Sent, bytes: u64, now: Instant, delivered: &mut Delivered) {
        self.delivery.on_delivered(now, bytes, record.stamp, record.last_sent, &mut delivered.rate);
        let newest = match record.transmissions {
            1 => &mut delivered.newest.original,
            _ => &mut delivered.newest.again,
        };
        *newest = (*newest).max(Some((record.last_sent, record.end)));
        if record.transmissions == 1 {
            let lowest = delivered.lowest_original.unwrap_or(record.start);
            delivered.lowest_original = Some(lowest.min(record.start));
        }
        if record.transmissions > 1 {
            delivered.included_retransmission = true;
        } else if delivered.rtt_sent_at.is_none_or(|newest| record.last_sent >= newest) {
            delivered.rtt_sent_at = Some(record.last_sent);
            delivered.rtt = Some(now.since(record.last_sent));
        }
    }

    /// Everything before `upto` is cumulatively acknowledged.
    pub(crate) fn acknowledge(&mut self, upto: Pos, now: Instant, delivered: &mut Delivered) {
        let upto = upto.min(self.end);
        while let Some(&record) = self.list.front()
            && record.start < upto
        {
            self.account(&record, false);
            let gone = record.end.min(upto).since(record.start);
            delivered.acked += gone;
            if record.status.given_up {
                delivered.given_up += gone;
            } else if !record.status.sacked {
                delivered.acked_not_sacked += gone;
                self.deliver(&record, gone, now, delivered);
            }
            if record.end <= upto {
                self.list.pop_front();
            } else {
                let rest = Sent { start: upto, ..record };
                self.account(&rest, true);
                self.list[0] = rest;
            }
        }
        if upto > self.start {
            self.start = upto;
            self.sacked.remove_below(upto);
            self.next_lost_hint = self.next_lost_hint.max(upto);
            self.marked_lost_upto = self.marked_lost_upto.max(upto);
        }
    }

    /// The peer holds `block`. Only whole segments count (of `segment` bytes, or up to an edge the sender chose):
    /// a block that covers part of one is rounded inwards.
    pub(crate) fn sack(
        &mut self,
        block: Range<Pos>,
        segment: u64,
        now: Instant,
        delivered: &mut Delivered,
    ) {
        // A legitimate block has few gaps; one made of crumbs is not worth following to its end.
        const MAX_GAPS: usize = 64;
        let end = block.end.min(self.end);
        let mut at = block.start.max(self.start);
        for _ in 0..MAX_GAPS {
            let Some(gap) = self.sacked.gaps(at..end).next() else { return };
            at = gap.end;
            self.sack_gap(gap, segment.max(1), now, delivered);
        }
    }

    fn sack_gap(&mut self, gap: Range<Pos>, segment: u64, now: Instant, delivered: &mut Delivered) {
        let mut index = self.index_of(gap.start);
        while let Some(&record) = self.list.get(index)
            && record.start < gap.end
        {
            let start = if gap.start > record.start {
                record.start + gap.start.since(record.start).next_multiple_of(segment)
            } else {
                record.start
            };
            let end = if gap.end < record.end {
                let covered = gap.end.since(record.start);
                record.start + (covered - covered % segment)
            } else {
                record.end
            };
            index += 1;
            let partial = start > record.start || end < record.end;
            if start >= end || (partial && self.list.len() >= MAX_RECORDS) {
                continue;
            }
            let mut target = index - 1;
            if end < record.end {
                self.split(target, end);
            }
            if start > record.start {
                self.split(target, start);
                target += 1;
                index += 1;
            }
            self.set_status(target, SegmentStatus { sacked: true, ..SegmentStatus::default() });
            let bytes = end.since(start);
            delivered.sacked += bytes;
            self.deliver(&record, bytes, now, delivered);
            self.sacked.insert(start..end);
        }
    }

    /// Gives memory back when nothing is outstanding.
    pub(crate) fn release_if_empty(&mut self) {
        if self.list.is_empty() {
            self.list = VecDeque::new();
            self.sacked.shrink();
        }
    }

    /// Bytes of memory owned.
    pub(crate) fn memory(&self) -> usize {
        self.list.capacity() * size_of::<Sent>() + self.sacked.memory()
    }

    /// Recomputes every counter from the records and compares; for tests.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let sum = |pick: fn(&SegmentStatus) -> bool| -> u64 {
            self.list.iter().filter(|r| pick(&r.status)).map(Sent::len).sum()
        };
        let mut at = self.start;
        for record in &self.list {
            if record.start != at || record.is_empty() {
                return Err("records are not contiguous");
            }
            at = record.end;
        }
        if at != self.end {
            return Err("records do not end at SND.NXT");
        }
        if sum(|f| f.sacked) != self.sacked_bytes {
            return Err("sacked bytes");
        }
        if sum(|f| f.lost) != self.lost_bytes {
            return Err("lost bytes");
        }
        if sum(|f| f.retransmitted) != self.retransmitted_bytes {
            return Err("retransmitted bytes");
        }
        if self.sacked.iter().map(|r| r.end.since(r.start)).sum::<u64>() != self.sacked_bytes {
            return Err("sacked ranges");
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "sent/tests.rs"]
mod tests;
