//! Conservative loss recovery based on SACK (RFC 6675).
//!
//! Differences from the text: a segment leaves the pipe when it is marked lost, once, instead of being
//! re-evaluated at every call of `SetPipe`; marks stay until it is acknowledged. After a timeout the scoreboard is
//! kept (RFC 6675 section 5.1 allows it) and losses found below the recovery point are repaired without a second
//! reduction. The rescue retransmission (NextSeg rule 4) is not spent on a segment that was sent again already.
//! Duplicates without SACK blocks, which the text leaves aside, count as in RFC 5681, but not for data that the last
//! repair may have sent twice.

use super::progress::{Progress, report_progress};
use super::{Phase, Recovery, Retransmission, Verdict};
use crate::ack_context::AckContext;
use crate::pos::Pos;
use crate::sent::SentList;
use core::ops::Range;

/// The recovery unit of RFC 6675.
#[derive(Clone, Debug, Default)]
pub(crate) struct SackRecovery {
    progress: Progress,
    /// RFC 6675's HighRxt: one past the highest position sent again in this recovery.
    high_rxt: Option<Pos>,
    /// RFC 6675's RescueRxt, one past it.
    rescue_rxt: Option<Pos>,
    /// One past the highest position sent when the last recovery began or the timer last expired.
    recover: Option<Pos>,
}

impl SackRecovery {
    fn enter(&mut self, sent: &SentList) {
        self.progress.enter_recovery(sent);
        self.recover = self.progress.recovery_point;
        self.high_rxt = None;
        self.rescue_rxt = None;
    }

    /// NextSeg rule 4: the last segment outstanding that is not known to have arrived, once the fast retransmission
    /// has, and once in a recovery.
    fn rescue(&self, sent: &SentList, mss: u32) -> Option<Range<Pos>> {
        if self.rescue_rxt.is_some_and(|rescued| sent.start() <= rescued) {
            return None;
        }
        let last = sent.last_unsacked(sent.end())?;
        if last.status.retransmitted {
            return None;
        }
        let mss = u64::from(mss.max(1));
        Some(last.start + (last.len() - 1) / mss * mss..last.end)
    }
}

impl Recovery for SackRecovery {
    fn name(&self) -> &'static str {
        "sack"
    }

    report_progress!();

    fn on_ack(&mut self, sent: &mut SentList, ack: &AckContext, dup_thresh: u32) -> Verdict {
        let mut verdict = Verdict::default();
        if ack.acked > 0 {
            verdict.restart_timer = true;
            verdict.exited = self.progress.on_advance(sent);
        }
        let counts = ack.has_sack || self.recover.is_none_or(|recover| ack.una > recover);
        if ack.duplicate && counts {
            self.progress.on_duplicate();
        }
        if let Some(boundary) = sent.is_lost_boundary(dup_thresh, u64::from(ack.mss)) {
            verdict.lost += sent.mark_lost_below(boundary);
        }
        if !self.progress.is_recovering() {
            // RFC 6675 section 5 steps 1 to 4: enough duplicates, or IsLost(HighACK + 1).
            let enough = self.progress.duplicates >= dup_thresh;
            if enough && sent.lost_bytes() == 0 && sent.outstanding() > 0 {
                verdict.lost += sent.mark_head_lost(u64::from(ack.mss));
            }
            if sent.lost_bytes() > 0 {
                self.enter(sent);
                verdict.entered = true;
            } else {
                let calm = sent.sacked_bytes() == 0 && self.progress.duplicates == 0;
                self.progress.phase = if calm { Phase::Open } else { Phase::Disorder };
            }
        }
        verdict
    }

    fn on_timeout(&mut self, sent: &mut SentList) -> u64 {
        self.progress.enter_loss(sent);
        self.recover = self.progress.recovery_point;
        self.high_rxt = None;
        self.rescue_rxt = None;
        sent.mark_all_lost()
    }

    fn on_undo(&mut self) {
        let recover = self.recover;
        *self = SackRecovery { recover, ..SackRecovery::default() };
    }

    fn next(&self, sent: &SentList, new_data: bool, mss: u32) -> Option<Retransmission> {
        // NextSeg rule 1.
        if let Some(lost) = self.progress.next_lost(sent) {
            return Some(lost);
        }
        // Rule 2 is new data, which the sender tries before asking for rules 3 and 4.
        if new_data || self.progress.phase != Phase::Recovery {
            return None;
        }
        // Rule 3: not known to be lost, but below something that arrived.
        let from = self.high_rxt.unwrap_or(sent.start());
        if let Some(highest) = sent.sacked().last()
            && let Some(range) = sent.first_unsacked_in(from..highest.end)
        {
            return Some(Retransmission { range, exempt: false, rescue: false });
        }
        let range = self.rescue(sent, mss)?;
        Some(Retransmission { range, exempt: false, rescue: true })
    }

    fn on_retransmitted(&mut self, named: &Retransmission, range: Range<Pos>) {
        if named.rescue {
            // HighRxt stays: what lies between is still to be repaired.
            self.rescue_rxt = self.progress.recovery_point;
            return;
        }
        if self.progress.first_pending {
            // Section 5 step 4.3: no rescue before this has arrived.
            self.rescue_rxt = Some(range.end);
        }
        self.progress.first_pending = false;
        self.high_rxt = Some(self.high_rxt.map_or(range.end, |high| high.max(range.end)));
    }
}
