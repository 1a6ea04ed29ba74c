//! `read`, `write`, `recv` and `send`.
//!
//! Each call tries once; if there is nothing to be done and the socket is blocking, it waits (see [`crate::host`]). What was
//! moved before waiting ended is returned as a count, and the reason is left for the next call.

use crate::errno::{ENOTCONN, EOPNOTSUPP, EPIPE, Errno, Result};
use crate::host::Host;
use crate::socket::{Role, Stream};
use transom_tcp::connection::{State, WriteOptions};

/// `send`: the last byte is urgent. `recv`: the urgent byte.
pub const MSG_OOB: i32 = 0x1;
/// `recv`: leave the data where they are.
pub const MSG_PEEK: i32 = 0x2;
/// `recv`: drop the data instead of copying them; what is returned is how many there were.
pub const MSG_TRUNC: i32 = 0x20;
/// Do not wait, whatever the socket is.
pub const MSG_DONTWAIT: i32 = 0x40;
/// `recv`: wait for the whole length.
pub const MSG_WAITALL: i32 = 0x100;
/// `send`: a record ends here; no segment has bytes of two records.
pub const MSG_EOR: i32 = 0x80;
/// `send`: more follows; what does not fill a segment waits for it, for 200 ms at most.
pub const MSG_MORE: i32 = 0x8000;
/// `sendto`: connect, with the data in the SYN if the server has given a cookie (TCP Fast Open).
pub const MSG_FASTOPEN: i32 = 0x2000_0000;
/// `send`: no signal; there never is one here.
pub const MSG_NOSIGNAL: i32 = 0x4000;

/// How bytes are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    urgent: bool,
    options: WriteOptions,
}

/// Where received bytes go.
enum Sink<'a> {
    Copy(&'a mut [u8]),
    Drop(usize),
}

impl Sink<'_> {
    fn len(&self) -> usize {
        match self {
            Sink::Copy(out) => out.len(),
            Sink::Drop(len) => *len,
        }
    }

    /// What is left of it after `done` bytes.
    fn rest(&mut self, done: usize) -> Sink<'_> {
        match self {
            Sink::Copy(out) => Sink::Copy(out.get_mut(done..).unwrap_or_default()),
            Sink::Drop(len) => Sink::Drop(len.saturating_sub(done)),
        }
    }
}

/// What one attempt at receiving gave.
enum Received {
    /// So many bytes; none is the end of the stream, or nothing asked for.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
}

/// How a call ends that moved so many bytes before `error` ended it: with their count, if there are any.
fn count_or(error: Errno, moved: usize) -> Result<usize> {
    if moved > 0 { Ok(moved) } else { Err(error) }
}

impl Host {
    /// `read(2)`.
    ///
    /// # Errors
    /// As [`Host::recv`].
    pub fn read(&mut self, fd: i32, out: &mut [u8]) -> Result<usize> {
        self.recv(fd, out, 0)
    }

    /// `write(2)`.
    ///
    /// # Errors
    /// As [`Host::send`].
    pub fn write(&mut self, fd: i32, bytes: &[u8]) -> Result<usize> {
        self.send(fd, bytes, 0)
    }

    /// `recv(2)` with `MSG_PEEK`, `MSG_OOB`, `MSG_WAITALL`, `MSG_DONTWAIT` and `MSG_TRUNC`. `Ok(0)` is the end of the stream. The
    /// urgent byte is left out of the stream unless `SO_OOBINLINE` is set, and reading stops in front of it.
    ///
    /// # Errors
    /// `ENOTCONN`, `EAGAIN`, `EINTR`, `EINVAL` for `MSG_OOB` without an urgent byte to read, `EOPNOTSUPP` for any other flag,
    /// and, once, how the connection ended: `ECONNRESET`, `ETIMEDOUT`, …
    pub fn recv(&mut self, fd: i32, out: &mut [u8], flags: i32) -> Result<usize> {
        const KNOWN: i32 =
            MSG_OOB | MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT | MSG_WAITALL | MSG_NOSIGNAL;
        if flags & !KNOWN != 0 {
            return Err(Errno(EOPNOTSUPP));
        }
        if self.stream(fd)?.is_none() {
            return Err(Errno(ENOTCONN));
        }
        if self.holds_syn(fd) {
            // The answer to it is waited for.
            self.release_syn(fd);
        }
        if flags & MSG_OOB != 0 {
            return self.recv_urgent(fd, out, flags & MSG_PEEK != 0);
        }
        let sink = if flags & MSG_TRUNC != 0 { Sink::Drop(out.len()) } else { Sink::Copy(out) };
        if flags & MSG_PEEK != 0 { self.peek(fd, sink, flags) } else { self.take(fd, sink, flags) }
    }

