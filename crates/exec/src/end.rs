//! One end of a carried connection: a stream of Transom's, or a socket of the kernel's.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{self, Shutdown, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::epoll;
use rustix::net::sockopt;
use transom_net::{Bytes, Chunk, TcpStream};
use transom_tcp::time::Instant;
use transom_tcp::{Connection, ReadError, WriteError};

/// Data that lies in pieces of this size or more is passed on in its own memory. Smaller data is copied: a copy costs less than keeping a buffer of the
/// device's.
const MIN_LENT_PIECE: usize = 8 * 1024;

/// One end of a carried connection.
#[derive(Debug)]
pub(crate) enum End {
    /// A stream of a Transom stack.
    Transom(TcpStream),
    /// A socket of the host's kernel.
    Kernel(KernelEnd),
}

/// A socket of the host's kernel, and what is known of its readiness: an event sets a flag, and a call that would block clears it.
#[derive(Debug)]
pub(crate) struct KernelEnd {
    pub(crate) stream: net::TcpStream,
    readable: bool,
    writable: bool,
    failed: bool,
}

impl KernelEnd {
    pub(crate) fn new(stream: net::TcpStream) -> Self {
        KernelEnd { stream, readable: true, writable: true, failed: false }
    }

    /// Notes an event.
    pub(crate) fn note(&mut self, flags: epoll::EventFlags) {
        use epoll::EventFlags as Flags;
        self.readable |= flags.intersects(Flags::IN | Flags::RDHUP | Flags::HUP | Flags::ERR);
        self.writable |= flags.intersects(Flags::OUT | Flags::HUP | Flags::ERR);
        self.failed |= flags.contains(Flags::ERR);
    }
}

/// What a look at an end has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// So many bytes were read, and whether nothing is behind them for now.
    Bytes { len: usize, is_all: bool },
    /// The next bytes lie in a large piece, which [`End::take_pieces`] takes.
    Large,
    /// The last byte of urgent data was read; all before it have been.
    Urgent(u8),
    /// The end of the data.
    End,
    /// There is nothing for now.
    Nothing,
    /// The connection has ended by an error.
    Failed,
}

/// The end of a connection by an error: a reset, a timeout, an abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed;

/// Buffers of a device that were lent to another stack and have come back. They are returned to the device later: a stack drops them under its own lock, and
/// to return them takes the other stack's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Returned(Arc<Mutex<Vec<Chunk>>>);

impl Returned {
    /// A piece of received data as owned bytes.
    fn lend(&self, chunk: Chunk) -> Bytes {
        Bytes::from_owner(Lent { chunk: Some(chunk), returned: self.clone() })
    }

    /// Gives the buffers back to their devices.
    pub(crate) fn give_back(&self) {
        let chunks = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        drop(chunks);
    }
}

struct Lent {
    chunk: Option<Chunk>,
    returned: Returned,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.chunk.as_deref().unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut returned = self.returned.0.lock().unwrap_or_else(PoisonError::into_inner);
        returned.extend(self.chunk.take());
    }
}

impl End {
    pub(crate) fn names(&self) -> io::Result<[SocketAddr; 2]> {
        match self {
            End::Transom(stream) => Ok([stream.local_addr()?, stream.peer_addr()?]),
            End::Kernel(end) => Ok([end.stream.local_addr()?, end.stream.peer_addr()?]),
        }
    }

    /// Whether the connection has ended by an error.
    pub(crate) fn has_failed(&self) -> bool {
        match self {
            End::Transom(stream) => {
                let error = stream.with_connection(|connection, _| connection.error());
                // One that is gone has failed too.
                !matches!(error, Ok(None))
            }
            End::Kernel(end) => end.failed,
        }
    }

    /// Takes large pieces of what has arrived, with the memory in which they lie.
    pub(crate) fn take_pieces(
        &self,
        most: usize,
        returned: &Returned,
        pieces: &mut VecDeque<Bytes>,
    ) {
        if let End::Transom(stream) = self {
            let mut chunks = Vec::new();
            stream.take_chunks(MIN_LENT_PIECE, most, &mut chunks);
            pieces.extend(chunks.into_iter().map(|chunk| returned.lend(chunk)));
        }
    }

