//! Reduction: how the window comes down in fast recovery from what it was to what congestion control wants it to be.
//!
//! The controller says how much: it lowers ssthresh, and cwnd to it. Without a unit that is all, and the sender falls silent until
//! so much has left the network (RFC 5681, RFC 6675). A unit spreads the fall over the round trip that recovery takes.

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

    /// An acknowledgement in fast recovery, the first one included; `progress` says whether it advanced SND.UNA and told of no
    /// further loss. cwnd becomes what is in flight and what may be sent now.
    fn on_ack(&mut self, window: &mut Window, ack: &AckContext, progress: bool);

    /// `bytes` left, new or again.
    fn on_sent(&mut self, bytes: u64);

    /// Fast recovery is over.
    fn on_exit(&mut self, window: &mut Window);
}
