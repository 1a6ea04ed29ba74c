//! Transmissions: how much may leave, what again, and when. And what follows when it has left.

use super::{Clamp, Control, Outcome};
use crate::congestion::{CongestionControl, CongestionEvent};
use crate::pacing::window_rate;
use crate::pos::Pos;
use crate::recovery::{Phase, Recovery, Retransmission};
use crate::rto::RetransmissionTimer;
use crate::time::Instant;
use crate::undo::Detector;
use crate::validation::{IdlePeriod, Validation, WindowBounds};
use core::ops::Range;

impl Control {
    /// Data may leave soon, which ends at `end`: everything that changes before it. After a silence longer than the retransmission timeout the window
    /// is validated (RFC 5681 section 4.1).
    pub(crate) fn before_send(&mut self, now: Instant, end: Pos) {
        self.sent.advance_to_lost();
        if self.sent.outstanding() == 0
            && end > self.sent.end()
            && now.since(self.sent.latest()) > self.timer.rto()
        {
            let since = self.sent.latest();
            let silence = IdlePeriod { now, since, estimate: self.timer.estimate() };
            let WindowBounds { most_cwnd: cwnd, least_ssthresh: ssthresh } =
                self.validation.on_restart(&self.window, &silence);
            let event = CongestionEvent::Unvalidated { cwnd, ssthresh, idle: true };
            self.reduce(event, now, &mut Outcome::default());
        }
    }

    /// The bytes that the congestion window has room for.
    pub(crate) fn room(&self, clamp: &Clamp<'_>) -> u64 {
        clamp.cwnd(&self.window).left_after(self.counted_in_flight())
    }

    /// Whether another segment would fit into TCP's own window, and not into that of a layer.
    pub(crate) fn would_fit_without(&self, clamp: &Clamp<'_>) -> bool {
        clamp.limits_cwnd()
            && self.window.cwnd.saturating_sub(self.counted_in_flight()) >= self.window.segment()
    }

    /// The bytes that count against cwnd.
    ///
    /// *Limited Transmit* (RFC 3042): the first duplicates say that segments have left the network. New segments take their place, and bring the
    /// missing duplicates. Without it, what is outstanding counts as being in the network until recovery begins.
    fn counted_in_flight(&self) -> u64 {
        let in_flight = self.in_flight();
        if !self.profile.limited_transmit && self.phase() == Phase::Disorder {
            // Of what was sent again there can be two copies.
            return in_flight.max(self.sent.outstanding());
        }
        in_flight
    }

    /// The most bytes of one transmission at the pace, a segment at least.
    pub(crate) fn quantum(&self, clamp: &Clamp<'_>) -> u64 {
        let mss = u64::from(self.window.mss);
        let own = self
            .pacing
            .as_ref()
            .map_or(u64::MAX, |pacing| pacing.quantum(self.paced_rate()).max(mss));
        clamp.pacing(self).map_or(own, |(rate, _)| own.min((rate / 1000).max(mss)))
    }

    /// When the next transmission may leave, if it is paced.
    pub(crate) fn release_at(&self, clamp: &Clamp<'_>) -> Option<Instant> {
        let own = self.pacing.as_ref().map(|pacing| pacing.release_at());
        own.max(clamp.pacing(self).map(|(_, release)| release))
    }

    /// The rate to pace at: the controller's, or a window in a little less than a round trip.
    fn paced_rate(&self) -> Option<u64> {
        let own = self.controller.pacing_rate(&self.window);
        own.or_else(|| window_rate(&self.window, self.timer.srtt()))
    }

