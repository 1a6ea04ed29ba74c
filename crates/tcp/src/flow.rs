//! Flow control: how much the receiver offers.
//!
//! Flow control decides two things: the right edge of the advertised window, and the memory for arriving data. Usually the one follows
//! from the other.

mod fixed;
mod none;
pub(crate) mod receive_window;
mod unit;

pub use receive_window::ReceiveWindowConfig;

use crate::pos::Pos;
use crate::time::{Duration, Instant};
use core::fmt;
pub(crate) use unit::FlowUnit;

/// A flow-control unit: decides the size of the receive buffer, and so of the window.
pub(crate) trait FlowControl: fmt::Debug + Send {
    /// The name by which profiles and reports call it.
    fn name(&self) -> &'static str;

    /// The most unread bytes the receiver is ready to hold now. It changes with [`FlowControl::on_read`] and [`FlowControl::fix`] only.
    fn buffer_limit(&self) -> usize;

    /// The largest window it may ever offer, in bytes; the window scale is chosen for it.
    fn max_window(&self) -> usize;

    /// The right edge that the window should have, if RCV.NXT is `next` and the receive buffer begins at `base`
    /// ([`Ordering::window_base`](crate::ordering::Ordering::window_base)). `widest` is the largest window that can be expressed on
    /// this connection, in bytes.
    fn right_edge(&self, next: Pos, base: Pos, widest: u64) -> Pos {
        let _ = (next, widest);
        base + self.buffer_limit() as u64
    }

    /// Whether data may be dropped that is within the window. Only then [`FlowControl::takes_upto`] is asked.
    fn drops(&self) -> bool {
        false
    }

    /// The end of the part that is accepted of data that reaches to `end` and is within the window. The rest is dropped, as if it had
    /// not arrived.
    fn takes_upto(&self, base: Pos, end: Pos) -> Pos {
        let _ = base;
        end
    }

    /// `bytes` within the window were dropped: [`FlowControl::takes_upto`] did not reach so far.
    fn on_dropped(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// Bytes dropped so far.
    fn dropped(&self) -> u64 {
        0
    }

    /// The application read `bytes`. `rtt` is the receiver's estimate of the round-trip time.
    fn on_read(&mut self, now: Instant, bytes: usize, rtt: Option<Duration>);

    /// The application fixed the buffer (SO_RCVBUF): no tuning from now on.
    fn fix(&mut self, bytes: usize);
}
