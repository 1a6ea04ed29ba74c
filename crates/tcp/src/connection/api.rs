//! The application's calls.

use super::timers::Timer;
use super::{Connection, ConnectionError, IcmpError, MemoryState, RESERVE, Signal, State};
use crate::ack_policy::AckPolicy as _;
use crate::flow::FlowControl as _;
use crate::holes::Hole;
use crate::ordering::Ordering as _;
use crate::ordering::{Delivery, Taken};
use crate::rto::RetransmissionTimer as _;
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use bytes::Bytes;

/// Why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The send buffer is full; [`Signal::Writable`] follows.
    #[error("the send buffer is full")]
    WouldBlock,
    /// The writing side was shut down, or never opened.
    #[error("the connection is closed for writing")]
    Closed,
    /// A data unit that never fits.
    #[error("a data unit of {len} bytes is larger than the {max} bytes agreed")]
    TooLarge {
        /// The unit's length.
        len: usize,
        /// The largest there may be.
        max: usize,
    },
    /// This is not how data is written to a connection that delivers so: bytes are not units, nor the other way round.
    #[error("write to this connection with `{}`", call(*.0, "write", "write", "send_adu"))]
    Delivery(Delivery),
    /// The network reports trouble, and the connection lives; see [`Setting::SoftErrors`](crate::connection::Setting::SoftErrors).
    #[error(transparent)]
    Soft(IcmpError),
    /// The connection ended.
    #[error(transparent)]
    Failed(#[from] ConnectionError),
}

/// Why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No data yet; [`Signal::Readable`] follows.
    #[error("no data to read yet")]
    WouldBlock,
    /// The next bytes were given up and will never come. It stays so until [`Connection::take_hole`] says that the reader has taken
    /// note; [`Connection::read_or_hole`] does both. Never without a profile that gives up data, or accepts or skips holes.
    #[error("the next bytes were given up and will never come")]
    Hole,
    /// This is not how data is read that is delivered so.
    #[error("read from this connection with `{}`", call(*.0, "read", "read_unordered", "recv_adu"))]
    Delivery(Delivery),
    /// The network reports trouble, and the connection lives; see [`Setting::SoftErrors`](crate::connection::Setting::SoftErrors).
    #[error(transparent)]
    Soft(IcmpError),
    /// The connection ended.
    #[error(transparent)]
    Failed(#[from] ConnectionError),
}

/// The result of [`Connection::read_or_hole`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// This many bytes; zero at the end of the stream.
    Bytes(usize),
    /// The next bytes will never come; the reader continues behind them.
    Hole(Hole),
}

/// The call for a delivery.
fn call(
    delivery: Delivery,
    stream: &'static str,
    pieces: &'static str,
    units: &'static str,
) -> &'static str {
    match delivery {
        Delivery::Stream => stream,
        Delivery::Pieces => pieces,
        Delivery::Units => units,
    }
}

impl Connection {
    pub(super) fn write_state(&self) -> Result<(), WriteError> {
        if let Some(error) = self.error {
            return Err(WriteError::Failed(error));
        }
        match self.state {
            // Data may be queued while the handshake is under way (RFC 9293 section 3.9.1.2).
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
                if !self.snd.fin_queued =>
            {
                Ok(())
            }
            _ => Err(WriteError::Closed),
        }
    }

    /// Queues as much of `bytes` as there is room for, and returns how much (zero only for no bytes). Boundaries between writes are not
    /// kept: the data leaves in segments as large as possible [SHLD-27] [MAY-16].
    pub fn write(&mut self, now: Instant, bytes: &[u8]) -> Result<usize, WriteError> {
        self.takes_bytes()?;
        let room = self.send_room().min(bytes.len());
        let written = self.snd.buffer.write(bytes.get(..room).unwrap_or_default());
        self.after_write(now, written, bytes.len())
    }

    /// Like [`Connection::write`], without a copy: `fill` appends bytes where they are to lie. It is given the end of the send buffer, which may hold bytes
    /// already, and how many it may append: at least one. There is memory for so many; more do not count. At most 64 KB are written at once.
    ///
    /// Returns how many bytes were appended; zero if `fill` has appended none.
    pub(super) fn write_by(
        &mut self,
        now: Instant,
        fill: impl FnOnce(&mut Vec<u8>, usize),
    ) -> Result<usize, WriteError> {
        self.takes_bytes()?;
        let room = self.send_room();
        if room == 0 {
            return self.after_write(now, 0, 1);
        }
        let written = self.snd.buffer.write_by(room, fill);
        self.after_write(now, written, written)
    }

