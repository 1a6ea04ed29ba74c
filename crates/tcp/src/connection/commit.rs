//! A planned transmission leaves: it is recorded, and its header is made.

use super::Connection;
use super::output::{Plan, remainder};
use super::timers::Timer;
use crate::ack_policy::AckPolicy as _;
use crate::pos::Pos;
use crate::time::Instant;
use core::ops::Range;
use transom_wire::{Flags, TcpHeader};

impl Connection {
    /// Carries out `plan`: changes the state as its sending does, and returns the header and the data's place.
    pub(super) fn commit(&mut self, plan: Plan, now: Instant) -> (TcpHeader, Range<Pos>) {
        let nothing = self.nxt()..self.nxt();
        match plan {
            Plan::Reset => {
                let header = self.replies.reset.take().map(|header| *header);
                (header.unwrap_or_default(), nothing)
            }
            Plan::Syn => self.syn(now),
            Plan::Retransmit { named, len } => {
                let (header, range) = self.commit_again(named.range.start, len, now);
                debug_assert!(named.exempt || self.keeps_to_cwnd(), "retransmitted beyond cwnd");
                self.control.on_repaired(&named, range.clone());
                (header, range)
            }
            Plan::Data(range, fin) => {
                // A FIN alone takes no room, also where a tail probe went beyond the window before it.
                let bare_fin = range.is_empty();
                let committed = self.commit_data(range, fin, now);
                debug_assert!(bare_fin || self.keeps_to_cwnd(), "sent beyond cwnd");
                committed
            }
            Plan::PathProbe(range, mtu) => {
                self.on_path_probe(now, range.clone(), mtu);
                let committed = self.commit_data(range, false, now);
                debug_assert!(self.keeps_to_cwnd(), "probed beyond cwnd");
                committed
            }
            Plan::TailProbe(range, new) => {
                self.counters.tail_probes += 1;
                let len = range.end.since(range.start);
                let committed = match new {
                    Some(fin) => self.commit_data(range, fin, now),
                    None => self.commit_again(range.start, len, now),
                };
                self.control.on_probed(new.is_none(), now, &self.extensions.clamp());
                committed
            }
            Plan::Probe => self.commit_probe(now),
            Plan::KeepAlive => {
                // [SHLD-12] without data, one before what the peer expects.
                let seq = self.snd.space.to_wire(self.nxt() - 1);
                (TcpHeader { seq, ..self.ack_header(now) }, nothing)
            }
            Plan::Ack => (self.pure_ack_header(now), nothing),
            Plan::EarlyAck(upto, echo) => {
                if let Some(ecn) = &mut self.ecn {
                    ecn.early_ack = None;
                }
                let header = self.ack_header(now);
                let ack = self.rcv.space.to_wire(upto);
                let flags = if echo { Flags::ACK | Flags::ECE } else { Flags::ACK };
                // Data that arrived since then waits for an acknowledgement of its own.
                self.rcv.ack_now = true;
                // The same right edge, from further left.
                let scale = self.agreed.receive_scale;
                let field = self.rcv.edge.since(upto).div_ceil(1 << scale).min(65_535);
                self.rcv.edge = self.rcv.edge.max(upto + (field << scale));
                let window = u16::try_from(field).unwrap_or(u16::MAX);
                (TcpHeader { ack, flags, window, ..header }, nothing)
            }
        }
    }

    /// One unit beyond a closed window.
    fn commit_probe(&mut self, now: Instant) -> (TcpHeader, Range<Pos>) {
        self.snd.probes.sent = self.snd.probes.sent.saturating_add(1);
        self.snd.probes.unanswered = self.snd.probes.unanswered.saturating_add(1);
        self.note_unacked(now);
        // The timer was armed without this probe's back-off when the window was found closed.
        self.timers.clear(Timer::Persist);
        self.arm_persist(now);
        self.snd.probes.outstanding = true;
        self.counters.window_probes += 1;
        let range = self.nxt()..self.nxt() + 1;
        (self.data_header(now, &range), range)
    }

    /// These bytes leave for the first time.
    fn commit_data(
        &mut self,
        range: Range<Pos>,
        fin: bool,
        now: Instant,
    ) -> (TcpHeader, Range<Pos>) {
        let range = range.start..range.end + u64::from(fin);
        self.control.on_sent(range.end, now);
        self.snd.probes.outstanding = false;
        self.note_unacked(now);
        let len = range.end.since(range.start);
        if remainder(len, u64::from(self.mss())) != 0 {
            self.snd.small_upto = range.end;
        }
        self.after_data(now, len);
        self.note_new_data();
        debug_assert!(range.end <= self.snd.peer.edge, "sent beyond the peer's window");
        let mut header = self.data_header(now, &range);
        let payload = range.end.min(self.snd.buffer.end()).since(range.start);
        self.add_option_to_data(&mut header, range.start, payload);
        // RFC 3168 section 6.1.2.
        if self.ecn.as_mut().is_some_and(|ecn| core::mem::take(&mut ecn.cwr_due)) {
            header.flags |= Flags::CWR;
        }
        (header, range)
    }

    /// Up to `len` bytes from `start` on leave again.
    fn commit_again(&mut self, start: Pos, len: u64, now: Instant) -> (TcpHeader, Range<Pos>) {
        let len = len.min(self.record_left(start));
        let range = self.control.on_sent_again(start, len, now);
        self.repeat_of_probe(&range);
        let bytes = range.end.since(range.start);
        self.counters.retransmitted_segments += 1;
        self.counters.retransmitted_bytes += bytes;
        self.after_data(now, bytes);
        self.control.after_repetition(range.start, now, &self.extensions.clamp());
        self.suspect_option(&range);
        let header = self.data_header(now, &range);
        let stamp = header.options.timestamps.map(|stamps| stamps.value);
        self.control.watch_repetition(bytes, stamp);
        (header, range)
    }

    /// Updates the state after data has left.
    fn after_data(&mut self, now: Instant, len: u64) {
        self.rcv.policy.on_data_sent(now);
        self.control.after_send(now, len, &self.extensions.clamp());
        self.count_in_pacing(now, len);
        self.timers.clear(Timer::Persist);
        self.touch_idle(now);
    }
}