    /// The rate that TCP paces at, if it does.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        self.pacing.as_ref().and_then(|_| self.paced_rate())
    }

    /// The data to send again, most urgent first. `new_data` says whether unsent data could leave instead.
    pub(crate) fn next_retransmission(&self, new_data: bool) -> Option<Retransmission> {
        self.recovery.next(&self.sent, new_data, self.window.mss)
    }

    /// Whether what was sent at `start` may leave again, of data that ends at `end`. The FIN always may.
    pub(crate) fn may_repeat(&self, start: Pos, end: Pos, now: Instant) -> bool {
        let repeats = |record| self.recovery.repeats(record, now);
        !self.partial || start >= end || self.sent.at(start).is_none_or(repeats)
    }

    /// Whether new data is to go before what is believed lost, to learn whether it is.
    pub(crate) fn wants_new_data(&self) -> bool {
        self.episode.as_ref().is_some_and(|episode| episode.watch.wants_new_data())
    }

    /// There is none.
    pub(crate) fn no_new_data(&mut self) {
        if let Some(episode) = &mut self.episode {
            episode.watch.no_new_data();
        }
    }

    /// Whether the recovery unit needs a probe segment (RFC 8985 section 7.3).
    pub(crate) fn needs_probe(&self) -> bool {
        self.probe_due
    }

    /// There is nothing that could be a probe.
    pub(crate) fn no_probe(&mut self) {
        self.probe_due = false;
    }

    /// The last segment that is not known to have arrived, to be sent again as a probe.
    pub(crate) fn last_segment(&self) -> Option<Range<Pos>> {
        let mss = u64::from(self.window.mss);
        let last = self.sent.last_unsacked(self.sent.end())?;
        Some(last.start + (last.len() - 1) / mss * mss..last.end)
    }

    /// New data up to `end` leaves.
    pub(crate) fn on_sent(&mut self, end: Pos, now: Instant) {
        self.sent.push(end, now);
        if let Some(episode) = &mut self.episode {
            episode.watch.on_new_data();
        }
    }

    /// Up to `len` bytes from `start` on leave again. Returns which.
    pub(crate) fn on_sent_again(&mut self, start: Pos, len: u64, now: Instant) -> Range<Pos> {
        let segment = u64::from(self.window.mss);
        self.sent.retransmit(start, len, segment, now)
    }

    /// They were what the recovery unit named.
    pub(crate) fn on_repaired(&mut self, named: &Retransmission, range: Range<Pos>) {
        self.recovery.on_retransmitted(named, range);
    }

    /// They have left in a segment with this timestamp.
    pub(crate) fn watch_repetition(&mut self, bytes: u64, stamp: Option<u32>) {
        if let Some(episode) = &mut self.episode {
            episode.watch.on_retransmission(bytes, stamp);
        }
    }

    /// `bytes` have left, new or again: they are paced, and their answer is waited for.
    pub(crate) fn after_send(&mut self, now: Instant, bytes: u64, clamp: &Clamp<'_>) {
        let rate = self.pacing_rate();
        if let Some(pacing) = &mut self.pacing {
            pacing.on_sent(now, bytes, rate);
        }
        self.count_in_reduction(bytes);
        self.keep_timer(now, clamp);
        self.arm_recovery(now);
    }

    /// Data has left again. After a timeout the timer starts with what it waits for, also where that was held back (RFC 6298 section 5.6).
    /// In fast recovery the unit decides.
    pub(crate) fn after_repetition(&mut self, start: Pos, now: Instant, clamp: &Clamp<'_>) {
        let due = start == self.una() && core::mem::take(&mut self.repeat_due);
        let repairs = self.phase() == Phase::Recovery && self.recovery.restarts_timer_on_repair();
        if due || repairs {
            self.rearm(now, clamp);
        }
    }

    /// The probe that recovery needed has left: new data, or the last segment `again`.
    pub(crate) fn on_probed(&mut self, again: bool, now: Instant, clamp: &Clamp<'_>) {
        self.probe_due = false;
        let end = self.sent.end();
        self.recovery.on_probed(again, end);
        self.rearm(now, clamp);
        self.arm_recovery(now);
    }

    /// Whether the flight is within cwnd, with the exemptions the RFCs name: with nothing else in flight one segment may
    /// always go, and the FIN takes no room. (Fast retransmission is exempt altogether: RFC 5681 section 3.2 step 3.)
    pub(crate) fn keeps_to_window(&self) -> bool {
        self.in_flight() <= self.window.cwnd.max(u64::from(self.window.mss)) + 1
    }
}
