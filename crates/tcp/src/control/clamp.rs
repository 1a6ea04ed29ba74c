//! The requests of layers for the send engine, as values: computed once for an event.
//!
//! A request is an interval. The engine clamps its own value to it, and the result to the safe range ([`safe`]). The result is an [`Effective`]: it can
//! be compared, but no type lets it flow back into a field of the engine's.

use super::Control;
use crate::congestion::Window;
use crate::extension::Interval;
use crate::extension::safe::{self, Effective};
use crate::extension::stack::Combined;
use crate::extension::variable::{Variable, Variables};
use crate::time::{Duration, Instant};

/// The variables that the send engine uses.
const USED: Variables = Variables::one(Variable::Cwnd)
    .and(Variables::one(Variable::CwndCnt))
    .and(Variables::one(Variable::Ssthresh))
    .and(Variables::one(Variable::Dupthresh))
    .and(Variables::one(Variable::Rto))
    .and(Variables::one(Variable::PacingRate));
/// The same where the safe ranges are lifted.
const USED_LIFTED: Variables = USED.and(Variables::one(Variable::SndUna));

/// The requests of all layers together for the variables of the send engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clamp {
    /// The variables of which something is asked, without contradiction.
    asked: Variables,
    /// There are layers, whatever they ask.
    layers: bool,
    /// Safe ranges are not kept to.
    lifted: bool,
    /// What is asked of them. Most connections have nothing here, for each packet.
    requests: Option<Requests>,
}

/// The requests, each of which counts if its variable is among those asked.
#[derive(Clone, Copy, Debug)]
struct Requests {
    window: Interval,
    cwnd_cnt: Interval,
    ssthresh: Interval,
    dupthresh: Interval,
    rto: Interval,
    pacing: Interval,
    /// Until when the requested rate has been used up.
    release: Instant,
    /// With the ranges lifted only.
    una: Interval,
}

impl Requests {
    const ANY: Requests = Requests {
        window: Interval::ANY,
        cwnd_cnt: Interval::ANY,
        ssthresh: Interval::ANY,
        dupthresh: Interval::ANY,
        rto: Interval::ANY,
        pacing: Interval::ANY,
        release: Instant::ZERO,
        una: Interval::ANY,
    };

    /// The place of a variable that the send engine uses.
    fn place(&mut self, variable: Variable) -> &mut Interval {
        match variable {
            Variable::Cwnd => &mut self.window,
            Variable::CwndCnt => &mut self.cwnd_cnt,
            Variable::Ssthresh => &mut self.ssthresh,
            Variable::Dupthresh => &mut self.dupthresh,
            Variable::Rto => &mut self.rto,
            Variable::SndUna => &mut self.una,
            _ => &mut self.pacing,
        }
    }
}

impl Clamp {
    /// Nothing is asked, as there are no layers.
    // No constant: it would be copied whole, for each packet.
    #[inline(always)]
    pub(crate) const fn none() -> Clamp {
        Clamp { asked: Variables::NONE, layers: false, lifted: false, requests: None }
    }

    /// What `combined` asks. What its layers ask of the rate is used up until `release`.
    ///
    /// Only what is asked is looked at: mostly one variable.
    #[inline(always)]
    pub(crate) fn of(combined: &Combined, release: Instant) -> Clamp {
        let lifted = combined.is_unconstrained();
        let mut left = combined.some().only(if lifted { USED_LIFTED } else { USED });
        if left.is_empty() {
            return Clamp { layers: true, lifted, ..Clamp::none() };
        }
        let mut asked = Variables::NONE;
        let mut requests = Requests { release, ..Requests::ANY };
        while let Some(variable) = left.pop() {
            let Some(request) = combined.asked(variable) else { continue };
            asked.add(Variables::one(variable));
            *requests.place(variable) = request;
        }
        Clamp { asked, layers: true, lifted, requests: Some(requests) }
    }

    #[inline]
    fn asks(&self, variable: Variable) -> bool {
        self.asked.has(variable)
    }

    /// The requests, if one is for `variable`.
    #[inline]
    fn of_asked(&self, variable: Variable) -> Option<&Requests> {
        if self.asks(variable) { self.requests.as_ref() } else { None }
    }

    /// Whether there are layers.
    pub(super) fn has_layers(&self) -> bool {
        self.layers
    }

    fn safely(&self, asked: Interval, own: u64, safe: Interval) -> u64 {
        let wanted = asked.clamp(own);
        if self.lifted { wanted } else { safe.clamp(wanted) }
    }

