//! The deadlines of the send engine: of the recovery unit, the retransmission timer (RFC 6298 section 5), and pacing.
//!
//! The code that causes a deadline sets it, and nothing recalculates it from conditions.

use super::{Clamp, Control, Outcome};
use crate::ack_context::AckContext;
use crate::congestion::CongestionEvent;
use crate::pos::Pos;
use crate::recovery::{Expiry, Phase, Recovery, Times};
use crate::rto::RetransmissionTimer;
use crate::time::{Duration, Instant};
use crate::validation::Validation;
use alloc::boxed::Box;
use core::ops::Range;

/// When each of them passes; [`Instant::FAR_FUTURE`] for one that does not run.
#[derive(Debug)]
pub(super) struct Deadlines {
    recovery: Instant,
    retransmission: Instant,
    /// How the retransmission timer was last started; nothing if it was before there were layers.
    armed: Option<Box<Armed>>,
    pacing: Instant,
}

/// A start of the retransmission timer.
#[derive(Clone, Copy, Debug)]
struct Armed {
    /// When it was started.
    at: Instant,
    /// When TCP's own would expire.
    own: Instant,
    /// A layer has set it to another time.
    by_request: bool,
}

impl Default for Deadlines {
    fn default() -> Self {
        let never = Instant::FAR_FUTURE;
        Deadlines { recovery: never, retransmission: never, armed: None, pacing: never }
    }
}

/// A deadline that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// The recovery unit's: reordering that is waited for, or a silence at the tail (RFC 8985). Before the retransmission timer, which
    /// it may spare.
    Recovery,
    /// RFC 6298, also for the SYN.
    Retransmission,
}

/// The deadline, if it runs.
fn running(at: Instant) -> Option<Instant> {
    Some(at).filter(|&at| at != Instant::FAR_FUTURE)
}

impl Control {
    /// The earliest deadline; [`Instant::FAR_FUTURE`] without any.
    pub(crate) fn next_deadline(&self) -> Instant {
        let Deadlines { recovery, retransmission, pacing, armed: _ } = &self.deadlines;
        *recovery.min(retransmission).min(pacing)
    }

