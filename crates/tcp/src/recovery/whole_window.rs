//! Fast retransmission of the whole window, again with each partial acknowledgement.
//!
//! This is the NewReno of FreeBSD 4.7 with the congestion window taken out. There, a repair sets `snd_nxt` back to the acknowledgement, sets the
//! congestion window to one segment, and calls `tcp_output`. Only that window keeps the call from sending everything again. Without it, the third
//! duplicate sends all that is outstanding, and so does each partial acknowledgement. Copies of what had arrived make duplicates of their own.
//! Where these arrive after the repair, three of them begin the next one. "TCP without congestion control" calls this the go-back-N nature of the
//! protocol. With a congestion window, that window limits a repair like any other.

use super::progress::{Progress, report_progress, retransmit_what_is_lost};
use super::{Phase, Recovery, Retransmission, Verdict};
use crate::ack_context::AckContext;
use crate::pos::Pos;
use crate::sent::SentList;
use core::ops::Range;

/// The unit that sends the whole window again.
#[derive(Clone, Debug, Default)]
pub(crate) struct WholeWindow {
    progress: Progress,
    /// RFC 6582's `recover`: duplicates for data before it begin no repair. Those for data from there on do.
    recover: Option<Pos>,
}

impl Recovery for WholeWindow {
    fn name(&self) -> &'static str {
        "whole-window"
    }

    report_progress!();

    fn on_ack(&mut self, sent: &mut SentList, ack: &AckContext, dup_thresh: u32) -> Verdict {
        let mut verdict = Verdict::default();
        if ack.acked > 0 {
            verdict.restart_timer = true;
            verdict.exited = self.progress.on_advance(sent);
            match self.progress.phase {
                // A partial acknowledgement: `snd_nxt` goes back to it.
                Phase::Recovery => verdict.lost = sent.mark_all_lost(),
                // After a timeout only the timer repairs what was lost again.
                Phase::Loss => {}
                Phase::Open | Phase::Disorder => self.progress.phase = Phase::Open,
            }
        } else if ack.duplicate && !self.progress.is_recovering() {
            let enough = self.progress.on_duplicate_in_disorder(dup_thresh);
            if enough && self.recover.is_none_or(|recover| ack.una >= recover) {
                self.progress.enter_recovery(sent);
                self.recover = Some(sent.end());
                verdict.lost = sent.mark_all_lost();
                verdict.entered = true;
            }
        }
        verdict
    }

    fn on_timeout(&mut self, sent: &mut SentList) -> u64 {
        self.progress.enter_loss(sent);
        self.recover = Some(sent.end());
        sent.mark_all_lost()
    }

    fn on_undo(&mut self) {
        let WholeWindow { recover, progress: _ } = *self;
        *self = WholeWindow { recover, ..WholeWindow::default() };
    }

    retransmit_what_is_lost!();
}
