//! How the window grows.

use super::{Clamp, Control};
use crate::ack_context::AckContext;
use crate::congestion::CongestionControl;
use crate::pos::Pos;
use crate::slow_start::SlowStart;

impl Control {
    /// Whether the acknowledged data was sent while cwnd was the limit; in slow start also when half of it was used,
    /// as doubling takes the whole round trip to show.
    pub(super) fn was_limited(&self, una: Pos, prior_in_flight: u64) -> bool {
        una < self.limited_upto
            || (self.window.in_slow_start() && prior_in_flight * 2 > self.window.cwnd)
    }

    /// cwnd holds new data back.
    pub(crate) fn on_limited(&mut self) {
        self.limited_upto = self.sent.end();
    }

    /// The application has nothing more to send.
    pub(crate) fn on_app_limited(&mut self) {
        self.sent.on_app_limited();
    }

    /// New data was acknowledged, and the window was what held it back.
    pub(super) fn grow(&mut self, ack: &AckContext, clamp: &Clamp<'_>) {
        if clamp.is_lifted() {
            return self.grow_without_ranges(ack, clamp);
        }
        let mut acked = self.profile.counting.counted(ack);
        if self.window.in_slow_start() && !self.controller.has_own_slow_start() {
            let first = clamp.within_slow_start(&self.window, acked);
            acked = acked - first + self.slow_start.grow(&mut self.window, first, ack);
        }
        // After a timeout one acknowledgement can cover what several windows of the present size would hold, and most of it was sent in
        // larger ones. It is one round trip all the same, and worth one increase (RFC 5681 section 3.1).
        acked = acked.min(self.window.cwnd);
        if acked > 0 && !self.withholds_growth(acked, clamp) {
            self.controller.on_ack(&mut self.window, acked, ack);
        }
    }

    /// With `acked` bytes more, the count towards the next increase of cwnd would be TCP's own; whether a layer keeps it lower. Then what
    /// is withheld counts on, up to one increase and no further: that one comes when it is released.
    fn withholds_growth(&mut self, acked: u64, clamp: &Clamp<'_>) -> bool {
        if !clamp.counts() || !self.controller.counts_acknowledged_bytes() {
            return false;
        }
        let own = self.window.cwnd_cnt.saturating_add(acked).min(self.window.cwnd);
        let withheld = clamp.cwnd_cnt(own).is_below(own);
        if withheld {
            self.window.cwnd_cnt = own;
        }
        withheld
    }

    /// How the window grows where the safe ranges are not kept to: icTCP without its limits, which figure 3 of the paper compares with.
    ///
    /// This is the only place where TCP's own values depend on virtual ones, and only simulated connections come here. Values that are only
    /// substituted (cwnd, dupthresh, the timeout) need no more than the removal of the range. The variables below affect the growth of cwnd:
    ///
    /// - ssthresh: slow start lasts until the virtual one.
    /// - cwnd_cnt: when the virtual one has reached a window, cwnd grows.
    /// - snd_una: an acknowledgement counts from the virtual one.
    fn grow_without_ranges(&mut self, ack: &AckContext, clamp: &Clamp<'_>) {
        let mut acked = self.profile.counting.counted(ack);
        if let Some(una) = clamp.virtual_una(self.una()) {
            // Against the una of before this acknowledgement, of which the virtual one was asked.
            let before = ack.una.get().saturating_sub(ack.acked);
            acked += before.saturating_sub(una);
        }
        let own = self.window.ssthresh;
        let used = clamp.virtual_ssthresh(own);
        self.window.ssthresh = used;
        if self.window.in_slow_start() && !self.controller.has_own_slow_start() {
            acked = self.slow_start.grow(&mut self.window, acked, ack);
        }
        let cwnd = self.window.cwnd;
        acked = acked.min(cwnd);
        if acked > 0 {
            if clamp.virtual_cwnd_cnt(self.window.cwnd_cnt).is_some_and(|count| count >= cwnd) {
                acked = acked.max(cwnd.saturating_sub(self.window.cwnd_cnt));
            }
            self.controller.on_ack(&mut self.window, acked, ack);
        }
        if self.window.ssthresh == used {
            self.window.ssthresh = own;
        }
    }
}
