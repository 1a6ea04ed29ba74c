//! No flow control: the widest window there is, always; what does not fit the memory is dropped.
//!
//! The window says nothing about the receiver any more. It stands as far beyond RCV.NXT as its field and its scale can express (65535
//! bytes, or 65535·2¹⁴ with the window scale of RFC 7323), whatever the application reads. The memory is bounded all the same: it
//! reaches exactly as far as a receive window would have reached, and data beyond that is dropped before anybody has seen it. It is
//! neither acknowledged nor reported by SACK, so that it is to the sender what a packet lost on the way is, and the sender's error
//! control brings it again.
//!
//! Because the bound is a position, not an amount, data that arrived early never takes the room of what has to come before it: the
//! next byte in order finds room as soon as the application reads.
//!
//! A sender is not told when there is room again. Its retransmission timer finds out, backed off as it may be; and where a closed window
//! would be probed for ever (RFC 9293 section 3.8.6.1), here a sender gives up after its R2 if nothing is read for so long. The window
//! of the peer is honoured as ever: that is the peer's flow control, and the unit is the receiver's.

use super::FlowControl;
use crate::pos::Pos;
use crate::profile::MAX_WINDOW;
use crate::time::{Duration, Instant};

/// Memory for unread data and nothing said about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoFlowControl {
    memory: usize,
    dropped: u64,
}

impl NoFlowControl {
    /// Holds up to `memory` bytes.
    pub fn new(memory: usize) -> Self {
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
