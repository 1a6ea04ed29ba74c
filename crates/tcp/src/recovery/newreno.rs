//! NewReno fast recovery without SACK (RFC 6582).
//!
//! RFC 6582 inflates cwnd by one segment for each duplicate acknowledgement, because each shows that a segment left
//! the network. Here the same segment is taken out of the flight instead. Sending is allowed at the same moments, cwnd
//! keeps its meaning, and "bytes in flight ≤ cwnd" stays true. Limited Transmit (RFC 3042) needs no separate rule: the
//! first two duplicates make room for one new segment each.

use super::{Phase, Recovery, Retransmission, Verdict};
use crate::ack_context::AckContext;
use crate::pos::Pos;
use crate::sent::SentList;
use core::ops::Range;

/// Segments that duplicates let out beyond cwnd.
const LIMITED_TRANSMIT: u32 = 2;

/// The recovery unit of RFC 6582.
#[derive(Clone, Debug, Default)]
pub struct NewReno {
    phase: Phase,
    duplicates: u32,
    /// Bytes that duplicate acknowledgements say have left the network.
    departed: u64,
    /// The bytes that duplicates can still report: those in the network when the last acknowledgement advanced.
    /// Further duplicates are forged (RFC 5681 section 3.2, the note on bogus duplicates).
    credit: u64,
    recovery_point: Option<Pos>,
    /// RFC 6582's `recover`: duplicates for data before it do not start another recovery.
    recover: Option<Pos>,
    /// `recover` was set by a timeout.
    after_timeout: bool,
    /// Bytes acknowledged by the last acknowledgement that advanced.
    last_advance: u64,
    first_pending: bool,
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

    fn has_deadlines(&self) -> bool {
        false
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn duplicate_acks(&self) -> u32 {
        self.duplicates
    }

    fn in_flight(&self, sent: &SentList) -> u64 {
        sent.in_flight().saturating_sub(self.departed)
    }

    fn on_ack(&mut self, sent: &mut SentList, ack: &AckContext, dup_thresh: u32) -> Verdict {
        let mut verdict = Verdict::default();
        let mss = u64::from(ack.mss);
        if ack.acked > 0 {
            self.last_advance = ack.acked;
            self.duplicates = 0;
            verdict.restart_timer = true;
            match self.phase {
                Phase::Recovery | Phase::Loss
                    if self.recovery_point.is_none_or(|point| sent.start() >= point) =>
                {
                    verdict.exited = true;
                    verdict.limit_to_flight = true;
                    self.phase = Phase::Open;
                    self.recovery_point = None;
                    self.departed = 0;
                    self.first_pending = false;
                }
                Phase::Recovery => {
                    // A partial acknowledgement: the next segment is missing too (section 3.2 step 3). The
                    // bytes that it acknowledged beyond one segment had been counted as departed.
                    self.departed = self.departed.saturating_sub(ack.acked.saturating_sub(mss));
                    verdict.lost += sent.mark_head_lost(mss);
                    self.credit = self.in_flight(sent);
                    // The "impatient" variant: only the first partial acknowledgement restarts the timer.
                    verdict.restart_timer = !self.partial_seen;
                    self.partial_seen = true;
                    self.first_pending = true;
                }
                Phase::Loss => {}
                Phase::Open | Phase::Disorder => {
                    self.phase = Phase::Open;
                    self.departed = 0;
                }
            }
        } else if ack.duplicate {
            self.duplicates = self.duplicates.saturating_add(1);
            if self.phase == Phase::Recovery {
                let left = mss.min(self.credit);
                self.credit -= left;
                self.departed += left;
            } else if self.phase != Phase::Loss {
                self.departed += mss;
            }
            if matches!(self.phase, Phase::Open | Phase::Disorder) {
                self.phase = Phase::Disorder;
                if self.duplicates >= dup_thresh && self.duplicates_mean_loss(ack.una, mss) {
                    self.phase = Phase::Recovery;
                    self.recovery_point = Some(sent.end());
                    self.recover = Some(sent.end());
                    self.after_timeout = false;
                    self.first_pending = true;
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
        self.phase = Phase::Loss;
        self.duplicates = 0;
        self.departed = 0;
        self.recovery_point = Some(sent.end());
        // Section 4: after a timeout, `recover` covers everything sent so far.
        self.recover = Some(sent.end());
        self.after_timeout = true;
        self.first_pending = false;
        sent.mark_all_lost()
    }

    fn on_undo(&mut self) {
        let NewReno { recover, after_timeout, last_advance, .. } = *self;
        *self = NewReno { recover, after_timeout, last_advance, ..NewReno::default() };
    }

    fn next(&mut self, sent: &mut SentList, _new_data: bool, _mss: u32) -> Option<Retransmission> {
        let range = sent.next_lost()?;
        Some(Retransmission { range, exempt: self.first_pending })
    }

    fn on_retransmitted(&mut self, _range: Range<Pos>) {
        self.first_pending = false;
    }

    fn recovery_point(&self) -> Option<Pos> {
        self.recovery_point
    }
}