    /// Like [`Connection::write`], and keeps the memory until it is acknowledged instead of a copy. Takes what there is room for from the front of
    /// `bytes`. What is shorter than 32 KB may be copied, and so may up to 64 KB before and behind it, so that each packet is at most
    /// two pieces of memory.
    ///
    /// What is kept counts in [`Connection::held`] as long as it is. A part of a larger piece of memory keeps all of that: that is the caller's to bound.
    pub fn write_owned(&mut self, now: Instant, bytes: &mut Bytes) -> Result<usize, WriteError> {
        self.takes_bytes()?;
        let wanted = bytes.len();
        let mut front = bytes.split_to(self.send_room().min(wanted));
        let written = self.snd.buffer.write_owned(&mut front);
        self.after_write(now, written, wanted)
    }

    /// Like [`Connection::write`] with `count` zeros, which take no memory: for traffic of which only the amount matters.
    pub fn write_zeros(&mut self, now: Instant, count: usize) -> Result<usize, WriteError> {
        self.takes_bytes()?;
        let written = self.snd.buffer.write_zeros(count.min(self.send_room()));
        self.after_write(now, written, count)
    }

    /// Whether bytes outside of units may be written.
    fn takes_bytes(&mut self) -> Result<(), WriteError> {
        self.write_state()?;
        self.report_to_writer()?;
        if self.profile.ordering.units().is_some() {
            return Err(WriteError::Delivery(Delivery::Units));
        }
        Ok(())
    }

    /// Reports a soft error to a writer before anything else.
    pub(super) fn report_to_writer(&mut self) -> Result<(), WriteError> {
        if !self.reports_soft_errors() {
            return Ok(());
        }
        self.take_soft_error().map_or(Ok(()), |error| Err(WriteError::Soft(error)))
    }

    fn after_write(
        &mut self,
        now: Instant,
        written: usize,
        wanted: usize,
    ) -> Result<usize, WriteError> {
        if written < wanted {
            self.snd.writer_waits = true;
        }
        if written == 0 && wanted > 0 {
            return Err(WriteError::WouldBlock);
        }
        if written > 0 {
            self.note_unacked(now);
        }
        self.touch_idle(now);
        Ok(written)
    }

    /// Like [`Connection::write`], and the last byte written is urgent (RFC 9293 section 3.8.5) [MUST-30].
    /// New programs should not use the urgent mechanism [SHLD-13].
    pub fn write_urgent(&mut self, now: Instant, bytes: &[u8]) -> Result<usize, WriteError> {
        let written = self.write(now, bytes)?;
        if written == bytes.len() && written > 0 {
            self.snd.urgent = self.snd.buffer.end();
            self.push();
        }
        Ok(written)
    }

    /// The room of the send buffer, or the part that the host's memory allows.
    pub(super) fn buffer_space(&self) -> usize {
        let space = self.snd.buffer.space();
        match self.memory {
            MemoryState::Full => space.min(RESERVE.saturating_sub(self.snd.buffer.len())),
            MemoryState::Normal | MemoryState::Pressure => space,
        }
    }

    /// How many bytes a write would take now. Asking with none available makes [`Signal::Writable`] follow.
    pub fn writable(&mut self) -> Result<usize, WriteError> {
        self.write_state()?;
        let space = self.send_room();
        self.snd.writer_waits |= space == 0;
        Ok(space)
    }

    /// The error that a reader hears of when there is no more data. None if the peer's FIN has arrived, as on Linux: the reader has all that was sent.
    pub(super) fn error_for_reader(&self) -> Option<ConnectionError> {
        self.error.filter(|&error| error == ConnectionError::Aborted || !self.peer_has_closed())
    }

    pub(super) fn read_state(&self, read: usize) -> Result<usize, ReadError> {
        if read > 0 {
            return Ok(read);
        }
        if self.rcv.ordering.hole().is_some() {
            return Err(ReadError::Hole);
        }
        if let Some(error) = self.error_for_reader() {
            return Err(ReadError::Failed(error));
        }
        if self.end_of_stream() { Ok(0) } else { Err(ReadError::WouldBlock) }
    }

