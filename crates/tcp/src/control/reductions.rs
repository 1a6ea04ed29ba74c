//! Reductions of the window: made, spread over a recovery, and taken back.

use super::{Control, MarkBounds, Outcome};
use crate::ack_context::AckContext;
use crate::congestion::{CongestionControl, CongestionEvent, Window};
use crate::pos::Pos;
use crate::recovery::{Phase, Recovery};
use crate::reduction::Prr;
use crate::slow_start::SlowStart;
use crate::time::Instant;
use crate::undo::{Cause, Detector, UndoConfig, Watch};
use crate::validation::Validation;
use alloc::boxed::Box;

/// A reduction of the window, from its cause until nothing more can be learned of it.
#[derive(Debug)]
pub(super) struct Episode {
    /// The window before it.
    prior: Window,
    /// The unit that controls the window during fast recovery.
    reduction: Option<Prr>,
    /// The detectors of spurious reductions.
    pub(super) watch: Watch,
    /// Once this is acknowledged nothing more will be learned.
    end: Option<Pos>,
}

impl Control {
    /// Something happened that may shrink the window.
    pub(super) fn reduce(&mut self, event: CongestionEvent, now: Instant, outcome: &mut Outcome) {
        outcome.reduced |= matches!(
            event,
            CongestionEvent::Loss { .. }
                | CongestionEvent::Timeout { .. }
                | CongestionEvent::Ecn { .. }
        );
        self.slow_start.on_reduction(matches!(event, CongestionEvent::Timeout { .. }));
        self.controller.on_event(&mut self.window, event, now);
        let cause = match event {
            CongestionEvent::Loss { .. } => Cause::Acknowledgements,
            CongestionEvent::Timeout { .. } => Cause::Timeout,
            CongestionEvent::Ecn { .. } => {
                // RFC 4015 section 3.4: the window is reduced for a reason of its own now, and stays so.
                if let Some(episode) = &mut self.episode {
                    episode.watch = Watch::new(UndoConfig::default());
                }
                return;
            }
            _ => return,
        };
        let nxt = self.sent.end();
        if let Some(episode) = &mut self.episode {
            episode.end = None;
            episode.watch.on_reduction(cause, nxt);
        }
    }

    /// The SYN or SYN-ACK was marked: the initial window is one segment, as if it had been lost.
    pub(crate) fn on_handshake_mark(&mut self, now: Instant) {
        self.reduce(CongestionEvent::HandshakeLoss, now, &mut Outcome::default());
    }

    fn begin_episode(&mut self, reduction: Option<Prr>) {
        let watch = Watch::new(self.profile.undo);
        let any = reduction.is_some() || !watch.is_empty();
        let prior = self.window;
        self.episode = any.then(|| Box::new(Episode { prior, reduction, watch, end: None }));
    }

    /// Fast recovery begins with `ack`, after which `flight` bytes are outstanding.
    pub(super) fn begin_recovery(&mut self, ack: &AckContext, flight: u64, outcome: &mut Outcome) {
        outcome.recovers = true;
        let mut reduction = match self.controller.has_own_recovery() {
            true => None,
            false => self.profile.reduction(),
        };
        if let Some(reduction) = &mut reduction {
            // RFC 9937 section 6.1: what had arrived before is not delivered during the recovery.
            let known = self.sent.sacked_bytes().saturating_sub(ack.sacked);
            reduction.on_enter((flight + ack.acked).saturating_sub(known));
        }
        self.begin_episode(reduction);
        let lost = self.lost.saturating_sub(ack.lost);
        let flight = self.validation.on_loss(flight, lost);
        // Limited Transmit does not count: cwnd bounds what the flight was without it (RFC 5681 section 3.2).
        self.reduce(CongestionEvent::Loss { flight }, ack.now, outcome);
    }

    /// An acknowledgement in fast recovery.
    pub(super) fn go_on_reducing(&mut self, ack: &AckContext) {
        let Some(episode) = &mut self.episode else { return };
        if let Some(reduction) = &mut episode.reduction {
            let progress = ack.acked > 0 && ack.lost == 0;
            reduction.on_ack(&mut self.window, ack, progress);
        }
    }

