//! Duplicates before they mean a loss: how many are needed, and whether they release new data.
//!
//! *Early Retransmit* (RFC 5827 section 3.2, the variant that counts segments): with few segments outstanding, three duplicates cannot come. If
//! there is no new data to cause more of them, the threshold is one less than the number of segments. With SACK the RFC requires whole segments;
//! here a segment that is reported in two pieces counts twice. There are no mitigations against reordering; instead, the profile may detect
//! spurious retransmissions.
//!
//! *RR* ([`reordering`](crate::reordering)): where the path is known to reorder, more than three. Then early retransmit is set aside.
//!
//! *Limited Transmit* (RFC 3042): the first duplicates say that segments have left the network. New segments take their place, and bring the
//! missing duplicates. Without it, what is outstanding counts as being in the network until recovery begins.

use super::Connection;
use super::output::Hold;
use crate::pos::Pos;
use crate::recovery::Phase;
#[cfg(fixed_units)]
use crate::units::direct::*;

impl Connection {
    /// Duplicates that mean a loss now.
    pub(super) fn loss_threshold(&self) -> u32 {
        self.effective_dupthresh(self.own_loss_threshold())
    }

    /// Duplicates that mean a loss to TCP.
    pub(super) fn own_loss_threshold(&self) -> u32 {
        let usual = self.profile.dup_thresh;
        if let Some(learnt) = self.learnt_threshold(usual) {
            return learnt;
        }
        let calm = matches!(self.snd.recovery.phase(), Phase::Open | Phase::Disorder);
        if !self.profile.early_retransmit || !calm {
            return usual;
        }
        let segments = self.segments_outstanding(usual + 1);
        if !(2..=usual).contains(&segments) {
            return usual;
        }
        let mss = u64::from(self.mss());
        match self.new_data(mss, mss) {
            Err(Hold::NoData | Hold::PeerWindow) => segments - 1,
            _ => usual,
        }
    }

    /// Duplicates that mean a loss by what was learnt of reordering, if anything was.
    fn learnt_threshold(&self, usual: u32) -> Option<u32> {
        let learnt = self.snd.reordering.as_ref()?.threshold()?;
        let robustness = self.profile.reordering?;
        Some(robustness.capped(learnt, self.snd.window.cwnd, u64::from(self.mss()), usual))
    }

    /// An acknowledgement of everything before `next` was processed: it was a duplicate, or it reports a second copy of the segment at `reported`,
    /// or both. The result holds from the next acknowledgement on.
    pub(super) fn learn_of_reordering(
        &mut self,
        next: Pos,
        duplicate: bool,
        reported: Option<Pos>,
    ) {
        if self.profile.reordering.is_none() || !(duplicate || reported.is_some()) {
            return;
        }
        let usual = self.profile.dup_thresh;
        let learnt = self.snd.reordering.get_or_insert_default();
        if duplicate {
            learnt.on_duplicate(next);
        }
        if let Some(start) = reported {
            learnt.on_reported(start, usual);
        }
    }

    /// The number of outstanding segments, at most `most`. A FIN together with data does not count.
    fn segments_outstanding(&self, most: u32) -> u32 {
        let mss = u64::from(self.mss());
        let end = self.snd.buffer.end();
        let mut segments = 0;
        for record in self.snd.sent.records() {
            let data = record.end.min(end).since(record.start);
            segments += data.div_ceil(mss).max(1);
            if segments >= u64::from(most) {
                return most;
            }
        }
        u32::try_from(segments).unwrap_or(most)
    }

    /// The bytes that count against cwnd.
    pub(super) fn counted_in_flight(&self) -> u64 {
        let in_flight = self.in_flight();
        if !self.profile.limited_transmit && self.snd.recovery.phase() == Phase::Disorder {
            // Of what was sent again there can be two copies.
            return in_flight.max(self.snd.sent.outstanding());
        }
        in_flight
    }
}
