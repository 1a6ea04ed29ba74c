//! Arrival of segments: the checks of RFC 9293 section 3.10.7.4 in their order, with RFC 5961 and PAWS.

use super::reports::Reports;
use super::timers::Timer;
use super::{Connection, ConnectionError, MemoryState, Signal, State};
use crate::ack_policy::AckPolicy as _;
use crate::ack_policy::{AckDecision, Arrival};
use crate::flow::FlowControl as _;
use crate::ordering::Arrived;
use crate::ordering::Ordering as _;
use crate::packet::{PacketBuf, Payload};
use crate::pos::Pos;
use crate::rto::RetransmissionTimer as _;
use crate::segment::Segment;
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use transom_wire::{Ecn, Flags, Options, TcpHeader};

/// The position of a segment relative to the receive window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Some of it (or, without data, its position) is in the window.
    Inside,
    /// It touches the window from outside: a probe of a closed window, or the retransmission of the last received data. Its acknowledgement
    /// is processed, its data is dropped, and it is answered.
    Edge,
    /// Neither.
    Outside,
}

impl Connection {
    /// Processes a segment for this connection. The caller has verified the checksum.
    pub fn on_segment(&mut self, now: Instant, segment: &Segment<'_>) {
        self.counters.segments_received += 1;
        self.counters.bytes_received += segment.payload.len() as u64;
        match self.state {
            State::Closed => return,
            State::SynSent => return self.on_segment_in_syn_sent(now, segment),
            _ => {}
        }
        if self.state == State::SynReceived && self.on_repeated_syn(now, segment) {
            return;
        }
        let header = segment.header;
        let (next, accepted) = (self.rcv.next(), self.counters.bytes_accepted);
        let start = self.rcv.space.from_wire(header.seq, next);
        if self.fails_paws(now, segment, start) {
            return;
        }
        let place = self.place(next, start, segment.sequence_len());
        if header.flags.contains(Flags::RST) {
            self.on_reset(now, start, place);
            return;
        }
        if header.flags.contains(Flags::SYN) {
            // RFC 5961 section 4: in whatever place.
            self.reply(now);
            self.on_repeated_syn_ack(segment, start);
            self.on_crossing_syn_ack(now, segment, start);
            return;
        }
        if place == Place::Outside {
            if self.is_repetition(now, segment, start) {
                self.update_timestamp(now, header, start);
            }
            self.answer_unacceptable(now, segment, start);
            return;
        }
        if !header.flags.contains(Flags::ACK) {
            // The first check comes before the fifth: what it does not admit is answered, with an acknowledgement or without.
            if place == Place::Edge {
                self.answer_unacceptable(now, segment, start);
            }
            return;
        }
        self.rcv.heard.last = now;
        self.rcv.heard.unanswered = 0;
        let ack = self.snd.space.from_wire(header.ack, self.una());
        if self.state == State::SynReceived {
            // The acknowledgement of our SYN, and nothing else, completes the handshake.
            if ack <= Pos::INITIAL || ack > self.highest_sent() {
                self.replies.reset = Some(self.reset_at(now, header.ack));
                return;
            }
            let window = self.scaled_window(header);
            self.snd.peer.take(start, ack, window);
            self.on_syn_acked(now, ack, &Options::default());
            self.establish(now);
            if self.state == State::Closed {
                return; // What came with the SYN is nobody's any more.
            }
            self.on_handshake_ack(now, segment);
        } else if self.agreed.accurate {
            self.on_late_handshake_ack(now, segment, ack);
        }
        if place == Place::Inside && self.rejects_segment(start, segment.payload.len() as u64) {
            self.rcv.ack_now = true;
            return;
        }
        if !self.on_acknowledgement(now, segment, start, ack) || self.state == State::Closed {
            return;
        }
        // After the acknowledgement was found plausible: a forged value must not be had for a guess of RCV.NXT alone.
        self.update_timestamp(now, header, start);
        self.take_user_timeout(&header.options);
        // [MUST-66] urgent data is announced even by a segment that a closed window does not admit.
        self.on_urgent(header, start);
        if place == Place::Edge {
            self.answer_unacceptable(now, segment, start);
            if self.state == State::TimeWait && header.flags.contains(Flags::FIN) {
                self.enter_time_wait(now);
            }
            return;
        }
        self.on_mark(segment);
        self.take_forward_point(now, header, start);
        self.on_text(now, segment, start);
        self.on_fin(now, segment, start);
        self.notify_arrival(now, next, accepted);
    }

