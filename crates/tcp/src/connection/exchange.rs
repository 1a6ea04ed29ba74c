//! Units exchanged while the connection is alive.
//!
//! Units can be exchanged if no protocol state depends on them: congestion control, slow start, pacing, the acknowledgement policy, and how a
//! reduction is made and undone. Options, ECN, loss recovery, ordering and flow control stay: the peer agreed to them, or they hold data.
//!
//! # Congestion control
//!
//! The connection's own measurements go on as if nothing had happened: the round-trip time and its least value, the delivery rate and its samples,
//! what is in flight. So do the variables of RFC 5681, in the window. The controller that leaves puts into them what another can build upon
//! ([`on_leave`](crate::congestion::CongestionControl::on_leave)). The one that comes begins as on a new connection, but with this window
//! ([`on_takeover`](crate::congestion::CongestionControl::on_takeover)). Then:
//!
//! - cwnd is never more than it was before the exchange, until the new controller's first increase. More may be in flight than a new window
//!   allows; nothing is sent until it is not.
//! - `cwnd_cnt`, bytes counted by the old controller's rule, begins again at zero.
//! - In fast recovery, retransmissions go on. A reduction that is being spread over recovery (RFC 9937) continues to its end at ssthresh. The
//!   exception is a new controller that manages its window in recovery itself: then it gets the loss as if it had just been found, and the reduction
//!   unit is removed. Other controllers do not get a loss to which their predecessor has responded.
//! - After a timeout the window continues to grow from its present value, by the new controller's slow start or the slow-start unit.
//! - A reduction by the old controller is not undone any more: the new one might have treated the earlier window differently. Marks (RFC 3168) are
//!   still answered once a window, by either controller.
//!
//! Before the end of the handshake there is no window, and the new controller simply starts.
//!
//! # The others
//!
//! - Pacing: data that has left counts. A new pacing unit releases nothing earlier than the old one would have; without pacing, everything is
//!   released.
//! - Acknowledgements: if one is being held back it leaves at once.
//! - Slow start: restarts its search for the end.
//! - What an acknowledgement counts for: from the next one on.
//! - What duplicates mean (early retransmit, limited transmit, RR): from the next one on. RR begins to learn then.
//! - Reduction and undo: from the next reduction on.
//!
//! A unit that is exchanged for the same choice keeps its state.

use super::timers::Timer;
use super::{Connection, State};
use crate::compose::{Composer, RecomposeError};
use crate::congestion::{CongestionChoice, CongestionEvent, Counting, Takeover};
use crate::path_mtu::PathMtuDiscovery;
use crate::profile::{
    AckChoice, PacingChoice, Profile, ProfileError, ReductionChoice, SlowStartChoice,
};
use crate::recovery::Phase;
use crate::reordering::Robustness;
use crate::time::{Duration, Instant};
use crate::undo::{UndoConfig, Watch};
use crate::units;
#[cfg(fixed_units)]
use crate::units::direct::*;
use alloc::sync::Arc;

impl Connection {
    /// Exchanges the congestion controller. [`connection::exchange`](self) says what happens to the window. With one that counts on being paced,
    /// pacing comes too.
    pub fn set_congestion(&mut self, now: Instant, choice: CongestionChoice) {
        if choice == self.profile.congestion {
            return;
        }
        self.change_profile(|profile| profile.congestion = choice);
        let mut incoming = units::congestion(&self.profile);
        if self.profile.congestion.needs_pacing() && self.profile.pacing == PacingChoice::None {
            self.exchange_pacing(PacingChoice::Rate);
        }
        if self.state == State::SynSent {
            // It is started when the segment size is known.
            self.snd.congestion = incoming;
            return;
        }
        let takeover = Takeover {
            now,
            in_flight: self.in_flight(),
            delivered: self.snd.sent.delivery().delivered(),
            srtt: self.snd.timer.srtt(),
            min_rtt: self.snd.min_rtt(),
        };
        let flight = self.snd.sent.outstanding();
        let recovering = self.snd.recovery.phase() == Phase::Recovery;
        let snd = &mut self.snd;
        let before = snd.window.cwnd;
        snd.congestion.on_leave(&mut snd.window);
        let most = before.min(snd.window.cwnd);
        incoming.on_takeover(&mut snd.window, &takeover);
        let own_recovery = incoming.has_own_recovery();
        if recovering && own_recovery {
            incoming.on_event(&mut snd.window, CongestionEvent::Loss { flight }, now);
        }
        snd.window.cwnd_cnt = 0;
        snd.window.resize(snd.window.cwnd.min(most));
        snd.congestion = incoming;
        if let Some(episode) = &mut snd.episode {
            episode.hand_over(own_recovery);
        }
    }

    /// Exchanges pacing.
    ///
    /// # Errors
    /// [`ProfileError::NeedsPacing`] if it would leave a controller unpaced that counts on it.
    pub fn set_pacing(&mut self, choice: PacingChoice) -> Result<(), ProfileError> {
        if choice == PacingChoice::None && self.profile.congestion.needs_pacing() {
            return Err(ProfileError::NeedsPacing(self.profile.congestion.name()));
        }
        if choice != self.profile.pacing {
            self.exchange_pacing(choice);
        }
        Ok(())
    }

    fn exchange_pacing(&mut self, choice: PacingChoice) {
        let release = self.snd.pacing.as_ref().map(|pacing| pacing.release_at());
        self.change_profile(|profile| profile.pacing = choice);
        self.snd.pacing = units::pacing(&self.profile);
        if let (Some(pacing), Some(release)) = (&mut self.snd.pacing, release) {
            pacing.hold_until(release);
        }
        // Whether anything has to wait, and for how long, is found out with the next transmission.
        self.timers.clear(Timer::Pacing);
    }