    /// The window in bytes that is used in the place of `own`.
    #[inline]
    fn used_cwnd(&self, own: u64) -> u64 {
        let Some(requests) = self.of_asked(Variable::Cwnd) else { return own };
        self.safely(requests.window, own, safe::cwnd(own))
    }

    /// The window for new data, in bytes. If a layer limits TCP's own window, it counts in whole segments, so that less than one is none.
    #[inline]
    pub(super) fn cwnd(&self, window: &Window) -> Effective<u64> {
        let used = self.used_cwnd(window.cwnd);
        Effective::new(if used < window.cwnd { used - used % window.segment() } else { used })
    }

    /// Whether anything is asked of the window.
    pub(super) fn limits_cwnd(&self) -> bool {
        self.asks(Variable::Cwnd)
    }

    /// Whether anything is asked of the count towards the next increase.
    pub(super) fn counts(&self) -> bool {
        self.asks(Variable::CwndCnt)
    }

    /// The count towards the next increase of the window that is used in the place of `own`.
    pub(super) fn cwnd_cnt(&self, own: u64) -> Effective<u64> {
        let used = self
            .of_asked(Variable::CwndCnt)
            .map_or(own, |requests| self.safely(requests.cwnd_cnt, own, safe::cwnd_cnt(own)));
        Effective::new(used)
    }

    /// Of `acked` bytes, those that slow start may grow the window by; the rest comes after the threshold.
    pub(super) fn within_slow_start(&self, window: &Window, acked: u64) -> u64 {
        let Some(requests) = self.of_asked(Variable::Ssthresh) else { return acked };
        let own = window.ssthresh;
        let used = self.safely(requests.ssthresh, own, safe::ssthresh(own, window.segment()));
        Effective::new(used).left_after(window.cwnd).min(acked)
    }

    /// Duplicates that mean a loss, where TCP would say `own`.
    pub(super) fn dupthresh(&self, window: &Window, own: u32) -> u32 {
        let Some(requests) = self.of_asked(Variable::Dupthresh) else { return own };
        let safe = safe::dupthresh(self.used_cwnd(window.cwnd) / window.segment());
        let used = self.safely(requests.dupthresh, u64::from(own), safe);
        Effective::new(u32::try_from(used).unwrap_or(u32::MAX)).threshold()
    }

    /// The retransmission timeout, if it is not TCP's own.
    #[inline]
    pub(super) fn rto(&self, control: &Control) -> Option<Effective<Duration>> {
        let requests = self.of_asked(Variable::Rto)?;
        let own = control.own_timeout();
        let used = self.safely(requests.rto, own.as_nanos(), safe::rto(own));
        (used != own.as_nanos()).then(|| Effective::new(Duration::from_nanos(used)))
    }

    /// A timer that TCP itself would end at `own` does not end before this.
    pub(super) fn least_deadline(&self, own: Instant) -> Instant {
        if self.lifted { Instant::ZERO } else { own }
    }

    /// The rate that layers ask for, in bytes per second, if it is not TCP's own, and until when it has been used up.
    #[inline]
    pub(crate) fn pacing(&self, control: &Control) -> Option<(u64, Instant)> {
        let requests = self.of_asked(Variable::PacingRate)?;
        let rate = control.pacing_rate().unwrap_or(u64::MAX);
        let safe = safe::pacing_rate((rate < u64::MAX).then_some(rate));
        let used = self.safely(requests.pacing, rate, safe);
        (used != rate).then_some((used, requests.release))
    }
}

/// What only simulated connections come to, whose profile lifts the safe ranges.
impl Clamp {
    /// Whether the safe ranges are not kept to.
    pub(super) fn is_lifted(&self) -> bool {
        self.lifted
    }

    /// The oldest position not acknowledged, if a layer has one.
    pub(super) fn virtual_una(&self, own: crate::pos::Pos) -> Option<u64> {
        self.of_asked(Variable::SndUna).map(|requests| requests.una.clamp(own.get()))
    }

    /// The threshold of slow start.
    pub(super) fn virtual_ssthresh(&self, own: u64) -> u64 {
        self.of_asked(Variable::Ssthresh).map_or(own, |requests| requests.ssthresh.clamp(own))
    }

    /// The count towards the next increase, if a layer has one.
    pub(super) fn virtual_cwnd_cnt(&self, own: u64) -> Option<u64> {
        self.of_asked(Variable::CwndCnt).map(|requests| requests.cwnd_cnt.clamp(own))
    }
}