    /// Like [`Connection::on_segment`], for a payload at `range` of a buffer that the receive queue may keep. Returns the buffer
    /// if it was not kept; one that was comes back through [`Connection::reclaim`] after it has been read.
    pub fn on_owned_segment(
        &mut self,
        now: Instant,
        header: &TcpHeader,
        buffer: PacketBuf,
        range: core::ops::Range<usize>,
        segment_size: Option<u16>,
        ecn: Ecn,
    ) -> Option<PacketBuf> {
        let bytes = buffer.get(range.clone()).unwrap_or_default();
        let payload = Payload::on_offer(bytes, buffer.len());
        self.on_segment(now, &Segment { header, payload, segment_size, ecn });
        if range.is_empty() {
            return Some(buffer);
        }
        self.rcv.ordering.supply(buffer, range.start)
    }

    /// Moves buffers that were kept and have been read to `spent`, until it holds `most` of them.
    #[inline]
    pub fn reclaim(&mut self, spent: &mut Vec<PacketBuf>, most: usize) {
        self.rcv.ordering.reclaim_all(spent, most);
    }

    /// One past the highest position that ever left, a window probe and data in the SYN included.
    pub(super) fn highest_sent(&self) -> Pos {
        (self.nxt() + u64::from(self.snd.probes.outstanding)).max(self.syn_data_end())
    }

    /// SEG.WND in bytes: never negative, and wider than 16 or 32 bits [MUST-1] [REC-1].
    pub(super) fn scaled_window(&self, header: &TcpHeader) -> u64 {
        u64::from(header.window) << self.agreed.send_scale.unwrap_or(0)
    }

    /// The acceptability test of RFC 9293 section 3.4, as a place; `next` is RCV.NXT.
    fn place(&self, next: Pos, start: Pos, len: u64) -> Place {
        let edge = self.rcv.edge;
        let end = start + len;
        if len == 0 {
            // A segment without data at the right edge is what a peer sends that has used up our window: refusing
            // it would lose its acknowledgements.
            return if next <= start && start <= edge {
                Place::Inside
            } else if start + 1 == next {
                Place::Edge // keep-alive
            } else {
                Place::Outside
            };
        }
        if start < edge && end > next {
            Place::Inside
        } else if start == edge || end == next {
            Place::Edge
        } else {
            Place::Outside
        }
    }

    /// PAWS (RFC 7323 section 5.3). A segment that fails is answered and dropped; one without the agreed option is
    /// dropped in silence (section 3.2). Resets are exempt.
    fn fails_paws(&mut self, now: Instant, segment: &Segment<'_>, start: Pos) -> bool {
        if !self.agreed.timestamps || segment.header.flags.contains(Flags::RST) {
            return false;
        }
        match segment.header.options.timestamps {
            Some(stamps) if self.rcv.timestamps.is_old(stamps.value, now) => {
                self.counters.paws_rejected += 1;
                self.answer_unacceptable(now, segment, start);
                true
            }
            Some(_) => false,
            None => true,
        }
    }

    /// Whether a segment outside the window repeats data that had arrived, because its acknowledgement was lost. Its timestamp has to be
    /// echoed: RFC 7323 section 4.3 step 2 has no lower bound for SEG.SEQ, and appendix H names this case as what RFC 1323 had wrong.
    /// With the echo of what arrived first, the sender would take all the time since for a round-trip time, and its next timeout would
    /// be several times as long.
    ///
    /// A forged value must not be easier than in the window, where RCV.NXT has to be guessed. Besides a position in the last window of the
    /// stream and a plausible acknowledgement, the segment must echo a value that we have sent.
    fn is_repetition(&self, now: Instant, segment: &Segment<'_>, start: Pos) -> bool {
        let header = segment.header;
        let next = self.rcv.next();
        let end = start + segment.payload.len() as u64;
        let ack = self.snd.space.from_wire(header.ack, self.una());
        let echo = header.options.timestamps.map_or(0, |stamps| stamps.echo);
        !segment.payload.is_empty()
            && Pos::FIRST_DATA <= start
            && end < next
            && next.since(start) <= self.rcv.flow.buffer_limit() as u64
            && header.flags.contains(Flags::ACK)
            && self.is_plausible(ack)
            && self.rcv.timestamps.echo_rtt(echo, now).is_some()
    }

    /// RFC 7323 section 4.3 step 2.
    pub(super) fn update_timestamp(&mut self, now: Instant, header: &TcpHeader, start: Pos) {
        if let Some(stamps) = header.options.timestamps
            && self.agreed.timestamps
            && start <= self.rcv.last_ack_sent
        {
            self.rcv.timestamps.update(stamps.value, now);
        }
    }

