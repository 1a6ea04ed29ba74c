//! The connection's deadlines, and the actions when one passes.
//!
//! All deadlines are in one small table, but for those of the send engine (`control::deadlines`). The code that causes a deadline sets it, and nothing recalculates it from conditions. So
//! [`Connection::next_timeout`] and [`Connection::on_timeout`] always agree.

use super::path_mtu::probe_in_flight;
use super::reports::Reports;
use super::{Connection, Signal, State};
use crate::control::Expired;
use crate::extension::Wake;
use crate::ordering::Ordering as _;
use crate::rto::RetransmissionTimer as _;
use crate::time::{Duration, Instant};

/// The purpose of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Zero-window probes, the override of silly-window avoidance, and the end of waiting for more to fill a segment.
    Persist,
    /// Delayed acknowledgement.
    Ack,
    /// Keep-alive.
    KeepAlive,
    /// The end of TIME-WAIT, of waiting for a FIN that is not needed any more, or of holding an answer.
    State,
    /// A hole in what has arrived has been waited for long enough.
    Hole,
    /// Give memory back after a while without traffic.
    Idle,
    /// An extension asked to be woken.
    Extension,
    /// Data has waited so long that the user timeout may have passed. It has its own timer, because no other may be running: an extension may hold
    /// back all data, or delay the retransmission for ever.
    User,
    /// The owner has closed the connection, and its extensions have had their time.
    Orphan,
}

const COUNT: usize = 9;
const ALL: [Timer; COUNT] = [
    Timer::Persist,
    Timer::Ack,
    Timer::KeepAlive,
    Timer::State,
    Timer::Hole,
    Timer::Idle,
    Timer::Extension,
    Timer::User,
    Timer::Orphan,
];

/// So many SYNs of a connection that offers accurate ECN are repeated without a back-off, as on Linux (`tcp_syn_linear_timeouts`). The third leaves
/// without the offer (RFC 9768 section 3.1.4.1), and the way for it is not to take seconds longer than without accurate ECN.
const LINEAR_SYNS: u32 = 4;

/// Unused buffers are kept for so long.
pub(super) const IDLE_RELEASE: Duration = Duration::from_secs(5);

/// The table of deadlines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    at: [Instant; COUNT],
}

impl Timers {
    pub(super) fn new() -> Self {
        Timers { at: [Instant::FAR_FUTURE; COUNT] }
    }

    pub(super) fn set(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize] = at;
    }

    pub(super) fn clear(&mut self, timer: Timer) {
        self.at[timer as usize] = Instant::FAR_FUTURE;
    }

    pub(super) fn clear_all(&mut self) {
        *self = Timers::new();
    }

    pub(super) fn is_set(&self, timer: Timer) -> bool {
        self.at[timer as usize] != Instant::FAR_FUTURE
    }

    pub(super) fn get(&self, timer: Timer) -> Option<Instant> {
        Some(self.at[timer as usize]).filter(|&at| at != Instant::FAR_FUTURE)
    }

    /// The earliest; [`Instant::FAR_FUTURE`] without any.
    fn next(&self) -> Instant {
        self.at.into_iter().min().unwrap_or(Instant::FAR_FUTURE)
    }

    fn expired(&mut self, now: Instant) -> Option<Timer> {
        let timer = ALL.into_iter().find(|&timer| self.at[timer as usize] <= now)?;
        self.clear(timer);
        Some(timer)
    }
}

impl Connection {
    /// The earliest deadline, if any.
    pub fn next_timeout(&self) -> Option<Instant> {
        let next = self.timers.next().min(self.control.next_deadline());
        Some(next).filter(|&at| at != Instant::FAR_FUTURE)
    }

    /// Acts on every deadline that has passed by `now`. Calling early does nothing.
    pub fn on_timeout(&mut self, now: Instant) {
        loop {
            match self.control.expired(now) {
                Some(Expired::Recovery) => {
                    self.on_recovery_deadline(now);
                    continue;
                }
                Some(Expired::Retransmission) => {
                    self.on_retransmission_timeout(now);
                    continue;
                }
                None => {}
            }
            let Some(timer) = self.timers.expired(now) else { return };
            match timer {
                Timer::Persist => self.on_persist_timeout(now),
                Timer::Ack => self.on_ack_delay_over(),
                Timer::KeepAlive => self.on_keep_alive_timeout(now),
                Timer::State if self.is_answered() => self.time_out(),
                Timer::State => self.finish(None),
                Timer::Hole => self.on_hole_timeout(now),
                Timer::Idle => self.on_idle(now),
                Timer::Extension => self.notify(now, Wake::TIMER),
                Timer::User => self.on_user_timeout(now),
                Timer::Orphan => self.dismiss_extensions(now),
            }
        }
    }

    fn on_recovery_deadline(&mut self, now: Instant) {
        let probe = probe_in_flight(&self.path_mtu);
        let outcome = self.control.on_deadline(now, probe, &self.extensions.clamp());
        self.carry_out(now, &outcome);
        self.give_up_what_is_hopeless(now);
        self.notify(now, Wake::empty());
    }

    /// Whether `retransmits` attempts, or the time since the data was first sent, are too much.
    fn gives_up(&self, now: Instant) -> bool {
        let (attempts, limit) = if !self.control.has_begun() {
            // [MUST-22] [MUST-23] as many doubled ones as without accurate ECN, so that the time is no shorter.
            (self.snd.retransmits.saturating_sub(self.linear_syns()), Some(self.profile.syn_r2))
        } else if self.owner.gone {
            // Nobody waits for this data any more: a peer that keeps its window closed, and answers every probe, does
            // not hold the memory for ever.
            (self.snd.retransmits.max(self.snd.probes.sent), Some(self.profile.orphan_retries))
        } else {
            // [MUST-37] answered probes do not count.
            (self.effective_retransmits().max(self.snd.probes.unanswered), self.profile.r2)
        };
        // A user timeout takes the place of R2 [MUST-21]; it does not prolong the life of an orphan.
        if self.user_timeout().is_some() && !self.owner.gone {
            return self.user_timeout_at().is_some_and(|end| now >= end);
        }
        self.user_timeout_at().is_some_and(|end| now >= end)
            || limit.is_some_and(|limit| attempts >= limit)
    }

