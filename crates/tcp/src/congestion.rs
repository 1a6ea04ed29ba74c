//! Congestion control: *how much* may be in flight.
//!
//! The connection owns the [`Window`]; a controller changes it through the calls of [`CongestionControl`] and
//! nothing else. During fast recovery the controller is not asked to grow the window.

pub mod none;
pub mod reno;

use crate::ack_context::AckContext;
use crate::time::Instant;
use core::fmt;

/// The congestion variables of RFC 5681, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The congestion window.
    pub cwnd: u64,
    /// Bytes acknowledged towards the next increase of `cwnd` in congestion avoidance.
    pub cwnd_cnt: u64,
    /// The slow-start threshold.
    pub ssthresh: u64,
    /// The sender's maximum segment size.
    pub mss: u32,
}

impl Window {
    /// The initial window of RFC 6928: ten segments, bounded by max(2·MSS, 14600).
    pub fn initial(mss: u32) -> Self {
        Window { cwnd: initial_window(mss), cwnd_cnt: 0, ssthresh: u64::MAX, mss }
    }

    /// Whether slow start governs (`cwnd` below `ssthresh`).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start: `cwnd` grows by what was acknowledged, up to `ssthresh`. Returns the bytes left over for
    /// congestion avoidance.
    pub fn slow_start(&mut self, acked: u64) -> u64 {
        let grown = self.cwnd.saturating_add(acked).min(self.ssthresh).max(self.cwnd);
        let used = grown - self.cwnd;
        self.cwnd = grown;
        acked - used
    }

    /// Congestion avoidance by counting bytes: one segment more for each `per_segment` bytes acknowledged.
    pub fn additive_increase(&mut self, acked: u64, per_segment: u64) {
        let per_segment = per_segment.max(1);
        self.cwnd_cnt = self.cwnd_cnt.saturating_add(acked);
        let segments = self.cwnd_cnt / per_segment;
        self.cwnd_cnt %= per_segment;
        self.cwnd = self.cwnd.saturating_add(segments.saturating_mul(u64::from(self.mss)));
    }

    /// The least `ssthresh` RFC 5681 equation 4 allows: two segments.
    pub fn floor(&self) -> u64 {
        2 * u64::from(self.mss)
    }
}

/// RFC 6928 equation 1.
pub fn initial_window(mss: u32) -> u64 {
    let mss = u64::from(mss);
    (10 * mss).min((2 * mss).max(14_600))
}

/// What a controller is told besides acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionEvent {
    /// Loss recovery starts: duplicate acknowledgements or SACK say that a segment is lost.
    Loss {
        /// FlightSize of RFC 5681 when it was found, without what Limited Transmit sent.
        flight: u64,
    },
    /// The retransmission timer expired.
    Timeout {
        /// FlightSize of RFC 5681 at that time.
        flight: u64,
        /// Whether this is the first expiry for this data (RFC 5681 holds ssthresh on later ones).
        first: bool,
    },
    /// The receiver echoed congestion experienced (RFC 3168); treated like a loss, without retransmission.
    Ecn {
        /// FlightSize of RFC 5681.
        flight: u64,
    },
    /// Fast recovery without SACK ended: everything outstanding at its start is acknowledged.
    RecoveryEnd {
        /// Bytes in flight now.
        flight: u64,
    },
    /// Nothing was sent for longer than the retransmission timeout (RFC 5681 section 4.1).
    IdleRestart,
    /// The SYN or SYN-ACK had to be retransmitted (RFC 5681 section 3.1, RFC 6298 section 5.7).
    HandshakeLoss,
}

/// A congestion controller. It is trusted: whoever runs the stack chooses it.
pub trait CongestionControl: fmt::Debug + Send {
    /// The name by which profiles and reports call it.
    fn name(&self) -> &'static str;

    /// The connection begins with the window of RFC 6928; a controller with another idea says so here.
    fn on_start(&mut self, _window: &mut Window) {}

    /// New data was acknowledged outside recovery: grow `window` if appropriate.
    fn on_ack(&mut self, window: &mut Window, ack: &AckContext);

    /// Something happened that may shrink `window`.
    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, now: Instant);

    /// The rate at which to pace, in bytes per second, if the controller has an opinion.
    fn pacing_rate(&self, _window: &Window) -> Option<u64> {
        None
    }
}
