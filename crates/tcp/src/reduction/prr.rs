//! Proportional Rate Reduction (RFC 9937).
//!
//! For each byte that is delivered ssthresh/RecoverFS bytes are sent, so that at the end of recovery what is in flight has come down
//! to ssthresh evenly. When losses have taken more than that, it is brought up again by at most what arrives, and by a segment more
//! if recovery makes good progress.
//!
//! Differences from the RFC's section 6.2:
//! - It does nothing when nothing was delivered. Here a recovery that a timer begins (RACK's) sends its first segment all the same.
//! - Until something was sent, at least one segment may leave; the RFC allows this only if nothing else would.
//! - At its end cwnd is ssthresh. For a controller that adds a segment for each window of acknowledged bytes, as Reno does, both are rounded down to
//!   whole segments, as Linux counts. A window of 3.7 segments lets three leave in a round trip, and would wait for 3.7 before it grows.

use crate::ack_context::AckContext;
use crate::congestion::Window;

/// The variables of RFC 9937 section 6.1, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    /// RecoverFS.
    flight: u64,
    delivered: u64,
    out: u64,
}

/// It is in charge of cwnd from the beginning of fast recovery to its end.
impl Prr {
    /// Fast recovery begins. `flight` is what was outstanding before the acknowledgement that began it and not known to have
    /// arrived; ssthresh is what the window is to come down to.
    pub(crate) fn on_enter(&mut self, flight: u64) {
        *self = Prr { flight: flight.max(1), delivered: 0, out: 0 };
    }

    /// An acknowledgement in fast recovery, the first one included (section 6.2). `progress` says whether it advanced SND.UNA without
    /// reporting a further loss. Sets cwnd to the flight plus the data that may be sent now.
    pub(crate) fn on_ack(&mut self, window: &mut Window, ack: &AckContext, progress: bool) {
        let Window { ssthresh, mss, .. } = *window;
        let mss = u64::from(mss);
        self.delivered = self.delivered.saturating_add(ack.newly_delivered);
        let count = if ack.in_flight > ssthresh {
            let due = u128::from(self.delivered) * u128::from(ssthresh);
            let due = due.div_ceil(u128::from(self.flight));
            u64::try_from(due).unwrap_or(u64::MAX).saturating_sub(self.out)
        } else {
            // The conservative bound, or with good progress the one of slow start.
            let bound = self.delivered.saturating_sub(self.out).max(ack.newly_delivered);
            let bound = if progress { bound + mss } else { bound };
            bound.min(ssthresh - ack.in_flight)
        };
        // The first retransmission is not to wait.
        let count = if self.out == 0 { count.max(mss) } else { count };
        // With nothing in flight one segment may leave in any case, and a window of nothing would be paced for ever.
        window.cwnd = ack.in_flight.saturating_add(count).max(mss);
    }

    /// `bytes` left, new or again.
    pub(crate) fn on_sent(&mut self, bytes: u64) {
        self.out = self.out.saturating_add(bytes);
    }

    /// Fast recovery has ended. With `whole`, the window is one of whole segments.
    pub(crate) fn on_exit(&mut self, window: &mut Window, whole: bool) {
        if whole {
            let segment = window.segment();
            // It can be less than a segment, if segments have become larger meanwhile.
            window.ssthresh = (window.ssthresh - window.ssthresh % segment).max(segment);
        }
        window.cwnd = window.ssthresh;
    }
}
