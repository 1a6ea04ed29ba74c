//! Flow control: how much the receiver offers.

pub mod receive_window;

use crate::time::{Duration, Instant};
use core::fmt;

/// A flow-control unit: decides the size of the receive buffer, and so of the window.
pub trait FlowControl: fmt::Debug + Send {
    /// The name by which profiles and reports call it.
    fn name(&self) -> &'static str;

    /// The most unread bytes the receiver is ready to hold now.
    fn buffer_limit(&self) -> usize;

    /// The largest it may ever become; the window scale is chosen for it.
    fn max_buffer(&self) -> usize;

    /// The application read `bytes`. `rtt` is the receiver's estimate of the round-trip time.
    fn on_read(&mut self, now: Instant, bytes: usize, rtt: Option<Duration>);

    /// The application fixed the buffer (SO_RCVBUF): no tuning from now on.
    fn fix(&mut self, bytes: usize);
}