    /// Whether everything the peer will ever send has been read [MUST-12].
    pub fn end_of_stream(&self) -> bool {
        let ended = match self.state {
            State::Closed
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => true,
            _ => self.rcv.shut,
        };
        ended && !self.has_unread()
    }

    /// Whether there is something that the reader has not got: bytes, or a hole to take note of.
    pub(super) fn has_unread(&self) -> bool {
        self.rcv.ordering.readable() > 0 || self.rcv.ordering.hole().is_some()
    }

    /// Whether the peer's FIN has arrived, with everything before it that was not given up.
    pub fn peer_has_closed(&self) -> bool {
        self.rcv.fin.is_some_and(|fin| self.rcv.next() > fin)
    }

    /// Takes up to `out.len()` bytes out of the stream. `Ok(0)` is the end of it. Bytes from both sides of a hole are never read as
    /// one.
    ///
    /// # Errors
    /// [`ReadError::WouldBlock`], [`ReadError::Hole`] in front of a hole, [`ReadError::Delivery`] on a connection that gives its data in
    /// another way, and what ended the connection.
    pub fn read(&mut self, now: Instant, out: &mut [u8]) -> Result<usize, ReadError> {
        self.delivers(Delivery::Stream)?;
        let read = self.rcv.ordering.read(out);
        self.after_read(now, read);
        if out.is_empty() {
            return Ok(0);
        }
        let result = self.read_state(read);
        self.report_to_reader(result)
    }

    /// Reports a soft error to a reader without data.
    pub(super) fn report_to_reader<T>(
        &mut self,
        result: Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        if self.handshake.fast.is_some() && matches!(result, Err(ReadError::WouldBlock)) {
            self.release_syn();
        }
        match result {
            Err(ReadError::WouldBlock) if self.reports_soft_errors() => {
                Err(self.take_soft_error().map_or(ReadError::WouldBlock, ReadError::Soft))
            }
            result => result,
        }
    }

    /// Like [`Connection::read`], for a reader that can do without some of the data: a hole is reported at its place, once.
    pub fn read_or_hole(&mut self, now: Instant, out: &mut [u8]) -> Result<Received, ReadError> {
        match self.read(now, out) {
            Err(ReadError::Hole) => {
                self.take_hole().map(Received::Hole).ok_or(ReadError::WouldBlock)
            }
            result => result.map(Received::Bytes),
        }
    }

    /// Copies up to `out.len()` bytes and leaves them in the stream.
    pub fn peek(&self, out: &mut [u8]) -> Result<usize, ReadError> {
        self.delivers(Delivery::Stream)?;
        self.read_state(self.rcv.ordering.peek(out))
    }

    /// The next readable bytes where they lie; [`Connection::consume`] takes them out. Of data units there are none to be seen.
    pub fn readable_slice(&self) -> &[u8] {
        self.rcv.ordering.front()
    }

    /// Takes the next readable bytes out of the stream, with the memory in which they lie: a read without a copy. `None` is the end of the
    /// stream. A connection that may have holes copies the bytes in front of one.
    ///
    /// # Errors
    /// As [`Connection::read`].
    pub fn read_taken(&mut self, now: Instant) -> Result<Option<Taken>, ReadError> {
        self.delivers(Delivery::Stream)?;
        let taken = self.rcv.ordering.take_front();
        let read = taken.as_ref().map_or(0, |taken| taken.bytes().len());
        self.after_read(now, read);
        let result = self.read_state(read);
        self.report_to_reader(result)?;
        Ok(taken)
    }

    /// Drops `bytes` of the readable data: of a stream, of pieces in their order of arrival, or of units that amount to this. Returns
    /// the number of bytes dropped.
    pub fn consume(&mut self, now: Instant, bytes: usize) -> usize {
        let read = self.rcv.ordering.discard(bytes);
        self.after_read(now, read);
        read
    }

    /// The application keeps `bytes` that arrived in its own memory; see
    /// [`Payload::in_place`](crate::packet::Payload::in_place).
    pub fn consumed_in_place(&mut self, now: Instant, bytes: usize) {
        self.after_read(now, bytes);
    }

    /// How many bytes a write would take now that ends where a block of the send buffer ends, or before. So whole blocks follow, which
    /// [`Connection::write_owned`] keeps without a copy.
    ///
    /// # Errors
    /// As [`Connection::write`]; [`WriteError::WouldBlock`] if there is no room, and [`Signal::Writable`] follows.
    pub fn writable_block(&mut self) -> Result<usize, WriteError> {
        match self.writable()? {
            0 => Err(WriteError::WouldBlock),
            room => Ok(room.min(self.snd.buffer.block_room())),
        }
    }

