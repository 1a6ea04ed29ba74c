//! Output: one function puts together what recovery wants sent again, how much congestion control allows, when
//! pacing lets it go, and what the peer's window, Nagle and silly-window avoidance say to new data.

use super::info::LimitedBy;
use super::timers::Timer;
use super::{Connection, State};
use crate::congestion::CongestionEvent;
use crate::pos::Pos;
use crate::segment::Transmit;
use crate::time::Instant;
use core::ops::Range;
use transom_wire::{Flags, Options, SackBlock, SackBlocks, TcpHeader};

/// A transmission that is settled but not yet given out.
#[derive(Clone, Debug)]
pub struct Prepared {
    header: TcpHeader,
    range: Range<Pos>,
    segment_size: Option<u16>,
}

/// What leaves next.
#[derive(Clone, Debug)]
enum Plan {
    Reset(TcpHeader),
    Syn,
    /// So many bytes of this range again; whether the congestion window does not apply.
    Retransmit(Range<Pos>, u64, bool),
    /// These bytes for the first time, with the FIN behind them or not.
    Data(Range<Pos>, bool),
    /// One unit beyond a closed window.
    Probe,
    KeepAlive,
    Ack,
}

/// Why no new data leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    NoData,
    Nagle,
    SillyWindow,
    PeerWindow,
    CongestionWindow,
}

/// What is left of `len` beyond whole segments. Most often there is exactly one, or less: no need to divide.
fn remainder(len: u64, mss: u64) -> u64 {
    match len.cmp(&mss) {
        core::cmp::Ordering::Less => len,
        core::cmp::Ordering::Equal => 0,
        core::cmp::Ordering::Greater => len % mss,
    }
}