    /// The first deadline that has passed by `now` and needs an answer, once.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<Expired> {
        let deadlines = &mut self.deadlines;
        if deadlines.pacing <= now {
            // What may leave is found out when output is asked for.
            deadlines.pacing = Instant::FAR_FUTURE;
        }
        if deadlines.recovery <= now {
            deadlines.recovery = Instant::FAR_FUTURE;
            return Some(Expired::Recovery);
        }
        if deadlines.retransmission <= now {
            deadlines.retransmission = Instant::FAR_FUTURE;
            return Some(Expired::Retransmission);
        }
        None
    }

    /// Nothing is waited for any more, except to be paced.
    pub(crate) fn stop_timers(&mut self) {
        self.deadlines.recovery = Instant::FAR_FUTURE;
        self.deadlines.retransmission = Instant::FAR_FUTURE;
    }

    /// Nothing is outstanding.
    pub(super) fn stop_retransmission(&mut self) {
        self.deadlines.retransmission = Instant::FAR_FUTURE;
    }

    /// The connection is over.
    pub(crate) fn end(&mut self) {
        self.stop_timers();
        self.deadlines.pacing = Instant::FAR_FUTURE;
    }

    /// TCP's own timeout.
    pub(super) fn own_timeout(&self) -> Duration {
        self.timer.rto()
    }

    /// Starts the retransmission timer if data (or a SYN) is outstanding and stops it otherwise (RFC 6298 section 5).
    pub(crate) fn rearm(&mut self, now: Instant, clamp: &Clamp<'_>) {
        if self.una() < self.sent.end() {
            let own = now + self.timer.rto();
            self.start_timer(now, own, clamp);
        } else {
            self.deadlines.retransmission = Instant::FAR_FUTURE;
        }
    }

    /// Data was acknowledged and some is still outstanding: the timer starts again (RFC 6298 section 5.3).
    pub(super) fn restart_timer(&mut self, now: Instant, clamp: &Clamp<'_>) {
        match self.sent.first() {
            Some(oldest) => {
                let own = self.timer.restart(now, oldest.last_sent);
                self.start_timer(now, own, clamp);
            }
            None => self.rearm(now, clamp),
        }
    }

    /// The timer starts; TCP's own would expire at `own`.
    fn start_timer(&mut self, now: Instant, own: Instant, clamp: &Clamp<'_>) {
        let used = clamp.rto(self);
        if clamp.has_layers() {
            self.note_armed(Armed { at: now, own, by_request: used.is_some() });
        }
        let least = clamp.least_deadline(own);
        self.deadlines.retransmission = used.map_or(own, |used| used.after(now).max(least));
    }

    fn note_armed(&mut self, armed: Armed) {
        **self.deadlines.armed.get_or_insert_with(|| Box::new(armed)) = armed;
    }

    /// Something is outstanding, and the timer is to run.
    pub(super) fn keep_timer(&mut self, now: Instant, clamp: &Clamp<'_>) {
        if running(self.deadlines.retransmission).is_none() {
            self.rearm(now, clamp);
        }
    }

    /// Layers ask for another timeout: a running timer is set again. It may have been set to a time that never comes.
    pub(crate) fn on_timeout_limits(&mut self, now: Instant, clamp: &Clamp<'_>) {
        let armed = self.deadlines.armed.as_deref().copied();
        let runs = running(self.deadlines.retransmission);
        let outstanding = self.una() < self.sent.end();
        let by_request = armed.is_some_and(|armed| armed.by_request) && outstanding;
        if !by_request && runs.is_none() {
            return;
        }
        let used = clamp.rto(self);
        let began = Armed { at: now, own: runs.unwrap_or(now), by_request };
        let armed = Armed { by_request: used.is_some(), ..armed.unwrap_or(began) };
        self.deadlines.retransmission = match used {
            // TCP's own timeout may have become less since the timer started, but TCP's timer would run on.
            Some(used) => used.after(armed.at).max(clamp.least_deadline(armed.own)).max(now),
            None if by_request => armed.own.max(now),
            None => return,
        };
        if clamp.has_layers() {
            self.note_armed(armed);
        }
    }

    /// The last layer is gone.
    pub(crate) fn forget_layers(&mut self) {
        self.deadlines.armed = None;
    }

    /// What leaves is paced at another rate: whether anything has to wait, and for how long, is found out with the next transmission.
    pub(crate) fn stop_pacing(&mut self) {
        self.deadlines.pacing = Instant::FAR_FUTURE;
    }

    /// Nothing may leave before `release`.
    pub(crate) fn wait_for_pacing(&mut self, release: Instant) {
        self.deadlines.pacing = release;
    }

    /// Asks the recovery unit for its next deadline, after data was sent or acknowledged.
    pub(super) fn arm_recovery(&mut self, now: Instant) {
        if !self.recovery.has_deadlines() {
            return;
        }
        let times = Times {
            now,
            estimate: self.timer.estimate(),
            timeout_at: running(self.deadlines.retransmission),
            mss: self.window.mss,
        };
        let at = self.recovery.deadline(&self.sent, &times);
        self.deadlines.recovery = at.unwrap_or(Instant::FAR_FUTURE);
    }

    /// The recovery unit's deadline has passed. `probe` is a probe of the path MTU that is in flight.
    pub(crate) fn on_deadline(
        &mut self,
        now: Instant,
        probe: Option<&Range<Pos>>,
        clamp: &Clamp<'_>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        match self.recovery.on_deadline(&mut self.sent, now) {
            Expiry::Nothing => {}
            Expiry::Probe => {
                self.probe_due = true;
                // Its answer is to be waited for, also where both deadlines fall together.
                self.rearm(now, clamp);
            }
            Expiry::Losses(verdict) => {
                self.note_lost(now, verdict.lost, &mut outcome);
                let ack = self.no_acknowledgement(now, verdict.lost);
                if self.losses_count(&ack, verdict.entered, probe, &mut outcome) {
                    self.begin_recovery(&ack, self.sent.outstanding(), &mut outcome);
                }
                self.go_on_reducing(&ack);
                self.arm_recovery(now);
            }
        }
        outcome
    }

    /// The retransmission timer has expired: all outstanding data counts as lost. `first` says that it is the first time in a row.
    pub(crate) fn on_timeout(&mut self, now: Instant, first: bool) -> Outcome {
        let mut outcome = Outcome::default();
        // RFC 5681 section 3.1: a later expiry for the same data does not lower ssthresh again.
        let first = self.phase() != Phase::Loss || first;
        let flight = self.sent.outstanding();
        self.begin_timeout_episode(self.phase());
        self.validation.on_invalidated();
        if let Some(reordering) = &mut self.reordering {
            reordering.on_timeout();
        }
        let lost = self.recovery.on_timeout(&mut self.sent);
        self.note_lost(now, lost, &mut outcome);
        self.reduce(CongestionEvent::Timeout { flight, first }, now, &mut outcome);
        outcome
    }

    /// Silence means less than it did: the timeout doubles.
    pub(crate) fn back_off(&mut self) {
        self.timer.back_off();
    }

    /// Waits for the repetition of what has timed out, before the timer starts anew (RFC 6298 section 5.6).
    pub(crate) fn expect_repetition(&mut self) {
        self.repeat_due = true;
    }

    /// After losses: gives up those without hope, of data that ends at `end`. Returns the bytes given up.
    pub(crate) fn give_up(&mut self, end: Pos, now: Instant) -> u64 {
        if self.partial { self.recovery.give_up(&mut self.sent, end, now) } else { 0 }
    }

    /// The context for the units when something is detected without an acknowledgement.
    pub(super) fn no_acknowledgement(&self, now: Instant, lost: u64) -> AckContext {
        let in_flight = self.in_flight();
        AckContext {
            now,
            una: self.una(),
            nxt: self.sent.end(),
            lost,
            sack_agreed: self.sack,
            estimate: self.timer.estimate(),
            min_rtt: self.min_rtt(),
            delivered: self.sent.delivery().delivered(),
            recovering: self.phase() == Phase::Recovery,
            prior_in_flight: in_flight,
            in_flight,
            mss: self.window.mss,
            ..AckContext::default()
        }
    }
}
