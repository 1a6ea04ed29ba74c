//! Output: one function combines recovery (what to retransmit), congestion control (how much), pacing (when), and the limits on new data: the
//! peer's window, Nagle's algorithm and silly-window avoidance.

use super::path_mtu::PathProbe;
use super::{Connection, State};
use crate::event::{Event, Probe, Sent};
use crate::ordering::Ordering as _;
use crate::pos::Pos;
use crate::recovery::Retransmission;
use crate::segment::Transmit;
use crate::send_buffer::BLOCK;
use crate::state::LimitReason;
use crate::time::Instant;
use core::ops::Range;
use transom_wire::{Ecn, Flags, TcpHeader};

/// A transmission that is settled but not yet given out.
#[derive(Clone, Debug)]
pub struct Prepared {
    header: TcpHeader,
    range: Range<Pos>,
    segment_size: Option<u16>,
    ecn: Ecn,
    again: bool,
    probe: Option<Probe>,
}

/// The next transmission.
#[derive(Clone, Debug)]
pub(super) enum Plan {
    Reset,
    Syn,
    /// This many bytes of what recovery names, again.
    Retransmit {
        named: Retransmission,
        len: u64,
    },
    /// These bytes for the first time, with the FIN behind them or not.
    Data(Range<Pos>, bool),
    /// These bytes for the first time, as a probe of a path MTU of this size.
    PathProbe(Range<Pos>, u32),
    /// These bytes for the recovery unit's sake, for the first time (with the FIN or not) or again.
    TailProbe(Range<Pos>, Option<bool>),
    /// One unit beyond a closed window.
    Probe,
    KeepAlive,
    Ack,
    /// Acknowledges data received before the marks changed: up to there, with the echo or not.
    EarlyAck(Pos, bool),
}

/// What goes before data.
enum First {
    /// Nothing: it is data's turn.
    Data,
    /// Nothing leaves at all.
    Nothing,
    Send(Plan),
}

/// Why data waits.
#[derive(Clone, Copy, Debug)]
enum Wait {
    /// Something else has to happen first.
    Hold(Hold),
    /// It is paced until then.
    Paced(Instant),
}

/// What leaves next, and what was found out.
struct Decision {
    plan: Option<Plan>,
    /// Data does not leave.
    wait: Option<Wait>,
    /// The request of a probe, by the persist or keep-alive timer, was considered.
    considered_probe: bool,
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
    /// The sequence space that it carries, with the FIN and without the SYN; empty for a segment without data.
    #[inline]
    pub fn range(&self) -> Range<Pos> {
        self.range.clone()
    }

    /// Whether this is a probe of the path MTU, which tells nothing if it is fragmented.
    #[inline]
    pub fn probes_path(&self) -> bool {
        self.probe == Some(Probe::PathMtu)
    }

    /// The event that it is, for a [publisher](crate::event::Publisher).
    #[inline]
    pub fn event(&self) -> Event<'static> {
        let flags = self.header.flags;
        let range = match flags.contains(Flags::SYN) {
            true => Pos::INITIAL..self.range.end.max(Pos::FIRST_DATA),
            false => self.range(),
        };
        Event::Sent(Sent { range, flags, again: self.again, probe: self.probe })
    }
}

impl Plan {
    /// What the segment finds out, if it is a probe.
    fn probe(&self) -> Option<Probe> {
        match self {
            Plan::TailProbe(..) => Some(Probe::Loss),
            Plan::PathProbe(..) => Some(Probe::PathMtu),
            Plan::Probe => Some(Probe::Window),
            Plan::KeepAlive => Some(Probe::KeepAlive),
            _ => None,
        }
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
        let plan = match self.plan_first() {
            First::Send(plan) => plan,
            First::Nothing => return None,
            First::Data => {
                self.before_send(now);
                let decision = self.plan(now);
                self.take_note(now, decision)?
            }
        };
        let ecn = self.codepoint(&plan);
        let (probe, sent_again) = (plan.probe(), self.counters.retransmitted_segments);
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
        let again = self.counters.retransmitted_segments > sent_again;
        Some(Prepared { header, range, segment_size, ecn, again, probe })
    }