    /// How long the connection waits for the peer's FIN after the application has let go of it and our FIN is acknowledged
    /// (`TCP_LINGER2`). With a span of zero it is gone at once, and a FIN that comes later is answered with a reset.
    pub fn set_fin_wait_2(&mut self, span: Duration) {
        self.change_profile(|profile| profile.fin_wait_2 = span);
    }

    /// Whether packets may be fragmented, and whether what routers say of their size counts, from now on. The packets' own flag is the host's business.
    pub fn set_path_mtu_discovery(&mut self, choice: PathMtuDiscovery) {
        self.change_profile(|profile| profile.path_mtu_discovery = choice);
    }

    /// Exchanges the acknowledgement policy.
    ///
    /// # Errors
    /// [`ProfileError::AckDelay`] for half a second or more (RFC 9293 section 3.8.6.3).
    pub fn set_ack_policy(&mut self, choice: AckChoice) -> Result<(), ProfileError> {
        if choice == self.profile.ack {
            return Ok(());
        }
        Profile { ack: choice, ..Profile::default() }.validate()?;
        self.change_profile(|profile| profile.ack = choice);
        self.rcv.policy = units::acks(&self.profile);
        self.rcv.policy.begin_late();
        if self.timers.is_set(Timer::Ack) {
            self.timers.clear(Timer::Ack);
            self.rcv.ack_now = true;
        }
        Ok(())
    }

    /// Exchanges what an acknowledgement counts for, from the next one on.
    pub fn set_counting(&mut self, choice: Counting) {
        self.change_profile(|profile| profile.counting = choice);
    }

    /// Exchanges the slow-start unit.
    pub fn set_slow_start(&mut self, choice: SlowStartChoice) {
        if choice != self.profile.slow_start {
            self.change_profile(|profile| profile.slow_start = choice);
            self.snd.slow_start = units::slow_start(&self.profile);
        }
    }

    /// Exchanges what duplicates mean before they mean a loss, from the next one on: whether fewer are taken for one where few segments are
    /// outstanding (RFC 5827), and whether the first let new data out (RFC 3042).
    ///
    /// # Errors
    /// [`ProfileError::EarlyRetransmitWithRack`] with a loss recovery that does not go by duplicates.
    pub fn set_duplicates(
        &mut self,
        early: bool,
        limited_transmit: bool,
    ) -> Result<(), ProfileError> {
        Profile { early_retransmit: early, ..(*self.profile).clone() }.validate()?;
        self.change_profile(|profile| {
            (profile.early_retransmit, profile.limited_transmit) = (early, limited_transmit);
        });
        Ok(())
    }

    /// Exchanges robustness against reordering ([`reordering`](crate::reordering)). Removing the last use drops what it learned.
    ///
    /// # Errors
    /// [`ProfileError::RrWithRack`], [`ProfileError::RrWithoutSack`] or [`ProfileError::RrCap`].
    pub fn set_reordering(&mut self, choice: Option<Robustness>) -> Result<(), ProfileError> {
        Profile { reordering: choice, ..(*self.profile).clone() }.validate()?;
        if choice.is_none() {
            self.snd.reordering = None;
        }
        self.change_profile(|profile| profile.reordering = choice);
        Ok(())
    }

    /// Exchanges how the window comes down in fast recovery, from the next one on.
    pub fn set_reduction(&mut self, choice: ReductionChoice) {
        self.change_profile(|profile| profile.reduction = choice);
    }

    /// Exchanges the detectors of spurious reductions, from the next reduction on.
    pub fn set_undo(&mut self, undo: UndoConfig) {
        self.change_profile(|profile| profile.undo = undo);
    }

    /// Exchanges units by name, such as `vegas + pacing`: see [`compose`](crate::compose). The other units stay.
    ///
    /// # Errors
    /// [`RecomposeError`]: a text that cannot be read or units that do not work together, and units that cannot be exchanged on a live
    /// connection, with the reason. Nothing has been exchanged then.
    pub fn recompose(&mut self, now: Instant, text: &str) -> Result<(), RecomposeError> {
        self.recompose_with(now, &Composer::default(), text)
    }

    /// Like [`Connection::recompose`], with the algorithms that a program has added.
    ///
    /// # Errors
    /// As there.
    pub fn recompose_with(
        &mut self,
        now: Instant,
        composer: &Composer,
        text: &str,
    ) -> Result<(), RecomposeError> {
        let current = Profile { nodelay: self.nodelay, ..(*self.profile).clone() };
        let profile = composer.recompose(&current, text)?;
        self.set_ack_policy(profile.ack)?;
        // Before pacing, which the one that leaves may count on.
        self.set_congestion(now, profile.congestion);
        self.set_pacing(profile.pacing)?;
        self.set_counting(profile.counting);
        self.set_slow_start(profile.slow_start);
        self.set_duplicates(profile.early_retransmit, profile.limited_transmit)?;
        self.set_reordering(profile.reordering)?;
        self.set_reduction(profile.reduction);
        self.set_undo(profile.undo);
        self.set_nodelay(profile.nodelay);
        Ok(())
    }

    /// Gives the connection its own profile when its units differ from those of its host.
    fn change_profile(&mut self, change: impl FnOnce(&mut Profile)) {
        let mut profile = (*self.profile).clone();
        change(&mut profile);
        if profile != *self.profile {
            self.profile = Arc::new(profile);
        }
    }
}

impl super::reductions::Episode {
    /// The controller that made this reduction is gone; with `own_recovery` the next one takes care of the rest of it.
    fn hand_over(&mut self, own_recovery: bool) {
        self.watch = Watch::default();
        if own_recovery {
            self.reduction = None;
        }
    }
}