    /// Reads what is there, up to urgent data or to a large piece.
    pub(crate) fn look(&mut self, into: &mut [u8]) -> Look {
        match self {
            End::Transom(stream) => {
                let look = |connection: &mut Connection, now: Instant| look(connection, now, into);
                stream.with_connection(look).unwrap_or(Look::Failed)
            }
            End::Kernel(end) if !end.readable => Look::Nothing,
            End::Kernel(end) => loop {
                return match (&end.stream).read(into) {
                    Ok(0) => Look::End,
                    Ok(len) => Look::Bytes { len, is_all: false },
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        end.readable = false;
                        Look::Nothing
                    }
                    Err(_) => Look::Failed,
                };
            },
        }
    }

    /// Writes as much as there is room for: `Ok(0)` if there is none.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize, Failed> {
        match self {
            End::Transom(stream) => wrote((&mut &*stream).write(bytes)),
            End::Kernel(end) if !end.writable => Ok(0),
            End::Kernel(end) => {
                let written = wrote((&end.stream).write(bytes))?;
                end.writable = written == bytes.len();
                Ok(written)
            }
        }
    }

    /// The same with pieces whose memory a stream of Transom's keeps instead of a copy. What was written is taken out.
    pub(crate) fn write_pieces(&mut self, pieces: &mut VecDeque<Bytes>) -> Result<usize, Failed> {
        if let End::Transom(stream) = self {
            return wrote(stream.write_pieces(pieces));
        }
        let mut total = 0;
        while let Some(front) = pieces.front_mut() {
            let written = self.write(front)?;
            total += written;
            drop(front.split_to(written));
            if !front.is_empty() {
                break;
            }
            pieces.pop_front();
        }
        Ok(total)
    }

    /// Writes one byte that is urgent (RFC 9293 section 3.8.5). Whether there was room.
    pub(crate) fn write_urgent(&mut self, byte: u8) -> Result<bool, Failed> {
        match self {
            End::Transom(stream) => {
                let write =
                    |connection: &mut Connection, now| connection.write_urgent(now, &[byte]);
                match stream.with_connection(write) {
                    Ok(Ok(n)) => Ok(n == 1),
                    Ok(Err(WriteError::WouldBlock | WriteError::Soft(_))) => Ok(false),
                    Ok(Err(_)) | Err(_) => Err(Failed),
                }
            }
            End::Kernel(end) => {
                let flags = rustix::net::SendFlags::OOB | rustix::net::SendFlags::NOSIGNAL;
                match rustix::net::send(&end.stream, &[byte], flags) {
                    Ok(n) => Ok(n == 1),
                    Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {
                        end.writable = false;
                        Ok(false)
                    }
                    Err(_) => Err(Failed),
                }
            }
        }
    }

    /// Ends the direction to the peer: a FIN follows the data.
    pub(crate) fn shut_down_writes(&self) {
        // This fails only for a connection that has ended.
        let _ = match self {
            End::Transom(stream) => stream.shutdown(Shutdown::Write),
            End::Kernel(end) => end.stream.shutdown(Shutdown::Write),
        };
    }

    /// Whether everything that was written has been sent. On the way to a socket of this machine nothing is lost, and a reset overtakes nothing.
    pub(crate) fn has_sent_all(&self) -> bool {
        match self {
            End::Transom(stream) => stream.info().map_or(true, |info| {
                let sent = usize::try_from(info.snd_nxt.since(info.snd_una)).unwrap_or(usize::MAX);
                info.unacknowledged <= sent
            }),
            End::Kernel(_) => true,
        }
    }

    /// Has the connection end by a reset when it is dropped.
    pub(crate) fn reset_on_drop(&self) {
        let _ = match self {
            End::Transom(stream) => stream.set_linger(Some(Duration::ZERO)),
            End::Kernel(end) => {
                sockopt::set_socket_linger(&end.stream, Some(Duration::ZERO)).map_err(Into::into)
            }
        };
    }
}

/// One look under the host's lock. Of a kernel socket urgent data is read as any other.
fn look(connection: &mut Connection, now: Instant, into: &mut [u8]) -> Look {
    let urgent = connection.urgent_bytes();
    if urgent.is_none() && connection.readable_slice().len() >= MIN_LENT_PIECE {
        return Look::Large;
    }
    // The last one of these bytes is the urgent one, and is read alone.
    let most = urgent.map(|left| usize::try_from(left.max(2) - 1).unwrap_or(usize::MAX));
    let room = into.len().min(most.unwrap_or(usize::MAX));
    let into = into.get_mut(..room).unwrap_or_default();
    match connection.read(now, into) {
        Ok(0) => Look::End,
        Ok(1) if urgent == Some(1) => Look::Urgent(into.first().copied().unwrap_or(0)),
        Ok(len) => Look::Bytes { len, is_all: !connection.has_enough(usize::MAX) },
        Err(ReadError::WouldBlock | ReadError::Soft(_)) => Look::Nothing,
        Err(_) => Look::Failed,
    }
}

fn wrote(result: io::Result<usize>) -> Result<usize, Failed> {
    match result {
        Ok(n) => Ok(n),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
            _ => Err(Failed),
        },
    }
}