    /// `bytes` left, new or again.
    pub(super) fn count_in_reduction(&mut self, bytes: u64) {
        if let Some(episode) = &mut self.episode
            && let Some(reduction) = &mut episode.reduction
        {
            reduction.on_sent(bytes);
        }
    }

    /// Fast recovery has ended. With `limit_to_flight`, the amount in the pipe during recovery is unknown.
    pub(super) fn end_recovery(
        &mut self,
        limit_to_flight: bool,
        ack: &AckContext,
        outcome: &mut Outcome,
    ) {
        let reduction = self.episode.as_mut().and_then(|episode| episode.reduction.take());
        match reduction {
            Some(mut reduction) => {
                let whole = self.controller.counts_acknowledged_bytes();
                reduction.on_exit(&mut self.window, whole);
            }
            // With SACK the pipe was kept as full as the window allowed all the time; there is nothing to take back.
            None if limit_to_flight => {
                let event = CongestionEvent::RecoveryEnd { flight: ack.in_flight };
                self.reduce(event, ack.now, outcome);
            }
            None => {}
        }
        if let Some(most) = self.validation.on_recovered(&self.window, self.lost)
            && !self.controller.has_own_recovery()
        {
            // RFC 7661 section 4.4.1: ssthresh is then what cwnd is.
            self.window.resize(self.window.cwnd.min(most));
            self.window.ssthresh = self.window.cwnd.max(self.window.floor());
        }
    }

    /// All is repaired. Reports of what arrived twice come until a round trip later.
    pub(super) fn end_episode(&mut self) {
        let nxt = self.sent.end();
        if let Some(episode) = &mut self.episode {
            episode.end = Some(nxt);
        }
    }

    /// The retransmission timer expired while the sender was in `phase`. The window before is remembered, unless it had been
    /// reduced for the same data.
    pub(super) fn begin_timeout_episode(&mut self, phase: Phase) {
        match &mut self.episode {
            Some(episode) if matches!(phase, Phase::Recovery | Phase::Loss) => {
                episode.reduction = None;
            }
            _ => self.begin_episode(None),
        }
    }

    /// The controller that made the last reduction is gone; with `own_recovery` the next one takes care of the rest of it.
    pub(super) fn hand_over(&mut self, own_recovery: bool) {
        if let Some(episode) = &mut self.episode {
            episode.watch = Watch::default();
            if own_recovery {
                episode.reduction = None;
            }
        }
    }

    /// Whether an acknowledgement shows that the last reduction was for nothing.
    pub(super) fn was_spurious(&mut self, ack: &AckContext) -> bool {
        let Some(episode) = &mut self.episode else { return false };
        let found = episode.watch.on_ack(ack);
        if !found && episode.end.is_some_and(|end| ack.una >= end) {
            self.episode = None;
        }
        found
    }

    /// Takes the last reduction back: nothing was lost. With an echo of congestion the window stays reduced (RFC 4015 section 3.4).
    pub(super) fn undo(&mut self, now: Instant, congested: bool, outcome: &mut Outcome) {
        let Some(mut episode) = self.episode.take() else { return };
        self.sent.unmark_lost();
        self.recovery.on_undo();
        self.validation.on_invalidated();
        if congested {
            if let Some(reduction) = &mut episode.reduction {
                reduction.on_exit(&mut self.window, self.controller.counts_acknowledged_bytes());
            }
            return;
        }
        outcome.undone = true;
        self.controller.on_undo(&mut self.window, episode.prior, now);
    }

    /// An acknowledgement with the echo: the window is reduced as by a loss, once for each window of data (RFC 3168 section
    /// 6.1.2).
    pub(super) fn answer_mark(
        &mut self,
        ack: &AckContext,
        bounds: Option<MarkBounds>,
        outcome: &mut Outcome,
    ) {
        let Some(bounds) = bounds else { return };
        // A reduction for a loss that this acknowledgement told of is for the same window.
        let reduced_upto = if outcome.reduced { self.sent.end() } else { bounds.reduced_upto };
        if ack.una <= reduced_upto || ack.recovering {
            return;
        }
        outcome.answered_mark = true;
        let flight = self.validation.on_mark(self.sent.outstanding() + ack.acked);
        self.reduce(CongestionEvent::Ecn { flight }, ack.now, outcome);
    }
}
