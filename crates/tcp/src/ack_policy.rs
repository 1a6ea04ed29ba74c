//! Acknowledgement policy: when the receiver speaks.

pub mod delayed;
pub mod immediate;

use crate::time::{Duration, Instant};
use core::fmt;

/// What arrived, as the policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When.
    pub now: Instant,
    /// New bytes of sequence space.
    pub bytes: u64,
    /// The largest segment the peer seems to send, in bytes (an estimate of its SMSS).
    pub segment: u64,
    /// It was in order and left no gap behind it: neither out of order nor filling a hole, nor a duplicate.
    pub in_order: bool,
    /// It carried the FIN.
    pub fin: bool,
}

/// When to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDecision {
    /// At once.
    Now,
    /// At the latest then, or with the next data going the other way.
    By(Instant),
}

/// An acknowledgement-policy unit.
pub trait AckPolicy: fmt::Debug + Send {
    /// The name by which profiles and reports call it.
    fn name(&self) -> &'static str;

    /// New or duplicate data (or a FIN) arrived.
    fn on_arrival(&mut self, arrival: &Arrival) -> AckDecision;

    /// An acknowledgement left, alone or with data.
    fn on_ack_sent(&mut self);

    /// The longest the policy may wait.
    fn max_delay(&self) -> Duration;

    /// Acknowledge the next few arrivals at once (the application turned interactive, or asked for it).
    fn quick(&mut self, arrivals: u32);
}
