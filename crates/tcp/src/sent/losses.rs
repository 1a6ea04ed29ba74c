//! Losses: data that recovery has marked as lost, the part that waits for retransmission, and the losses by RFC 6675.

use super::{SegmentStatus, SentList};
use crate::pos::Pos;
use crate::rate::LostTransmission;
use crate::time::{Duration, Instant};
use core::ops::Range;

impl SentList {
    /// Marks every record below `upto` lost that is not selectively acknowledged. Returns the bytes newly marked.
    pub(crate) fn mark_lost_below(&mut self, upto: Pos) -> u64 {
        let mut newly = 0;
        let mut index = self.index_of(self.marked_lost_upto);
        while let Some(&record) = self.list.get(index)
            && record.end <= upto
        {
            let SegmentStatus { sacked, lost, .. } = record.status;
            // A record sent again before it was called lost (RFC 6675 NextSeg rule 3) has that copy in flight.
            if !sacked && !lost {
                newly += record.len();
                self.mark_lost(index, record.status.retransmitted);
            }
            self.marked_lost_upto = record.end;
            index += 1;
        }
        newly
    }

    /// Marks the first `len` bytes (rounded up to whole segments by the caller) lost. Returns bytes newly marked.
    pub(crate) fn mark_head_lost(&mut self, len: u64) -> u64 {
        self.split(0, self.start + len);
        let Some(&record) = self.list.front() else { return 0 };
        if record.status.lost || record.status.sacked {
            return 0;
        }
        self.mark_lost(0, record.status.retransmitted);
        record.len()
    }

    /// After a retransmission timeout: all that is not selectively acknowledged is lost, and every earlier
    /// retransmission with it. If the oldest record is selectively acknowledged although it was never
    /// cumulatively, the receiver reneged (RFC 2018 section 8) and no selective acknowledgement is believed.
    /// Returns the bytes newly marked.
    pub(crate) fn mark_all_lost(&mut self) -> u64 {
        let reneged = self.list.front().is_some_and(|record| record.status.sacked);
        if reneged {
            self.sacked.clear();
        }
        let before = self.lost_bytes;
        for index in 0..self.list.len() {
            let status = self.list[index].status;
            if status.lost {
                let given_up = status.given_up;
                self.set_status(
                    index,
                    SegmentStatus { lost: true, given_up, ..SegmentStatus::default() },
                );
            } else if reneged || !status.sacked {
                self.mark_lost(index, false);
            }
        }
        self.next_lost_hint = self.start;
        self.marked_lost_upto = self.end;
        self.lost_bytes.saturating_sub(before)
    }

    /// Marks every transmission lost that left before `newest`, which was delivered, and at least `wait` ago (RFC 8985 section 6.2 step
    /// 5). For retransmitted data the retransmission counts. Returns the bytes newly marked and when the last of the other earlier ones
    /// will be lost.
    pub(crate) fn mark_lost_sent_before(
        &mut self,
        newest: (Instant, Pos),
        wait: Duration,
        now: Instant,
    ) -> (u64, Option<Instant>) {
        let (mut newly, mut later) = (0, None);
        let mut index = 0;
        while let Some(&record) = self.list.get(index) {
            // Those sent once left in the order of their positions, and those sent again later than their neighbours.
            let before = (record.last_sent, record.end) < newest;
            if !before && record.transmissions == 1 {
                break;
            }
            let SegmentStatus { sacked, lost, retransmitted, .. } = record.status;
            if before && !sacked && (!lost || retransmitted) {
                let at = record.last_sent + wait;
                if at <= now {
                    newly += record.len();
                    self.mark_lost(index, false);
                } else {
                    later = later.max(Some(at));
                }
            }
            index = match self.sacked.containing(record.end) {
                // Over what has arrived in one step.
                Some(range) => self.index_of(range.end),
                None => index + 1,
            };
        }
        (newly, later)
    }

    /// Reports the `bytes` that were newly marked lost since the last report, oldest position first.
    pub(crate) fn report_lost(
        &mut self,
        now: Instant,
        mut bytes: u64,
        mut each: impl FnMut(&LostTransmission),
    ) {
        let mut index = self.index_of(self.changed_from);
        while bytes > 0
            && let Some(record) = self.list.get_mut(index)
        {
            if core::mem::take(&mut record.changed) {
                bytes = bytes.saturating_sub(record.len());
                each(&self.delivery.on_lost(now, record.start..record.end, record.stamp));
            }
            index += 1;
        }
        self.changed_from = Pos::MAX;
    }

    /// Drops the report of newly marked losses: they were not lost to congestion.
    pub(crate) fn forget_lost(&mut self) {
        for record in &mut self.list {
            record.changed = false;
        }
        self.changed_from = Pos::MAX;
    }

    /// Nothing was lost: all data that is not selectively acknowledged is in flight.
    pub(crate) fn unmark_lost(&mut self) {
        for index in 0..self.list.len() {
            let status = self.list[index].status;
            if status.lost {
                self.set_status(index, SegmentStatus { lost: false, ..status });
            }
        }
        self.next_lost_hint = self.end;
        self.marked_lost_upto = self.start;
    }

    /// The oldest record that is lost and waits to be sent again.
    pub(crate) fn next_lost(&self) -> Option<Range<Pos>> {
        if self.lost_bytes == 0 {
            return None;
        }
        let from = self.index_of(self.next_lost_hint);
        let mut records = self.list.range(from..);
        records.find(|record| record.status.is_to_be_repaired()).map(|one| one.start..one.end)
    }

    /// Remembers how far nothing is to be sent again, so that [`next_lost`](Self::next_lost) has no way to go.
    pub(crate) fn advance_to_lost(&mut self) {
        if self.lost_bytes > 0 {
            self.next_lost_hint = self.next_lost().map_or(self.end, |range| range.start);
        }
    }

    /// The oldest record in `range` that is neither selectively acknowledged nor sent again, nor given up.
    pub(crate) fn first_unsacked_in(&self, range: Range<Pos>) -> Option<Range<Pos>> {
        let mut index = self.index_of(range.start);
        while let Some(record) = self.list.get(index)
            && record.end <= range.end
        {
            let SegmentStatus { sacked, retransmitted, given_up, .. } = record.status;
            if !sacked && !retransmitted && !given_up && record.start >= range.start {
                return Some(record.start..record.end);
            }
            index += 1;
        }
        None
    }

    /// The lowest position such that everything unacknowledged below it is lost by RFC 6675's `IsLost`: `dup_thresh` discontiguous
    /// selectively acknowledged ranges, or such bytes of more than `dup_thresh − 1` segments, lie above.
    pub(crate) fn is_lost_boundary(&self, dup_thresh: u32, segment: u64) -> Option<Pos> {
        let needed = u64::from(dup_thresh.saturating_sub(1)) * segment;
        let mut bytes = 0u64;
        for (count, range) in (1u32..).zip(self.sacked.iter().rev()) {
            bytes += range.end.since(range.start);
            if count >= dup_thresh || bytes > needed {
                return Some(range.start);
            }
        }
        None
    }
}
