//! One controller takes over from another on a live connection.

use crate::time::{Duration, Instant};

/// What the connection has measured when a controller takes over: all that outlives the one before it. What that one had concluded for itself
/// goes with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Takeover {
    /// When.
    pub now: Instant,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes delivered on the connection so far.
    pub delivered: u64,
    /// The smoothed round-trip time, once there is a sample.
    pub srtt: Option<Duration>,
    /// The least round-trip time seen on the connection.
    pub min_rtt: Option<Duration>,
}
