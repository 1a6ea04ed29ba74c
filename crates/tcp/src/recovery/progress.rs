//! The state that the recovery units have in common: the phase, the recovery point, and the count of duplicates.

use super::{Phase, Retransmission};
use crate::pos::Pos;
use crate::sent::SentList;

/// How far a unit is in recovering from a loss.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// The phase the sender is in.
    pub(super) phase: Phase,
    /// Consecutive duplicate acknowledgements.
    pub(super) duplicates: u32,
    /// The end of the data whose acknowledgement ends recovery.
    pub(super) recovery_point: Option<Pos>,
    /// The fast retransmission has not left yet.
    pub(super) first_pending: bool,
}

impl Progress {
    /// Whether losses are being repaired, after duplicates or after a timeout.
    pub(super) fn is_recovering(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    /// Whether everything is acknowledged that was outstanding when recovery began.
    pub(super) fn is_repaired(&self, sent: &SentList) -> bool {
        self.recovery_point.is_none_or(|point| sent.start() >= point)
    }

    /// Fast recovery begins.
    pub(super) fn enter_recovery(&mut self, sent: &SentList) {
        self.phase = Phase::Recovery;
        self.recovery_point = Some(sent.end());
        self.first_pending = true;
    }

    /// The retransmission timer expired.
    pub(super) fn enter_loss(&mut self, sent: &SentList) {
        self.phase = Phase::Loss;
        self.duplicates = 0;
        self.recovery_point = Some(sent.end());
        self.first_pending = false;
    }

    /// Nothing is suspicious any more. The count of duplicates stays.
    pub(super) fn leave(&mut self) {
        self.phase = Phase::Open;
        self.recovery_point = None;
        self.first_pending = false;
    }

    /// New data was acknowledged. Leaves recovery, and returns true, if this repaired everything.
    pub(super) fn on_advance(&mut self, sent: &SentList) -> bool {
        self.duplicates = 0;
        let exits = self.is_recovering() && self.is_repaired(sent);
        if exits {
            self.leave();
        }
        exits
    }

    /// Counts a duplicate acknowledgement.
    pub(super) fn on_duplicate(&mut self) {
        self.duplicates = self.duplicates.saturating_add(1);
    }

    /// Counts a duplicate outside of a repair. Whether so many have come that something was lost; then they are counted anew.
    pub(super) fn on_duplicate_in_disorder(&mut self, dup_thresh: u32) -> bool {
        self.on_duplicate();
        self.phase = Phase::Disorder;
        let enough = self.duplicates >= dup_thresh;
        if enough {
            self.duplicates = 0;
        }
        enough
    }

    /// The first lost data. The fast retransmission is exempt from the congestion window.
    pub(super) fn next_lost(&self, sent: &SentList) -> Option<Retransmission> {
        let range = sent.next_lost()?;
        Some(Retransmission { range, exempt: self.first_pending, rescue: false })
    }
}

/// The methods of [`Recovery`](super::Recovery) that only read a unit's [`Progress`].
macro_rules! report_progress {
    () => {
        fn phase(&self) -> Phase {
            self.progress.phase
        }

        fn duplicate_acks(&self) -> u32 {
            self.progress.duplicates
        }
    };
}
pub(super) use report_progress;

/// The methods of [`Recovery`](super::Recovery) for a unit that sends again what is marked lost, from the front.
macro_rules! retransmit_what_is_lost {
    () => {
        fn next(&self, sent: &SentList, _new_data: bool, _mss: u32) -> Option<Retransmission> {
            self.progress.next_lost(sent)
        }

        fn on_retransmitted(&mut self, _named: &Retransmission, _range: Range<Pos>) {
            self.progress.first_pending = false;
        }
    };
}
pub(super) use retransmit_what_is_lost;