    /// How many bytes a call waits for that has room for `len`.
    fn wanted(&self, fd: i32, len: usize, flags: i32) -> Result<usize> {
        let low_water = self.sockets.get(fd)?.options.controls.receive_low_water as usize;
        let least = if flags & MSG_WAITALL != 0 { len } else { len.min(low_water) };
        Ok(least.max(1))
    }

    fn take(&mut self, fd: i32, mut sink: Sink<'_>, flags: i32) -> Result<usize> {
        let socket = self.sockets.get(fd)?;
        let nonblocking = socket.nonblocking || flags & MSG_DONTWAIT != 0;
        let timeout = socket.options.receive_timeout;
        let wanted = self.wanted(fd, sink.len(), flags)?;
        let mut done = 0;
        // Until nothing is left: what ends the stream may have come together with the last data.
        let attempt = |host: &mut Host| {
            loop {
                match host.take_now(fd, &mut sink.rest(done), done > 0) {
                    Ok(Received::Bytes(0)) => return Some(Ok(done)),
                    Ok(Received::Bytes(taken)) => done += taken,
                    Ok(Received::Nothing) => return None,
                    Err(error) => return Some(Err(error)),
                }
                if done >= wanted {
                    return Some(Ok(done));
                }
            }
        };
        let outcome = self.wait_unless(nonblocking, timeout, attempt).into_result().flatten();
        outcome.or_else(|error| count_or(error, done))
    }

    /// Takes what is there, up to the urgent byte. `more`: bytes were taken by the same call before, so that what ends it
    /// is left for the next one.
    fn take_now(&mut self, fd: i32, sink: &mut Sink<'_>, more: bool) -> Result<Received> {
        let stream = self.stream(fd)?.ok_or(Errno(ENOTCONN))?;
        let inline = self.sockets.get(fd)?.options.oob_inline;
        let mut room = sink.len();
        match self.bytes_before_urgent(&stream) {
            Some(0) if more => return Ok(Received::Bytes(0)),
            Some(0) if !inline => {
                // The urgent byte is not part of what is read.
                self.consume(fd, 1);
                return self.take_now(fd, sink, more);
            }
            Some(0) | None => {}
            Some(before) => room = room.min(before),
        }
        let now = self.now();
        let available = self.connection(&stream).map_or(0, |connection| connection.readable());
        let count = room.min(available);
        if available == 0 {
            if more {
                let ended = self.at_end(&stream) || self.pending_error(&stream).is_some();
                return Ok(if ended { Received::Bytes(0) } else { Received::Nothing });
            }
            return self.nothing_to_read(fd, &stream);
        }
        if let Sink::Copy(out) = sink
            && let Some(out) = out.get_mut(..count)
        {
            let read = self.stack.with_connection(stream.id, now, |c| c.read(now, out));
            let read = read.ok().and_then(core::result::Result::ok).unwrap_or(0);
            self.count_consumed(fd, read);
        } else {
            self.consume(fd, count);
        }
        self.settle();
        Ok(Received::Bytes(count))
    }

