//! Go-back-N: when something is lost, everything from there on is sent again.
//!
//! The oldest error control. It needs neither selective nor partial acknowledgements. Data that the peer holds beyond the loss is sent a
//! second time, unless selective acknowledgements report it.

use super::progress::{Progress, report_progress, retransmit_what_is_lost};
use super::{Phase, Recovery, Retransmission, Verdict};
use crate::ack_context::AckContext;
use crate::pos::Pos;
use crate::sent::SentList;
use core::ops::Range;

/// The go-back-N recovery unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct GoBackN {
    progress: Progress,
}

impl Recovery for GoBackN {
    fn name(&self) -> &'static str {
        "go-back-n"
    }

    report_progress!();

    fn on_ack(&mut self, sent: &mut SentList, ack: &AckContext, dup_thresh: u32) -> Verdict {
        let mut verdict = Verdict::default();
        if ack.acked > 0 {
            verdict.restart_timer = true;
            verdict.exited = self.progress.on_advance(sent);
            if !self.progress.is_recovering() {
                self.progress.phase = Phase::Open;
            }
        } else if ack.duplicate && !self.progress.is_recovering() {
            // While everything is being sent again, duplicates are answers to what had arrived before.
            if self.progress.on_duplicate_in_disorder(dup_thresh) {
                self.progress.enter_recovery(sent);
                verdict.lost = sent.mark_all_lost();
                verdict.entered = true;
            }
        }
        verdict
    }

    fn on_timeout(&mut self, sent: &mut SentList) -> u64 {
        self.progress.enter_loss(sent);
        sent.mark_all_lost()
    }

    fn on_undo(&mut self) {
        *self = GoBackN::default();
    }

    retransmit_what_is_lost!();
}
