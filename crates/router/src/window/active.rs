//! How many flows there are that do something.

use core::num::NonZeroU32;

use transom_base::time::{Duration, Instant};

use super::flow::Open;

/// A flow is active if something of it was acknowledged in this period or the one before.
const PERIOD: Duration = Duration::from_secs(1);

/// Counts active flows, period by period.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Active {
    period: u64,
    current: u32,
    last: u32,
}

impl Active {
    /// The period that it is, from now on.
    fn enter_period(&mut self, now: Instant) -> u64 {
        let period = now.as_nanos() / PERIOD.as_nanos() + 1;
        if period != self.period {
            self.last = if period == self.period + 1 { self.current } else { 0 };
            self.current = 0;
            self.period = period;
        }
        period
    }

    /// Counts the flow if it is the first time in this period. Returns how many are active, at least one.
    pub(super) fn count(
        &mut self,
        now: Instant,
        open: &mut Open,
        newly_acked: Option<NonZeroU32>,
    ) -> u32 {
        let period = self.enter_period(now);
        if newly_acked.is_some() && open.period != period as u16 {
            open.period = period as u16;
            self.current += 1;
        }
        self.flows().max(1)
    }

    /// How many are active now, which may be none.
    pub(super) fn at(&mut self, now: Instant) -> u32 {
        self.enter_period(now);
        self.flows()
    }

    pub(super) fn flows(&self) -> u32 {
        self.current.max(self.last)
    }
}
