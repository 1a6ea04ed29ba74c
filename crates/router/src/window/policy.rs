//! The window of a flow: the exchangeable part of window control.

use core::fmt;

use transom_base::time::{Duration, Instant};

use crate::queue::Length;

/// Decides, from the queue, about windows.
///
/// A policy wishes; the `WindowMarker` sees to it that no wish does harm.
pub trait Policy: fmt::Debug + Send {
    /// A packet of `len` bytes has come to the queue, which has length `queue` without it.
    fn on_arrival(&mut self, now: Instant, len: usize, queue: Length);

    /// Decides on an acknowledgement.
    fn on_ack(&mut self, now: Instant, ack: &AckContext) -> AckAction;

    /// The window for the receiver's SYN, in bytes; `None` leaves it unchanged. A SYN is not an acknowledgement of a flow, and is not
    /// delayed; there may be several of one flow, or no flow at all.
    ///
    /// Not called for a policy that is not [`per_flow`](Policy::per_flow): the edge of an earlier copy of the SYN would be unknown.
    fn on_syn(&mut self, now: Instant, syn: &SynContext) -> Option<u64> {
        let _ = (now, syn);
        None
    }

    /// The present window in bytes, if it is the same for all flows, for people.
    fn target(&self) -> Option<u64> {
        None
    }

    /// Whether the policy needs flow state. Without it windows are written as if unscaled, and edges may move left.
    fn per_flow(&self) -> bool {
        true
    }
}

/// An acknowledgement, and the state of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckContext {
    /// The queue in the path of the flow's data.
    pub queue: Length,
    /// The receiver's window, in bytes, or unscaled if the policy is not [`per_flow`](Policy::per_flow).
    pub advertised: u32,
    /// Bytes that it acknowledges for the first time.
    pub newly_acked: u32,
    /// The largest segment of the flow, in bytes.
    pub mss: u16,
    /// How long the handshake took, there and back.
    pub rtt: Option<Duration>,
    /// Flows that have had something acknowledged lately, at least one.
    pub active: u32,
}

/// A SYN of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SynContext {
    /// The queue in the path of the flow's data.
    pub queue: Length,
    /// The receiver's window, in bytes: it is never scaled.
    pub advertised: u16,
    /// The largest segment that it takes, in bytes.
    pub mss: u16,
    /// Other flows that have had something acknowledged lately.
    pub active: u32,
}

/// A policy's decision on an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckAction {
    /// Nothing.
    AsItIs,
    /// Moves the flow's window towards this many bytes.
    Window {
        /// Upwards at once.
        bytes: u64,
        /// Downwards, by what is newly acknowledged, or not at all for now.
        fall: bool,
    },
    /// It should go on later.
    Hold(Duration),
}