    /// How many repetitions of our SYN or SYN-ACK do not back off.
    fn linear_syns(&self) -> u32 {
        let accurate = self.offers_ecn() && self.profile.ecn.accurate().is_some();
        if self.state == State::SynSent && accurate { LINEAR_SYNS } else { 0 }
    }

    fn on_retransmission_timeout(&mut self, now: Instant) {
        // [MUST-20] R2
        if self.gives_up(now) {
            self.time_out();
            return;
        }
        self.snd.retransmits = self.snd.retransmits.saturating_add(1);
        // [MUST-20] R1
        if self.snd.retransmits == self.profile.r1 {
            self.notices.reports.set(Reports::RETRANSMITTING, true);
            self.raise(Signal::Trouble);
        }
        self.counters.timeouts += 1;
        self.notices.timed_out();
        let first = self.snd.retransmits == 1;
        if !self.control.has_begun() {
            if self.control.board().outstanding() > 0 {
                // The answer to data in a SYN is lost if the SYN-ACK is.
                self.lose_all(now, first);
                self.control.expect_repetition();
            }
            if self.snd.retransmits > self.linear_syns() {
                self.control.back_off();
            }
            self.snd.syn.due = true;
        } else if self.timeout_confirms_report(now) {
            self.control.back_off();
            self.control.expect_repetition();
        } else {
            self.suspect_black_hole(now);
            self.lose_all(now, first);
            self.control.back_off();
            self.give_up_what_is_hopeless(now);
            self.repeat_forward_point();
            self.control.expect_repetition();
        }
        self.control.rearm(now, &self.extensions.clamp());
        self.notify(now, Wake::TIMEOUT);
    }

    /// All outstanding data counts as lost.
    fn lose_all(&mut self, now: Instant, first: bool) {
        let outcome = self.control.on_timeout(now, first);
        self.carry_out(now, &outcome);
    }

    fn on_persist_timeout(&mut self, now: Instant) {
        if self.holds_tail() {
            // Whether it may leave now is found out when output is asked for.
            return;
        }
        if self.snd.unacked_since().is_some() && self.gives_up(now) {
            self.time_out();
            return;
        }
        self.snd.probes.due = true;
    }

    /// Arms the persist timer unless it runs. The interval backs off exponentially [SHLD-29] [SHLD-30].
    pub(super) fn arm_persist(&mut self, now: Instant) {
        if !self.timers.is_set(Timer::Persist) {
            let wait = self.control.timer().rto().doubled(self.snd.probes.sent.min(20));
            let wait = wait.min(Duration::from_secs(60)).min(self.most_between_probes());
            let wait = wait.max(Duration::from_millis(100));
            self.timers.set(Timer::Persist, now + wait);
        }
    }

    /// Arms the silly-window override, 0.1 to 1 second (RFC 9293 section 3.8.6.2.1).
    pub(super) fn arm_override(&mut self, now: Instant) {
        if !self.timers.is_set(Timer::Persist) {
            let wait = self.control.timer().rto();
            let wait = wait.min(Duration::from_secs(1)).max(Duration::from_millis(100));
            self.timers.set(Timer::Persist, now + wait);
        }
    }

    /// (Re)starts the keep-alive timer from the time of the last arrival [MUST-26].
    pub(super) fn arm_keep_alive(&mut self) {
        match self.keep_alive() {
            Some(keep) if self.state.is_synchronized() && self.state != State::TimeWait => {
                let wait = if self.rcv.heard.unanswered == 0 {
                    keep.idle
                } else {
                    keep.interval.times(u64::from(self.rcv.heard.unanswered)) + keep.idle
                };
                self.timers.set(Timer::KeepAlive, self.rcv.heard.last + wait);
            }
            _ => self.timers.clear(Timer::KeepAlive),
        }
    }

    fn on_keep_alive_timeout(&mut self, now: Instant) {
        let Some(keep) = self.keep_alive() else { return };
        if self.una() < self.nxt() || !self.snd.buffer.is_empty() {
            // Data is outstanding: its retransmission says whether the peer lives.
            self.timers.set(Timer::KeepAlive, now + keep.idle);
            return;
        }
        let silence = now.since(self.rcv.heard.last);
        if silence < keep.idle {
            self.arm_keep_alive();
            return;
        }
        // [MUST-29] only a number of unanswered probes means that the peer is gone.
        if self.rcv.heard.unanswered >= keep.probes {
            self.time_out();
            return;
        }
        self.rcv.heard.unanswered += 1;
        self.counters.keep_alives += 1;
        self.snd.probes.due = true;
        self.timers.set(Timer::KeepAlive, now + keep.interval);
    }

    /// Notes traffic: memory stays for a while.
    pub(super) fn touch_idle(&mut self, now: Instant) {
        if !self.timers.is_set(Timer::Idle) && self.state != State::Closed {
            self.timers.set(Timer::Idle, now + IDLE_RELEASE);
        }
    }

    fn on_idle(&mut self, now: Instant) {
        let active = self.control.board().latest().max(self.rcv.heard.last);
        if now.since(active) < IDLE_RELEASE {
            self.timers.set(Timer::Idle, active + IDLE_RELEASE);
            return;
        }
        self.snd.buffer.release_if_empty();
        self.control.release();
        self.rcv.ordering.release();
    }
}
