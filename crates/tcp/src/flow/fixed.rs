//! A receive window of one size: the buffer of RFC 9293 section 3.8.6 without tuning.

use super::FlowControl;
use crate::time::{Duration, Instant};

/// A receive buffer of fixed size, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FixedWindow(pub usize);

impl FlowControl for FixedWindow {
    fn name(&self) -> &'static str {
        "fixed-window"
    }

    fn buffer_limit(&self) -> usize {
        self.0
    }

    fn max_window(&self) -> usize {
        self.0
    }

    fn on_read(&mut self, _now: Instant, _bytes: usize, _rtt: Option<Duration>) {}

    fn fix(&mut self, bytes: usize) {
        self.0 = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_reader_changes_nothing() {
        let mut window = FixedWindow(10_000);
        for ms in 0..100 {
            let rtt = Some(Duration::from_millis(1));
            window.on_read(Instant::from_millis(ms), 10_000, rtt);
        }
        assert_eq!((window.buffer_limit(), window.max_window()), (10_000, 10_000));
        window.fix(5_000);
        assert_eq!(window.buffer_limit(), 5_000);
    }
}
