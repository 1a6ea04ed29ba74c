//! Writing and reading through a manipulation: a program's change of data joins the copy into the send buffer, and out of the receive buffer.
//!
//! The changed bytes lie in the send buffer. So a retransmission sends the same bytes again, and nothing is changed twice. A write that takes a part of the
//! data has changed that part and no more.

use super::{Connection, ReadError, WriteError};
use crate::manipulation::{MOST_UNIT, Manipulation, PIECE, unit_of};
use crate::ordering::Delivery;
use crate::time::Instant;

impl Connection {
    /// Like [`Connection::write`]; the bytes are changed as they are copied, piece by piece. Returns how many were taken from the front of `bytes`: all, or
    /// whole [units](Manipulation::unit). The caller goes on with the rest, and with the same manipulation.
    ///
    /// The bytes at the end of a call that make no whole unit are changed as the last of the data. So all calls but the last one need whole units.
    ///
    /// # Errors
    /// As [`Connection::write`]. [`WriteError::WouldBlock`] is also told when there is no room for a unit.
    pub fn write_through<M: Manipulation + ?Sized>(
        &mut self,
        now: Instant,
        manipulation: &mut M,
        bytes: &[u8],
    ) -> Result<usize, WriteError> {
        let unit = unit_of(manipulation);
        let mut total = 0;
        while let Some(rest) = bytes.get(total..)
            && !rest.is_empty()
        {
            match self.write_piece(now, manipulation, rest, unit) {
                Ok(n) => total += n,
                Err(_) if total > 0 => break,
                Err(error) => return Err(error),
            }
        }
        if bytes.is_empty() {
            return self.write(now, bytes);
        }
        Ok(total)
    }

    /// Writes at least a unit, and no more than what lies in one block of the send buffer.
    fn write_piece<M: Manipulation + ?Sized>(
        &mut self,
        now: Instant,
        manipulation: &mut M,
        rest: &[u8],
        unit: usize,
    ) -> Result<usize, WriteError> {
        if self.send_room() < unit.min(rest.len()) {
            // What keeps it from being written comes first.
            self.write(now, &[])?;
            self.snd.writer_waits = true;
            return Err(WriteError::WouldBlock);
        }
        let written = self.write_by(now, |end, most| {
            let take = if rest.len() <= most { rest.len() } else { most - most % unit };
            for piece in rest.get(..take).unwrap_or_default().chunks(PIECE) {
                let at = end.len();
                end.extend_from_slice(piece);
                manipulation.change(end.get_mut(at..).unwrap_or_default());
            }
        })?;
        if written > 0 {
            return Ok(written);
        }
        // The block ends within a unit.
        let mut whole = [0; MOST_UNIT];
        let take = unit.min(rest.len());
        let (Some(whole), Some(rest)) = (whole.get_mut(..take), rest.get(..take)) else {
            return Ok(0);
        };
        manipulation.copy(whole, rest);
        self.write(now, whole)
    }

    /// Like [`Connection::read`]; the bytes are changed as they are copied into `out`, piece by piece. Only whole [units](Manipulation::unit) are read,
    /// except for the last bytes of the stream. So `out` must hold a unit at least. `Ok(0)` is the end of the stream.
    ///
    /// On a connection whose data may have holes the manipulation should have units of one byte.
    ///
    /// # Errors
    /// As [`Connection::read`]. [`ReadError::WouldBlock`] is also told when less than a unit has arrived, or fits in `out`.
    pub fn read_through<M: Manipulation + ?Sized>(
        &mut self,
        now: Instant,
        manipulation: &mut M,
        out: &mut [u8],
    ) -> Result<usize, ReadError> {
        self.delivers(Delivery::Stream)?;
        let unit = unit_of(manipulation);
        let mut total = 0;
        while let Some(out) = out.get_mut(total..)
            && !out.is_empty()
        {
            let read = self.read_piece(now, manipulation, out, unit);
            if read == 0 {
                break;
            }
            total += read;
        }
        if total > 0 || out.is_empty() {
            return Ok(total);
        }
        let result = self.read_state(0);
        self.report_to_reader(result)
    }

    /// Reads what lies in one piece of memory, or a unit; zero if there is no whole unit yet.
    fn read_piece<M: Manipulation + ?Sized>(
        &mut self,
        now: Instant,
        manipulation: &mut M,
        out: &mut [u8],
        unit: usize,
    ) -> usize {
        let front = self.readable_slice();
        let take = front.len().min(out.len()) / unit * unit;
        if take > 0 {
            for (to, from) in out.chunks_mut(PIECE).zip(front[..take].chunks(PIECE)) {
                let to = to.get_mut(..from.len()).unwrap_or_default();
                manipulation.copy(to, from);
            }
            return self.consume(now, take);
        }
        // A unit in two pieces of memory, or the end of the stream.
        let readable = self.readable();
        let take = match readable.min(unit) {
            0 => return 0,
            all if all > out.len() => return 0,
            all if all < unit && !self.peer_has_closed() => return 0,
            all => all,
        };
        let mut whole = [0; MOST_UNIT];
        let (Some(whole), Some(out)) = (whole.get_mut(..take), out.get_mut(..take)) else {
            return 0;
        };
        let Ok(peeked) = self.peek(whole) else { return 0 };
        if peeked < take {
            return 0;
        }
        manipulation.copy(out, whole);
        self.consume(now, take)
    }
}
