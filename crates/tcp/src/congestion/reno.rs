//! Reno: slow start, congestion avoidance and the halving of RFC 5681.
//!
//! Both growth rules count acknowledged *bytes* (RFC 5681 section 3.1, RFC 3465), so that neither acknowledgement
//! division speeds the flow up nor an acknowledgement covering a 64 KB super-segment slows it down. RFC 3465's
//! limit L on what one acknowledgement may count in slow start is a parameter; without one, as in QUIC (RFC 9002)
//! and today's kernels, the window at most doubles each round trip either way.

use super::{CongestionControl, CongestionEvent, Window, initial_window};
use crate::ack_context::AckContext;
use crate::time::Instant;

/// The controller of RFC 5681.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno {
    /// RFC 3465's L, in segments per acknowledgement; `None` for no limit.
    pub slow_start_limit: Option<u32>,
}

impl CongestionControl for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    // [MUST-19] slow start and congestion avoidance
    fn on_ack(&mut self, window: &mut Window, ack: &AckContext) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked;
        if window.in_slow_start() {
            if let Some(limit) = self.slow_start_limit {
                acked = acked.min(u64::from(limit) * u64::from(window.mss));
            }
            acked = window.slow_start(acked);
        }
        if acked > 0 {
            window.additive_increase(acked, window.cwnd);
        }
    }

    fn on_event(&mut self, window: &mut Window, event: CongestionEvent, _now: Instant) {
        let mss = u64::from(window.mss);
        match event {
            CongestionEvent::Loss { flight } | CongestionEvent::Ecn { flight } => {
                // RFC 5681 equation 4.
                window.ssthresh = (flight.min(window.cwnd) / 2).max(window.floor());
                window.cwnd = window.ssthresh;
                window.cwnd_cnt = 0;
            }
            CongestionEvent::Timeout { flight, first } => {
                if first {
                    window.ssthresh = (flight.min(window.cwnd) / 2).max(window.floor());
                }
                window.cwnd = mss;
                window.cwnd_cnt = 0;
            }
            CongestionEvent::RecoveryEnd { flight } => {
                // RFC 6582 section 3.2 step 3 option 1: no burst into an almost empty pipe.
                window.cwnd = window.ssthresh.min(flight.max(mss) + mss);
                window.cwnd_cnt = 0;
            }
            CongestionEvent::IdleRestart => {
                // RFC 5681 section 4.1: RW = min(IW, cwnd).
                window.cwnd = window.cwnd.min(initial_window(window.mss));
                window.cwnd_cnt = 0;
            }
            CongestionEvent::HandshakeLoss => {
                window.cwnd = mss;
                window.cwnd_cnt = 0;
            }
        }
    }
}
