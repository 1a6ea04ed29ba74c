//! Reduction: how fast recovery reduces the window to the controller's value.
//!
//! The controller decides how much: it lowers ssthresh, and cwnd to it. Without a unit, the sender then pauses until enough data
//! has left the network (RFC 5681, RFC 6675). A unit spreads the reduction over the round trip of recovery.

pub mod prr;

use crate::ack_context::AckContext;
use crate::congestion::Window;
use core::fmt;

/// A reduction unit. It is in charge of cwnd from the beginning of fast recovery to its end.
pub trait Reduction: fmt::Debug + Send {
    /// The name by which profiles and reports call it.
    fn name(&self) -> &'static str;

    /// Fast recovery begins. `flight` is what was outstanding before the acknowledgement that began it and not known to have
    /// arrived; ssthresh is what the window is to come down to.
    fn on_enter(&mut self, flight: u64);

    /// An acknowledgement in fast recovery, the first one included. `progress` says whether it advanced SND.UNA without
    /// reporting a further loss. Sets cwnd to the flight plus the data that may be sent now.
    fn on_ack(&mut self, window: &mut Window, ack: &AckContext, progress: bool);

    /// `bytes` left, new or again.
    fn on_sent(&mut self, bytes: u64);

    /// Fast recovery has ended.
    fn on_exit(&mut self, window: &mut Window);
}
