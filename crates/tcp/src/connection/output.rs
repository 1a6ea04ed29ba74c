//! Output: one function combines recovery (what to retransmit), congestion control (how much), pacing (when), and the limits on new data: the
//! peer's window, Nagle's algorithm and silly-window avoidance.

use super::info::LimitedBy;
use super::path_mtu::PathProbe;
use super::timers::Timer;
use super::{Connection, State};
use crate::congestion::CongestionEvent;
use crate::pacing::window_rate;
use crate::pos::Pos;
use crate::segment::Transmit;
use crate::time::Instant;
use crate::undo::Detector;
#[cfg(fixed_units)]
use crate::units::direct::*;
use crate::validation::{IdlePeriod, WindowBounds};
use core::ops::Range;
use transom_wire::{Ecn, Flags, TcpHeader};

/// A transmission that is settled but not yet given out.
#[derive(Clone, Debug)]
pub struct Prepared {
    header: TcpHeader,
    range: Range<Pos>,
    segment_size: Option<u16>,
    ecn: Ecn,
}

impl Connection {
    /// Whether this is a probe of the path MTU, which tells nothing if it is fragmented.
    #[inline]
    pub fn probes_path_with(&self, prepared: &Prepared) -> bool {
        self.is_path_probe(&prepared.range)
    }
}

/// The next transmission.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    Reset(TcpHeader),
    Syn,
    /// This many bytes of this range again; whether the congestion window does not apply.
    Retransmit(Range<Pos>, u64, bool),
    /// These bytes for the first time, with the FIN behind them or not.
    Data(Range<Pos>, bool),
    /// These bytes for the recovery unit's sake, for the first time (with the FIN or not) or again.
    TailProbe(Range<Pos>, Option<bool>),
    /// One unit beyond a closed window.
    Probe,
    KeepAlive,
    Ack,
    /// Acknowledges data received before the marks changed: up to there, with the echo or not.
    EarlyAck(Pos, bool),
}

/// Why no new data leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    NoData,
    Nagle,
    Cork,
    SillyWindow,
    PeerWindow,
    CongestionWindow,
}

/// The part of `len` beyond whole segments. Usually there is exactly one, or less: no need to divide.
pub(super) fn remainder(len: u64, mss: u64) -> u64 {
    match len.cmp(&mss) {
        core::cmp::Ordering::Less => len,
        core::cmp::Ordering::Equal => 0,
        core::cmp::Ordering::Greater => len % mss,
    }
}

impl Prepared {
    /// The TCP header.
    pub fn header(&self) -> &TcpHeader {
        &self.header
    }

    /// The sequence space that it carries, with the FIN and without the SYN; empty for a segment without data.
    pub fn range(&self) -> Range<Pos> {
        self.range.clone()
    }

    /// The ECN codepoint for the packet.
    pub fn ecn(&self) -> Ecn {
        self.ecn
    }
}

