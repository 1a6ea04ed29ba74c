//! Acknowledgement policy: when the receiver speaks.

mod delayed;
mod immediate;
mod quick;
mod unit;

use crate::rto::TimerUnit;
use crate::time::{Duration, Instant};
use core::fmt;
pub(crate) use unit::AckUnit;

/// An arrival, as the policy sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<'a> {
    /// When.
    pub(crate) now: Instant,
    /// New bytes of sequence space.
    pub(crate) bytes: u64,
    /// The largest segment the peer seems to send, in bytes (an estimate of its SMSS).
    pub(crate) segment: u64,
    /// In order and without a gap behind it: neither out of order nor filling a hole, nor a duplicate.
    pub(crate) in_order: bool,
    /// It was all that the peer had to send: it was not full, or it carried PSH.
    pub(crate) pushed: bool,
    /// It carried the FIN.
    pub(crate) fin: bool,
    /// The window that was offered last, in bytes.
    pub(crate) window: u64,
    /// The sender's retransmission timer, for the policies that ask it.
    pub(crate) timer: &'a TimerUnit,
}

/// When to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckDecision {
    /// At once.
    Now,
    /// At the latest then, or with the next data going the other way.
    By(Instant),
}

/// An acknowledgement-policy unit.
pub(crate) trait AckPolicy: fmt::Debug + Send {
    /// New or duplicate data (or a FIN) arrived.
    fn on_arrival(&mut self, arrival: &Arrival<'_>) -> AckDecision;

    /// An acknowledgement left, alone or with data.
    fn on_ack_sent(&mut self);

    /// Data of ours leaves.
    fn on_data_sent(&mut self, _now: Instant) {}

    /// The time has passed that [`AckDecision::By`] gave, and no acknowledgement has left; `rto` is the retransmission timeout.
    fn on_delay_over(&mut self, _rto: Duration) {}

    /// The application has read everything while an acknowledgement waits. Returns whether it is to leave now.
    fn on_drained(&mut self) -> bool {
        false
    }

    /// Acknowledges the next few arrivals at once (the application turned interactive, or requested it), or none.
    fn quick(&mut self, arrivals: u32);

    /// Whether an arrival would be acknowledged at once for that reason.
    fn is_quick(&self) -> bool;

    /// The policy replaces another one in the middle of a connection; at its beginning it would help the peer's slow start.
    fn begin_late(&mut self) {
        self.quick(0);
    }
}
