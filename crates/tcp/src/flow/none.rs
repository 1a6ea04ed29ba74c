//! No flow control: the window is always the largest one; data that does not fit the memory is dropped.
//!
//! The window says nothing about the receiver. Its right edge is as far beyond RCV.NXT as its field and scale can express (65535 bytes,
//! or 65535·2¹⁴ with the window scale of RFC 7323), even if the application reads nothing. The memory is bounded: it reaches as far as a
//! receive window would have reached, and data beyond is dropped unprocessed. Such data is neither acknowledged nor reported by SACK. To
//! the sender it is a lost packet, and its error control sends it again.
//!
//! The bound is a position, not an amount. So data that arrived early never takes the room of data before it. The next byte in
//! order finds room as soon as the application reads.
//!
//! A sender does not learn when there is room again, except by its retransmission timer, with its back-off. A closed window would be
//! probed for ever (RFC 9293 section 3.8.6.1); here a sender gives up after its R2 if nothing is read for so long. The peer's window is
//! still respected: that is the peer's flow control, and this unit is the receiver's.

use super::FlowControl;
use crate::pos::Pos;
use crate::profile::MAX_WINDOW;
use crate::time::{Duration, Instant};

/// Memory for unread data that the window does not announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoFlowControl {
    memory: usize,
    dropped: u64,
}

impl NoFlowControl {
    /// Holds up to `memory` bytes.
    pub(crate) fn new(memory: usize) -> Self {
        NoFlowControl { memory, dropped: 0 }
    }
}

impl FlowControl for NoFlowControl {
    fn name(&self) -> &'static str {
        "no-flow-control"
    }

    fn buffer_limit(&self) -> usize {
        self.memory
    }

    fn max_window(&self) -> usize {
        MAX_WINDOW
    }

    fn right_edge(&self, next: Pos, _base: Pos, widest: u64) -> Pos {
        next + widest
    }

    fn drops(&self) -> bool {
        true
    }

    fn takes_upto(&self, base: Pos, end: Pos) -> Pos {
        end.min(base + self.memory as u64)
    }

    fn on_dropped(&mut self, bytes: u64) {
        self.dropped += bytes;
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn on_read(&mut self, _now: Instant, _bytes: usize, _rtt: Option<Duration>) {}

    fn fix(&mut self, bytes: usize) {
        self.memory = bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_knows_nothing_of_the_memory() {
        let mut flow = NoFlowControl::new(1000);
        let (base, next) = (Pos::FIRST_DATA, Pos::FIRST_DATA + 900);
        assert_eq!(flow.right_edge(next, base, 65_535), next + 65_535);
        assert_eq!(flow.takes_upto(base, next + 65_535), base + 1000);
        assert_eq!(flow.takes_upto(base, base + 10), base + 10);
        flow.on_dropped(7);
        flow.on_dropped(5);
        assert_eq!(flow.dropped(), 12);
    }
}
