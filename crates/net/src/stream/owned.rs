//! Writing without a copy: the stack keeps the caller's memory until it is acknowledged.

use super::TcpStream;
use super::file_memory::PIECE;
use super::polling::Direction;
use crate::error::socket_error;
use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use transom_stack::SocketError;
use transom_tcp::time::Instant;
use transom_tcp::{Connection, WriteError};

impl TcpStream {
    /// Writes from the front of `bytes`, and keeps that memory until it is acknowledged instead of a copy. Takes it out of `bytes`, and says how much
    /// that was, as [`io::Write::write`] does.
    ///
    /// Up to 64 KB may be copied where the data before it, or this, is less than 32 KB in one piece and more data follows. The memory is dropped under the
    /// stack's lock: a destructor of the caller's must not use the stack.
    ///
    /// # Errors
    /// As [`io::Write::write`].
    pub fn write_owned(&self, bytes: &mut Bytes) -> io::Result<usize> {
        self.writing(|connection, now| connection.write_owned(now, bytes))
    }

    /// Writes the pieces one behind the other, as far as there is room for now, and takes what was written out of `pieces`. Only then segments leave, so that
    /// they need not end where a piece does. Never waits. Returns how many bytes were written.
    ///
    /// # Errors
    /// As [`TcpStream::write_owned`], if nothing was written before.
    pub fn write_pieces(&self, pieces: &mut VecDeque<Bytes>) -> io::Result<usize> {
        let write = |connection: &mut Connection, now: Instant| {
            let mut total = 0;
            while let Some(front) = pieces.front_mut() {
                match connection.write_owned(now, front) {
                    Ok(written) => total += written,
                    Err(error) if total == 0 => return Err(error),
                    Err(_) => break,
                }
                if !front.is_empty() {
                    break;
                }
                pieces.pop_front();
            }
            Ok(total)
        };
        self.change(write)?.map_err(|error| socket_error(SocketError::Write(error)))
    }

    /// Writes `length` bytes of a file from `offset` on, or up to its end. Returns how many were written. They are read once, and
    /// whole blocks of 64 KB become part of the send buffer without a copy. The file's own position does not matter and stays.
    ///
    /// On a non-blocking stream it writes what there is room for; the caller goes on from there.
    ///
    /// # Errors
    /// The file's, and as [`io::Write::write`]. If some bytes were written before, it returns their number, and the error the next time.
    pub fn send_file(&self, file: &File, offset: u64, length: u64) -> io::Result<u64> {
        let mut sent = 0;
        while sent < length {
            let piece = usize::try_from(length - sent).map_or(PIECE, |left| left.min(PIECE));
            let outcome = self.send_piece(file, offset.saturating_add(sent), piece);
            match outcome {
                Ok(0) => break,
                Ok(n) => {
                    sent += n as u64;
                    if n < piece && self.socket.non_blocking.load(Ordering::Relaxed) {
                        break;
                    }
                }
                Err(_) if sent > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    /// Writes one piece; zero at the end of the file. No more is read than there is room for. A whole block becomes part of the send buffer, and less
    /// than that is copied: it would keep a whole block from others, and count as little.
    fn send_piece(&self, file: &File, offset: u64, piece: usize) -> io::Result<usize> {
        let room = self.repeat(Direction::Write, |inner, now| {
            let now = self.socket.shared.runtime.poll_for_acks(inner, now);
            let ask = |connection: &mut Connection| connection.writable_block();
            Ok(inner.host.with_connection(self.socket.id, now, ask)??)
        })?;
        let piece = piece.min(room);
        let mut bytes = self.socket.shared.files.fill(|memory| {
            let memory = memory.get_mut(..piece).unwrap_or_default();
            loop {
                match file.read_at(memory, offset) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    outcome => return outcome,
                }
            }
        })?;
        let mut written = 0;
        while !bytes.is_empty() {
            match self.writing(|connection, now| write_block(connection, now, &mut bytes)) {
                Ok(n) => written += n,
                Err(_) if written > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }
}

/// Keeps a whole block, and copies less than that.
fn write_block(
    connection: &mut Connection,
    now: Instant,
    bytes: &mut Bytes,
) -> Result<usize, WriteError> {
    if bytes.len() == PIECE && connection.writable_block()? == PIECE {
        return connection.write_owned(now, bytes);
    }
    let written = connection.write(now, bytes)?;
    bytes.advance(written);
    Ok(written)
}
