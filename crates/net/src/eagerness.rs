//! Whether to ask the device for a moment longer before going to sleep.
//!
//! A wake-up costs time for the sleeper and, on another CPU, for the waking thread, which in bulk transfer is the sender. If
//! the next packet is a few microseconds away, it is better to stay awake, as hypervisors do with idle CPUs. If it is not, or
//! if the sender needs this CPU, staying awake is waste. Only an attempt shows which. After a failed attempt, twice as many
//! sleeps pass before the next one.

use crate::clock::Clock;
use crate::sync::atomic::{AtomicUsize, Ordering};
use transom_tcp::time::{Duration, Instant};

/// The longest a thread stays awake for the next packet: about what it takes to be woken on another CPU.
pub(crate) const MOMENT: Duration = Duration::from_micros(50);
/// At most two to this power sleeps between two attempts.
const MAX_BACKOFF: u32 = 10;

/// How long to ask the device again and again instead of sleeping. The default is not to.
#[derive(Clone, Copy, Default)]
pub(crate) struct Patience<'a>(Option<(Instant, &'a AtomicUsize)>);

impl<'a> Patience<'a> {
    /// Until `until`, or until a thread waits for the lock.
    pub(crate) fn until(until: Instant, contenders: &'a AtomicUsize) -> Self {
        Patience(Some((until, contenders)))
    }

    pub(crate) fn lasts(self, clock: Clock) -> bool {
        self.0.is_some_and(|(until, contenders)| {
            contenders.load(Ordering::Relaxed) == 0 && clock.now() < until
        })
    }
}

/// The results of the attempts so far.
#[derive(Debug, Default)]
pub(crate) struct Eagerness {
    backoff: u32,
    /// Sleeps until the next attempt.
    skip: u32,
}

impl Eagerness {
    /// Whether to stay awake this time. To be asked once before each sleep.
    pub(crate) fn stays_awake(&mut self) -> bool {
        let skipped = self.skip > 0;
        self.skip = self.skip.saturating_sub(1);
        !skipped
    }

    /// Says whether a packet came while staying awake.
    pub(crate) fn learn(&mut self, came: bool) {
        if came {
            *self = Eagerness::default();
        } else {
            self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
            self.skip = 1 << self.backoff;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vain_attempts_become_ever_rarer() {
        let mut eagerness = Eagerness::default();
        let mut gaps = Vec::new();
        let mut slept = 0;
        while gaps.len() < 12 {
            if eagerness.stays_awake() {
                eagerness.learn(false);
                gaps.push(slept);
                slept = 0;
            } else {
                slept += 1;
            }
        }
        assert_eq!(gaps, [0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]);
    }

    #[test]
    fn one_success_brings_it_back() {
        let mut eagerness = Eagerness::default();
        for _ in 0..5 {
            eagerness.learn(false);
        }
        while !eagerness.stays_awake() {}
        eagerness.learn(true);
        assert!(eagerness.stays_awake());
        assert!(eagerness.stays_awake());
    }
}
