//! What window a flow should have: the part of window control that can be exchanged.

use core::fmt;

use transom_tcp::time::{Duration, Instant};

use crate::queue::Length;

/// Decides, from the queue, about windows.
///
/// A policy wishes; the [`WindowMarker`](super::WindowMarker) sees to it that no wish does harm.
pub trait Policy: fmt::Debug + Send {
    /// A packet of `len` bytes has come to the queue, in which `queue` waits without it.
    fn on_arrival(&mut self, now: Instant, len: usize, queue: Length);

    /// What is to be done with an acknowledgement.
    fn on_ack(&mut self, now: Instant, ack: &AckContext) -> AckAction;

    /// What window the receiver's SYN should tell the sender, in bytes; `None` leaves it as it is. A SYN is no acknowledgement of a flow's,
    /// and not delayed; there may be several of one flow, and no flow behind them at all.
    ///
    /// Not asked of a policy that is not [`per_flow`](Policy::per_flow): nobody would know what an earlier copy of the SYN has told.
    fn on_syn(&mut self, now: Instant, syn: &SynContext) -> Option<u64> {
        let _ = (now, syn);
        None
    }

    /// The window in bytes that it has arrived at, if it is the same for all flows, for people to look at.
    fn target(&self) -> Option<u64> {
        None
    }

    /// Whether what is known of each flow is wanted. Without it windows are written as if none were scaled, and edges may
    /// move left.
    fn per_flow(&self) -> bool {
        true
    }
}

/// An acknowledgement, and what is known of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckContext {
    /// What waits in the queue that the flow's data goes through.
    pub queue: Length,
    /// What the receiver advertises, in bytes, or unscaled if the policy is not [`per_flow`](Policy::per_flow).
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
pub struct SynContext {
    /// What waits in the queue that the flow's data is to go through.
    pub queue: Length,
    /// What the receiver advertises, in bytes: it is never scaled.
    pub advertised: u16,
    /// The largest segment that it takes, in bytes.
    pub mss: u16,
    /// Other flows that have had something acknowledged lately.
    pub active: u32,
}

/// What a policy wants done with an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckAction {
    /// Nothing.
    AsItIs,
    /// The flow's window should go towards so many bytes.
    Window {
        /// Upwards at once.
        bytes: u64,
        /// Downwards, by what is newly acknowledged, or not at all for now.
        fall: bool,
    },
    /// It should go on later.
    Hold(Duration),
}
