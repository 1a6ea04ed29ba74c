//! CAKE's shaper: a virtual clock. After a packet the next one may leave when the packet would have been sent at the rate.

use core::num::NonZeroU64;

use transom_base::time::{Duration, Instant};

/// The clock of a link that is slower than the one behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shaper {
    rate: NonZeroU64,
    /// Bytes that each packet takes besides its own, on the link that limits.
    overhead: i32,
    /// The least that a packet takes.
    least: u32,
    next: Instant,
}

impl Shaper {
    pub(super) const fn new(rate: NonZeroU64, overhead: i32, least: u32) -> Self {
        Shaper { rate, overhead, least, next: Instant::ZERO }
    }

    /// When the next packet may leave.
    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    /// How long a packet of `len` bytes takes.
    pub(super) fn takes(&self, len: usize) -> Duration {
        let len =
            u64::try_from(len).unwrap_or(u64::MAX).saturating_add_signed(self.overhead.into());
        let bits = u128::from(len.max(self.least.into())) * 8;
        let nanos = bits * 1_000_000_000 / u128::from(self.rate.get());
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The queue was empty until `now`: time that was not used is not saved up.
    pub(super) fn on_idle(&mut self, now: Instant) {
        self.next = self.next.max(now);
    }

    /// A packet of `len` bytes leaves. A caller that comes late catches up: the average rate is exact.
    pub(super) fn on_sent(&mut self, len: usize) {
        self.next += self.takes(len);
    }
}
