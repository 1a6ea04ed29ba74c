//! The receiver's window with automatic tuning (Dynamic Right-Sizing, Fisk and Feng 2001).
//!
//! Twice as much as the application read in the last round trip is offered: if the sender was limited by the
//! window, it doubles; if by the application or the network, it stays. The buffer only grows, up to its maximum.

use super::FlowControl;
use crate::time::{Duration, Instant};

/// Sizes of the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveWindowConfig {
    /// At the start, in bytes.
    pub initial: usize,
    /// At most, in bytes.
    pub max: usize,
}

impl Default for ReceiveWindowConfig {
    fn default() -> Self {
        ReceiveWindowConfig { initial: 128 * 1024, max: 6 * 1024 * 1024 }
    }
}

/// The tuned receive buffer.
#[derive(Clone, Debug)]
pub struct ReceiveWindow {
    limit: usize,
    max: usize,
    tuned: bool,
    round_start: Option<Instant>,
    read_in_round: usize,
}

impl ReceiveWindow {
    /// A buffer of the initial size.
    pub fn new(config: ReceiveWindowConfig) -> Self {
        ReceiveWindow {
            limit: config.initial.min(config.max),
            max: config.max,
            tuned: true,
            round_start: None,
            read_in_round: 0,
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

    fn max_buffer(&self) -> usize {
        self.max
    }

    fn on_read(&mut self, now: Instant, bytes: usize, rtt: Option<Duration>) {
        if !self.tuned {
            return;
        }
        let started = *self.round_start.get_or_insert(now);
        self.read_in_round = self.read_in_round.saturating_add(bytes);
        let Some(rtt) = rtt else { return };
        if now.since(started) < rtt {
            return;
        }
        // A reader that was away for several round trips says nothing about one of them.
        let rounds = (now.since(started).as_nanos() / rtt.as_nanos().max(1)).max(1);
        let per_round = self.read_in_round / usize::try_from(rounds).unwrap_or(usize::MAX).max(1);
        self.limit = self.limit.max(per_round.saturating_mul(2).min(self.max));
        self.round_start = Some(now);
        self.read_in_round = 0;
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
        let mut window =
            ReceiveWindow::new(ReceiveWindowConfig { initial: 64 * KIB, max: 1024 * KIB });
        let rtt = Some(Duration::from_millis(10));
        let mut now = Instant::ZERO;
        window.on_read(now, 0, rtt);
        for expected in [128, 256, 512, 1024, 1024] {
            now += Duration::from_millis(10);
            let drained = window.buffer_limit();
            window.on_read(now, drained, rtt);
            assert_eq!(window.buffer_limit(), expected * KIB);
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
