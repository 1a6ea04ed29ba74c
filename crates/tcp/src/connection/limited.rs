//! How long each limit held the sender back.

use crate::state::{LimitReason, LimitedBy};
use crate::time::{Duration, Instant};

/// Time spent under each limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct LimitedAccount {
    reason: LimitReason,
    /// The reason that was published last.
    published: LimitReason,
    since: Instant,
    /// Of all but the send buffer, which is never the limit here.
    spent: [Duration; 5],
    /// Since when data has been waiting to be acknowledged, sent or not; [`Instant::FAR_FUTURE`] if none has.
    busy_since: Instant,
    busy: Duration,
}

impl LimitedAccount {
    pub(super) fn new(now: Instant) -> Self {
        LimitedAccount {
            reason: LimitReason::NoData,
            published: LimitReason::NoData,
            since: now,
            spent: [Duration::ZERO; 5],
            busy_since: Instant::FAR_FUTURE,
            busy: Duration::ZERO,
        }
    }

    /// There is data that is not acknowledged.
    pub(super) fn begin_busy(&mut self, now: Instant) {
        self.busy_since = self.busy_since.min(now);
    }

    /// The time until now was the handshake's, not that of data.
    pub(super) fn forget_busy(&mut self) {
        self.busy_since = Instant::FAR_FUTURE;
    }

    /// All of it is acknowledged.
    pub(super) fn end_busy(&mut self, now: Instant) {
        self.busy = self.busy(now);
        self.busy_since = Instant::FAR_FUTURE;
    }

    pub(super) fn busy(&self, now: Instant) -> Duration {
        let running = match self.busy_since {
            Instant::FAR_FUTURE => Duration::ZERO,
            since => now.since(since),
        };
        self.busy + running
    }

    pub(super) fn note(&mut self, now: Instant, reason: LimitReason) {
        let before = self.current();
        if reason.limit() != before {
            if let Some(slot) = self.spent.get_mut(before as usize) {
                *slot = *slot + now.since(self.since);
            }
            self.since = now;
        }
        self.reason = reason;
    }

    pub(super) fn spent(&self, now: Instant, limit: LimitedBy) -> Duration {
        let running = if limit == self.current() { now.since(self.since) } else { Duration::ZERO };
        self.spent.get(limit as usize).copied().unwrap_or_default() + running
    }

    pub(super) fn current(&self) -> LimitedBy {
        self.reason.limit()
    }

    pub(super) fn reason(&self) -> LimitReason {
        self.reason
    }

    /// The reason, if it is another one than the last time.
    #[inline]
    pub(super) fn take_change(&mut self) -> Option<LimitReason> {
        let changed = self.reason != self.published;
        self.published = self.reason;
        changed.then_some(self.reason)
    }
}
