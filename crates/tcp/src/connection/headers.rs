//! Headers of segments that leave: SYNs, acknowledgements, data.

use super::timers::Timer;
use super::{Connection, State};
use crate::ack_policy::AckPolicy as _;
use crate::ordering::Ordering as _;
use crate::pos::Pos;
use crate::time::Instant;
use alloc::boxed::Box;
use core::ops::Range;
use transom_wire::{Flags, Options, SackBlock, SackBlocks, Seq, TcpHeader};

impl Connection {
    pub(super) fn base_header(&self) -> TcpHeader {
        TcpHeader {
            src_port: self.endpoint.local_port,
            dst_port: self.endpoint.remote_port,
            ..TcpHeader::default()
        }
    }

    /// A reset in answer to a segment with this acknowledgement.
    pub(super) fn reset_at(&self, now: Instant, seq: Seq) -> Box<TcpHeader> {
        let options = self.ordinary_options(now);
        Box::new(TcpHeader { seq, flags: Flags::RST, options, ..self.base_header() })
    }

    /// The options of a segment without data: timestamps, if they are agreed, also in a reset (RFC 7323 section 3.2).
    pub(super) fn ordinary_options(&self, now: Instant) -> Options {
        Options {
            timestamps: self.agreed.timestamps.then(|| self.rcv.timestamps.option(now)),
            ..Options::default()
        }
    }

    pub(super) fn syn(&mut self, now: Instant) -> (TcpHeader, Range<Pos>) {
        self.snd.syn.due = false;
        self.snd.syn.sent_at = now;
        self.snd.syn.transmissions += 1;
        self.note_unacked(now);
        if self.snd.retransmits > 0 {
            self.counters.retransmitted_segments += 1;
        }
        self.control.rearm(now, &self.extensions.clamp());
        let offer = self.offer();
        let base = TcpHeader {
            seq: self.snd.space.initial(),
            flags: Flags::SYN | offer,
            window: self.syn_window(),
            options: self.our_syn_options(now, None),
            ..self.base_header()
        };
        if self.state == State::SynSent {
            let options = Options {
                // After two attempts the option is left out: a middlebox may drop SYNs that have it.
                partial: base.options.partial.filter(|_| self.snd.syn.transmissions <= 2),
                timestamps: base
                    .options
                    .timestamps
                    .map(|stamps| transom_wire::Timestamps { echo: 0, ..stamps }),
                ..base.options
            };
            let (options, range) = self.fast_syn(options);
            return (TcpHeader { options, ..base }, range);
        }
        self.rcv.ack_now = false;
        self.rcv.last_ack_sent = self.rcv.next();
        let window_scale = base.options.window_scale.filter(|_| self.agreed.send_scale.is_some());
        let window = if self.is_opened_fast() { self.fast_window() } else { base.window };
        let header = TcpHeader {
            window,
            ack: self.rcv.space.to_wire(self.rcv.next()),
            flags: Flags::SYN | Flags::ACK | self.syn_ack_flags(),
            options: self.with_accurate_option(Options {
                window_scale,
                sack_permitted: self.agreed.sack,
                timestamps: base.options.timestamps.filter(|_| self.agreed.timestamps),
                partial: base.options.partial.filter(|_| self.agreed.partial),
                fast_open: self.fast_syn_ack(),
                ..base.options
            }),
            ..base
        };
        (header, Pos::FIRST_DATA..Pos::FIRST_DATA)
    }

    /// A header with the current acknowledgement and window; it settles all pending acknowledgements.
    pub(super) fn ack_header(&mut self, now: Instant) -> TcpHeader {
        let next = self.rcv.next();
        // A segment that acknowledges nothing new tells the policy nothing.
        if self.rcv.ack_now || next != self.rcv.last_ack_sent || self.timers.is_set(Timer::Ack) {
            self.rcv.ack_now = false;
            self.timers.clear(Timer::Ack);
            self.rcv.policy.on_ack_sent();
        }
        self.rcv.last_ack_sent = next;
        self.note_field_sent();
        let window = self.advertise(next);
        let (urgent_flag, urgent) = self.urgent_pointer(self.nxt());
        TcpHeader {
            seq: self.snd.space.to_wire(self.nxt()),
            ack: self.rcv.space.to_wire(next),
            flags: Flags::ACK | urgent_flag | self.echo(),
            window,
            urgent,
            options: self.ordinary_options(now),
            ..self.base_header()
        }
    }

    pub(super) fn pure_ack_header(&mut self, now: Instant) -> TcpHeader {
        self.counters.pure_acks_sent += 1;
        let mut header = self.ack_header(now);
        if core::mem::take(&mut self.user_timeout.due) {
            header.options.user_timeout = self.user_timeout_option();
        }
        header.options.partial = self.announcement(now);
        let dsack = core::mem::take(&mut self.rcv.dsack);
        if self.agreed.sack && (!dsack.is_empty() || self.rcv.ordering.has_gap()) {
            let room = header.options.sack_room();
            let space = self.rcv.space;
            let mut blocks = SackBlocks::default();
            if !dsack.is_empty() {
                let (left, right) = (space.to_wire(dsack.start), space.to_wire(dsack.end));
                blocks.push(SackBlock { left, right });
            }
            self.rcv.ordering.received().sack_blocks(&mut blocks, room, &|pos| space.to_wire(pos));
            header.options.sack = blocks;
        }
        self.add_marks_to_ack(&mut header);
        header
    }

    pub(super) fn data_header(&mut self, now: Instant, range: &Range<Pos>) -> TcpHeader {
        let mut header = self.ack_header(now);
        header.seq = self.snd.space.to_wire(range.start);
        let end = self.snd.buffer.end();
        if range.end > end {
            header.flags |= Flags::FIN;
        }
        // [MUST-61] the last of what is queued is pushed.
        if (range.end >= end && range.start < end) || self.ends_record(range.end) {
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
    fn urgent_pointer(&self, seq: Pos) -> (Flags, u16) {
        let urgent = self.snd.urgent;
        if urgent <= self.una().max(seq) {
            return (Flags::empty(), 0);
        }
        (Flags::URG, u16::try_from(urgent.since(seq)).unwrap_or(u16::MAX))
    }
}
