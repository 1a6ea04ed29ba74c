//! The places where limits take effect: each function gives the value that is used in one place of the connection instead of TCP's own. Nothing here
//! changes a value of TCP's own.

use super::super::Connection;
use super::super::timers::Timer;
use super::host::Armed;
use super::{Host, Shared};
use crate::extension::safe::{self, Effective};
use crate::extension::variable::Variables;
use crate::extension::{Ruling, Variable};
use crate::pacing::Pacing as _;
use crate::pos::Pos;
use crate::time::{Duration, Instant};
#[cfg(fixed_units)]
use crate::units::direct::*;

/// The variables of which something runs by what was asked before.
pub(super) const ASKED_ANEW: Variables = Variables::one(Variable::RcvWnd)
    .and(Variables::one(Variable::PacingRate))
    .and(Variables::one(Variable::Rto));

/// The values from which safe ranges are computed.
pub(super) trait Own {
    /// TCP's own value of a variable, in its unit.
    fn own(&self, variable: Variable) -> u64;
    /// Bytes of a full segment, at least one.
    fn segment(&self) -> u64;
    /// After how many timeouts in a row the connection is given up.
    fn give_up_after(&self) -> Option<u32>;
}

/// TCP's own value of a variable, its safe range, and the effective value.
pub(super) fn rule(tcp: &impl Own, shared: &Shared, variable: Variable) -> Ruling {
    let used = |variable| rule(tcp, shared, variable).effective;
    let pos = |number| Pos::default() + number;
    let own = tcp.own(variable);
    let safe = match variable {
        Variable::Cwnd => safe::cwnd(own),
        Variable::CwndCnt => safe::cwnd_cnt(own),
        Variable::Ssthresh => safe::ssthresh(own, tcp.segment()),
        Variable::RcvWnd => safe::rcv_wnd(own),
        Variable::RcvNxt => safe::rcv_nxt(pos(own), used(Variable::RcvWnd)),
        Variable::SndUna => safe::snd_una(pos(own), pos(tcp.own(Variable::SndNxt))),
        Variable::SndNxt => safe::snd_nxt(pos(used(Variable::SndUna)), pos(own)),
        Variable::Dupthresh => safe::dupthresh(used(Variable::Cwnd) / tcp.segment()),
        Variable::Rto => safe::rto(Duration::from_nanos(own)),
        Variable::Retransmits => safe::retransmits(tcp.give_up_after()),
        Variable::PacingRate => safe::pacing_rate((own < u64::MAX).then_some(own)),
    };
    shared.combined.rule(variable, own, safe)
}

impl Own for Connection {
    fn own(&self, variable: Variable) -> u64 {
        let snd = &self.snd;
        match variable {
            Variable::Cwnd => snd.window.cwnd,
            Variable::CwndCnt => snd.window.cwnd_cnt,
            Variable::Ssthresh => snd.window.ssthresh,
            Variable::RcvWnd => self.own_wanted_edge(self.rcv.next).since(self.rcv.next),
            Variable::RcvNxt => self.rcv.next.get(),
            Variable::SndUna => self.una().get(),
            Variable::SndNxt => self.nxt().get(),
            Variable::Dupthresh => u64::from(self.own_loss_threshold()),
            Variable::Rto => snd.timer.rto().as_nanos(),
            Variable::Retransmits => u64::from(snd.retransmits),
            Variable::PacingRate => {
                snd.pacing.as_ref().and_then(|_| self.own_pacing_rate()).unwrap_or(u64::MAX)
            }
        }
    }

    fn segment(&self) -> u64 {
        self.snd.window.segment()
    }

    fn give_up_after(&self) -> Option<u32> {
        self.profile.r2
    }
}

impl Connection {
    /// The layers, if they ask anything of `variable`: most connections are done here.
    #[inline]
    pub(super) fn asked(&self, variable: Variable) -> Option<&Host> {
        if self.extensions.asks(variable) { self.extensions.get() } else { None }
    }

    /// TCP's own value of a variable and its safe range, and with them what is used.
    pub(super) fn rule(&self, shared: &Shared, variable: Variable) -> Ruling {
        rule(self, shared, variable)
    }

    /// The window for new data, in bytes. If an extension limits TCP's own window, it counts in whole segments, so that less than one is none.
    pub(in super::super) fn effective_cwnd(&self) -> Effective<u64> {
        let own = self.snd.window.cwnd;
        if self.extensions.leave_cwnd(own) {
            return Effective::new(own);
        }
        let Some(host) = self.asked(Variable::Cwnd) else { return Effective::new(own) };
        let used = host.shared.combined.effective(Variable::Cwnd, own, safe::cwnd(own));
        let segment = self.snd.window.segment();
        Effective::new(if used < own { used - used % segment } else { used })
    }

    /// Whether another segment would fit into TCP's own window.
    pub(in super::super) fn would_fit_without_limits(&self) -> bool {
        let window = &self.snd.window;
        self.asked(Variable::Cwnd).is_some()
            && window.cwnd.saturating_sub(self.counted_in_flight()) >= window.segment()
    }

    /// Of `acked` bytes, those that slow start may grow the window by; the rest comes after the threshold.
    pub(in super::super) fn within_slow_start(&self, acked: u64) -> u64 {
        let Some(host) = self.asked(Variable::Ssthresh) else { return acked };
        let threshold = Effective::new(self.rule(&host.shared, Variable::Ssthresh).effective);
        threshold.left_after(self.snd.window.cwnd).min(acked)
    }