    /// A reset, with data or without [SHLD-2]. RFC 5961 section 3.2: only a reset at exactly RCV.NXT counts; one inside the window is
    /// challenged.
    fn on_reset(&mut self, now: Instant, start: Pos, place: Place) {
        let next = self.rcv.next();
        if start == next {
            match self.state {
                State::SynReceived if self.owner.active => self.fail(ConnectionError::Refused),
                // RFC 1337: a reset does not cut TIME-WAIT short.
                State::TimeWait => {}
                _ => self.fail(ConnectionError::Reset),
            }
        } else if place == Place::Inside && start < self.rcv.edge {
            self.reply(now);
        }
    }

    /// An acknowledgement in answer to something that may be forged, within the budget.
    pub(super) fn reply(&mut self, now: Instant) {
        if self.replies.limiter.allow(now) {
            self.counters.challenge_acks += 1;
            self.rcv.ack_now = true;
        }
    }

    /// An unacceptable segment is answered by an acknowledgement (RFC 9293 section 3.10.7.4). One with data is
    /// always: it is a retransmission whose acknowledgement was lost, or a window probe.
    fn answer_unacceptable(&mut self, now: Instant, segment: &Segment<'_>, start: Pos) {
        let len = segment.payload.len() as u64;
        let next = self.rcv.next();
        if len > 0 || segment.header.flags.contains(Flags::FIN) {
            if Pos::FIRST_DATA <= start && start < next && len > 0 {
                self.note_duplicate(start, (start + len).min(next));
            }
            self.rcv.ack_now = true;
        } else {
            self.reply(now);
        }
    }

    /// RFC 9293 section 3.8.5: RCV.UP only moves forward [MUST-62].
    fn on_urgent(&mut self, header: &TcpHeader, start: Pos) {
        if !header.flags.contains(Flags::URG) || header.urgent == 0 || !self.state.can_receive() {
            return;
        }
        let urgent = start + u64::from(header.urgent);
        if urgent > self.rcv.ordering.read_pos() && urgent > self.rcv.urgent {
            self.rcv.urgent = urgent;
            self.notices.reports.set(Reports::URGENT, true);
            self.raise(Signal::Urgent);
        }
    }

    /// Takes the round-trip time from the first full segment that echoes our acknowledgement. A pure receiver has no other sample but the
    /// handshake's, and at that time the queues were empty.
    fn sample_receiver_rtt(&mut self, now: Instant, segment: &Segment<'_>) {
        let Some(stamps) = segment.header.options.timestamps.filter(|_| self.agreed.timestamps)
        else {
            return;
        };
        if stamps.echo == self.rcv.round_trip.echo {
            return;
        }
        self.rcv.round_trip.echo = stamps.echo;
        let Some(sample) = self.rcv.timestamps.echo_rtt(stamps.echo, now) else { return };
        self.rcv.round_trip.sampled_at = now;
        self.rcv.round_trip.sample = u32::try_from(sample.as_micros()).unwrap_or(u32::MAX);
        self.rcv.round_trip.smoothed = match self.rcv.round_trip.smoothed {
            Duration::MAX => sample,
            // The weight of RFC 6298 section 2.3.
            rtt => {
                Duration::from_nanos(rtt.as_nanos() - rtt.as_nanos() / 8 + sample.as_nanos() / 8)
            }
        };
    }

