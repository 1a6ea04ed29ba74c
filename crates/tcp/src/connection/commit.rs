//! A planned transmission leaves: it is recorded, and its header is made.

use super::Connection;
use super::output::{Plan, remainder};
use super::timers::Timer;
use crate::pos::Pos;
use crate::time::Instant;
use crate::undo::Detector;
#[cfg(fixed_units)]
use crate::units::direct::*;
use core::ops::Range;
use transom_wire::{Flags, TcpHeader};

impl Connection {
    /// Carries out `plan`: changes the state as its sending does, and returns the header and the data's place.
    pub(super) fn commit(&mut self, plan: Plan, now: Instant) -> (TcpHeader, Range<Pos>) {
        let nothing = self.nxt()..self.nxt();
        match plan {
            Plan::Reset(header) => (header, nothing),
            Plan::Syn => self.syn(now),
            Plan::Retransmit(range, len, exempt) => {
                let (header, range) = self.commit_again(range.start, len, now);
                debug_assert!(exempt || self.keeps_to_cwnd(), "retransmitted beyond cwnd");
                self.snd.recovery.on_retransmitted(range.clone());
                (header, range)
            }
            Plan::Data(range, fin) => {
                // A FIN alone takes no room, also where a tail probe went beyond the window before it.
                let bare_fin = range.is_empty();
                let committed = self.commit_data(range, fin, now);
                debug_assert!(bare_fin || self.keeps_to_cwnd(), "sent beyond cwnd");
                committed
            }
            Plan::TailProbe(range, new) => {
                self.counters.tail_probes += 1;
                let committed = match new {
                    Some(fin) => self.commit_data(range, fin, now),
                    None => self.commit_again(range.start, range.end.since(range.start), now),
                };
                let end = self.nxt();
                self.snd.recovery.on_probed(new.is_none(), end);
                self.rearm_retransmission(now);
                self.arm_recovery(now);
                committed
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
            Plan::EarlyAck(upto, echo) => {
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

    /// These bytes leave for the first time.
    fn commit_data(
        &mut self,
        range: Range<Pos>,
        fin: bool,
        now: Instant,
    ) -> (TcpHeader, Range<Pos>) {
        let range = range.start..range.end + u64::from(fin);
        self.snd.sent.push(range.end, now);
        self.snd.probe_outstanding = false;
        if let Some(episode) = &mut self.snd.episode {
            episode.watch.on_new_data();
        }
        self.note_unacked(now);
        let len = range.end.since(range.start);
        if remainder(len, u64::from(self.mss())) != 0 {
            self.snd.small_upto = range.end;
        }
        self.after_data(now, len);
        self.note_new_data();
        debug_assert!(range.end <= self.snd.right_edge, "sent beyond the peer's window");
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
        let segment = u64::from(self.mss());
        let len = len.min(self.record_left(start));
        let range = self.snd.sent.retransmit(start, len, segment, now);
        self.repeat_of_probe(&range);
        let bytes = range.end.since(range.start);
        self.counters.retransmitted_segments += 1;
        self.counters.retransmitted_bytes += bytes;
        self.after_data(now, bytes);
        if self.snd.repeat_due && range.start == self.una() {
            // RFC 6298 section 5.6: the timer starts with the retransmission, also where that was held back.
            self.snd.repeat_due = false;
            self.rearm_retransmission(now);
        }
        self.suspect_option(&range);
        let header = self.data_header(now, &range);
        if let Some(episode) = &mut self.snd.episode {
            let stamp = header.options.timestamps.map(|stamps| stamps.value);
            episode.watch.on_retransmission(bytes, stamp);
        }
        (header, range)
    }

    /// Updates the state after data has left.
    fn after_data(&mut self, now: Instant, len: u64) {
        self.rcv.policy.on_data_sent(now);
        if self.snd.pacing.is_some() {
            let rate = self.own_pacing_rate();
            if let Some(pacing) = &mut self.snd.pacing {
                pacing.on_sent(now, len, rate);
            }
        }
        self.count_in_reduction(len);
        self.count_in_pacing(now, len);
        if !self.timers.is_set(Timer::Retransmit) {
            self.rearm_retransmission(now);
        }
        self.timers.clear(Timer::Persist);
        self.arm_recovery(now);
        self.touch_idle(now);
    }
}