    /// With `acked` bytes more, the count towards the next increase of cwnd would be TCP's own; whether an extension keeps it lower. Then what
    /// is withheld counts on, up to one increase and no further: that one comes when it is released.
    pub(in super::super) fn withholds_growth(&mut self, acked: u64) -> bool {
        if self.asked(Variable::CwndCnt).is_none()
            || !self.snd.congestion.counts_acknowledged_bytes()
        {
            return false;
        }
        let window = &self.snd.window;
        let own = window.cwnd_cnt.saturating_add(acked).min(window.cwnd);
        let Some(host) = self.extensions.get() else { return false };
        let combined = &host.shared.combined;
        let ruling = combined.rule(Variable::CwndCnt, own, safe::cwnd_cnt(own));
        let withheld = Effective::new(ruling.effective).is_below(own);
        if withheld {
            self.snd.window.cwnd_cnt = own;
        }
        withheld
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
        let own = self.rcv.buffer_limit as u64;
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
        let new = start + len > self.rcv.next;
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

    /// Duplicates that mean a loss, where TCP would say `own`.
    pub(in super::super) fn effective_dupthresh(&self, own: u32) -> u32 {
        let Some(host) = self.asked(Variable::Dupthresh) else { return own };
        let used = self.rule(&host.shared, Variable::Dupthresh).effective;
        Effective::new(u32::try_from(used).unwrap_or(u32::MAX)).threshold()
    }

    /// The retransmission timeout, if it is not TCP's own.
    pub(in super::super) fn effective_rto(&self) -> Option<Effective<Duration>> {
        let host = self.asked(Variable::Rto)?;
        let ruling = self.rule(&host.shared, Variable::Rto);
        (ruling.effective != ruling.own)
            .then(|| Effective::new(Duration::from_nanos(ruling.effective)))
    }

    /// The timeouts that count towards giving up.
    pub(in super::super) fn effective_retransmits(&self) -> u32 {
        let own = self.snd.retransmits;
        let Some(host) = self.asked(Variable::Retransmits) else { return own };
        let used = self.rule(&host.shared, Variable::Retransmits).effective;
        Effective::new(u32::try_from(used).unwrap_or(u32::MAX)).threshold()
    }

    /// The rate that an extension requests, in bytes per second, and until when it has been used up.
    pub(in super::super) fn effective_pacing(&self) -> Option<(u64, Instant)> {
        let host = self.asked(Variable::PacingRate)?;
        let ruling = self.rule(&host.shared, Variable::PacingRate);
        (ruling.effective != ruling.own).then(|| (ruling.effective, host.pacer.release_at()))
    }

    /// `bytes` have left.
    pub(in super::super) fn count_in_pacing(&mut self, now: Instant, bytes: u64) {
        let Some((rate, _)) = self.effective_pacing() else { return };
        if let Some(host) = self.extensions.get_mut() {
            host.pacer.on_sent(now, bytes, Some(rate));
            host.paced_at = rate;
        }
    }

    /// When a timer expires that an extension asked for, where TCP's own expires at `own`.
    fn no_sooner_than(&self, own: Instant, asked: Instant) -> Instant {
        if self.is_unconstrained() { asked } else { asked.max(own) }
    }

    /// The retransmission timer starts; TCP's own would expire at `own`.
    #[inline]
    pub(in super::super) fn start_retransmission(&mut self, now: Instant, own: Instant) {
        let used = self.effective_rto();
        if let Some(host) = self.extensions.get_mut() {
            host.armed = Some(Armed { at: now, own, by_request: used.is_some() });
        }
        self.timers.set(
            Timer::Retransmit,
            used.map_or(own, |used| self.no_sooner_than(own, used.after(now))),
        );
    }

    /// The requests for these variables have changed: running timers are set again.
    #[cold]
    pub(super) fn limits_changed(&mut self, now: Instant, changed: Variables) {
        let armed = self.extensions.get().and_then(|host| host.armed);
        if changed.has(Variable::RcvWnd) && self.window_update_is_due() {
            self.rcv.ack_now = true;
        }
        if changed.has(Variable::PacingRate) {
            self.timers.clear(Timer::Pacing);
            let rate = self.effective_pacing().map(|(rate, _)| rate);
            if let Some(host) = self.extensions.get_mut()
                && let Some(rate) = rate
            {
                host.pacer.change_rate(now, host.paced_at, rate);
                host.paced_at = rate;
            }
        }
        if !changed.has(Variable::Rto) {
            return;
        }
        // The timer that runs may have been set to a time that never comes.
        let by_request = armed.is_some_and(|armed| armed.by_request) && self.una() < self.nxt();
        if !by_request && !self.timers.is_set(Timer::Retransmit) {
            return;
        }
        let used = self.effective_rto();
        let own = self.timers.get(Timer::Retransmit).unwrap_or(now);
        let began = Armed { at: now, own, by_request };
        let armed = Armed { by_request: used.is_some(), ..armed.unwrap_or(began) };
        match used {
            // TCP's own timeout may have become less since the timer started, but TCP's timer would run on.
            Some(used) => {
                let due = self.no_sooner_than(armed.own, used.after(armed.at)).max(now);
                self.timers.set(Timer::Retransmit, due);
            }
            None if by_request => self.timers.set(Timer::Retransmit, armed.own.max(now)),
            None => return,
        }
        if let Some(host) = self.extensions.get_mut() {
            host.armed = Some(armed);
        }
    }
}
