//! Validation: what a congestion window is still worth that was not used.
//!
//! A window says how much a path has carried lately. A sender that has been silent, or that had less to send than the window allows, no longer
//! knows that it still would. In either case the window does not *grow* while it is not used (RFC 7661 section 4.3, RFC 9438 section 5.8): that is
//! the connection's business, whatever is chosen here. A unit says what it *loses*: when data leaves after a silence, while too little is
//! sent, and from what a reduction is taken that hits a window of which only a part was in use.

pub mod cwv;
pub mod keep;
pub mod restart;

use crate::ack_context::AckContext;
use crate::congestion::Window;
use crate::time::{Duration, Instant};
use core::fmt;

/// What a window that was not used is still worth, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowBounds {
    /// cwnd is to be so much at most.
    pub cwnd: u64,
    /// ssthresh is to be so much at least: up to there the path is known.
    pub ssthresh: u64,
}

impl WindowBounds {
    /// All that it was.
    pub const UNCHANGED: WindowBounds = WindowBounds { cwnd: Window::WIDEST, ssthresh: 0 };
}

/// Data is about to leave after a silence that was longer than the retransmission timeout, with nothing outstanding.
#[derive(Clone, Copy, Debug)]
pub struct IdlePeriod {
    /// The present.
    pub now: Instant,
    /// When data last left.
    pub since: Instant,
    /// The smoothed round-trip time, once there is a sample.
    pub srtt: Option<Duration>,
}

/// A validation unit.
pub trait Validation: fmt::Debug + Send {
    /// The name by which profiles and reports call it.
    fn name(&self) -> &'static str;

    /// What the window is worth after a silence. Asked again while what is to leave is held back: the answer to an answer is the same.
    fn on_restart(&mut self, window: &Window, silence: &IdlePeriod) -> WindowBounds;

    /// Something was acknowledged. What the window is worth, if that has changed.
    fn on_ack(&mut self, _window: &Window, _ack: &AckContext) -> Option<WindowBounds> {
        None
    }

    /// A mark was echoed with `flight` bytes outstanding. Returns the bytes to take the reduction from.
    fn on_mark(&self, flight: u64) -> u64 {
        flight
    }

    /// Fast recovery begins with `flight` bytes outstanding; `lost` were lost on the connection before it. Returns the bytes to take the
    /// reduction from.
    fn on_loss(&mut self, flight: u64, _lost: u64) -> u64 {
        flight
    }

    /// Fast recovery is over; by now `lost` bytes were lost on the connection. Returns what cwnd is to be at most, if that may be less than
    /// congestion control has made of it.
    fn on_recovered(&mut self, _window: &Window, _lost: u64) -> Option<u64> {
        None
    }

    /// The retransmission timer expired, or the last reduction was for nothing: what was measured is void.
    fn on_void(&mut self) {}
}
