//! Explicit window adaptation: a window from the free space of the queue, without a memory of flows.
//!
//! After L. Kalampoukas, A. Varma and K. K. Ramakrishnan, *Explicit window adaptation: a method to enhance TCP performance*
//! (IEEE INFOCOM 1998), the paper's reference 13:
//!
//! ```text
//! window = max(α · log2(B − Q) · MSS, MSS)
//! ```
//!
//! with a queue of B packets of which Q are taken, and a factor α that follows the use of the queue. Once in an interval α
//! grows by 1/8 if the average queue was below a fifth of B. It shrinks by a sixteenth of itself if it was above.
//!
//! Deviations: the text of the article could not be consulted; the formula and the factor's rule are as they are commonly
//! cited. The interval is a parameter (10 ms). Without a flow table the scale of windows is not known, so the value is written
//! as if windows were not scaled. A scaled window comes out larger than meant, by a power of two. Right edges move left, which
//! is what the paper objects to.

use transom_base::time::{Duration, Instant};

use super::policy::{AckAction, AckContext, Policy};
use crate::queue::Length;

/// One, as α is kept.
const ONE: u64 = 1 << 16;
/// α's growth, 1/8.
const UP: u64 = ONE / 8;

/// Windows from the free space of the queue. Its parameters are those of [`PolicyConfig::ExplicitWindow`](super::PolicyConfig::ExplicitWindow).
#[derive(Clone, Debug)]
pub(super) struct ExplicitWindow {
    queue: u64,
    mss: u16,
    interval: Duration,
    /// In 65536ths.
    alpha: u64,
    /// Sum and number of the queue lengths that arriving packets found in this interval.
    sum: u64,
    seen: u64,
    adapt_at: Instant,
    packets: u64,
}

impl ExplicitWindow {
    /// With an α of one.
    pub(super) const fn new(queue: u64, mss: u16, interval: Duration) -> Self {
        let adapt_at = Instant::ZERO;
        ExplicitWindow { queue, mss, interval, alpha: ONE, sum: 0, seen: 0, adapt_at, packets: 0 }
    }

    fn window(&self) -> u64 {
        let free = self.queue.saturating_sub(self.packets);
        let mss = u64::from(self.mss);
        // At most 26, 14 and 16 bits.
        let window = (self.alpha * log2(free) * mss) >> (16 + 8);
        window.max(mss)
    }
}

/// The binary logarithm in 256ths, linear between powers of two; zero for zero.
pub(super) fn log2(value: u64) -> u64 {
    let Some(whole) = value.checked_ilog2() else { return 0 };
    // The bits behind the leading one, as a fraction.
    let fraction = match whole {
        0 => 0,
        _ => ((value << (63 - whole)) & (u64::MAX >> 1)) >> 55,
    };
    u64::from(whole) * 256 + fraction
}

impl Policy for ExplicitWindow {
    fn on_arrival(&mut self, now: Instant, _: usize, queue: Length) {
        if now >= self.adapt_at {
            if self.seen > 0 {
                let below = self.sum.saturating_mul(5) <= self.queue.saturating_mul(self.seen);
                // A thousandfold window helps nobody, and the arithmetic has an end.
                self.alpha = match below {
                    true => (self.alpha + UP).min(ONE << 10),
                    false => self.alpha - self.alpha / 16,
                };
            }
            (self.sum, self.seen) = (0, 0);
            self.adapt_at = now + self.interval;
        }
        self.sum = self.sum.saturating_add(queue.packets);
        self.seen += 1;
        self.packets = queue.packets;
    }

    fn on_ack(&mut self, _: Instant, ack: &AckContext) -> AckAction {
        self.packets = ack.queue.packets;
        AckAction::Window { bytes: self.window(), fall: true }
    }

    fn target(&self) -> Option<u64> {
        Some(self.window())
    }

    fn per_flow(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