    fn peek(&mut self, fd: i32, mut sink: Sink<'_>, flags: i32) -> Result<usize> {
        let socket = self.sockets.get(fd)?;
        let nonblocking = socket.nonblocking || flags & MSG_DONTWAIT != 0;
        let timeout = socket.options.receive_timeout;
        let wanted = self.wanted(fd, sink.len(), flags)?;
        let mut attempt = |host: &mut Host, wanted: usize| match host.peek_now(fd, &mut sink) {
            Ok(Received::Bytes(count)) if count < wanted && !host.is_over(fd) => None,
            Ok(Received::Bytes(count)) => Some(Ok(count)),
            Ok(Received::Nothing) => None,
            Err(error) => Some(Err(error)),
        };
        let waited = self.wait_unless(nonblocking, timeout, |host| attempt(host, wanted));
        match waited.into_result() {
            Ok(outcome) => outcome,
            // Less than the whole is better than nothing.
            Err(in_vain) => attempt(self, 1).unwrap_or(Err(in_vain)),
        }
    }

    fn peek_now(&mut self, fd: i32, sink: &mut Sink<'_>) -> Result<Received> {
        let stream = self.stream(fd)?.ok_or(Errno(ENOTCONN))?;
        let inline = self.sockets.get(fd)?.options.oob_inline;
        let Some(connection) = self.connection(&stream) else {
            return self.nothing_to_read(fd, &stream);
        };
        let before = self.bytes_before_urgent(&stream);
        // The urgent byte at the front is stepped over.
        let skip = usize::from(before == Some(0) && !inline);
        let readable = connection.readable().saturating_sub(skip);
        if readable == 0 {
            return self.nothing_to_read(fd, &stream);
        }
        let room = before.filter(|&before| before > 0).unwrap_or(usize::MAX);
        let count = sink.len().min(readable).min(room);
        if let Sink::Copy(out) = sink
            && let Some(out) = out.get_mut(..count)
        {
            let mut bytes = vec![0; skip + count];
            let _ = connection.peek(&mut bytes);
            out.copy_from_slice(bytes.get(skip..).unwrap_or_default());
        }
        Ok(Received::Bytes(count))
    }

    /// Drops bytes at the front of the stream.
    fn consume(&mut self, fd: i32, count: usize) {
        let Ok(Some(stream)) = self.stream(fd) else { return };
        let now = self.now();
        let dropped = self.stack.with_connection(stream.id, now, |c| c.consume(now, count));
        self.count_consumed(fd, dropped.unwrap_or(0));
        self.settle();
    }

    fn count_consumed(&mut self, fd: i32, bytes: usize) {
        if let Some(stream) = self.stream_mut(fd) {
            stream.consumed += bytes as u64;
        }
    }

    /// Whether nothing more will come: the peer's FIN is in, or the application said that it will not read.
    pub(crate) fn at_end(&self, stream: &Stream) -> bool {
        let gone = self.connection(stream).is_none_or(|connection| {
            connection.peer_has_closed() || connection.state() == State::Closed
        });
        gone || stream.shut_read
    }

    fn is_over(&self, fd: i32) -> bool {
        let Ok(Some(stream)) = self.stream(fd) else { return true };
        self.at_end(&stream) || self.pending_error(&stream).is_some()
    }

    /// Why there is nothing: the end, an error, or that nothing has come yet.
    fn nothing_to_read(&mut self, fd: i32, stream: &Stream) -> Result<Received> {
        let finished = self.connection(stream).is_some_and(|c| c.peer_has_closed());
        if finished {
            return Ok(Received::Bytes(0));
        }
        if let Some(error) = self.take_error(fd) {
            return Err(error);
        }
        Ok(if self.at_end(stream) { Received::Bytes(0) } else { Received::Nothing })
    }

