//! The application's calls for data that is delivered other than as a stream: pieces with their places, and data units.
//!
//! The ordering unit's [`Delivery`] decides in which form a connection gives data to its reader; calls for another form fail with
//! [`ReadError::Delivery`]. In particular a plain [`Connection::read`] never joins pieces across a gap. Only
//! [`Connection::read_unordered`] serves two forms, because a stream consists of pieces too.

use super::{Connection, ReadError, WriteError};
use crate::adu::encoding::{encode_unit, encoded_len};
use crate::holes::Hole;
use crate::ordering::Delivery;
use crate::ordering::Ordering as _;
use crate::time::Instant;
use alloc::vec::Vec;

/// The result of [`Connection::read_unordered`]. Offsets count the bytes of the stream from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes of the stream.
    Data {
        /// The offset of the first byte.
        offset: u64,
        /// How many there are.
        len: usize,
        /// The length of the stream, once the peer has closed it: with the piece that ends there, and all others, everything has
        /// arrived. Earlier pieces may still be missing.
        total: Option<u64>,
    },
    /// Bytes that will never come.
    Hole(Hole),
    /// Everything has been delivered.
    End {
        /// How long the stream was.
        total: u64,
    },
}

/// The result of [`Connection::recv_adu`]. Offsets count the bytes of the stream from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adu {
    /// A unit.
    Unit {
        /// The offset of its encoding: the first byte behind the zero. Offsets grow in the order in which units were sent.
        offset: u64,
    },
    /// Bytes of the stream that will never come, and with them whatever units they were part of.
    Hole(Hole),
    /// There will be no more.
    End {
        /// How long the stream was.
        total: u64,
    },
}

impl Connection {
    /// The form in which this connection gives data to its reader.
    pub fn delivery(&self) -> Delivery {
        self.rcv.ordering.delivery()
    }

    /// Refuses a call that is not for this connection's delivery.
    pub(super) fn delivers(&self, delivery: Delivery) -> Result<(), ReadError> {
        match self.rcv.ordering.delivery() {
            ours if ours == delivery => Ok(()),
            ours => Err(ReadError::Delivery(ours)),
        }
    }

    /// The length of the peer's stream in bytes, once its FIN has arrived; earlier data may still be missing.
    pub(super) fn stream_length(&self) -> Option<u64> {
        self.rcv.fin.map(|fin| fin.stream_offset())
    }

    /// Takes data out as it arrives: up to `out.len()` consecutive bytes, and their offset. Each byte is returned once. On a
    /// connection that delivers in order, the pieces are in order.
    ///
    /// # Errors
    /// [`ReadError::WouldBlock`] if there is nothing (in an empty `out` there never is), [`ReadError::Delivery`] where there are data
    /// units, and what ended the connection.
    pub fn read_unordered(&mut self, now: Instant, out: &mut [u8]) -> Result<Piece, ReadError> {
        if self.delivery() == Delivery::Units {
            return Err(ReadError::Delivery(Delivery::Units));
        }
        if let Some(hole) = self.take_hole() {
            return Ok(Piece::Hole(hole));
        }
        let offset = self.rcv.ordering.front_pos().stream_offset();
        let len = self.rcv.ordering.read(out);
        self.after_read(now, len);
        if len > 0 {
            return Ok(Piece::Data { offset, len, total: self.stream_length() });
        }
        let end = self.end_or_why_not();
        Ok(Piece::End { total: self.report_to_reader(end)? })
    }

    /// Takes the next data unit, into `unit` instead of what is there.
    ///
    /// # Errors
    /// [`ReadError::WouldBlock`] if none is complete, [`ReadError::Delivery`] where there are no units, and what ended the connection.
    pub fn recv_adu(&mut self, now: Instant, unit: &mut Vec<u8>) -> Result<Adu, ReadError> {
        self.delivers(Delivery::Units)?;
        if let Some(hole) = self.take_hole() {
            return Ok(Adu::Hole(hole));
        }
        if let Some(range) = self.rcv.ordering.take_unit(unit) {
            let taken = range.end.since(range.start);
            self.after_read(now, usize::try_from(taken).unwrap_or(usize::MAX));
            return Ok(Adu::Unit { offset: range.start.stream_offset() });
        }
        let end = self.end_or_why_not();
        Ok(Adu::End { total: self.report_to_reader(end)? })
    }

    /// The length of a stream of which everything has been read.
    fn end_or_why_not(&self) -> Result<u64, ReadError> {
        if let Some(error) = self.error_for_reader() {
            return Err(ReadError::Failed(error));
        }
        if !self.end_of_stream() {
            return Err(ReadError::WouldBlock);
        }
        // Without a FIN it is we who wanted no more.
        let end = self.rcv.fin.unwrap_or(self.rcv.next());
        Ok(end.stream_offset())
    }

    /// Queues a data unit, whole or not at all.
    ///
    /// # Errors
    /// [`WriteError::WouldBlock`] if there is no room for it now ([`Signal::Writable`](super::Signal::Writable) follows),
    /// [`WriteError::TooLarge`] if there never is, [`WriteError::Delivery`] on a connection that carries no units, and what ended the
    /// connection.
    pub fn send_adu(&mut self, now: Instant, unit: &[u8]) -> Result<(), WriteError> {
        self.write_state()?;
        self.report_to_writer()?;
        let Some(config) = self.profile.ordering.units() else {
            return Err(WriteError::Delivery(self.delivery()));
        };
        if unit.len() > config.max {
            return Err(WriteError::TooLarge { len: unit.len(), max: config.max });
        }
        // A unit is written whole, so an empty buffer takes it however short memory is.
        if encoded_len(unit) > self.buffer_space() && !self.snd.buffer.is_empty()
            || encoded_len(unit) > self.snd.buffer.space()
            || self.send_room() == 0 && !self.snd.buffer.is_empty()
        {
            self.snd.writer_waits = true;
            return Err(WriteError::WouldBlock);
        }
        let buffer = &mut self.snd.buffer;
        encode_unit(unit, |bytes| {
            let written = buffer.write(bytes);
            debug_assert_eq!(written, bytes.len(), "there was room for all of it");
        });
        self.note_unacked(now);
        self.touch_idle(now);
        Ok(())
    }
}
