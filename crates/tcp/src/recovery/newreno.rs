//! NewReno fast recovery without SACK (RFC 6582).
//!
//! RFC 6582 inflates cwnd by one segment for each duplicate acknowledgement, because each shows that a segment left
//! the network. Here the same segment is taken out of the flight instead. Sending is allowed at the same moments, cwnd
//! keeps its meaning, and "bytes in flight ≤ cwnd" stays true. Limited Transmit (RFC 3042) needs no separate rule: the
//! first two duplicates make room for one new segment each.

use super::progress::{Progress, report_progress, retransmit_what_is_lost};
use super::{Phase, Recovery, Retransmission, Verdict};
use crate::ack_context::AckContext;
use crate::pos::Pos;
use crate::sent::SentList;
use core::ops::Range;

/// Segments that duplicates let out beyond cwnd.
const LIMITED_TRANSMIT: u32 = 2;

/// The recovery unit of RFC 6582.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewReno {
    progress: Progress,
    /// Bytes that duplicate acknowledgements say have left the network.
    departed: u64,
    /// The bytes that duplicates can still report: those in the network when the last acknowledgement advanced.
    /// Further duplicates are forged (RFC 5681 section 3.2, the note on bogus duplicates).
    credit: u64,
    /// RFC 6582's `recover`: duplicates for data before it do not start another recovery.
    recover: Option<Pos>,
    /// `recover` was set by a timeout.
    after_timeout: bool,
    /// Bytes acknowledged by the last acknowledgement that advanced.
    last_advance: u64,
    partial_seen: bool,
}

impl NewReno {
    /// Section 3.2 step 2: whether duplicates mean a loss, or only that the last repair sent data twice. If the
    /// acknowledgement is exactly at `recover`, both are possible. After a timeout, which may have sent everything
    /// twice, they do not count. After a fast recovery section 4's acknowledgement heuristic decides: three needless
    /// copies would have made the last acknowledgement jump by more than four segments.
    fn duplicates_mean_loss(&self, una: Pos, mss: u64) -> bool {
        self.recover.is_none_or(|recover| {
            una > recover || (una == recover && !self.after_timeout && self.last_advance <= 4 * mss)
        })
    }

    /// Bytes that can have left the network: everything but the oldest segment, which is what is missing.
    fn clamp_departed(&mut self, sent: &SentList, mss: u32) {
        self.departed = self.departed.min(sent.in_flight().saturating_sub(u64::from(mss)));
    }
}

impl Recovery for NewReno {
    fn name(&self) -> &'static str {
        "newreno"
    }

    report_progress!();

    fn in_flight(&self, sent: &SentList) -> u64 {
        sent.in_flight().saturating_sub(self.departed)
    }

    fn on_ack(&mut self, sent: &mut SentList, ack: &AckContext, dup_thresh: u32) -> Verdict {
        let mut verdict = Verdict::default();
        let mss = u64::from(ack.mss);
        if ack.acked > 0 {
            self.last_advance = ack.acked;
            verdict.restart_timer = true;
            verdict.exited = self.progress.on_advance(sent);
            verdict.limit_to_flight = verdict.exited;
            match self.progress.phase {
                Phase::Recovery => {
                    // A partial acknowledgement: the next segment is missing too (section 3.2 step 3). The
                    // bytes that it acknowledged beyond one segment had been counted as departed.
                    self.departed = self.departed.saturating_sub(ack.acked.saturating_sub(mss));
                    verdict.lost += sent.mark_head_lost(mss);
                    self.credit = self.in_flight(sent);
                    // The "impatient" variant: only the first partial acknowledgement restarts the timer.
                    verdict.restart_timer = !self.partial_seen;
                    self.partial_seen = true;
                    self.progress.first_pending = true;
                }
                Phase::Loss => {}
                Phase::Open | Phase::Disorder => {
                    self.progress.phase = Phase::Open;
                    self.departed = 0;
                }
            }
        } else if ack.duplicate {
            self.progress.on_duplicate();
            if self.progress.phase == Phase::Recovery {
                let left = mss.min(self.credit);
                self.credit -= left;
                self.departed += left;
            } else if self.progress.phase != Phase::Loss {
                self.departed += mss;
            }
            if !self.progress.is_recovering() {
                self.progress.phase = Phase::Disorder;
                let enough = self.progress.duplicates >= dup_thresh;
                if enough && self.duplicates_mean_loss(ack.una, mss) {
                    self.progress.enter_recovery(sent);
                    self.recover = Some(sent.end());
                    self.after_timeout = false;
                    self.partial_seen = false;
                    verdict.lost += sent.mark_head_lost(mss);
                    self.credit = self.in_flight(sent);
                    verdict.entered = true;
                } else {
                    // RFC 3042 section 2: two segments beyond cwnd, however many duplicates there are.
                    let most = u64::from(dup_thresh.saturating_sub(1).min(LIMITED_TRANSMIT)) * mss;
                    self.departed = self.departed.min(most);
                }
            }
        }
        self.clamp_departed(sent, ack.mss);
        verdict
    }

    fn on_timeout(&mut self, sent: &mut SentList) -> u64 {
        self.progress.enter_loss(sent);
        self.departed = 0;
        // Section 4: after a timeout, `recover` covers everything sent so far.
        self.recover = Some(sent.end());
        self.after_timeout = true;
        sent.mark_all_lost()
    }

    fn on_undo(&mut self) {
        let NewReno { recover, after_timeout, last_advance, .. } = *self;
        *self = NewReno { recover, after_timeout, last_advance, ..NewReno::default() };
    }

    retransmit_what_is_lost!();
}
