//! Paths that reorder, and how many duplicates mean a loss.
//!
//! *Early Retransmit* (RFC 5827 section 3.2, the variant that counts segments): with few segments outstanding, three duplicates cannot come. If
//! there is no new data to cause more of them, the threshold is one less than the number of segments. With SACK the RFC requires whole segments;
//! here a segment that is reported in two pieces counts twice. There are no mitigations against reordering; instead, the profile may detect
//! spurious retransmissions.
//!
//! *RR* ([`reordering`](crate::reordering)): where the path is known to reorder, more than three. Then early retransmit is set aside.

use super::Control;
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::reordering::capped;

/// Over how many segments the path was seen to reorder, at most, and how often.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overtaken {
    pub(super) over: u32,
    pub(super) seen: u32,
}

impl Control {
    /// Of the data delivered now, `lowest` is the first position that was never retransmitted; up to `highest` something was known to have arrived
    /// before. So it was overtaken.
    pub(crate) fn note_reordering(&mut self, lowest: Pos, highest: Pos) {
        if lowest < highest {
            let over = highest.since(lowest).div_ceil(self.window.segment());
            self.overtaken.over = self.overtaken.over.max(u32::try_from(over).unwrap_or(u32::MAX));
            self.overtaken.seen = self.overtaken.seen.saturating_add(1);
        }
    }

    /// Duplicates that mean a loss to TCP; `starved` says that there is no new data that could leave. `end` is where the data ends.
    pub(crate) fn own_dupthresh(&self, end: Pos, starved: impl FnOnce() -> bool) -> u32 {
        let usual = self.profile.dup_thresh;
        if let Some(learnt) = self.learnt_dupthresh(usual) {
            return learnt;
        }
        let calm = matches!(self.phase(), Phase::Open | Phase::Disorder);
        if !self.profile.early_retransmit || !calm {
            return usual;
        }
        let segments = self.segments_outstanding(usual + 1, end);
        if (2..=usual).contains(&segments) && starved() { segments - 1 } else { usual }
    }

    /// Duplicates that mean a loss by what was learnt of reordering, if anything was.
    fn learnt_dupthresh(&self, usual: u32) -> Option<u32> {
        let learnt = self.reordering.as_ref()?.threshold()?;
        let cap = self.profile.reordering?;
        let Self { window, .. } = self;
        Some(capped(cap, learnt, window.cwnd, u64::from(window.mss), usual))
    }

    /// The number of outstanding segments, at most `most`. A FIN together with data does not count.
    fn segments_outstanding(&self, most: u32, end: Pos) -> u32 {
        let mss = u64::from(self.window.mss);
        let mut segments = 0;
        for record in self.sent.records() {
            let data = record.end.min(end).since(record.start);
            segments += data.div_ceil(mss).max(1);
            if segments >= u64::from(most) {
                return most;
            }
        }
        u32::try_from(segments).unwrap_or(most)
    }

    /// An acknowledgement of everything before `next` was processed: it was a duplicate, or it reports a second copy of the segment at `reported`,
    /// or both. The result holds from the next acknowledgement on.
    pub(crate) fn learn_of_reordering(
        &mut self,
        next: Pos,
        duplicate: bool,
        reported: Option<Pos>,
    ) {
        if self.profile.reordering.is_none() || !(duplicate || reported.is_some()) {
            return;
        }
        let learnt = self.reordering.get_or_insert_default();
        if duplicate {
            learnt.on_duplicate(next);
        }
        if let Some(start) = reported {
            learnt.on_reported(start, self.profile.dup_thresh);
        }
    }
}
