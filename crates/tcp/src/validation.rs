//! Validation: how much of a congestion window stays valid when it was not fully used.
//!
//! A window represents the path's recent capacity. After an idle period, or with less data than the window allows, the sender no longer knows that
//! it still holds. In both cases the window does not *grow* while it is not used (RFC 7661 section 4.3, RFC 9438 section 5.8). The connection
//! enforces that with any unit. A unit decides the *reduction*: when data leaves after an idle period, while too little is sent, and as the base
//! of a reduction when only a part of the window was used.

mod cwv;
mod keep;
mod restart;
mod unit;

use crate::ack_context::AckContext;
use crate::congestion::Window;
use crate::rto::Estimate;
use crate::time::Instant;
use core::fmt;
pub(crate) use unit::ValidationUnit;

/// New bounds for a window that was not fully used, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowBounds {
    /// The upper bound of cwnd.
    pub(crate) most_cwnd: u64,
    /// The lower bound of ssthresh: up to there the path is known.
    pub(crate) least_ssthresh: u64,
}

impl WindowBounds {
    /// All that it was.
    const UNCHANGED: WindowBounds = WindowBounds { most_cwnd: Window::WIDEST, least_ssthresh: 0 };
}

/// Data is about to leave after a silence that was longer than the retransmission timeout, with nothing outstanding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdlePeriod {
    /// The present.
    pub(crate) now: Instant,
    /// When data last left.
    pub(crate) since: Instant,
    /// The estimate of the round-trip time, once there is a sample.
    pub(crate) estimate: Option<Estimate>,
}

/// A validation unit.
pub(crate) trait Validation: fmt::Debug + Send {
    /// Data is about to leave after an idle period. Returns the bounds of the window. Called again while the data is held back, so applying it
    /// twice must be the same as once.
    fn on_restart(&mut self, window: &Window, silence: &IdlePeriod) -> WindowBounds;

    /// Data was acknowledged. Returns new bounds of the window, if they have changed.
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

    /// Fast recovery has ended; by now `lost` bytes were lost on the connection. Returns an upper bound of cwnd, if it may be less than congestion
    /// control's value.
    fn on_recovered(&mut self, _window: &Window, _lost: u64) -> Option<u64> {
        None
    }

    /// The retransmission timer expired, or the last reduction was spurious: measurements are void.
    fn on_invalidated(&mut self) {}
}