    /// The segment's data, trimmed to the window.
    pub(super) fn on_text(&mut self, now: Instant, segment: &Segment<'_>, start: Pos) {
        let len = segment.payload.len() as u64;
        if len == 0 {
            return;
        }
        if !self.state.can_receive() && !self.is_early() {
            // RFC 9293 section 3.10.7.4, seventh step: data after the peer's FIN should not occur, and is ignored.
            return;
        }
        self.touch_idle(now);
        self.rcv.heard.data = now;
        // The SYN of a SYN-ACK carrying data comes first in its sequence space.
        let at = start;
        let end = (at + len).min(self.rcv.edge).min(self.rcv.fin.unwrap_or(Pos::MAX));
        let mut taken = end;
        if self.rcv.flow.drops() {
            taken = end.min(self.rcv.flow.takes_upto(self.rcv.ordering.window_base(), end));
            if taken < end {
                self.rcv.flow.on_dropped(end.since(taken.max(at)));
            }
        }
        if self.memory != MemoryState::Normal {
            // Data that is dropped is neither acknowledged nor reported: to the peer it is lost.
            taken = taken.min(self.memory_takes_upto(at, end));
        }
        let wanted = taken.since(at) as usize;
        if wanted < segment.payload.len() {
            // Something was beyond the window: say what the window is.
            self.rcv.ack_now = true;
        }
        if self.owner.gone && end > self.rcv.next() {
            // [SHLD-3] nobody will ever read it
            self.reset(now);
            return;
        }
        let payload = segment.payload.slice(0..wanted);
        // Data that is dropped anyway needs neither the reader's memory nor its buffer.
        let payload = if self.rcv.shut { payload.to_be_copied() } else { payload };
        let Arrived { accepted, gap, readable } =
            self.rcv.ordering.take_in(at, payload, self.rcv.flow.buffer_limit());
        self.counters.bytes_accepted += accepted.new_bytes;
        self.notices.arrived(accepted.new_bytes);
        if let Some((from, upto)) = accepted.duplicate {
            self.note_duplicate(from, upto);
        }
        if !accepted.refused {
            self.note_arrival(now, segment, at..end);
        }
        self.counters.out_of_order_segments += u64::from(gap && !accepted.in_order);
        let one = segment.segment_size.map_or(len, u64::from);
        self.rcv.segment = self.rcv.segment.max(one.min(u64::from(self.path.announced_mss())));
        if one >= self.rcv.segment {
            self.sample_receiver_rtt(now, segment);
        }
        let surprise = !accepted.in_order || gap || accepted.duplicate.is_some();
        let pushed = one < self.rcv.segment || segment.header.flags.contains(Flags::PSH);
        self.acknowledge_arrival(now, accepted.new_bytes, !surprise, pushed, false);
        if readable {
            if self.rcv.shut {
                self.drop_received();
            } else if self.has_no_low_water() || self.is_readable() {
                self.raise(Signal::Readable);
            }
        }
    }

    /// Asks the policy. Acknowledgements are not sent here but noted: however many segments arrive before the owner
    /// asks for output, one answers them all [MUST-58] [MUST-59].
    fn acknowledge_arrival(
        &mut self,
        now: Instant,
        bytes: u64,
        in_order: bool,
        pushed: bool,
        fin: bool,
    ) {
        let arrival = Arrival {
            now,
            bytes,
            segment: self.rcv.segment,
            in_order,
            pushed,
            fin,
            window: self.rcv.edge.since(self.rcv.last_ack_sent),
            timer: self.control.timer(),
        };
        match self.rcv.policy.on_arrival(&arrival) {
            AckDecision::Now => self.rcv.ack_now = true,
            AckDecision::By(at) => {
                if !self.rcv.ack_now && self.timers.get(Timer::Ack).is_none_or(|old| at < old) {
                    self.timers.set(Timer::Ack, at);
                }
            }
        }
    }

    /// The policy's delay of an acknowledgement has passed.
    pub(super) fn on_ack_delay_over(&mut self) {
        self.rcv.ack_now = true;
        self.rcv.policy.on_delay_over(self.control.timer().rto());
    }

    /// The segment's FIN, and a FIN that waited for missing data.
    pub(super) fn on_fin(&mut self, now: Instant, segment: &Segment<'_>, start: Pos) {
        if segment.header.flags.contains(Flags::FIN) && self.rcv.fin.is_none() {
            let fin = start + segment.payload.len() as u64;
            // Within the window (it may stand just behind it), and not before what was received already.
            if fin <= self.rcv.edge && fin >= self.rcv.next() {
                self.rcv.fin = Some(fin);
                self.note_arrival(now, segment, fin..fin + 1);
            }
            self.rcv.ack_now = true;
        }
        self.reach_fin(now);
    }

    /// The FIN is consumed when everything before it has arrived, or was given up.
    pub(super) fn reach_fin(&mut self, now: Instant) {
        let complete = self.rcv.fin.is_some_and(|fin| fin == self.rcv.next());
        if !complete || self.state == State::Closed {
            return;
        }
        self.rcv.ordering.consume_fin();
        self.rcv.edge = self.rcv.edge.max(self.rcv.next());
        self.rcv.ack_now = true;
        self.acknowledge_arrival(now, 1, true, true, true);
        match self.state {
            State::Established | State::SynReceived => self.enter(State::CloseWait),
            State::FinWait1 if self.fin_acked() => self.enter_time_wait(now),
            State::FinWait1 => self.enter(State::Closing),
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
        self.raise(Signal::Readable);
    }
}
