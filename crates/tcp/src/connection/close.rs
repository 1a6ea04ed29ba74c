//! How connections end.

use super::timers::Timer;
use super::{Connection, ConnectionError, Signal, State};
use crate::ordering::Ordering as _;
use crate::time::Instant;
use crate::time_wait::TimeWait;
use alloc::boxed::Box;
use transom_wire::{Flags, TcpHeader};

impl Connection {
    /// Half close: no more data will be written. Written data is still delivered, then a FIN (RFC 9293 section 3.6).
    /// Closing twice is harmless.
    pub fn shutdown_write(&mut self, now: Instant) {
        match self.state {
            State::Closed | State::TimeWait => {}
            // Written data is still delivered once the handshake is complete, then the FIN.
            State::SynSent | State::SynReceived => self.snd.fin_queued = true,
            State::Established => {
                self.snd.fin_queued = true;
                self.enter(State::FinWait1);
            }
            State::CloseWait => {
                self.snd.fin_queued = true;
                self.enter(State::LastAck);
            }
            State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck => {}
        }
        if self.state != State::Closed && self.has_unsent() {
            self.note_unacked(now);
        }
        self.touch_idle(now);
    }

    /// No more data will be read: buffered and later data is acknowledged and dropped, as on Linux.
    pub fn shutdown_read(&mut self, _now: Instant) {
        self.rcv.shut = true;
        self.drop_received();
        self.update_window_if_due();
        self.raise(Signal::Readable);
    }

    /// The application lets go of the connection, of both directions at once [MAY-1]. Unread data, or data that
    /// arrives later, resets it
    /// [SHLD-3]; otherwise it ends in order, without anybody watching.
    pub fn close(&mut self, now: Instant) {
        if self.owner.gone {
            return;
        }
        self.owner.gone = true;
        let usable = self.state.is_synchronized() || self.is_early();
        if self.has_unread() && !self.rcv.shut && usable {
            self.reset(now);
            return;
        }
        if self.state == State::SynSent {
            // RFC 9293 section 3.10.4: the attempt is given up.
            self.finish(None);
            return;
        }
        self.shutdown_write(now);
        self.limit_orphans_extensions(now);
        if self.state == State::FinWait2 {
            if self.profile.fin_wait_2.is_zero() {
                self.abort(now);
            } else {
                self.wait_for_fin(now);
            }
        }
    }

    /// The application has closed its handle, and our FIN is acknowledged: waits for the peer's FIN for a limited time.
    pub(super) fn wait_for_fin(&mut self, now: Instant) {
        if self.profile.fin_wait_2.is_zero() {
            self.finish(None);
        } else {
            self.timers.set(Timer::State, now + self.profile.fin_wait_2);
        }
    }

    /// Ends the connection at once (RFC 9293 section 3.10.5): with a reset, except in CLOSING and LAST-ACK, where the RFC has nothing sent.
    ///
    /// In these states of the RFC, the FIN has left. We enter them with the call that closes. Until the FIN has left, the RFC's state would be
    /// FIN-WAIT-1 or CLOSE-WAIT, so there is a reset: the peer would wait for data that never comes. Linux does the same.
    pub fn abort(&mut self, now: Instant) {
        let over = matches!(self.state, State::Closing | State::LastAck) && self.fin_sent();
        // [SHLD-3] a reset says that data was lost with its reader.
        if over && !self.has_unread() {
            return self.fail(ConnectionError::Aborted);
        }
        self.reset(now);
    }

    /// Ends the connection at once and tells the peer, in any state in which it may wait for something.
    pub(super) fn reset(&mut self, now: Instant) {
        // Nothing was exchanged in SYN-SENT, and nothing is owed any more in TIME-WAIT.
        if !matches!(self.state, State::Closed | State::SynSent | State::TimeWait) {
            let seq = self.snd.space.to_wire(self.nxt());
            let ack = self.rcv.space.to_wire(self.rcv.next());
            let flags = Flags::RST | Flags::ACK;
            let options = self.ordinary_options(now);
            let reset = TcpHeader { seq, ack, flags, options, ..self.base_header() };
            self.replies.reset = Some(Box::new(reset));
        }
        self.fail(ConnectionError::Aborted);
    }

    /// The connection is gone because of `error`.
    pub(super) fn fail(&mut self, error: ConnectionError) {
        self.finish(Some(error));
    }

    /// The connection is gone.
    pub(super) fn finish(&mut self, error: Option<ConnectionError>) {
        if self.state == State::Closed {
            return;
        }
        self.on_syn_unanswered(error);
        self.refuse_answer();
        self.enter(State::Closed);
        self.error = self.error.or(error);
        self.timers.clear_all();
        self.control.end();
        self.snd.syn.due = false;
        self.snd.probes.due = false;
        self.rcv.ack_now = false;
        // Data received in order may still be read, except after an error or if nobody is there to read it. An error takes nothing away from a
        // stream whose end has arrived: the reader takes no part for the whole.
        let keeps = self.peer_has_closed() || self.profile.read_after_error;
        let cut_short = self.error.is_some() && !keeps;
        if cut_short || self.error == Some(ConnectionError::Aborted) || self.owner.gone {
            self.drop_received();
        }
        self.rcv.ordering.release();
        self.raise(Signal::Closed);
        self.raise(Signal::Readable);
        self.raise(Signal::Writable);
    }

    /// Enters TIME-WAIT for 2·MSL, or starts it anew [MUST-13].
    pub(super) fn enter_time_wait(&mut self, now: Instant) {
        if self.state != State::TimeWait {
            self.enter(State::TimeWait);
            self.timers.clear_all();
            self.control.end();
            self.raise(Signal::TimeWait);
        }
        self.timers.set(Timer::State, now + self.profile.time_wait);
    }

    /// The owner has taken a [`crate::time_wait::TimeWait`] from this connection, which then ends in order. The last
    /// acknowledgement still leaves with the next [`Connection::poll_transmit`].
    pub fn leave_to_time_wait(&mut self, now: Instant) {
        if self.state == State::TimeWait {
            self.replies.reset = self.rcv.ack_now.then(|| Box::new(self.ack_header(now)));
            self.finish(None);
        }
    }

    /// The state to keep in TIME-WAIT.
    pub(crate) fn time_wait(&self, now: Instant) -> TimeWait {
        let next = self.rcv.next();
        let window = self.rcv.edge.since(next);
        let lasts = self.profile.time_wait;
        TimeWait {
            endpoint: self.endpoint,
            snd_nxt: self.snd.space.to_wire(self.nxt()),
            rcv_nxt: self.rcv.space.to_wire(next),
            window: u16::try_from(window >> self.agreed.receive_scale).unwrap_or(u16::MAX),
            field: if self.agreed.accurate { self.echo() } else { Flags::empty() },
            timestamps: self.agreed.timestamps.then_some(self.rcv.timestamps),
            lasts,
            expires: now + lasts,
            last_reply: Instant::ZERO,
        }
    }
}
