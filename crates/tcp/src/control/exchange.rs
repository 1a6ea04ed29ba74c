//! Units of the send engine exchanged while it runs. [`UnitChoice`](crate::UnitChoice) says what stays.

use super::Control;
use crate::congestion::{CongestionControl, CongestionEvent, Takeover};
use crate::profile::Profile;
use crate::recovery::Phase;
use crate::rto::RetransmissionTimer;
use crate::time::Instant;
use alloc::sync::Arc;

/// A unit of the send engine that has a state of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Congestion control, before the handshake has said how large segments are.
    FirstCongestion,
    /// Congestion control.
    Congestion,
    /// Pacing.
    Pacing,
    /// Slow start.
    SlowStart,
}

impl Control {
    /// The choices of the profile have changed. What was learned of reordering is dropped if nobody uses it any more.
    pub(crate) fn adopt(&mut self, profile: &Arc<Profile>) {
        self.profile = profile.clone();
        if profile.reordering.is_none() {
            self.reordering = None;
        }
    }

    /// Takes the unit that the profile names now.
    pub(crate) fn exchange(&mut self, now: Instant, unit: Unit) {
        match unit {
            // It is started when the segment size is known.
            Unit::FirstCongestion => self.controller = self.profile.congestion.controller(),
            Unit::Congestion => self.exchange_controller(now),
            Unit::Pacing => {
                let release = self.pacing.as_ref().map(|pacing| pacing.release_at());
                self.pacing = self.profile.pacing();
                if let (Some(pacing), Some(release)) = (&mut self.pacing, release) {
                    pacing.hold_until(release);
                }
                self.stop_pacing();
            }
            Unit::SlowStart => self.slow_start = self.profile.slow_start(),
        }
    }

    fn exchange_controller(&mut self, now: Instant) {
        let takeover = Takeover {
            now,
            in_flight: self.in_flight(),
            delivered: self.sent.delivery().delivered(),
            estimate: self.timer.estimate(),
            min_rtt: self.min_rtt(),
        };
        let flight = self.sent.outstanding();
        let recovering = self.phase() == Phase::Recovery;
        let mut incoming = self.profile.congestion.controller();
        let before = self.window.cwnd;
        self.controller.on_leave(&mut self.window);
        let most = before.min(self.window.cwnd);
        incoming.on_takeover(&mut self.window, &takeover);
        let own_recovery = incoming.has_own_recovery();
        if recovering && own_recovery {
            incoming.on_event(&mut self.window, CongestionEvent::Loss { flight }, now);
        }
        self.window.cwnd_cnt = 0;
        self.window.resize(self.window.cwnd.min(most));
        self.controller = incoming;
        self.hand_over(own_recovery);
    }
}
