//! The requests of layers for the send engine.
//!
//! A request is an interval. The engine clamps its own value to it, and the result to the safe range ([`safe`]). The result is an [`Effective`]: it can
//! be compared, but no type lets it flow back into a field of the engine's.

use super::Control;
use crate::congestion::Window;
use crate::extension::Interval;
use crate::extension::safe::{self, Effective};
use crate::extension::stack::Combined;
use crate::extension::variable::Variable;
use crate::time::{Duration, Instant};

/// The requests of all layers together, for the variables of the send engine.
///
/// It looks at them where they are. A connection makes it wherever it calls the engine, for each packet, so it is no copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clamp<'a> {
    /// None without layers.
    combined: Option<&'a Combined>,
    /// Until when the requested rate has been used up.
    release: Instant,
}

impl<'a> Clamp<'a> {
    /// Nothing is asked, as there are no layers.
    pub(crate) const NONE: Clamp<'static> = Clamp { combined: None, release: Instant::ZERO };

    /// What `combined` asks. What its layers ask of the rate is used up until `release`.
    #[inline]
    pub(crate) fn of(combined: &'a Combined, release: Instant) -> Self {
        Clamp { combined: Some(combined), release }
    }

    /// What is asked of `variable`, without contradiction.
    #[inline]
    fn asked(&self, variable: Variable) -> Option<Interval> {
        self.combined?.asked(variable)
    }

    /// Whether there are layers.
    pub(super) fn has_layers(&self) -> bool {
        self.combined.is_some()
    }

    /// Whether the safe ranges are not kept to: only simulated connections come to that, whose profile lifts them.
    #[inline]
    pub(super) fn is_lifted(&self) -> bool {
        self.combined.is_some_and(Combined::is_unconstrained)
    }

    fn safely(&self, asked: Interval, own: u64, safe: Interval) -> u64 {
        let wanted = asked.clamp(own);
        self.combined.map_or(wanted, |combined| combined.safely(wanted, safe))
    }

    /// The window in bytes that is used in the place of `own`.
    #[inline]
    fn used_cwnd(&self, own: u64) -> u64 {
        let Some(asked) = self.asked(Variable::Cwnd) else { return own };
        self.safely(asked, own, safe::cwnd(own))
    }

    /// The window for new data, in bytes. If a layer limits TCP's own window, it counts in whole segments, so that less than one is none.
    #[inline]
    pub(super) fn cwnd(&self, window: &Window) -> Effective<u64> {
        let used = self.used_cwnd(window.cwnd);
        Effective::new(if used < window.cwnd { used - used % window.segment() } else { used })
    }

    /// Whether anything is asked of the window.
    pub(super) fn limits_cwnd(&self) -> bool {
        self.asked(Variable::Cwnd).is_some()
    }

    /// Whether anything is asked of the count towards the next increase.
    pub(super) fn counts(&self) -> bool {
        self.asked(Variable::CwndCnt).is_some()
    }

    /// The count towards the next increase of the window that is used in the place of `own`.
    pub(super) fn cwnd_cnt(&self, own: u64) -> Effective<u64> {
        let used = self
            .asked(Variable::CwndCnt)
            .map_or(own, |asked| self.safely(asked, own, safe::cwnd_cnt(own)));
        Effective::new(used)
    }

    /// Of `acked` bytes, those that slow start may grow the window by; the rest comes after the threshold.
    pub(super) fn within_slow_start(&self, window: &Window, acked: u64) -> u64 {
        let Some(asked) = self.asked(Variable::Ssthresh) else { return acked };
        let own = window.ssthresh;
        let used = self.safely(asked, own, safe::ssthresh(own, window.segment()));
        Effective::new(used).left_after(window.cwnd).min(acked)
    }

    /// Duplicates that mean a loss, where TCP would say `own`.
    pub(super) fn dupthresh(&self, window: &Window, own: u32) -> u32 {
        let Some(asked) = self.asked(Variable::Dupthresh) else { return own };
        let safe = safe::dupthresh(self.used_cwnd(window.cwnd) / window.segment());
        let used = self.safely(asked, u64::from(own), safe);
        Effective::new(u32::try_from(used).unwrap_or(u32::MAX)).threshold()
    }

    /// The retransmission timeout, if it is not TCP's own.
    #[inline]
    pub(super) fn rto(&self, control: &Control) -> Option<Effective<Duration>> {
        let asked = self.asked(Variable::Rto)?;
        let own = control.own_timeout();
        let used = self.safely(asked, own.as_nanos(), safe::rto(own));
        (used != own.as_nanos()).then(|| Effective::new(Duration::from_nanos(used)))
    }

    /// A timer that TCP itself would end at `own` does not end before this.
    pub(super) fn least_deadline(&self, own: Instant) -> Instant {
        if self.is_lifted() { Instant::ZERO } else { own }
    }

    /// The rate that layers ask for, in bytes per second, if it is not TCP's own, and until when it has been used up.
    #[inline]
    pub(crate) fn pacing(&self, control: &Control) -> Option<(u64, Instant)> {
        let asked = self.asked(Variable::PacingRate)?;
        let rate = control.pacing_rate().unwrap_or(u64::MAX);
        let safe = safe::pacing_rate((rate < u64::MAX).then_some(rate));
        let used = self.safely(asked, rate, safe);
        (used != rate).then_some((used, self.release))
    }
}

/// What only simulated connections come to, whose profile lifts the safe ranges.
impl Clamp<'_> {
    /// The oldest position not acknowledged, if a layer has one.
    pub(super) fn virtual_una(&self, own: crate::pos::Pos) -> Option<u64> {
        self.asked(Variable::SndUna).map(|asked| asked.clamp(own.get()))
    }

    /// The threshold of slow start.
    pub(super) fn virtual_ssthresh(&self, own: u64) -> u64 {
        self.asked(Variable::Ssthresh).map_or(own, |asked| asked.clamp(own))
    }

    /// The count towards the next increase, if a layer has one.
    pub(super) fn virtual_cwnd_cnt(&self, own: u64) -> Option<u64> {
        self.asked(Variable::CwndCnt).map(|asked| asked.clamp(own))
    }
}
