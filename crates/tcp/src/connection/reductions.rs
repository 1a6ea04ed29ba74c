//! Reductions of the window: made, spread over a recovery, and taken back.

use super::Connection;
use crate::ack_context::AckContext;
use crate::congestion::{CongestionEvent, Window};
use crate::extension::Wake;
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::reduction::Reduction;
use crate::time::Instant;
use crate::undo::{Cause, Detector, UndoConfig, Watch};
#[cfg(fixed_units)]
use crate::units::direct::*;
use alloc::boxed::Box;

/// A reduction of the window, from its cause until nothing more can be learned of it.
#[derive(Debug)]
pub(super) struct Episode {
    /// The window before it.
    prior: Window,
    /// The unit that controls the window during fast recovery.
    pub(super) reduction: Option<Box<dyn Reduction>>,
    /// The detectors of spurious reductions.
    pub(super) watch: Watch,
    /// Once this is acknowledged nothing more will be learned.
    end: Option<Pos>,
}

impl Connection {
    /// Something happened that may shrink the window.
    pub(super) fn reduce(&mut self, event: CongestionEvent, now: Instant) {
        self.note_reduction(event);
        self.snd.slow_start.on_reduction(matches!(event, CongestionEvent::Timeout { .. }));
        self.snd.congestion.on_event(&mut self.snd.window, event, now);
        let cause = match event {
            CongestionEvent::Loss { .. } => Cause::Acknowledgements,
            CongestionEvent::Timeout { .. } => Cause::Timeout,
            CongestionEvent::Ecn { .. } => {
                // RFC 4015 section 3.4: the window is reduced for a reason of its own now, and stays so.
                if let Some(episode) = &mut self.snd.episode {
                    episode.watch = Watch::new(UndoConfig::NONE);
                }
                return;
            }
            _ => return,
        };
        let nxt = self.nxt();
        if let Some(episode) = &mut self.snd.episode {
            episode.end = None;
            episode.watch.on_reduction(cause, nxt);
        }
    }

    fn begin_episode(&mut self, reduction: Option<Box<dyn Reduction>>) {
        let watch = Watch::new(self.profile.undo);
        let any = reduction.is_some() || !watch.is_empty();
        let prior = self.snd.window;
        self.snd.episode = any.then(|| Box::new(Episode { prior, reduction, watch, end: None }));
    }

    /// Fast recovery begins with `ack`, after which `flight` bytes are outstanding.
    pub(super) fn begin_recovery(&mut self, ack: &AckContext, flight: u64) {
        self.counters.fast_recoveries += 1;
        self.note_for_extensions(Wake::LOSS);
        let mut reduction = match self.snd.congestion.has_own_recovery() {
            true => None,
            false => self.profile.reduction(),
        };
        if let Some(reduction) = &mut reduction {
            // RFC 9937 section 6.1: what had arrived before is not delivered during the recovery.
            let known = self.snd.sent.sacked_bytes().saturating_sub(ack.sacked);
            reduction.on_enter((flight + ack.acked).saturating_sub(known));
        }
        self.begin_episode(reduction);
        let lost = self.counters.lost_bytes.saturating_sub(ack.lost);
        let flight = self.snd.validation.on_loss(flight, lost);
        // Limited Transmit does not count: cwnd bounds what the flight was without it (RFC 5681 section 3.2).
        self.reduce(CongestionEvent::Loss { flight }, ack.now);
    }

    /// An acknowledgement in fast recovery.
    pub(super) fn go_on_reducing(&mut self, ack: &AckContext) {
        let Some(episode) = &mut self.snd.episode else { return };
        if let Some(reduction) = &mut episode.reduction {
            let progress = ack.acked > 0 && ack.lost == 0;
            reduction.on_ack(&mut self.snd.window, ack, progress);
        }
    }

    /// `bytes` left, new or again.
    pub(super) fn count_in_reduction(&mut self, bytes: u64) {
        if let Some(episode) = &mut self.snd.episode
            && let Some(reduction) = &mut episode.reduction
        {
            reduction.on_sent(bytes);
        }
    }

    /// Fast recovery has ended. With `limit_to_flight`, the amount in the pipe during recovery is unknown.
    pub(super) fn end_recovery(&mut self, limit_to_flight: bool, ack: &AckContext) {
        let reduction = self.snd.episode.as_mut().and_then(|episode| episode.reduction.take());
        match reduction {
            Some(mut reduction) => reduction.on_exit(&mut self.snd.window),
            // With SACK the pipe was kept as full as the window allowed all the time; there is nothing to take back.
            None if limit_to_flight => {
                self.reduce(CongestionEvent::RecoveryEnd { flight: ack.in_flight }, ack.now);
            }
            None => {}
        }
        let lost = self.counters.lost_bytes;
        let snd = &mut self.snd;
        if let Some(most) = snd.validation.on_recovered(&snd.window, lost)
            && !snd.congestion.has_own_recovery()
        {
            // RFC 7661 section 4.4.1: ssthresh is then what cwnd is.
            snd.window.resize(snd.window.cwnd.min(most));
            snd.window.ssthresh = snd.window.cwnd.max(snd.window.floor());
        }
    }

    /// All is repaired. Reports of what arrived twice come until a round trip later.
    pub(super) fn end_episode(&mut self) {
        let nxt = self.nxt();
        if let Some(episode) = &mut self.snd.episode {
            episode.end = Some(nxt);
        }
    }

    /// The retransmission timer expired while the sender was in `phase`. The window before is remembered, unless it had been
    /// reduced for the same data.
    pub(super) fn begin_timeout_episode(&mut self, phase: Phase) {
        match &mut self.snd.episode {
            Some(episode) if matches!(phase, Phase::Recovery | Phase::Loss) => {
                episode.reduction = None;
            }
            _ => self.begin_episode(None),
        }
    }

    /// Whether an acknowledgement shows that the last reduction was for nothing.
    pub(super) fn was_spurious(&mut self, ack: &AckContext) -> bool {
        let Some(episode) = &mut self.snd.episode else { return false };
        let found = episode.watch.on_ack(ack);
        if !found && episode.end.is_some_and(|end| ack.una >= end) {
            self.snd.episode = None;
        }
        found
    }

    /// Takes the last reduction back: nothing was lost. With an echo of congestion the window stays reduced (RFC 4015 section 3.4).
    pub(super) fn undo(&mut self, now: Instant, congested: bool) {
        let Some(mut episode) = self.snd.episode.take() else { return };
        self.snd.sent.unmark_lost();
        self.snd.recovery.on_undo();
        self.snd.validation.on_invalidated();
        if congested {
            if let Some(reduction) = &mut episode.reduction {
                reduction.on_exit(&mut self.snd.window);
            }
            return;
        }
        self.counters.spurious_reductions += 1;
        self.snd.congestion.on_undo(&mut self.snd.window, episode.prior, now);
    }
}
