//! Fast retransmit and fast recovery of RFC 2581, which NewReno mends.
//!
//! The first acknowledgement of new data ends fast recovery, also if it covers only a part of what was outstanding at its beginning (section
//! 3.2 step 5). A second loss in the same window is then found by three more duplicates, which halve the window once more, or by the timer.
//! For laboratories that repeat what was measured with such senders.
//!
//! As in [`newreno`](super::newreno), cwnd is not inflated: a duplicate takes a segment out of the flight instead. After a timeout, duplicates
//! do not count until all that was outstanding then is acknowledged. Otherwise the copies that the timeout sends would look like a loss, which
//! RFC 2582 section 5 calls a defect of Reno's.

use super::progress::{Progress, report_progress, retransmit_what_is_lost};
use super::{Phase, Recovery, Retransmission, Verdict};
use crate::ack_context::AckContext;
use crate::pos::Pos;
use crate::sent::SentList;
use core::ops::Range;

/// Segments that duplicates let out beyond cwnd (RFC 3042 section 2).
const LIMITED_TRANSMIT: u32 = 2;

/// The recovery unit of RFC 2581.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reno {
    progress: Progress,
    /// Bytes that duplicate acknowledgements say have left the network.
    departed: u64,
    /// The bytes that duplicates can still report in fast recovery; further ones are forged (RFC 5681 section 3.2).
    credit: u64,
}

impl Reno {
    /// An acknowledgement of new data.
    fn advance(&mut self, sent: &SentList) -> Verdict {
        let exited = match self.progress.phase {
            Phase::Recovery => true,
            Phase::Loss => self.progress.is_repaired(sent),
            Phase::Open | Phase::Disorder => false,
        };
        self.progress.duplicates = 0;
        self.departed = 0;
        if exited || !self.progress.is_recovering() {
            self.progress.leave();
        }
        // Step 5 sets cwnd to ssthresh, which it already is, whatever is in flight.
        Verdict { exited, restart_timer: true, ..Verdict::default() }
    }

    /// Takes a duplicate's segment out of the flight. All can have left the network but the oldest segment, which is what is missing.
    fn depart(&mut self, sent: &SentList, mss: u64, most: u64) {
        let most = most.min(sent.in_flight().saturating_sub(mss));
        self.departed = self.departed.saturating_add(mss).min(most);
    }
}

impl Recovery for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    report_progress!();

    fn in_flight(&self, sent: &SentList) -> u64 {
        sent.in_flight().saturating_sub(self.departed)
    }

    fn on_ack(&mut self, sent: &mut SentList, ack: &AckContext, dup_thresh: u32) -> Verdict {
        let mss = u64::from(ack.mss);
        if ack.acked > 0 {
            return self.advance(sent);
        }
        let mut verdict = Verdict::default();
        if !ack.duplicate {
            return verdict;
        }
        self.progress.on_duplicate();
        match self.progress.phase {
            Phase::Loss => {}
            Phase::Recovery => {
                let most = self.departed + mss.min(self.credit);
                self.credit = self.credit.saturating_sub(mss);
                self.depart(sent, mss, most);
            }
            Phase::Open | Phase::Disorder if self.progress.duplicates < dup_thresh => {
                self.progress.phase = Phase::Disorder;
                let most = u64::from(dup_thresh.saturating_sub(1).min(LIMITED_TRANSMIT)) * mss;
                self.depart(sent, mss, most);
            }
            Phase::Open | Phase::Disorder => {
                self.progress.enter_recovery(sent);
                // Step 2: all the duplicates so far have taken a segment out.
                self.depart(sent, mss, u64::MAX);
                verdict.lost = sent.mark_head_lost(mss);
                verdict.entered = true;
                self.departed = self.departed.min(sent.in_flight());
                self.credit = self.in_flight(sent);
            }
        }
        verdict
    }

    fn on_timeout(&mut self, sent: &mut SentList) -> u64 {
        *self = Reno::default();
        self.progress.enter_loss(sent);
        sent.mark_all_lost()
    }

    fn on_undo(&mut self) {
        *self = Reno::default();
    }

    retransmit_what_is_lost!();
}
