//! COBALT: CoDel for queues that respond, BLUE for those that do not.
//!
//! CoDel signals at growing rate while packets wait too long. Unlike RFC 8289's it keeps its count when the queue is good again, and lets it decay
//! at the rate at which it grew. BLUE is a probability of drops that rises each time the queue overflows and falls when it runs empty: it holds a
//! flow that ignores CoDel. Source: Høiland-Jørgensen, Täht, Morton, "Piece of CAKE", LANMAN 2018, and Linux' `sch_cake`.

use transom_base::time::{Duration, Instant};

use crate::probability::Probability;
use crate::queue::RandomSource;

/// BLUE's steps: 1/256 up and 1/4096 down, as Linux has them.
const UP: u64 = Probability::PARTS / 256;
const DOWN: u64 = Probability::PARTS / 4096;

/// What COBALT wants with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Nothing.
    Pass,
    /// A signal for its delay: a mark will do.
    Signal,
    /// A drop, because the flow did not respond.
    Drop,
}

/// The times that COBALT goes by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) target: Duration,
    pub(super) interval: Duration,
}

/// The state of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cobalt {
    count: u64,
    dropping: bool,
    drop_next: Instant,
    blue: u64,
    blue_moved: Instant,
}

/// When the next signal is due: `t` + interval / √count.
fn control_law(t: Instant, interval: Duration, count: u64) -> Instant {
    let square = u128::from(interval.as_nanos()) * u128::from(interval.as_nanos());
    // The root of at most 2^128 fits.
    t + Duration::from_nanos((square / u128::from(count.max(1))).isqrt() as u64)
}

impl Cobalt {
    /// BLUE's probability.
    pub(super) fn probability(&self) -> Probability {
        Probability::from_parts(self.blue)
    }

    /// The queue has overflowed, and loses a packet.
    pub(super) fn on_full(&mut self, now: Instant, times: &Times) {
        if now.since(self.blue_moved) > times.target {
            self.blue = self.blue.saturating_add(UP).min(Probability::PARTS);
            self.blue_moved = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The queue has run empty.
    pub(super) fn on_empty(&mut self, now: Instant, times: &Times) {
        if self.blue > 0 && now.since(self.blue_moved) > times.target {
            self.blue = self.blue.saturating_sub(DOWN);
            self.blue_moved = now;
        }
        self.dropping = false;
        self.decay(now, times.interval);
    }

    /// Lets the count fall by those signals that were due meanwhile.
    fn decay(&mut self, now: Instant, interval: Duration) {
        // After so many intervals nothing is left in any case; it bounds the loop.
        if now.since(self.drop_next) > interval.times(64) {
            self.count = 0;
        }
        for _ in 0..256 {
            if self.count == 0 || now < self.drop_next {
                break;
            }
            self.count -= 1;
            self.drop_next = control_law(self.drop_next, interval, self.count);
        }
    }

    /// A packet has left the queue after `waited`: what is to become of it. It counts as late beyond `late`.
    pub(super) fn on_packet(
        &mut self,
        now: Instant,
        waited: Duration,
        late: Duration,
        times: &Times,
        random: &mut dyn RandomSource,
    ) -> Wish {
        let above = waited > late.max(times.target);
        if above && !self.dropping {
            self.dropping = true;
            self.drop_next = control_law(now, times.interval, self.count);
            self.count = self.count.max(1);
        } else if !above {
            self.dropping = false;
        }
        let mut wish = Wish::Pass;
        if self.dropping && self.count > 0 && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            self.drop_next = control_law(self.drop_next, times.interval, self.count);
            wish = Wish::Signal;
        } else if !self.dropping {
            self.decay(now, times.interval);
        }
        if self.blue > 0 && self.probability().toss(random) {
            wish = Wish::Drop;
        }
        if self.count == 0 {
            self.drop_next = now + times.interval;
        } else if now > self.drop_next && wish == Wish::Pass {
            self.drop_next = now;
        }
        wish
    }
}