    /// `send(2)` with `MSG_OOB`, `MSG_EOR`, `MSG_MORE`, `MSG_DONTWAIT` and `MSG_NOSIGNAL`. On a blocking socket it waits until all bytes are queued, on a
    /// non-blocking one it queues what there is room for.
    ///
    /// # Errors
    /// `EAGAIN`, `EINTR`, `EPIPE` if the connection is closed for writing or was never opened (there is no signal), `EOPNOTSUPP` for
    /// any other flag, and, once, how the connection ended.
    pub fn send(&mut self, fd: i32, bytes: &[u8], flags: i32) -> Result<usize> {
        if flags & MSG_FASTOPEN != 0 {
            return self.send_to(fd, bytes, flags, None);
        }
        let how = Self::how_to_send(flags)?;
        let socket = self.sockets.get(fd)?;
        if !matches!(socket.role, Role::Stream(_)) {
            return Err(Errno(EPIPE));
        }
        let nonblocking = socket.nonblocking || flags & MSG_DONTWAIT != 0;
        let timeout = socket.options.send_timeout;
        let mut done = 0;
        let attempt = |host: &mut Host| {
            // Until nothing changes: to a peer that is the host itself, what was written has gone by now.
            loop {
                let rest = bytes.get(done..).unwrap_or_default();
                match host.write_now(fd, rest, how, done > 0) {
                    Ok(Some(written)) => done += written,
                    Ok(None) => break,
                    Err(error) => return Some(Err(error)),
                }
            }
            (done >= bytes.len() && host.is_past_handshake(fd)).then_some(Ok(done))
        };
        let outcome = self.wait_unless(nonblocking, timeout, attempt).into_result().flatten();
        outcome.or_else(|error| count_or(error, done))
    }

    /// What `send`'s flags ask for.
    pub(crate) fn how_to_send(flags: i32) -> Result<How> {
        if flags & !(MSG_OOB | MSG_EOR | MSG_MORE | MSG_DONTWAIT | MSG_NOSIGNAL) != 0 {
            return Err(Errno(EOPNOTSUPP));
        }
        let options =
            WriteOptions { more: flags & MSG_MORE != 0, end_of_record: flags & MSG_EOR != 0 };
        Ok(How { urgent: flags & MSG_OOB != 0, options })
    }

    fn is_past_handshake(&self, fd: i32) -> bool {
        let Ok(Some(stream)) = self.stream(fd) else { return true };
        !self.is_in_handshake(&stream)
    }

    /// Queues what there is room for; `None` if there is none, or the handshake is not complete. `more`: bytes were queued by
    /// the same call before, so that the error that ends it is left for the next one.
    pub(crate) fn write_now(
        &mut self,
        fd: i32,
        bytes: &[u8],
        how: How,
        more: bool,
    ) -> Result<Option<usize>> {
        let stream = self.stream(fd)?.ok_or(Errno(EPIPE))?;
        let error = if more { self.pending_error(&stream) } else { self.take_error(fd) };
        if let Some(error) = error {
            return Err(error);
        }
        match self.state(&stream) {
            _ if self.is_in_handshake(&stream) => return Ok(None),
            _ if stream.shut_write => return Err(Errno(EPIPE)),
            // Of Fast Open.
            State::SynSent | State::SynReceived => {}
            state if !state.can_send() => return Err(Errno(EPIPE)),
            _ => {}
        }
        let now = self.now();
        let How { urgent, options } = how;
        let written = self.stack.with_connection(stream.id, now, |connection| {
            let room = connection.writable().unwrap_or(0);
            let whole = room >= bytes.len();
            let bytes = bytes.get(..room.min(bytes.len())).unwrap_or_default();
            // What the record's end has no room for yet is not the end.
            let end_of_record = options.end_of_record && whole;
            if bytes.is_empty() {
                Ok(0)
            } else if urgent {
                // What was queued ends with the urgent byte, even if the rest has to wait.
                connection.write_urgent(now, bytes)
            } else {
                connection.write_with(now, bytes, WriteOptions { end_of_record, ..options })
            }
        });
        self.settle();
        let written = written.ok().and_then(core::result::Result::ok).unwrap_or(0);
        Ok((written > 0).then_some(written))
    }
}
