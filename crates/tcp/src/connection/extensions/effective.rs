//! The places where limits take effect: each function gives the value that is used in one place of the connection instead of TCP's own. Nothing here
//! changes a value of TCP's own.

use super::super::Connection;
use super::super::glance::Glance;
use super::{Host, Shared};
use crate::extension::safe::{self, Effective};
use crate::extension::variable::Variables;
use crate::extension::{Ruling, Variable};
use crate::flow::FlowControl as _;
use crate::pos::Pos;
use crate::time::{Duration, Instant};

/// Variables whose old limit may still run: a timer, a rate, or an offered window. A change of their limits applies at once.
pub(super) const ASKED_ANEW: Variables = Variables::one(Variable::RcvWnd)
    .union(Variables::one(Variable::PacingRate))
    .union(Variables::one(Variable::Rto));

/// TCP's own value of a variable, its safe range, and the effective value.
pub(super) fn rule(tcp: Glance<'_>, shared: &Shared, variable: Variable) -> Ruling {
    let used = |variable| rule(tcp, shared, variable).effective;
    let pos = |number| Pos::default() + number;
    let own = tcp.own(variable);
    let safe = match variable {
        Variable::Cwnd => safe::cwnd(own),
        Variable::CwndCnt => safe::cwnd_cnt(own),
        Variable::Ssthresh => safe::ssthresh(own, tcp.mss()),
        Variable::RcvWnd => safe::rcv_wnd(own),
        Variable::RcvNxt => safe::rcv_nxt(pos(own), used(Variable::RcvWnd)),
        Variable::SndUna => safe::snd_una(pos(own), pos(tcp.own(Variable::SndNxt))),
        Variable::SndNxt => safe::snd_nxt(pos(used(Variable::SndUna)), pos(own)),
        Variable::Dupthresh => safe::dupthresh(used(Variable::Cwnd) / tcp.mss()),
        Variable::Rto => safe::rto(Duration::from_nanos(own)),
        Variable::Retransmits => safe::retransmits(tcp.give_up_after()),
        Variable::PacingRate => safe::pacing_rate((own < u64::MAX).then_some(own)),
    };
    shared.combined.rule(variable, own, safe)
}

impl Connection {
    /// The layers, if they ask anything of `variable`: most connections are done here.
    #[inline]
    pub(super) fn asked(&self, variable: Variable) -> Option<&Host> {
        if self.extensions.asks(variable) { self.extensions.get() } else { None }
    }

    /// Whether the safe ranges are not kept to. Where they are not, `control::growth` has what depends on it.
    pub(in super::super) fn is_unconstrained(&self) -> bool {
        self.extensions.get().is_some_and(|host| host.shared.combined.is_unconstrained())
    }

    /// TCP's own value of a variable and its safe range, and with them what is used.
    pub(in super::super) fn rule(&self, shared: &Shared, variable: Variable) -> Ruling {
        rule(Glance::from(self), shared, variable)
    }

    /// The largest edge of the receive window, if the next byte expected is `next`.
    pub(in super::super) fn effective_receive_edge(&self, next: Pos, own: Pos) -> Pos {
        let Some(host) = self.asked(Variable::RcvWnd) else { return own };
        let window = own.since(next);
        let ruling = host.shared.combined.rule(Variable::RcvWnd, window, safe::rcv_wnd(window));
        own - window.saturating_sub(ruling.effective)
    }

    /// How much of the receive buffer may be offered, in bytes.
    pub(in super::super) fn effective_receive_buffer(&self) -> u64 {
        let own = self.rcv.flow.buffer_limit() as u64;
        let Some(host) = self.asked(Variable::RcvWnd) else { return own };
        host.shared.combined.rule(Variable::RcvWnd, own, safe::rcv_wnd(own)).effective
    }

    /// Whether a segment with new data at `start` is not taken.
    pub(in super::super) fn rejects_segment(&mut self, start: Pos, len: u64) -> bool {
        if len == 0 {
            return false;
        }
        let Some(host) = self.asked(Variable::RcvNxt) else { return false };
        let next = Effective::new(self.rule(&host.shared, Variable::RcvNxt).effective);
        let new = start + len > self.rcv.next();
        let rejects = new && next.is_above(start.get());
        if rejects && let Some(host) = self.extensions.get_mut() {
            host.shared.request_counters.segments_rejected += 1;
        }
        rejects
    }

    /// Whether an acknowledgement is not believed.
    pub(in super::super) fn rejects_ack(&mut self, ack: Pos) -> bool {
        let rule =
            |host: &Host, variable| Effective::new(self.rule(&host.shared, variable).effective);
        let old = self
            .asked(Variable::SndUna)
            .is_some_and(|host| rule(host, Variable::SndUna).is_above(ack.get()));
        let early = self
            .asked(Variable::SndNxt)
            .is_some_and(|host| rule(host, Variable::SndNxt).is_below(ack.get()));
        if (old || early)
            && let Some(host) = self.extensions.get_mut()
        {
            host.shared.request_counters.acks_rejected += 1;
        }
        old || early
    }

    /// The timeouts that count towards giving up.
    pub(in super::super) fn effective_retransmits(&self) -> u32 {
        let own = self.snd.retransmits;
        let Some(host) = self.asked(Variable::Retransmits) else { return own };
        let used = self.rule(&host.shared, Variable::Retransmits).effective;
        Effective::new(u32::try_from(used).unwrap_or(u32::MAX)).threshold()
    }

    /// `bytes` have left.
    pub(in super::super) fn count_in_pacing(&mut self, now: Instant, bytes: u64) {
        let Some((rate, _)) = self.extensions.clamp().pacing(&self.control) else { return };
        if let Some(host) = self.extensions.get_mut() {
            host.pacer.on_sent(now, bytes, Some(rate));
            host.paced_at = rate;
        }
    }

    /// The requests for these variables have changed: running timers are set again.
    #[cold]
    pub(super) fn limits_changed(&mut self, now: Instant, changed: Variables) {
        if changed.has(Variable::RcvWnd) && self.window_update_is_due() {
            self.rcv.ack_now = true;
        }
        if changed.has(Variable::PacingRate) {
            self.control.stop_pacing();
            let rate = self.extensions.clamp().pacing(&self.control).map(|(rate, _)| rate);
            if let Some(host) = self.extensions.get_mut()
                && let Some(rate) = rate
            {
                host.pacer.change_rate(now, host.paced_at, rate);
                host.paced_at = rate;
            }
        }
        if changed.has(Variable::Rto) {
            self.control.on_timeout_limits(now, &self.extensions.clamp());
        }
    }
}
