//! The receiver's window with automatic tuning (Dynamic Right-Sizing, Fisk and Feng 2001).
//!
//! The window is twice as much as the application read in the last round trip. If the window limited the sender,
//! it doubles. If the application or the network did, it stays. The buffer only grows, up to its maximum.
//!
//! In slow start, twice is not enough. While a round trip's data arrives, the receiver knows how much the one before brought, d. This one brings
//! 2d, and its acknowledgements let the sender have 4d in flight. So if reading has grown by a factor g from one round trip to the next, the
//! offer grows by g², between twice and four times.

use super::FlowControl;
use crate::time::{Duration, Instant};

/// Sizes of the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReceiveWindowConfig {
    /// At the start, in bytes.
    pub initial: usize,
    /// At most, in bytes.
    pub max: usize,
}

impl ReceiveWindowConfig {
    /// `initial` bytes at the start, `max` bytes at most.
    pub const fn new(initial: usize, max: usize) -> Self {
        ReceiveWindowConfig { initial, max }
    }
}

impl Default for ReceiveWindowConfig {
    fn default() -> Self {
        ReceiveWindowConfig { initial: 128 * 1024, max: 6 * 1024 * 1024 }
    }
}

/// The tuned receive buffer.
#[derive(Clone, Debug)]
pub(crate) struct ReceiveWindow {
    limit: usize,
    max: usize,
    tuned: bool,
    /// When the present round trip began; [`Instant::FAR_FUTURE`] before the first.
    round_start: Instant,
    read_in_round: usize,
    /// The bytes read in the round trip before; zero before there was one.
    read_before: usize,
}

/// The window after a round trip in which `read` bytes were read, and `before` in the one before that.
fn offer(read: usize, before: usize) -> usize {
    let (twice, most) = (read.saturating_mul(2), read.saturating_mul(4));
    let squared = (before as u128).saturating_mul(before as u128);
    let wanted = (read as u128).saturating_pow(3).checked_div(squared);
    wanted.map_or(twice, |wanted| usize::try_from(wanted).unwrap_or(usize::MAX).clamp(twice, most))
}

impl ReceiveWindow {
    /// A buffer of the initial size.
    pub(crate) fn new(config: ReceiveWindowConfig) -> Self {
        ReceiveWindow {
            limit: config.initial.min(config.max),
            max: config.max,
            tuned: true,
            round_start: Instant::FAR_FUTURE,
            read_in_round: 0,
            read_before: 0,
        }
    }
}

impl FlowControl for ReceiveWindow {
    fn name(&self) -> &'static str {
        "receive-window"
    }

    fn buffer_limit(&self) -> usize {
        self.limit
    }

    fn max_window(&self) -> usize {
        self.max
    }

    fn on_read(&mut self, now: Instant, bytes: usize, rtt: Option<Duration>) {
        if !self.tuned {
            return;
        }
        self.round_start = self.round_start.min(now);
        let elapsed = now.since(self.round_start);
        // Round-trip times are known to a millisecond: bursts that are a round trip apart are to be told apart, and whole.
        let slack = rtt.map_or(Duration::ZERO, |rtt| Duration::from_nanos(rtt.as_nanos() / 8));
        if let Some(rtt) = rtt.filter(|&rtt| elapsed + slack >= rtt && !elapsed.is_zero()) {
            // A reader that was away for several round trips says nothing about one of them.
            let span = if elapsed > rtt + slack { elapsed } else { rtt };
            let read = self.read_in_round as u128 * u128::from(rtt.as_nanos());
            let read = read / u128::from(span.as_nanos().max(1));
            let read = usize::try_from(read).unwrap_or(usize::MAX);
            self.limit = self.limit.max(offer(read, self.read_before).min(self.max));
            self.round_start = now;
            self.read_in_round = 0;
            self.read_before = read;
        }
        self.read_in_round = self.read_in_round.saturating_add(bytes);
    }

    fn fix(&mut self, bytes: usize) {
        self.tuned = false;
        self.limit = bytes;
        self.max = self.max.max(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    #[test]
    fn a_reader_that_drains_the_window_doubles_it_each_round() {
        // Half of it came in the round before, so the sender may be in slow start.
        for (before, expected) in [(64, 128), (32, 256), (48, 128), (40, 163)] {
            assert_eq!(offer(64 * KIB, before * KIB) / KIB, expected, "{before}");
        }
        assert_eq!((offer(64, 0), offer(0, 0), offer(0, 64)), (128, 0, 0));
        assert_eq!(offer(usize::MAX, 1), usize::MAX);
        let mut window =
            ReceiveWindow::new(ReceiveWindowConfig { initial: 64 * KIB, max: 4096 * KIB });
        let rtt = Some(Duration::from_millis(10));
        let mut now = Instant::ZERO;
        window.on_read(now, 0, rtt);
        // Each time what was read in the round trip before counts: 0, 16, 64 (four times as much), 64 (no more), 128 (twice as much), 256.
        for (drained, expected) in
            [(16, 64), (64, 64), (64, 256), (128, 256), (256, 512), (512, 1024), (512, 2048)]
        {
            now += Duration::from_millis(10);
            window.on_read(now, drained * KIB, rtt);
            assert_eq!(window.buffer_limit(), expected * KIB, "{drained}");
        }
    }

    /// A sender in slow start, whose data comes in one burst each round trip and is read a segment at a time: 10, 20, 40 segments and so on. Each
    /// acknowledgement lets it have one more in flight, up to twice as much as the burst: the window is never in its way.
    #[test]
    fn slow_start_is_not_held_back() {
        // The round-trip time is known to a millisecond.
        for millis in [39, 40, 41] {
            let mut window =
                ReceiveWindow::new(ReceiveWindowConfig { initial: 40_000, max: 64 << 20 });
            let rtt = Some(Duration::from_millis(millis));
            for round in 0..12 {
                let burst = 10_000usize << round;
                let now = Instant::from_millis(40 * (round + 1));
                for read in (1000..=burst).step_by(1000) {
                    window.on_read(now, 1000, rtt);
                    assert!(window.buffer_limit() >= burst + read, "round {round}: {read}");
                }
            }
        }
    }

    #[test]
    fn a_slow_reader_and_a_fixed_buffer_stay_put() {
        let config = ReceiveWindowConfig { initial: 64 * KIB, max: 1024 * KIB };
        let mut window = ReceiveWindow::new(config);
        let rtt = Some(Duration::from_millis(10));
        for ms in 0..50 {
            window.on_read(Instant::from_millis(ms * 10), 16 * KIB, rtt);
        }
        assert_eq!(window.buffer_limit(), 64 * KIB);
        window.fix(10 * KIB);
        window.on_read(Instant::from_secs(9), 500 * KIB, rtt);
        assert_eq!(window.buffer_limit(), 10 * KIB);
    }
}