    /// How many bytes of TCP header a data segment from the peer is expected to have.
    pub fn expected_header_len(&self) -> usize {
        20 + self.agreed.data_option_len() as usize
    }

    pub(super) fn after_read(&mut self, now: Instant, read: usize) {
        if read == 0 {
            return;
        }
        // The receiver's own measure is in milliseconds only; below that the sender's is better.
        let received = Some(self.rcv.round_trip.smoothed).filter(|&rtt| rtt < Duration::MAX);
        let rtt = self.control.timer().srtt().max(received);
        if self.memory == MemoryState::Normal {
            self.rcv.flow.on_read(now, read, rtt);
        }
        self.update_window_if_due();
        if self.timers.is_set(Timer::Ack)
            && self.rcv.ordering.readable() == 0
            && self.rcv.policy.on_drained()
        {
            self.rcv.ack_now = true;
        }
    }

    /// Tells the peer of room that it can use.
    pub(super) fn update_window_if_due(&mut self) {
        if self.state.can_receive() && self.window_update_is_due() {
            self.rcv.ack_now = true;
        }
    }

    /// Bytes that can be read at once; of units, those that they take in the stream.
    pub fn readable(&self) -> usize {
        self.rcv.ordering.readable()
    }

    /// Bytes of urgent data still to be read, if any is announced [MUST-33]. They are part of the stream.
    pub fn urgent_bytes(&self) -> Option<u64> {
        Some(self.rcv.urgent.since(self.rcv.ordering.read_pos())).filter(|&left| left > 0)
    }

    /// Bytes written and not yet acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.snd.buffer.len()
    }

    /// Switches Nagle's algorithm off or on [MUST-17]. As on Linux, switching it off lets go what is queued by now, also on a
    /// connection that is [corked](crate::connection::Setting::Cork).
    pub(super) fn set_nodelay(&mut self, nodelay: bool) {
        self.owner.nodelay = nodelay;
        if nodelay {
            self.push();
        }
    }

    /// Whether Nagle's algorithm is off.
    pub(super) fn nodelay(&self) -> bool {
        self.owner.nodelay
    }

    /// Fixes the receive buffer's size and ends its tuning.
    pub(super) fn set_receive_buffer(&mut self, bytes: usize) {
        let units = self.profile.ordering.units();
        let least = units.map_or(0, |units| units.least_receive_buffer()).max(2048);
        let bytes = bytes.clamp(least, crate::profile::MAX_WINDOW.max(least));
        self.rcv.flow.fix(bytes);
        self.update_window_if_due();
    }

    /// Fixes the send buffer's size and ends its growth.
    pub(super) fn set_send_buffer(&mut self, bytes: usize) {
        let units = self.profile.ordering.units();
        let least = units.map_or(0, |units| units.least_send_buffer());
        self.snd.buffer.fix_limit(bytes.max(2048).max(least));
    }

    /// See [`Setting::QuickAck`](super::Setting::QuickAck).
    pub(super) fn set_quick_ack(&mut self, on: bool) {
        self.rcv.policy.quick(if on { 16 } else { 0 });
        self.rcv.ack_now |= on && self.timers.is_set(Timer::Ack);
    }

    /// Whether an acknowledgement waits for more to acknowledge, or for data to go with.
    pub fn has_delayed_ack(&self) -> bool {
        self.timers.is_set(Timer::Ack)
    }

    /// Whether the next arrivals are acknowledged at once, as far as is known.
    pub(super) fn quick_ack(&self) -> bool {
        self.rcv.policy.is_quick()
    }

    /// Says that the owner has handled everything: there is nothing left to do for this connection.
    pub fn is_finished(&self) -> bool {
        self.state == State::Closed && self.replies.reset.is_none()
    }

    /// Repeats [`Signal::Readable`] and [`Signal::Writable`] if they hold now, for a new observer.
    pub fn renew_signals(&mut self) {
        if self.is_readable() {
            self.raise(Signal::Readable);
        }
        if self.write_state() != Ok(()) || (self.buffer_space() > 0 && self.is_below_low_water()) {
            self.raise(Signal::Writable);
        }
    }
}
