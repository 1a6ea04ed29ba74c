//! Reading and writing.

use super::TcpStream;
use crate::engine::{Channel, Inner};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::sync::atomic::Ordering;
use transom_stack::SocketError;
use transom_tcp::WriteOptions;
use transom_tcp::time::Instant;

impl Read for &TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.socket.non_blocking.load(Ordering::Relaxed) {
            if self.socket.receive_low_water.load(Ordering::Relaxed) > 1 {
                return self.read_enough(buffer);
            }
            return self.read_into(buffer);
        }
        self.read_with(|connection, now| connection.read(now, buffer))
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.read_with(|connection, now| {
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
        })
    }
}

impl Write for &TcpStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buffer)])
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.write_buffers(buffers, WriteOptions::default())
    }

    /// Does nothing: written data is already on its way.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TcpStream {
    /// Writes the buffers one behind the other. The options are for all of them together.
    pub(super) fn write_buffers(
        &self,
        buffers: &[IoSlice<'_>],
        options: WriteOptions,
    ) -> io::Result<usize> {
        let channel = Channel::Writable(self.socket.id);
        self.repeat(channel, &self.socket.write_timeout, |inner, now| {
            self.write_now(inner, now, buffers, options)
        })
    }

    /// Writes what there is room for.
    pub(super) fn write_now(
        &self,
        inner: &mut Inner,
        now: Instant,
        buffers: &[IoSlice<'_>],
        options: WriteOptions,
    ) -> Result<usize, SocketError> {
        let last = buffers.iter().rposition(|buffer| !buffer.is_empty());
        let last = last.unwrap_or(0);
        let now = self.socket.shared.runtime.poll_for_acks(inner, now);
        let written = inner.host.with_connection(self.socket.id, now, |connection| {
            let mut total = 0;
            let buffers = buffers.iter().enumerate();
            for (index, buffer) in buffers.filter(|(_, buffer)| !buffer.is_empty()) {
                let end_of_record = options.end_of_record && index == last;
                let options = options.with_end_of_record(end_of_record);
                match connection.write_with(now, buffer, options) {
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
        })?;
        inner.roles.written_since_poll += *written.as_ref().unwrap_or(&0);
        Ok(written?)
    }
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
