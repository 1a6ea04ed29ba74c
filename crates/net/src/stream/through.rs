//! Writing and reading through a manipulation: the program's change of the data joins the copy (integrated layer processing).

use super::{TcpStream, end_after_error};
use std::io;
use transom_tcp::manipulation::{MOST_UNIT, Manipulation};

impl TcpStream {
    /// Writes bytes that `manipulation` changes as they are copied: see [`Connection::write_through`]. Waits for room as [`io::Write::write`] does, and
    /// returns how many bytes it took from the front of `bytes`. The program goes on with the rest and the same manipulation.
    ///
    /// The changed bytes are what is kept until it is acknowledged: a retransmission changes nothing again. The manipulation runs under the stack's lock.
    /// It must not use the stack, and other connections wait for it, as they do for the copy.
    ///
    /// # Errors
    /// As [`io::Write::write`].
    ///
    /// [`Connection::write_through`]: transom_tcp::Connection::write_through
    pub fn write_through(
        &self,
        manipulation: &mut (impl Manipulation + ?Sized),
        bytes: &[u8],
    ) -> io::Result<usize> {
        self.writing(|connection, now| connection.write_through(now, manipulation, bytes))
    }

    /// [`TcpStream::write_through`] until all is written.
    ///
    /// # Errors
    /// As [`io::Write::write_all`]. How much was written before an error is not told.
    pub fn write_all_through(
        &self,
        manipulation: &mut (impl Manipulation + ?Sized),
        mut bytes: &[u8],
    ) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.write_through(manipulation, bytes)?;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Reads bytes that `manipulation` changes as they are copied: see [`Connection::read_through`]. Waits for data as [`io::Read::read`] does, until a whole
    /// unit is there. Zero is the end of the stream.
    ///
    /// A stream may be reported readable with less than a unit; a program that waits for readiness then reads again. The manipulation runs under the
    /// stack's lock, as in [`TcpStream::write_through`].
    ///
    /// # Errors
    /// As [`io::Read::read`], and [`io::ErrorKind::InvalidInput`] if `out` holds less than the manipulation's unit.
    ///
    /// [`Connection::read_through`]: transom_tcp::Connection::read_through
    pub fn read_through(
        &self,
        manipulation: &mut (impl Manipulation + ?Sized),
        out: &mut [u8],
    ) -> io::Result<usize> {
        if !out.is_empty() && out.len() < manipulation.unit().min(MOST_UNIT) {
            let text = format!(
                "{} bytes of memory are less than the {} that the manipulation changes together",
                out.len(),
                manipulation.unit().min(MOST_UNIT)
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let result =
            self.reading(|connection, now| connection.read_through(now, manipulation, out));
        end_after_error(result, 0)
    }
}
