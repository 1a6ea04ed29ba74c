//! The state of a TCP connection that its macroflow needs.

use super::macroflow::Report;
use transom_tcp::Estimate;
use transom_tcp::extension::View;
use transom_tcp::time::{Duration, Instant};

/// The state of a connection, in bytes, as an extension sees it in its process or from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowState {
    /// TCP's own congestion window.
    pub window: u64,
    /// Sent and not acknowledged cumulatively.
    pub outstanding: u64,
    /// Written by the application and not sent.
    pub unsent: u64,
    /// The peer's window.
    pub snd_wnd: u64,
    /// Payload of a full segment.
    pub mss: u64,
    /// The round-trip time, once there is a sample.
    pub rtt: Option<Estimate>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// Delivered in all.
    pub delivered: u64,
    /// Lost in all.
    pub lost: u64,
}

impl FlowState {
    /// That of a connection in this process.
    pub(crate) fn of(view: &View<'_>) -> Self {
        FlowState {
            window: view.cwnd(),
            outstanding: view.outstanding(),
            unsent: view.unsent(),
            snd_wnd: view.snd_wnd(),
            mss: view.mss(),
            rtt: view.estimate(),
            rto: view.rto(),
            delivered: view.delivered(),
            lost: view.counters().lost_bytes,
        }
    }

    /// Nothing is outstanding, and there is nothing to send that the peer accepts.
    pub(crate) fn is_idle(&self) -> bool {
        self.usable() == 0
    }

    fn usable(&self) -> u64 {
        self.outstanding.saturating_add(self.unsent).min(self.snd_wnd)
    }

    pub(super) fn report(&self, now: Instant) -> Report {
        let usable = self.usable();
        Report {
            window: self.window,
            outstanding: self.outstanding,
            usable,
            packet: self.mss,
            rtt: self.rtt,
            delivered: self.delivered,
            lost: self.lost,
            // The retransmission timer wakes it at the latest, for what is outstanding or about to be; but not if the connection is closed.
            expires: (usable > 0).then(|| now + self.rto.times(2)),
        }
    }
}