impl Connection {
    /// The next segment (or super-segment) to send at `now`; `None` when there is nothing until the next call that
    /// changes the connection. The caller must send what it is given.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<'_>> {
        let prepared = self.prepare(now)?;
        Some(self.transmit(&prepared))
    }

    /// Like [`Connection::poll_transmit`], in two steps: what is to be sent is settled and counts as sent, but is not
    /// borrowed. [`Connection::transmit`] gives it out, before any other call.
    pub fn prepare(&mut self, now: Instant) -> Option<Prepared> {
        let plan = self.plan(now)?;
        let (header, range) = self.commit(plan, now);
        let end = range.end.min(self.snd.buffer.end());
        let len = end.since(range.start);
        self.counters.segments_sent += 1;
        self.counters.bytes_sent += len;
        let mss = u64::from(self.mss());
        let segment_size = (len > mss).then(|| u16::try_from(mss).unwrap_or(u16::MAX));
        Some(Prepared { header, range, segment_size })
    }

    /// What [`Connection::prepare`] settled, with its payload.
    pub fn transmit(&self, prepared: &Prepared) -> Transmit<'_> {
        let Prepared { header, range, segment_size } = prepared;
        let payload = self.snd.buffer.slices(range.clone());
        Transmit { header: *header, payload, segment_size: *segment_size }
    }

    fn plan(&mut self, now: Instant) -> Option<Plan> {
        if let Some(header) = self.reset_due.take() {
            return Some(Plan::Reset(header));
        }
        match self.state {
            State::Closed => return None,
            State::SynSent | State::SynReceived if self.snd.syn_due => return Some(Plan::Syn),
            State::SynSent | State::SynReceived | State::TimeWait => {
                return self.rcv.ack_now.then_some(Plan::Ack);
            }
            _ => {}
        }
        // SACK blocks and the user timeout go into segments without data: they would take room from the payload, and
        // segments that differ in size split badly. What arrived out of order is reported at once anyway.
        let report = self.rcv.ordering.has_gap() || self.rcv.dsack.is_some();
        if (self.rcv.ack_now && report) || self.user_timeout.due {
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

    /// What (recovery), how much (congestion control), when (pacing).
    fn plan_data(&mut self, now: Instant) -> Option<Plan> {
        self.probe_path_mtu(now);
        self.restart_after_idle(now);
        let mss = u64::from(self.mss());
        let rate = self.snd.congestion.pacing_rate(&self.snd.window);
        let quantum = self.snd.pacing.quantum(rate).max(mss);
        let most = self.max_super_segment().min(quantum);
        let cwnd_room = self.snd.window.cwnd.saturating_sub(self.in_flight());
        let has_new = self.new_data(most, cwnd_room);
        let lost =
            self.snd.recovery.next(&mut self.snd.sent, has_new.is_ok(), u32::try_from(mss).ok()?);
        if lost.is_none() && has_new.is_err() {
            let hold = has_new.err()?;
            self.note_hold(now, hold);
            return None;
        }
        let release = self.snd.pacing.release_at();
        if release > now {
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
        Some(Plan::Data(range, fin))
    }

    /// Data is about to leave after a silence longer than the retransmission timeout (RFC 5681 section 4.1).
    fn restart_after_idle(&mut self, now: Instant) {
        if self.snd.sent.outstanding() == 0
            && self.snd.buffer.end() > self.nxt()
            && now.since(self.snd.last_sent) > self.snd.timer.rto()
        {
            let event = CongestionEvent::IdleRestart;
            self.snd.congestion.on_event(&mut self.snd.window, event, now);
        }
    }

    /// The next new data and whether the FIN goes with it, or why there is none to send.
    fn new_data(&self, most: u64, cwnd_room: u64) -> Result<(Range<Pos>, bool), Hold> {
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
        if cwnd_room == 0 {
            return Err(Hold::CongestionWindow);
        }
        let mss = u64::from(self.mss());
        let mut len = unsent.min(usable).min(cwnd_room).min(most);
        // [SHLD-7] Nagle's algorithm with Minshall's refinement: a small segment waits while an earlier small one is
        // unacknowledged. The last data before a FIN is not followed by more, so it need not wait. Nor does any wait
        // for ever [MUST-60]: the earlier segment is acknowledged, or the connection ends.
        let nagle_lets_go = self.nodelay || fin || self.una() >= self.snd.small_upto;
        let tail = remainder(len, mss);
        if len == unsent {
            if tail > 0 && !nagle_lets_go {
                len -= tail;
                if len == 0 {
                    return Err(Hold::Nagle);
                }
            }
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

    /// The persist or keep-alive timer asked for a segment.
    fn plan_probe(&mut self, now: Instant) -> Option<Plan> {
        let nxt = self.nxt();
        let unsent = self.snd.buffer.end().since(nxt);
        let fin = self.snd.fin_queued && !self.fin_sent();
        if self.snd.sent.outstanding() > 0 {
            return None; // its retransmission is the probe
        }
        if unsent == 0 && !fin {
            return self.keep_alive.map(|_| Plan::KeepAlive);
        }
        let usable = self.snd.right_edge.since(nxt);
        if usable > 0 {
            let len = unsent.min(usable).min(u64::from(self.mss()));
            let fin = fin && len == unsent && usable > len;
            return Some(Plan::Data(nxt..nxt + len, fin));
        }
        self.snd.probes = self.snd.probes.saturating_add(1);
        self.snd.unanswered_probes = self.snd.unanswered_probes.saturating_add(1);
        self.snd.unacked_since.get_or_insert(now);
        // The timer was armed without this probe's back-off when the window was found closed.
        self.timers.clear(Timer::Persist);
        self.arm_persist(now);
        Some(Plan::Probe)
    }

    /// Carries out `plan`: changes the state as its sending does, and returns the header and the data's place.
    fn commit(&mut self, plan: Plan, now: Instant) -> (TcpHeader, Range<Pos>) {
        let nothing = self.nxt()..self.nxt();
        match plan {
            Plan::Reset(header) => (header, nothing),
            Plan::Syn => (self.syn(now), nothing),
            Plan::Retransmit(range, len, exempt) => {
                let segment = u64::from(self.mss());
                let range = self.snd.sent.retransmit(range.start, len, segment, now);
                self.snd.recovery.on_retransmitted(range.clone());
                self.counters.retransmitted_segments += 1;
                self.counters.retransmitted_bytes += range.end.since(range.start);
                self.after_data(now, range.end.since(range.start));
                debug_assert!(exempt || self.keeps_to_cwnd(), "retransmitted beyond cwnd");
                (self.data_header(now, &range), range)
            }
            Plan::Data(range, fin) => {
                let range = range.start..range.end + u64::from(fin);
                self.snd.sent.push(range.end, now);
                self.snd.probe_outstanding = false;
                self.snd.unacked_since.get_or_insert(now);
                let len = range.end.since(range.start);
                if remainder(len, u64::from(self.mss())) != 0 {
                    self.snd.small_upto = range.end;
                }
                self.after_data(now, len);
                debug_assert!(self.keeps_to_cwnd(), "sent beyond cwnd");
                debug_assert!(range.end <= self.snd.right_edge, "sent beyond the peer's window");
                (self.data_header(now, &range), range)
            }
            Plan::Probe => {
                self.snd.probe_outstanding = true;
                self.counters.window_probes += 1;
                let range = self.nxt()..self.nxt() + 1;
                (self.data_header(now, &range), range)
            }
            Plan::KeepAlive => {
                // [SHLD-12] without data, one before what the peer expects.
                let seq = self.snd.space.to_wire(self.nxt() - 1);
                (TcpHeader { seq, ..self.ack_header(now) }, nothing)
            }
            Plan::Ack => (self.pure_ack_header(now), nothing),
        }
    }

    /// Whether the flight is within cwnd, with the exemptions the RFCs name: with nothing else in flight one segment may
    /// always go, and the FIN takes no room. (Fast retransmission is exempt altogether: RFC 5681 section 3.2 step 3.)
    fn keeps_to_cwnd(&self) -> bool {
        self.in_flight() <= self.snd.window.cwnd.max(u64::from(self.mss())) + 1
    }

    /// What follows from data having left.
    fn after_data(&mut self, now: Instant, len: u64) {
        self.snd.last_sent = now;
        let rate = self.snd.congestion.pacing_rate(&self.snd.window);
        self.snd.pacing.on_sent(now, len, rate);
        if !self.timers.is_set(Timer::Retransmit) {
            self.rearm_retransmission(now);
        }
        self.timers.clear(Timer::Persist);
        self.touch_idle(now);
    }

    pub(super) fn base_header(&self) -> TcpHeader {
        TcpHeader {
            src_port: self.endpoint.local_port,
            dst_port: self.endpoint.remote_port,
            ..TcpHeader::default()
        }
    }

    fn syn(&mut self, now: Instant) -> TcpHeader {
        self.snd.syn_due = false;
        self.snd.syn_sent_at = now;
        self.snd.syn_transmissions += 1;
        self.snd.unacked_since.get_or_insert(now);
        if self.snd.retransmits > 0 {
            self.counters.retransmitted_segments += 1;
        }
        self.rearm_retransmission(now);
        let base = TcpHeader {
            seq: self.snd.space.initial(),
            flags: Flags::SYN,
            window: self.syn_window(),
            options: self.our_syn_options(now, None),
            ..self.base_header()
        };
        if self.state == State::SynSent {
            let options = Options {
                timestamps: base
                    .options
                    .timestamps
                    .map(|stamps| transom_wire::Timestamps { echo: 0, ..stamps }),
                ..base.options
            };
            return TcpHeader { options, ..base };
        }
        self.rcv.ack_now = false;
        self.rcv.last_ack_sent = self.rcv.ordering.next();
        let window_scale = base.options.window_scale.filter(|_| self.agreed.send_scale.is_some());
        TcpHeader {
            ack: self.rcv.space.to_wire(self.rcv.ordering.next()),
            flags: Flags::SYN | Flags::ACK,
            options: Options {
                window_scale,
                sack_permitted: self.agreed.sack,
                timestamps: base.options.timestamps.filter(|_| self.agreed.timestamps),
                ..base.options
            },
            ..base
        }
    }

    /// A header with the current acknowledgement and window; everything owed to the receiver's side is thereby paid.
    pub(super) fn ack_header(&mut self, now: Instant) -> TcpHeader {
        self.rcv.ack_now = false;
        self.timers.clear(Timer::Ack);
        self.rcv.policy.on_ack_sent();
        self.rcv.last_ack_sent = self.rcv.ordering.next();
        let window = self.advertise();
        let (urgent_flag, urgent) = self.urgent_pointer(self.nxt());
        TcpHeader {
            seq: self.snd.space.to_wire(self.nxt()),
            ack: self.rcv.space.to_wire(self.rcv.ordering.next()),
            flags: Flags::ACK | urgent_flag,
            window,
            urgent,
            options: Options {
                timestamps: self.agreed.timestamps.then(|| self.rcv.timestamps.option(now)),
                ..Options::default()
            },
            ..self.base_header()
        }
    }

    fn pure_ack_header(&mut self, now: Instant) -> TcpHeader {
        self.counters.pure_acks_sent += 1;
        let mut header = self.ack_header(now);
        if core::mem::take(&mut self.user_timeout.due) {
            header.options.user_timeout = self.user_timeout_option();
        }
        let dsack = self.rcv.dsack.take();
        if self.agreed.sack && (dsack.is_some() || self.rcv.ordering.has_gap()) {
            let room = header.options.sack_room();
            let space = self.rcv.space;
            let mut blocks = SackBlocks::default();
            if let Some((left, right)) = dsack {
                blocks.push(SackBlock { left: space.to_wire(left), right: space.to_wire(right) });
            }
            self.rcv.ordering.sack_blocks(&mut blocks, room, &|pos| space.to_wire(pos));
            header.options.sack = blocks;
        }
        header
    }

    fn data_header(&mut self, now: Instant, range: &Range<Pos>) -> TcpHeader {
        let mut header = self.ack_header(now);
        header.seq = self.snd.space.to_wire(range.start);
        let end = self.snd.buffer.end();
        if range.end > end {
            header.flags |= Flags::FIN;
        }
        // [MUST-61] the last of what is queued is pushed.
        if range.end >= end && range.start < end {
            header.flags |= Flags::PSH;
        }
        let (urgent_flag, urgent) = self.urgent_pointer(range.start);
        header.flags = (header.flags - Flags::URG) | urgent_flag;
        header.urgent = urgent;
        header
    }

    /// The urgent pointer of a segment at `seq`: every segment before the end of the urgent data announces it, whether
    /// the data itself can leave or not (RFC 9293 section 3.10.2). It names the octet behind that data [MUST-62], or
    /// as far as it reaches: a run of any length is announced piece by piece [MUST-31].
    fn urgent_pointer(&mut self, seq: Pos) -> (Flags, u16) {
        self.snd.urgent = self.snd.urgent.filter(|&urgent| urgent > self.una());
        match self.snd.urgent {
            Some(urgent) if urgent > seq => {
                (Flags::URG, u16::try_from(urgent.since(seq)).unwrap_or(u16::MAX))
            }
            _ => (Flags::empty(), 0),
        }
    }

    /// How far the window could reach now: what is read makes room.
    fn wanted_edge(&self) -> Pos {
        self.rcv.ordering.read_pos() + self.rcv.flow.buffer_limit() as u64
    }

    /// The window field, and with it the new right edge. It never moves left [SHLD-14], and moves right only by a
    /// worthwhile amount [MUST-39]. While nobody reads it stays where it is, closed for as long as that takes [MAY-8].
    fn advertise(&mut self) -> u16 {
        let next = self.rcv.ordering.next();
        let wanted = self.wanted_edge();
        let step = (self.rcv.flow.buffer_limit() as u64 / 2).min(self.rcv.segment);
        let edge = if wanted.since(self.rcv.edge) >= step { wanted } else { self.rcv.edge };
        let scale = self.agreed.receive_scale;
        let window = edge.max(self.rcv.edge).since(next);
        // Rounded up, so that the scaled window does not fall short of what was promised; but no further than one unit
        // beyond the buffer, or a sender of small segments would move the edge with each of them, read or not. What was
        // promised is taken in any case (RFC 7323 section 2.4).
        let up = window.div_ceil(1 << scale);
        let most = (wanted + (1 << scale)).max(self.rcv.edge);
        let field = if next + (up << scale) <= most { up } else { window >> scale };
        let field = field.min(65_535);
        self.rcv.edge = self.rcv.edge.max(next + (field << scale));
        u16::try_from(field).unwrap_or(u16::MAX)
    }

    /// Whether the peer should learn at once that the window has opened: it was (nearly) closed, or half of the
    /// buffer has become free.
    pub(super) fn window_update_is_due(&self) -> bool {
        let gain = self.wanted_edge().since(self.rcv.edge);
        let offered = self.rcv.edge.since(self.rcv.ordering.next());
        let half = self.rcv.flow.buffer_limit() as u64 / 2;
        let segment = self.rcv.segment;
        gain >= segment.min(half) && (offered < 2 * segment || gain >= half)
    }
}
