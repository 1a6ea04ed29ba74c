//! Reading and writing.

use super::{TcpStream, end_after_error};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::sync::atomic::Ordering;
use transom_tcp::time::Instant;
use transom_tcp::{Connection, WriteError, WriteOptions};

impl Read for &TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.socket.non_blocking.load(Ordering::Relaxed) {
            if self.socket.receive_low_water.load(Ordering::Relaxed) > 1 {
                return self.read_enough(buffer);
            }
            return self.read_into(buffer);
        }
        end_after_error(self.reading(|connection, now| connection.read(now, buffer)), 0)
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let result = self.reading(|connection, now| {
            let mut total = 0;
            for buffer in buffers.iter_mut().filter(|buffer| !buffer.is_empty()) {
                match connection.read(now, buffer) {
                    Ok(n) => {
                        total += n;
                        if n < buffer.len() {
                            return Ok(total);
                        }
                    }
                    Err(_) if total > 0 => return Ok(total),
                    Err(error) => return Err(error),
                }
            }
            Ok(total)
        });
        end_after_error(result, 0)
    }
}

impl Write for &TcpStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buffer)])
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.writing(|connection, now| {
            write_each(connection, now, buffers, WriteOptions::default())
        })
    }

    /// Does nothing: written data is already on its way.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TcpStream {
    /// Writes with a word on how the bytes are cut into segments: whether more follows (`MSG_MORE`), and whether a record ends
    /// behind them (`MSG_EOR`). Returns how many were taken, as [`io::Write::write`] does; where that is less than all, no
    /// record has ended.
    ///
    /// # Errors
    /// As [`io::Write::write`].
    pub fn write_with(&self, bytes: &[u8], options: WriteOptions) -> io::Result<usize> {
        let buffers = [IoSlice::new(bytes)];
        self.writing(|connection, now| write_each(connection, now, &buffers, options))
    }
}

/// Writes the buffers one behind the other, as far as there is room. The options are for all of them together.
pub(super) fn write_each(
    connection: &mut Connection,
    now: Instant,
    buffers: &[IoSlice<'_>],
    options: WriteOptions,
) -> Result<usize, WriteError> {
    let last = buffers.iter().rposition(|buffer| !buffer.is_empty()).unwrap_or(0);
    let mut total = 0;
    let buffers = buffers.iter().enumerate();
    for (index, buffer) in buffers.filter(|(_, buffer)| !buffer.is_empty()) {
        let end_of_record = options.end_of_record && index == last;
        match connection.write_with(now, buffer, options.with_end_of_record(end_of_record)) {
            Ok(n) => {
                total += n;
                if n < buffer.len() {
                    break;
                }
            }
            Err(_) if total > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

impl Read for TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(buffers)
    }
}

impl Write for TcpStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        (&*self).write(buffer)
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(buffers)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
