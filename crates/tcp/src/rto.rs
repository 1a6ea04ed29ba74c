//! The retransmission timer: how long to wait before silence means loss.

mod choice;
pub(crate) mod eifel;
pub(crate) mod fixed;
pub(crate) mod rfc6298;
mod unit;

pub use eifel::{Eifel, EifelConfig};
pub use fixed::FixedConfig;
pub use rfc6298::{Rfc6298, Rfc6298Config};

use crate::time::{Duration, Instant};
use core::fmt;
pub(crate) use unit::TimerUnit;

/// An estimate of the round-trip time (RFC 6298 section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Estimate {
    /// The smoothed round-trip time.
    pub srtt: Duration,
    /// Its variation.
    pub rttvar: Duration,
}

impl Estimate {
    /// After a first sample.
    pub(crate) fn first(rtt: Duration) -> Self {
        Estimate { srtt: rtt, rttvar: rtt.over(2) }
    }
}

/// A retransmission-timer unit.
pub trait RetransmissionTimer: fmt::Debug + Send {
    /// The name by which profiles and reports call it.
    fn name(&self) -> &'static str;

    /// A round-trip time sample that Karn's rule admits.
    fn on_sample(&mut self, rtt: Duration, now: Instant);

    /// So many segments, in whole, were in flight when the acknowledgement arrived that brings the next sample.
    fn on_flight(&mut self, _segments: u64) {}

    /// A round trip ended: the data that was outstanding at its beginning is acknowledged. The next sample is the first of the
    /// next one.
    fn on_round(&mut self) {}

    /// The estimate of the round-trip time, once there is a sample.
    fn estimate(&self) -> Option<Estimate>;

    /// The smoothed round-trip time, once there is a sample.
    fn srtt(&self) -> Option<Duration> {
        self.estimate().map(|estimate| estimate.srtt)
    }

    /// The round-trip time variation, once there is a sample.
    fn rttvar(&self) -> Option<Duration> {
        self.estimate().map(|estimate| estimate.rttvar)
    }

    /// The timeout, with its back-off.
    fn rto(&self) -> Duration;

    /// When to expire after an acknowledgement that arrived `now`, where the oldest segment still outstanding left last at `sent`
    /// (RFC 6298 section 5.3: a timeout from now on).
    fn restart(&self, now: Instant, _sent: Instant) -> Instant {
        now + self.rto()
    }

    /// The timer expired: back off.
    fn back_off(&mut self);

    /// How many times it has backed off since the last sample.
    fn backoffs(&self) -> u32;

    /// The handshake ended and its SYN was retransmitted without a sample: RFC 6298 section 5.7.
    fn on_handshake_loss(&mut self);
}