impl Connection {
    /// The next segment (or super-segment) to send at `now`; `None` when there is nothing until the next call that
    /// changes the connection. The caller must send what it is given.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'_>> {
        let prepared = self.prepare(now)?;
        Some(self.transmit(&prepared))
    }

    /// Like [`Connection::poll_transmit`], in two steps: this one decides the next segment, which counts as sent, without borrowing it.
    /// [`Connection::transmit`] returns it, before any other call.
    pub fn prepare(&mut self, now: Instant) -> Option<Prepared> {
        let plan = self.plan(now)?;
        let ecn = self.codepoint(&plan);
        let (header, range) = self.commit(plan, now);
        let end = range.end.min(self.snd.buffer.end());
        let len = end.since(range.start);
        self.counters.segments_sent += 1;
        self.counters.bytes_sent += len;
        self.count_sent(len);
        let mss = u64::from(self.mss());
        let syn = header.flags.contains(Flags::SYN);
        let cut = len > mss && !syn && !self.is_path_probe(&range);
        let segment_size = cut.then(|| u16::try_from(mss).unwrap_or(u16::MAX));
        if len > 0 && !syn {
            self.notify_data(now, range.clone());
        }
        Some(Prepared { header, range, segment_size, ecn })
    }

    /// The segment of [`Connection::prepare`], with its payload.
    pub fn transmit(&self, prepared: &Prepared) -> Transmit<'_> {
        let Prepared { header, range, segment_size, ecn } = prepared;
        let payload = self.snd.buffer.slices(range.clone());
        Transmit { header: *header, payload, segment_size: *segment_size, ecn: *ecn }
    }

    fn plan(&mut self, now: Instant) -> Option<Plan> {
        if let Some(header) = self.reset_due.take() {
            return Some(Plan::Reset(*header));
        }
        match self.state {
            State::Closed => return None,
            State::SynSent if self.holds_syn() || self.is_answered() => return None,
            State::SynSent | State::SynReceived if self.snd.syn_due => return Some(Plan::Syn),
            State::SynReceived if self.is_early() => {}
            State::SynSent | State::SynReceived | State::TimeWait => {
                return self.rcv.ack_now.then_some(Plan::Ack);
            }
            _ => {}
        }
        if let Some((upto, echo)) = self.ecn.as_mut().and_then(|ecn| ecn.early_ack.take()) {
            return Some(Plan::EarlyAck(upto, echo));
        }
        // SACK blocks and the user timeout go into segments without data. They would take room from the payload, and
        // segments that differ in size split badly. Data out of order is reported at once anyway.
        let report =
            self.rcv.ack_now && (!self.rcv.dsack.is_empty() || self.rcv.ordering.has_gap());
        if report
            || self.user_timeout.due
            || self.forward_point_is_due()
            || self.marks_want_pure_ack()
        {
            return Some(Plan::Ack);
        }
        if let Some(plan) = self.plan_data(now) {
            return Some(plan);
        }
        if core::mem::take(&mut self.snd.probe_due)
            && let Some(plan) = self.plan_probe(now)
        {
            return Some(plan);
        }
        self.rcv.ack_now.then_some(Plan::Ack)
    }

    /// Decides what to send (recovery), how much (congestion control), and when (pacing).
    fn plan_data(&mut self, now: Instant) -> Option<Plan> {
        self.retry_path_mtu(now);
        self.check_tail_deadline(now);
        self.restart_after_idle(now);
        if let Some(probe) = self.plan_tail_probe(now) {
            return Some(probe);
        }
        if self.una() == self.nxt() && self.nxt() == self.snd.buffer.end() && !self.snd.fin_queued {
            // Nothing to send, and nothing out that could be wanted again.
            self.note_hold(now, Hold::NoData);
            return None;
        }
        let mss = u64::from(self.mss());
        let quantum = self.snd.pacing.as_ref().map_or(u64::MAX, |pacing| {
            let rate = self.own_pacing_rate();
            pacing.quantum(rate).max(mss)
        });
        let limited = self.effective_pacing();
        let quantum = match limited {
            Some((rate, _)) => quantum.min((rate / 1000).max(mss)),
            None => quantum,
        };
        let most = self.max_super_segment().min(quantum);
        let cwnd_room = self.effective_cwnd().left_after(self.counted_in_flight());
        let has_new = self.new_data(most, cwnd_room);
        let lost = if self.wants_new_data(has_new.as_ref().err().copied()) {
            None
        } else {
            let mss = u32::try_from(mss).ok()?;
            let again = self.snd.recovery.next(&mut self.snd.sent, has_new.is_ok(), mss);
            again.filter(|again| self.may_repeat(again.range.start, now))
        };
        if lost.is_none() && has_new.is_err() {
            let hold = has_new.err()?;
            self.note_hold(now, hold);
            return None;
        }
        let own_release = self.snd.pacing.as_ref().map(|pacing| pacing.release_at());
        let release = own_release.max(limited.map(|(_, release)| release));
        if let Some(release) = release.filter(|&release| release > now) {
            self.timers.set(Timer::Pacing, release);
            self.limited.note(now, LimitedBy::Pacing);
            return None;
        }
        if let Some(again) = lost {
            // RFC 6675 section 5 step C: a whole segment of room, or nothing in flight. The peer's window is not asked:
            // what it offered once may be sent again, also beyond an edge that moved left [SHLD-16] [MAY-7].
            let wanted = again.range.end.since(again.range.start);
            let len = if again.exempt {
                mss
            } else if cwnd_room >= mss {
                cwnd_room.min(most)
            } else if self.in_flight() == 0 {
                mss
            } else {
                // Not gathered with what follows: only this much fits.
                wanted.min(cwnd_room)
            };
            if len >= mss.min(wanted) {
                return Some(Plan::Retransmit(again.range, len, again.exempt));
            }
            self.note_hold(now, Hold::CongestionWindow);
            return None;
        }
        let (range, fin) = has_new.ok()?;
        match self.path_probe(now, cwnd_room) {
            PathProbe::No => {}
            PathProbe::Send(probe) => return Some(Plan::Data(probe, false)),
            PathProbe::Wait => {
                self.note_hold(now, Hold::CongestionWindow);
                return None;
            }
        }
        let (range, fin) = self.with_room_for_option(range, fin);
        Some(Plan::Data(range, fin))
    }

    /// The probe that the recovery unit requested (RFC 8985 section 7.3): a new segment, independently of the congestion window, or the last one
    /// again.
    fn plan_tail_probe(&mut self, now: Instant) -> Option<Plan> {
        if !core::mem::take(&mut self.snd.tail_probe_due) {
            return None;
        }
        let mss = u64::from(self.mss());
        if let Ok((range, fin)) = self.new_data(mss, mss) {
            return Some(Plan::TailProbe(range, Some(fin)));
        }
        let last = self.snd.sent.last_unsacked(self.nxt())?;
        let range = last.start + (last.len() - 1) / mss * mss..last.end;
        self.may_repeat(range.start, now).then_some(Plan::TailProbe(range, None))
    }

    /// Whether new data is to go before what is believed lost, to learn whether it is; `hold` is what holds it back.
    fn wants_new_data(&mut self, hold: Option<Hold>) -> bool {
        let Some(episode) = &mut self.snd.episode else { return false };
        let watch = &mut episode.watch;
        if watch.wants_new_data() && !matches!(hold, None | Some(Hold::CongestionWindow)) {
            watch.no_new_data();
        }
        watch.wants_new_data()
    }

    /// Data is about to leave after a silence longer than the retransmission timeout (RFC 5681 section 4.1).
    fn restart_after_idle(&mut self, now: Instant) {
        let snd = &mut self.snd;
        if snd.sent.outstanding() == 0
            && snd.buffer.end() > snd.sent.end()
            && now.since(snd.sent.latest()) > snd.timer.rto()
        {
            let silence = IdlePeriod { now, since: snd.sent.latest(), srtt: snd.timer.srtt() };
            let WindowBounds { cwnd, ssthresh } = snd.validation.on_restart(&snd.window, &silence);
            self.reduce(CongestionEvent::Unvalidated { cwnd, ssthresh, idle: true }, now);
        }
    }

    /// The next new data and whether the FIN goes with it, or why there is none to send.
    pub(super) fn new_data(&self, most: u64, cwnd_room: u64) -> Result<(Range<Pos>, bool), Hold> {
        let nxt = self.nxt();
        let end = self.snd.buffer.end();
        let unsent = end.since(nxt);
        let fin = self.snd.fin_queued && !self.fin_sent();
        if unsent == 0 && !fin {
            return Err(Hold::NoData);
        }
        let usable = self.snd.right_edge.since(nxt);
        if usable == 0 {
            return Err(Hold::PeerWindow);
        }
        // A FIN without data takes no room, as on Linux: the peer learns of the end no later for a full window.
        if cwnd_room == 0 && unsent > 0 {
            return Err(Hold::CongestionWindow);
        }
        let mss = u64::from(self.mss());
        let record = self.record_left(nxt);
        let mut len = unsent.min(record).min(usable).min(cwnd_room).min(most);
        // [SHLD-7] Nagle's algorithm with Minshall's refinement: a small segment waits while an earlier small one is
        // unacknowledged. The last data before a FIN is not followed by more, so it need not wait. Nor does any wait
        // for ever [MUST-60]: the earlier segment is acknowledged, or the connection ends.
        let nagle_lets_go = self.nodelay || fin || self.una() >= self.snd.small_upto;
        let tail = remainder(len, mss);
        if len == unsent {
            let hold = match fin {
                false if self.waits_for_more() => Some(Hold::Cork),
                _ if nagle_lets_go => None,
                _ => Some(Hold::Nagle),
            };
            if tail > 0
                && let Some(hold) = hold
            {
                len -= tail;
                if len == 0 {
                    return Err(hold);
                }
            }
        } else if len == record {
            // Nothing that follows goes with it.
        } else if len >= mss {
            len -= tail; // [SHLD-28]
        } else if cwnd_room < usable.min(mss) {
            if self.in_flight() > 0 {
                return Err(Hold::CongestionWindow);
            }
        } else if len * 2 < self.snd.max_window {
            // [MUST-38] less than a segment and less than half of the largest window the peer ever had.
            return Err(Hold::SillyWindow);
        }
        let range = nxt..nxt + len;
        let with_fin = fin && range.end == end && self.snd.right_edge > end;
        Ok((range, with_fin))
    }

    /// The largest payload for one transmission: whole segments.
    fn max_super_segment(&self) -> u64 {
        let mss = u64::from(self.mss());
        let most = self.path.max_super_segment.map_or(mss, u64::from);
        let most = if self.field_forbids_cutting() { mss } else { most };
        (most - remainder(most, mss)).max(mss)
    }

    /// Nothing leaves because of `hold`: account for it, and make sure something wakes us.
    fn note_hold(&mut self, now: Instant, hold: Hold) {
        let idle = self.snd.sent.outstanding() == 0;
        match hold {
            Hold::NoData => {
                self.snd.sent.on_app_limited();
                self.limited.note(now, LimitedBy::Application);
            }
            Hold::Nagle => self.limited.note(now, LimitedBy::Application),
            Hold::Cork => {
                self.limited.note(now, LimitedBy::Application);
                self.hold_tail(now);
            }
            Hold::CongestionWindow if self.would_fit_without_limits() => {
                // TCP's own window was not what held it back, and is not to grow for it.
                self.limited.note(now, LimitedBy::VirtualWindow);
            }
            Hold::CongestionWindow => {
                self.snd.cwnd_limited_upto = self.nxt();
                self.limited.note(now, LimitedBy::CongestionWindow);
            }
            Hold::PeerWindow => {
                self.limited.note(now, LimitedBy::PeerWindow);
                // [MUST-35] [MUST-36]
                if idle {
                    self.arm_persist(now);
                }
            }
            Hold::SillyWindow => {
                self.limited.note(now, LimitedBy::PeerWindow);
                if idle {
                    self.arm_override(now);
                }
            }
        }
    }

    /// The persist or keep-alive timer requested a segment.
    fn plan_probe(&mut self, now: Instant) -> Option<Plan> {
        let nxt = self.nxt();
        let unsent = self.snd.buffer.end().since(nxt);
        let fin = self.snd.fin_queued && !self.fin_sent();
        if self.snd.sent.outstanding() > 0 {
            return None; // its retransmission is the probe
        }
        if unsent == 0 && !fin {
            return self.keep_alive().map(|_| Plan::KeepAlive);
        }
        let usable = self.snd.right_edge.since(nxt);
        if usable > 0 {
            let len = unsent.min(usable).min(u64::from(self.mss())).min(self.record_left(nxt));
            let fin = fin && len == unsent && usable > len;
            return Some(Plan::Data(nxt..nxt + len, fin));
        }
        self.snd.probes = self.snd.probes.saturating_add(1);
        self.snd.unanswered_probes = self.snd.unanswered_probes.saturating_add(1);
        self.note_unacked(now);
        // The timer was armed without this probe's back-off when the window was found closed.
        self.timers.clear(Timer::Persist);
        self.arm_persist(now);
        Some(Plan::Probe)
    }

    /// The rate to pace at: the controller's, or a window in a little less than a round trip.
    pub(super) fn own_pacing_rate(&self) -> Option<u64> {
        let snd = &self.snd;
        snd.congestion
            .pacing_rate(&snd.window)
            .or_else(|| window_rate(&snd.window, snd.timer.srtt()))
    }

    /// Whether the flight is within cwnd, with the exemptions the RFCs name: with nothing else in flight one segment may
    /// always go, and the FIN takes no room. (Fast retransmission is exempt altogether: RFC 5681 section 3.2 step 3.)
    pub(super) fn keeps_to_cwnd(&self) -> bool {
        if self.is_unconstrained() {
            return true;
        }
        self.in_flight() <= self.snd.window.cwnd.max(u64::from(self.mss())) + 1
    }
}
