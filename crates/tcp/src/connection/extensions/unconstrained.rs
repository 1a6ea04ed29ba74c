//! How the window grows where the safe ranges are not kept to: icTCP without its limits, which figure 3 of the paper compares with.
//!
//! This is the only place where TCP's own values depend on virtual ones, and only simulated connections come here. Values that are only
//! substituted (cwnd, dupthresh, the timeout) need no more than the removal of the range. The variables below affect the growth of cwnd:
//!
//! - ssthresh: slow start lasts until the virtual one.
//! - cwnd_cnt: when the virtual one has reached a window, cwnd grows.
//! - snd_una: an acknowledgement counts from the virtual one.

use super::super::Connection;
use crate::ack_context::AckContext;
use crate::extension::Variable;
#[cfg(fixed_units)]
use crate::units::direct::*;

impl Connection {
    /// Whether the safe ranges are not kept to.
    pub(in super::super) fn is_unconstrained(&self) -> bool {
        self.extensions.get().is_some_and(|host| host.shared.combined.is_unconstrained())
    }

    /// The effective value of a variable; TCP's own value without a request.
    fn effective_without_range(&self, variable: Variable) -> Option<u64> {
        let host = self.asked(variable)?;
        Some(self.rule(&host.shared, variable).effective)
    }

    /// New data was acknowledged, and the window was what held it back.
    pub(in super::super) fn grow_without_ranges(&mut self, ack: &AckContext) {
        let mut acked = self.profile.counting.counted(ack);
        if let Some(una) = self.effective_without_range(Variable::SndUna) {
            // Against the una of before this acknowledgement, of which the virtual one was asked.
            let before = ack.una.get().saturating_sub(ack.acked);
            acked += before.saturating_sub(una);
        }
        let own = self.snd.window.ssthresh;
        let used = self.effective_without_range(Variable::Ssthresh).unwrap_or(own);
        self.snd.window.ssthresh = used;
        let snd = &mut self.snd;
        if snd.window.in_slow_start() && !snd.congestion.has_own_slow_start() {
            acked = snd.slow_start.grow(&mut snd.window, acked, ack);
        }
        let cwnd = self.snd.window.cwnd;
        acked = acked.min(cwnd);
        if acked > 0 {
            if let Some(count) = self.effective_without_range(Variable::CwndCnt)
                && count >= cwnd
            {
                acked = acked.max(cwnd.saturating_sub(self.snd.window.cwnd_cnt));
            }
            let snd = &mut self.snd;
            snd.congestion.on_ack(&mut snd.window, acked, ack);
        }
        if self.snd.window.ssthresh == used {
            self.snd.window.ssthresh = own;
        }
    }
}
