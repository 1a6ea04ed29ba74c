//! Conservative loss recovery based on SACK (RFC 6675).
//!
//! Differences from the text: a segment leaves the pipe when it is marked lost, once, instead of being
//! re-evaluated at every call of `SetPipe`; marks stay until it is acknowledged. After a timeout the scoreboard is
//! kept (RFC 6675 section 5.1 allows it) and losses found below the recovery point are repaired without a second
//! reduction.

use super::{Phase, Recovery, Retransmission, Verdict};
use crate::ack_context::AckContext;
use crate::pos::Pos;
use crate::sent::SentList;
use core::ops::Range;

/// The recovery unit of RFC 6675.
#[derive(Clone, Debug, Default)]
pub struct SackRecovery {
    phase: Phase,
    duplicates: u32,
    recovery_point: Option<Pos>,
    /// RFC 6675's HighRxt: one past the highest position sent again in this recovery.
    high_rxt: Option<Pos>,
    /// RFC 6675's RescueRxt.
    rescue_rxt: Option<Pos>,
    /// The fast retransmission has not left yet.
    first_pending: bool,
}

impl SackRecovery {
    fn enter(&mut self, sent: &SentList) {
        self.phase = Phase::Recovery;
        self.recovery_point = Some(sent.end());
        self.high_rxt = None;
        self.rescue_rxt = None;
        self.first_pending = true;
    }
}

impl Recovery for SackRecovery {
    fn name(&self) -> &'static str {
        "sack"
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn duplicate_acks(&self) -> u32 {
        self.duplicates
    }

    fn in_flight(&self, sent: &SentList) -> u64 {
        sent.in_flight()
    }

    fn on_ack(&mut self, sent: &mut SentList, ack: &AckContext, dup_thresh: u32) -> Verdict {
        let mut verdict = Verdict::default();
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if ack.acked > 0 {
            self.duplicates = 0;
            verdict.restart_timer = true;
            if recovering && self.recovery_point.is_none_or(|point| sent.start() >= point) {
                verdict.exited = true;
                self.phase = Phase::Open;
                self.recovery_point = None;
                self.first_pending = false;
            }
        } else if ack.duplicate {
            self.duplicates = self.duplicates.saturating_add(1);
        }
        if let Some(boundary) = sent.is_lost_boundary(dup_thresh, u64::from(ack.mss)) {
            verdict.lost += sent.mark_lost_below(boundary);
        }
        if !matches!(self.phase, Phase::Recovery | Phase::Loss) {
            // RFC 6675 section 5 steps 1 to 4: enough duplicates, or IsLost(HighACK + 1).
            if self.duplicates >= dup_thresh && sent.lost_bytes() == 0 && sent.outstanding() > 0 {
                verdict.lost += sent.mark_head_lost(u64::from(ack.mss));
            }
            if sent.lost_bytes() > 0 {
                self.enter(sent);
                verdict.entered = true;
            } else {
                self.phase = if sent.sacked_bytes() > 0 || self.duplicates > 0 {
                    Phase::Disorder
                } else {
                    Phase::Open
                };
            }
        }
        verdict
    }

    fn on_timeout(&mut self, sent: &mut SentList) -> u64 {
        self.phase = Phase::Loss;
        self.duplicates = 0;
        self.recovery_point = Some(sent.end());
        self.high_rxt = None;
        self.rescue_rxt = None;
        self.first_pending = false;
        sent.mark_all_lost()
    }

    fn next(&mut self, sent: &mut SentList, new_data: bool, mss: u32) -> Option<Retransmission> {
        // NextSeg rule 1.
        if let Some(range) = sent.next_lost() {
            return Some(Retransmission { range, exempt: self.first_pending });
        }
        // Rule 2 is new data, which the sender tries before asking for rules 3 and 4.
        if new_data || self.phase != Phase::Recovery {
            return None;
        }
        // Rule 3: not known to be lost, but below something that arrived.
        let highest = sent.sacked().last()?.end;
        let from = self.high_rxt.unwrap_or(sent.start());
        if let Some(range) = sent.first_unsacked_in(from..highest) {
            return Some(Retransmission { range, exempt: false });
        }
        // Rule 4: one rescue retransmission, at the end of what is outstanding, per recovery.
        if self.rescue_rxt.is_none_or(|rescued| sent.start() > rescued) {
            let point = self.recovery_point?;
            let last = sent
                .last_unsacked(point)
                .filter(|record| record.end <= point && !record.fate.retransmitted)?;
            let end = last.end;
            let start = last.start.max(end - u64::from(mss));
            if start > last.start {
                // Only a whole record can be named; a long one is left to rule 1 or the timer.
                return None;
            }
            self.rescue_rxt = Some(point);
            return Some(Retransmission { range: start..end, exempt: false });
        }
        None
    }

    fn on_retransmitted(&mut self, range: Range<Pos>) {
        self.first_pending = false;
        self.high_rxt = Some(self.high_rxt.map_or(range.end, |high| high.max(range.end)));
    }

    fn recovery_point(&self) -> Option<Pos> {
        self.recovery_point
    }
}