    /// The segment of [`Connection::prepare`], with its payload.
    #[inline]
    pub fn transmit(&self, prepared: &Prepared) -> Transmit<'_> {
        let Prepared { header, range, segment_size, ecn, again: _, probe: _ } = prepared;
        let payload = self.payload(range.clone());
        Transmit { header: *header, payload, segment_size: *segment_size, ecn: *ecn }
    }

    /// The payload of a segment that carries `range`, in at most two pieces.
    #[inline]
    pub fn payload(&self, range: Range<Pos>) -> [&[u8]; 2] {
        self.snd.buffer.slices(range)
    }

    /// What goes before data: resets, SYNs, and acknowledgements that cannot go with data.
    fn plan_first(&self) -> First {
        let ack = |due: bool| if due { First::Send(Plan::Ack) } else { First::Nothing };
        if self.replies.reset.is_some() {
            return First::Send(Plan::Reset);
        }
        match self.state {
            State::Closed => return First::Nothing,
            State::SynSent if self.holds_syn() || self.is_answered() => return First::Nothing,
            State::SynSent | State::SynReceived if self.snd.syn.due => {
                return First::Send(Plan::Syn);
            }
            State::SynReceived if self.is_early() => {}
            State::SynSent | State::SynReceived | State::TimeWait => return ack(self.rcv.ack_now),
            _ => {}
        }
        if let Some((upto, echo)) = self.ecn.as_ref().and_then(|ecn| ecn.early_ack) {
            return First::Send(Plan::EarlyAck(upto, echo));
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
            return First::Send(Plan::Ack);
        }
        First::Data
    }

    /// It is data's turn: everything that changes before it may leave. Deciding then changes nothing.
    fn before_send(&mut self, now: Instant) {
        self.retry_path_mtu(now);
        self.check_tail_deadline(now);
        self.control.before_send(now, self.snd.buffer.end());
        if self.control.needs_probe() {
            if self.plan_tail_probe(now).is_some() {
                return;
            }
            self.control.no_probe();
        }
        if self.control.wants_new_data() && !self.is_all_done() {
            let most = self.most_at_once();
            let hold = self.new_data(most, self.control.room(&self.extensions.clamp())).err();
            if !matches!(hold, None | Some(Hold::CongestionWindow)) {
                self.control.no_new_data();
            }
        }
    }

    /// Decides what leaves: data, a probe that a timer asked for, or an acknowledgement.
    fn plan(&self, now: Instant) -> Decision {
        let wait = match self.plan_data(now) {
            Ok(plan) => {
                return Decision { plan: Some(plan), wait: None, considered_probe: false };
            }
            Err(wait) => Some(wait),
        };
        let probe = if self.snd.probes.due { self.plan_probe() } else { None };
        let plan = probe.or_else(|| self.rcv.ack_now.then_some(Plan::Ack));
        Decision { plan, wait, considered_probe: true }
    }

    /// Takes note of what was found out while deciding.
    fn take_note(&mut self, now: Instant, decision: Decision) -> Option<Plan> {
        match decision.wait {
            Some(Wait::Hold(hold)) => self.note_hold(now, hold),
            Some(Wait::Paced(release)) => {
                self.control.wait_for_pacing(release);
                self.limited.note(now, LimitReason::Pacing);
            }
            None => {}
        }
        if decision.considered_probe {
            self.snd.probes.due = false;
        }
        decision.plan
    }

    /// Whether there is nothing to send, and nothing out that could be wanted again.
    fn is_all_done(&self) -> bool {
        let nxt = self.nxt();
        self.una() == nxt && nxt == self.snd.buffer.end() && !self.snd.fin_queued
    }

    /// The most bytes of one transmission: whole segments, and no burst.
    #[inline]
    fn most_at_once(&self) -> u64 {
        self.max_super_segment().min(self.control.quantum(&self.extensions.clamp()))
    }

    /// The same from `pos` on: what lies in two pieces.
    fn most_from(&self, pos: Pos, most: u64) -> u64 {
        most.min(self.snd.buffer.reach(pos) as u64)
    }

    /// Decides what to send (recovery), how much (congestion control), and when (pacing).
    fn plan_data(&self, now: Instant) -> Result<Plan, Wait> {
        if self.control.needs_probe()
            && let Some(probe) = self.plan_tail_probe(now)
        {
            return Ok(probe);
        }
        if self.is_all_done() {
            return Err(Wait::Hold(Hold::NoData));
        }
        let most = self.most_at_once();
        let room = self.control.room(&self.extensions.clamp());
        let new = self.new_data(most, room);
        let again = if self.control.wants_new_data() {
            None
        } else {
            let named = self.control.next_retransmission(new.is_ok());
            named.filter(|named| self.may_repeat(named.range.start, now))
        };
        if again.is_none()
            && let Err(hold) = new
        {
            return Err(Wait::Hold(hold));
        }
        if let Some(release) =
            self.control.release_at(&self.extensions.clamp()).filter(|&release| release > now)
        {
            return Err(Wait::Paced(release));
        }
        match again {
            Some(named) => self.plan_again(named, most, room),
            None => self.plan_new(now, new.map_err(Wait::Hold)?, room),
        }
    }

    /// RFC 6675 section 5 step C: a whole segment of room, or nothing in flight. The peer's window is not asked:
    /// what it offered once may be sent again, also beyond an edge that moved left [SHLD-16] [MAY-7].
    fn plan_again(&self, named: Retransmission, most: u64, room: u64) -> Result<Plan, Wait> {
        let mss = u64::from(self.mss());
        let wanted = named.range.end.since(named.range.start);
        let len = if named.exempt {
            mss
        } else if room >= mss {
            room.min(self.most_from(named.range.start, most))
        } else if self.in_flight() == 0 {
            mss
        } else {
            // Not gathered with what follows: only this much fits.
            wanted.min(room)
        };
        if len >= mss.min(wanted) {
            return Ok(Plan::Retransmit { named, len });
        }
        Err(Wait::Hold(Hold::CongestionWindow))
    }

    /// New data, or a probe of the path MTU in its place.
    fn plan_new(
        &self,
        now: Instant,
        (range, fin): (Range<Pos>, bool),
        room: u64,
    ) -> Result<Plan, Wait> {
        match self.path_probe(now, room) {
            PathProbe::No => {}
            PathProbe::Send(probe, mtu) => return Ok(Plan::PathProbe(probe, mtu)),
            PathProbe::Wait => return Err(Wait::Hold(Hold::CongestionWindow)),
        }
        let (range, fin) = self.with_room_for_option(range, fin);
        Ok(Plan::Data(range, fin))
    }

    /// The probe that the recovery unit requested (RFC 8985 section 7.3): a new segment, independently of the congestion window, or the last one
    /// again.
    fn plan_tail_probe(&self, now: Instant) -> Option<Plan> {
        let mss = u64::from(self.mss());
        if let Ok((range, fin)) = self.new_data(mss, mss) {
            return Some(Plan::TailProbe(range, Some(fin)));
        }
        let range = self.control.last_segment()?;
        self.may_repeat(range.start, now).then_some(Plan::TailProbe(range, None))
    }

    /// Whether what was sent at `start` may leave again.
    fn may_repeat(&self, start: Pos, now: Instant) -> bool {
        self.control.may_repeat(start, self.snd.buffer.end(), now)
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
        let usable = self.snd.peer.edge.since(nxt);
        if usable == 0 {
            return Err(Hold::PeerWindow);
        }
        // A FIN without data takes no room, as on Linux: the peer learns of the end no later for a full window.
        if cwnd_room == 0 && unsent > 0 {
            return Err(Hold::CongestionWindow);
        }
        let mss = u64::from(self.mss());
        let record = self.record_left(nxt);
        let most = self.most_from(nxt, most);
        let mut len = unsent.min(record).min(usable).min(cwnd_room).min(most);
        // [SHLD-7] Nagle's algorithm with Minshall's refinement: a small segment waits while an earlier small one is
        // unacknowledged. The last data before a FIN is not followed by more, so it need not wait. Nor does any wait
        // for ever [MUST-60]: the earlier segment is acknowledged, or the connection ends.
        let nagle_lets_go = self.owner.nodelay || fin || self.una() >= self.snd.small_upto;
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
        } else if len * 2 < self.snd.peer.most {
            // [MUST-38] less than a segment and less than half of the largest window the peer ever had.
            return Err(Hold::SillyWindow);
        }
        let range = nxt..nxt + len;
        let with_fin = fin && range.end == end && self.snd.peer.edge > end;
        Ok((range, with_fin))
    }

    /// Any segment has to lie in two pieces of the send buffer.
    pub(super) fn fit_buffer_to_interface(&mut self) {
        if self.path.interface_mtu as usize > BLOCK / 2 {
            self.snd.buffer.make_even();
        }
    }

    /// The largest payload for one transmission: whole segments.
    #[inline]
    fn max_super_segment(&self) -> u64 {
        let mss = u64::from(self.mss());
        let most = self.path.max_super_segment.map_or(mss, u64::from);
        let most = if self.field_forbids_cutting() { mss } else { most };
        (most - remainder(most, mss)).max(mss)
    }

    /// Nothing leaves because of `hold`: account for it, and make sure something wakes us.
    fn note_hold(&mut self, now: Instant, hold: Hold) {
        let idle = self.control.board().outstanding() == 0;
        match hold {
            Hold::NoData => {
                self.control.on_app_limited();
                self.limited.note(now, LimitReason::NoData);
            }
            Hold::Nagle => self.limited.note(now, LimitReason::Nagle),
            Hold::Cork => {
                self.limited.note(now, LimitReason::Cork);
                self.hold_tail(now);
            }
            Hold::CongestionWindow if self.control.would_fit_without(&self.extensions.clamp()) => {
                // TCP's own window was not what held it back, and is not to grow for it.
                self.limited.note(now, LimitReason::VirtualWindow);
            }
            Hold::CongestionWindow => {
                self.control.on_limited();
                self.limited.note(now, LimitReason::CongestionWindow);
            }
            Hold::PeerWindow => {
                self.limited.note(now, LimitReason::PeerWindow);
                // [MUST-35] [MUST-36]
                if idle {
                    self.arm_persist(now);
                }
            }
            Hold::SillyWindow => {
                self.limited.note(now, LimitReason::SillyWindow);
                if idle {
                    self.arm_override(now);
                }
            }
        }
    }

    /// The persist or keep-alive timer requested a segment.
    fn plan_probe(&self) -> Option<Plan> {
        let nxt = self.nxt();
        let unsent = self.snd.buffer.end().since(nxt);
        let fin = self.snd.fin_queued && !self.fin_sent();
        if self.control.board().outstanding() > 0 {
            return None; // its retransmission is the probe
        }
        if unsent == 0 && !fin {
            return self.keep_alive().map(|_| Plan::KeepAlive);
        }
        let usable = self.snd.peer.edge.since(nxt);
        if usable > 0 {
            let len = unsent.min(usable).min(u64::from(self.mss())).min(self.record_left(nxt));
            let fin = fin && len == unsent && usable > len;
            return Some(Plan::Data(nxt..nxt + len, fin));
        }
        Some(Plan::Probe)
    }

    /// Whether the flight is within cwnd ([`Control::keeps_to_window`](crate::control::Control::keeps_to_window)).
    pub(super) fn keeps_to_cwnd(&self) -> bool {
        if self.is_unconstrained() {
            return true;
        }
        self.control.keeps_to_window()
    }
}
