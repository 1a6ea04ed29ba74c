//! Units exchanged while the connection is alive.
//!
//! Units can be exchanged if no protocol state depends on them: congestion control, slow start, pacing, the acknowledgement policy, and how a
//! reduction is made and undone. Options, ECN, loss recovery, ordering and flow control stay: the peer agreed to them, or they hold data.

use super::timers::Timer;
use super::{Connection, State};
use crate::ack_policy::{AckPolicy as _, AckUnit};
use crate::arguments::Fraction;
use crate::congestion::{CongestionChoice, Counting};
use crate::control::Unit;
use crate::profile::{
    AckChoice, PacingChoice, Profile, ProfileError, ReductionChoice, SlowStartChoice,
};
use crate::time::Instant;
use crate::undo::UndoConfig;
use alloc::sync::Arc;

/// A unit in the place of the present one, for [`Connection::exchange`].
///
/// # Congestion control
///
/// The connection's own measurements go on as if nothing had happened: the round-trip time and its least value, the delivery rate and its samples,
/// what is in flight. So do the variables of RFC 5681, in the window. The controller that leaves puts into them what another can build upon
/// ([`on_leave`](crate::congestion::CongestionControl::on_leave)). The one that comes begins as on a new connection, but with this window
/// ([`on_takeover`](crate::congestion::CongestionControl::on_takeover)). Then:
///
/// - cwnd is never more than it was before the exchange, until the new controller's first increase. More may be in flight than a new window
///   allows; nothing is sent until it is not.
/// - `cwnd_cnt`, bytes counted by the old controller's rule, begins again at zero.
/// - In fast recovery, retransmissions go on. A reduction that is being spread over recovery (RFC 9937) continues to its end at ssthresh. The
///   exception is a new controller that manages its window in recovery itself: then it gets the loss as if it had just been found, and the reduction
///   unit is removed. Other controllers do not get a loss to which their predecessor has responded.
/// - After a timeout the window continues to grow from its present value, by the new controller's slow start or the slow-start unit.
/// - A reduction by the old controller is not undone any more: the new one might have treated the earlier window differently. Marks (RFC 3168) are
///   still answered once a window, by either controller.
///
/// Before the end of the handshake there is no window, and the new controller simply starts.
///
/// # The others
///
/// - Pacing: data that has left counts. A new pacing unit releases nothing earlier than the old one would have; without pacing, everything is
///   released.
/// - Acknowledgements: if one is being held back it leaves at once.
/// - Slow start: restarts its search for the end.
/// - What an acknowledgement counts for: from the next one on.
/// - What duplicates mean (early retransmit, limited transmit, RR): from the next one on. RR begins to learn then.
/// - Reduction and undo: from the next reduction on.
///
/// A unit that is exchanged for the same choice keeps its state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnitChoice {
    /// Congestion control. With one that counts on being paced, pacing comes too.
    Congestion(CongestionChoice),
    /// Pacing.
    Pacing(PacingChoice),
    /// The acknowledgement policy.
    Acknowledgements(AckChoice),
    /// What an acknowledgement counts for.
    Counting(Counting),
    /// Slow start.
    SlowStart(SlowStartChoice),
    /// What duplicates mean before they mean a loss.
    Duplicates {
        /// Fewer are taken for a loss where few segments are outstanding (RFC 5827).
        early_retransmit: bool,
        /// The first let new data out (RFC 3042).
        limited_transmit: bool,
    },
    /// Robustness against reordering, up to this share of cwnd. Without it, what was learned is dropped.
    Reordering(Option<Fraction>),
    /// How the window comes down in fast recovery.
    Reduction(ReductionChoice),
    /// The detectors of spurious reductions.
    Undo(UndoConfig),
}

impl Connection {
    /// Exchanges a unit. [`UnitChoice`] says what stays, and what happens to the window.
    ///
    /// # Errors
    /// [`ProfileError`] if the unit does not work with the others; nothing is exchanged then. For example, a controller may count on being paced, and
    /// an acknowledgement may wait for less than half a second (RFC 9293 section 3.8.6.3).
    pub fn exchange(&mut self, now: Instant, choice: UnitChoice) -> Result<(), ProfileError> {
        match choice {
            UnitChoice::Congestion(choice) => self.exchange_congestion(now, choice),
            UnitChoice::Pacing(choice) => return self.exchange_pacing(now, choice),
            UnitChoice::Acknowledgements(choice) => return self.exchange_policy(choice),
            UnitChoice::Counting(choice) => {
                self.change_profile(|profile| profile.counting = choice)
            }
            UnitChoice::SlowStart(choice) => {
                if choice != self.profile.slow_start {
                    self.change_profile(|profile| profile.slow_start = choice);
                    self.control.exchange(now, Unit::SlowStart);
                }
            }
            UnitChoice::Duplicates { early_retransmit, limited_transmit } => {
                return self.change_validated(|profile| {
                    profile.early_retransmit = early_retransmit;
                    profile.limited_transmit = limited_transmit;
                });
            }
            UnitChoice::Reordering(choice) => {
                return self.change_validated(|profile| profile.reordering = choice);
            }
            UnitChoice::Reduction(choice) => {
                self.change_profile(|profile| profile.reduction = choice)
            }
            UnitChoice::Undo(choice) => self.change_profile(|profile| profile.undo = choice),
        }
        Ok(())
    }

    fn exchange_congestion(&mut self, now: Instant, choice: CongestionChoice) {
        if choice == self.profile.congestion {
            return;
        }
        self.change_profile(|profile| profile.congestion = choice);
        if self.profile.congestion.needs_pacing() && self.profile.pacing == PacingChoice::None {
            self.change_profile(|profile| profile.pacing = PacingChoice::Rate);
            self.control.exchange(now, Unit::Pacing);
        }
        let first = self.state == State::SynSent;
        self.control.exchange(now, if first { Unit::FirstCongestion } else { Unit::Congestion });
    }

    fn exchange_pacing(&mut self, now: Instant, choice: PacingChoice) -> Result<(), ProfileError> {
        if choice == PacingChoice::None && self.profile.congestion.needs_pacing() {
            return Err(ProfileError::NeedsPacing(self.profile.congestion.name()));
        }
        if choice != self.profile.pacing {
            self.change_profile(|profile| profile.pacing = choice);
            self.control.exchange(now, Unit::Pacing);
        }
        Ok(())
    }

    fn exchange_policy(&mut self, choice: AckChoice) -> Result<(), ProfileError> {
        if choice == self.profile.ack {
            return Ok(());
        }
        Profile { ack: choice, ..Profile::default() }.validate()?;
        self.change_profile(|profile| profile.ack = choice);
        self.rcv.policy = AckUnit::new(self.profile.ack);
        self.rcv.policy.begin_late();
        if self.timers.is_set(Timer::Ack) {
            self.timers.clear(Timer::Ack);
            self.rcv.ack_now = true;
        }
        Ok(())
    }

    /// Gives the connection its own profile when its units differ from those of its host.
    pub(super) fn change_profile(&mut self, change: impl FnOnce(&mut Profile)) {
        let mut profile = (*self.profile).clone();
        change(&mut profile);
        self.take_profile(profile);
    }

    /// The same, if the units work together.
    fn change_validated(&mut self, change: impl FnOnce(&mut Profile)) -> Result<(), ProfileError> {
        let mut profile = (*self.profile).clone();
        change(&mut profile);
        profile.validate()?;
        self.take_profile(profile);
        Ok(())
    }

    fn take_profile(&mut self, profile: Profile) {
        if profile != *self.profile {
            self.profile = Arc::new(profile);
            self.control.adopt(&self.profile);
        }
    }
}
