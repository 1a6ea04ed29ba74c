//! Slow start: how the window grows until the first loss, and after a timeout.
//!
//! The unit is called while cwnd is below ssthresh; it may lower ssthresh to end slow start before a loss does. The part of an
//! acknowledgement beyond the end counts for congestion avoidance.

mod hystart;
mod hystart_pp;
pub(crate) mod limited;
mod search;
pub(crate) mod standard;
#[cfg(test)]
mod test_bottleneck;
mod unit;

pub use limited::Limited;
pub use standard::Standard;

use crate::ack_context::AckContext;
use crate::congestion::Window;
use core::fmt;
pub(crate) use unit::SlowStartUnit;

/// A slow-start unit.
pub trait SlowStart: fmt::Debug + Send {
    /// The name by which profiles and reports call it.
    fn name(&self) -> &'static str;

    /// Something was acknowledged in slow start: for units that measure.
    fn on_sample(&mut self, _window: &mut Window, _ack: &AckContext) {}

    /// `acked` bytes of new data were acknowledged while the window was what held the sender back: grow it. Returns the bytes left
    /// over for congestion avoidance.
    fn grow(&mut self, window: &mut Window, acked: u64, ack: &AckContext) -> u64;

    /// Slow start ended by a loss or a mark, or begins again, after a timeout or because the window was not used.
    fn on_reduction(&mut self, _timeout: bool) {}
}
