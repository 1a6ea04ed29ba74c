//! One controller takes over from another on a live connection.

use crate::rto::Estimate;
use crate::time::{Duration, Instant};

/// The connection's measurements when a controller takes over. They survive the earlier controller; its own conclusions do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Takeover {
    /// When.
    pub now: Instant,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes delivered on the connection so far.
    pub delivered: u64,
    /// The estimate of the round-trip time, once there is a sample.
    pub estimate: Option<Estimate>,
    /// The least round-trip time seen on the connection.
    pub min_rtt: Option<Duration>,
}
