//! Go-back-N: when something is lost, everything from there on is sent again.
//!
//! The oldest error control. It needs neither selective nor partial acknowledgements. Data that the peer holds beyond the loss is sent a
//! second time, unless selective acknowledgements report it.

use super::{Phase, Recovery, Retransmission, Verdict};
use crate::ack_context::AckContext;
use crate::pos::Pos;
use crate::sent::SentList;
use core::ops::Range;

/// The go-back-N recovery unit.
#[derive(Clone, Debug, Default)]
pub struct GoBackN {
    phase: Phase,
    duplicates: u32,
    recovery_point: Option<Pos>,
    first_pending: bool,
}

impl GoBackN {
    fn go_back(&mut self, sent: &mut SentList, phase: Phase) -> u64 {
        self.phase = phase;
        self.duplicates = 0;
        self.recovery_point = Some(sent.end());
        self.first_pending = phase == Phase::Recovery;
        sent.mark_all_lost()
    }
}

impl Recovery for GoBackN {
    fn name(&self) -> &'static str {
        "go-back-n"
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

    fn on_ack(&mut self, sent: &mut SentList, ack: &AckContext, dup_thresh: u32) -> Verdict {
        let mut verdict = Verdict::default();
        let recovering = matches!(self.phase, Phase::Recovery | Phase::Loss);
        if ack.acked > 0 {
            self.duplicates = 0;
            verdict.restart_timer = true;
            if !recovering || self.recovery_point.is_none_or(|point| sent.start() >= point) {
                verdict.exited = recovering;
                self.phase = Phase::Open;
                self.recovery_point = None;
                self.first_pending = false;
            }
        } else if ack.duplicate && !recovering {
            // While everything is being sent again, duplicates are answers to what had arrived before.
            self.duplicates = self.duplicates.saturating_add(1);
            self.phase = Phase::Disorder;
            if self.duplicates >= dup_thresh {
                verdict.lost = self.go_back(sent, Phase::Recovery);
                verdict.entered = true;
            }
        }
        verdict
    }

    fn on_timeout(&mut self, sent: &mut SentList) -> u64 {
        self.go_back(sent, Phase::Loss)
    }

    fn on_undo(&mut self) {
        *self = GoBackN::default();
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
