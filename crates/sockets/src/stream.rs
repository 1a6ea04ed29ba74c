//! `read`, `write`, `recv` and `send`.
//!
//! Each call tries once; if there is nothing to be done and the socket is blocking, it waits (see [`Drive`]). What was
//! moved before waiting ended is returned as a count, and the reason is left for the next call.

use crate::drive::{Awaited, Drive, Sockets, Waiting};
use crate::errno::{Errno, Result};
use crate::socket::{Role, Stream};
use libc::{
    ENOTCONN, EOPNOTSUPP, EPIPE, MSG_DONTWAIT, MSG_EOR, MSG_MORE, MSG_NOSIGNAL, MSG_OOB, MSG_PEEK,
    MSG_TRUNC, MSG_WAITALL,
};
use transom_tcp::{State, WriteOptions};

/// How bytes are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    urgent: bool,
    options: WriteOptions,
}

impl How {
    /// The requests in `send`'s flags.
    pub(crate) fn of_flags(flags: i32) -> Result<Self> {
        if flags & !(MSG_OOB | MSG_EOR | MSG_MORE | MSG_DONTWAIT | MSG_NOSIGNAL) != 0 {
            return Err(Errno(EOPNOTSUPP));
        }
        let options = WriteOptions::default()
            .with_more(flags & MSG_MORE != 0)
            .with_end_of_record(flags & MSG_EOR != 0);
        Ok(How { urgent: flags & MSG_OOB != 0, options })
    }

    /// For a piece with others behind it: what is urgent, and the end of a record, is in the last one.
    fn before_others(self) -> Self {
        let options = WriteOptions::default().with_more(true);
        How { urgent: false, options }
    }
}

/// Bytes to send that lie in several places.
pub(crate) type Pieces<'a> = &'a [&'a [u8]];

/// The piece that comes after the first `done` bytes, what is left of it, and whether it is the last.
fn piece_after<'a>(pieces: Pieces<'a>, mut done: usize) -> (&'a [u8], bool) {
    let left = pieces.iter().map(|piece| piece.len()).sum::<usize>().saturating_sub(done);
    for piece in pieces {
        if let Some(rest) = piece.get(done..).filter(|rest| !rest.is_empty()) {
            return (rest, rest.len() == left);
        }
        done = done.saturating_sub(piece.len());
    }
    (&[], true)
}

/// The destination of received bytes.
#[derive(Debug)]
pub enum Sink<'a, 'b> {
    /// To several places, one behind the other.
    Copy(&'a mut [&'b mut [u8]]),
    /// Nowhere: so many are dropped.
    Drop(usize),
}

impl Sink<'_, '_> {
    fn len(&self) -> usize {
        match self {
            Sink::Copy(places) => places.iter().map(|place| place.len()).sum(),
            Sink::Drop(len) => *len,
        }
    }

    /// The first place with room after `done` bytes; for bytes that are dropped, how many.
    fn rest(&mut self, mut done: usize) -> Place<'_> {
        match self {
            Sink::Drop(len) => Place::Drop(len.saturating_sub(done)),
            Sink::Copy(places) => {
                for place in places.iter_mut() {
                    if done < place.len() {
                        return Place::Copy(place.get_mut(done..).unwrap_or_default());
                    }
                    done -= place.len();
                }
                Place::Copy(&mut [])
            }
        }
    }

    /// Puts `bytes` where they go.
    fn put(&mut self, bytes: &[u8]) {
        let mut done = 0;
        while let Place::Copy(out) = self.rest(done)
            && !out.is_empty()
            && let Some(rest) = bytes.get(done..)
            && !rest.is_empty()
        {
            let len = out.len().min(rest.len());
            out[..len].copy_from_slice(&rest[..len]);
            done += len;
        }
    }
}

/// One place for received bytes.
enum Place<'a> {
    Copy(&'a mut [u8]),
    Drop(usize),
}

impl Place<'_> {
    fn len(&self) -> usize {
        match self {
            Place::Copy(out) => out.len(),
            Place::Drop(len) => *len,
        }
    }
}

/// The result of one attempt to receive.
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

impl Sockets<'_> {
    /// How many bytes a call waits for that has room for `len`.
    fn wanted(&self, fd: i32, len: usize, flags: i32) -> Result<usize> {
        let low_water = self.table.get(fd)?.options.receive_low_water as usize;
        let least = if flags & MSG_WAITALL != 0 { len } else { len.min(low_water) };
        Ok(least.max(1))
    }

    /// Begins to receive: how the call waits, and for how many bytes.
    fn before_recv(&mut self, fd: i32, len: usize, flags: i32) -> Result<(Waiting, usize)> {
        let Some(Stream { id, .. }) = self.stream(fd)? else { return Err(Errno(ENOTCONN)) };
        if self.holds_syn(fd) {
            // The answer to it is waited for.
            self.release_syn(fd);
        }
        let wanted = self.wanted(fd, len, flags)?;
        let socket = self.table.get(fd)?;
        let nonblocking = socket.nonblocking || flags & MSG_DONTWAIT != 0;
        let timeout = socket.options.receive_timeout;
        Ok((Waiting { awaited: Awaited::Readable(id), nonblocking, timeout }, wanted))
    }

    /// Takes what is there, up to the urgent byte. `more`: bytes were taken by the same call before, so that what ends it
    /// is left for the next one.
    fn take_now(&mut self, fd: i32, place: &mut Place<'_>, more: bool) -> Result<Received> {
        let stream = self.stream(fd)?.ok_or(Errno(ENOTCONN))?;
        let inline = self.table.get(fd)?.options.oob_inline;
        let mut room = place.len();
        match self.bytes_before_urgent(&stream) {
            Some(0) if more => return Ok(Received::Bytes(0)),
            Some(0) if !inline => {
                // The urgent byte is not part of what is read.
                self.consume(fd, 1);
                return self.take_now(fd, place, more);
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
        if let Place::Copy(out) = place
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

    fn peek_now(&mut self, fd: i32, sink: &mut Sink<'_, '_>) -> Result<Received> {
        let stream = self.stream(fd)?.ok_or(Errno(ENOTCONN))?;
        let inline = self.table.get(fd)?.options.oob_inline;
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
        if matches!(sink, Sink::Copy(_)) {
            let mut bytes = vec![0; skip + count];
            let _ = connection.peek(&mut bytes);
            sink.put(bytes.get(skip..).unwrap_or_default());
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

    fn is_past_handshake(&self, fd: i32) -> bool {
        let Ok(Some(stream)) = self.stream(fd) else { return true };
        !self.is_in_handshake(&stream)
    }

    /// Queues what there is room for of the piece after `done` bytes; `None` if there is none, or the handshake is not complete. `more`:
    /// bytes were queued by the same call before, so that the error that ends it is left for the next one.
    pub(crate) fn write_now(
        &mut self,
        fd: i32,
        pieces: Pieces<'_>,
        done: usize,
        how: How,
        more: bool,
    ) -> Result<Option<usize>> {
        let (bytes, last) = piece_after(pieces, done);
        let how = if last { how } else { how.before_others() };
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
                connection.write_with(now, bytes, options.with_end_of_record(end_of_record))
            }
        });
        self.settle();
        let written = written.ok().and_then(core::result::Result::ok).unwrap_or(0);
        Ok((written > 0).then_some(written))
    }
}

pub(crate) fn recv(
    driver: &mut impl Drive,
    fd: i32,
    mut sink: Sink<'_, '_>,
    flags: i32,
) -> Result<usize> {
    const KNOWN: i32 = MSG_OOB | MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT | MSG_WAITALL | MSG_NOSIGNAL;
    if flags & !KNOWN != 0 {
        return Err(Errno(EOPNOTSUPP));
    }
    let (waiting, wanted) = driver.with(|sockets| sockets.before_recv(fd, sink.len(), flags))?;
    let peek = flags & MSG_PEEK != 0;
    if flags & MSG_OOB != 0 {
        let mut byte = [0];
        let out = byte.get_mut(..sink.len().min(1)).unwrap_or_default();
        let count = driver.with(|sockets| sockets.recv_urgent(fd, out, peek))?;
        sink.put(byte.get(..count).unwrap_or_default());
        return Ok(count);
    }
    if flags & MSG_TRUNC != 0 {
        sink = Sink::Drop(sink.len());
    }
    match peek {
        true => self::peek(driver, fd, sink, waiting, wanted),
        false => take(driver, fd, sink, waiting, wanted),
    }
}

fn take(
    driver: &mut impl Drive,
    fd: i32,
    mut sink: Sink<'_, '_>,
    waiting: Waiting,
    wanted: usize,
) -> Result<usize> {
    let room = sink.len();
    let mut done = 0;
    // Until nothing is left: what ends the stream may have come together with the last data.
    let attempt = |sockets: &mut Sockets<'_>| {
        loop {
            match sockets.take_now(fd, &mut sink.rest(done), done > 0) {
                Ok(Received::Bytes(0)) => return Some(Ok(done)),
                Ok(Received::Bytes(taken)) => done += taken,
                Ok(Received::Nothing) => return (done >= wanted).then_some(Ok(done)),
                Err(error) => return Some(Err(error)),
            }
            // One place is full, and there may be more for the next.
            let between = matches!(sink, Sink::Copy(_)) && done < room;
            if done >= wanted && !between {
                return Some(Ok(done));
            }
        }
    };
    let waited = waiting.until(driver, attempt);
    waited.into_result().flatten().or_else(|error| count_or(error, done))
}

fn peek(
    driver: &mut impl Drive,
    fd: i32,
    mut sink: Sink<'_, '_>,
    waiting: Waiting,
    wanted: usize,
) -> Result<usize> {
    let mut attempt = |sockets: &mut Sockets<'_>, wanted| match sockets.peek_now(fd, &mut sink) {
        Ok(Received::Bytes(count)) if count < wanted && !sockets.is_over(fd) => None,
        Ok(Received::Bytes(count)) => Some(Ok(count)),
        Ok(Received::Nothing) => None,
        Err(error) => Some(Err(error)),
    };
    match waiting.until(driver, |sockets| attempt(sockets, wanted)).into_result() {
        Ok(outcome) => outcome,
        // Less than the whole is better than nothing.
        Err(in_vain) => driver.with(|sockets| attempt(sockets, 1)).unwrap_or(Err(in_vain)),
    }
}

pub(crate) fn send(
    driver: &mut impl Drive,
    fd: i32,
    pieces: Pieces<'_>,
    flags: i32,
) -> Result<usize> {
    send_from(driver, fd, pieces, 0, flags)
}

/// Sends what comes after the first `sent` bytes, and gives how much that was.
pub(crate) fn send_from(
    driver: &mut impl Drive,
    fd: i32,
    pieces: Pieces<'_>,
    sent: usize,
    flags: i32,
) -> Result<usize> {
    let how = How::of_flags(flags)?;
    let waiting = driver.with(|sockets| {
        let socket = sockets.table.get(fd)?;
        let Role::Stream(Stream { id, .. }) = socket.role else { return Err(Errno(EPIPE)) };
        let nonblocking = socket.nonblocking || flags & MSG_DONTWAIT != 0;
        let timeout = socket.options.send_timeout;
        Ok(Waiting { awaited: Awaited::Writable(id), nonblocking, timeout })
    })?;
    let total = pieces.iter().map(|piece| piece.len()).sum::<usize>().saturating_sub(sent);
    let mut done = 0;
    let attempt = |sockets: &mut Sockets<'_>| {
        // Until nothing changes: to a peer that is the host itself, what was written has gone by now.
        loop {
            match sockets.write_now(fd, pieces, sent + done, how, done > 0) {
                Ok(Some(written)) => done += written,
                Ok(None) => break,
                Err(error) => return Some(Err(error)),
            }
        }
        (done >= total && sockets.is_past_handshake(fd)).then_some(Ok(done))
    };
    let waited = waiting.until(driver, attempt);
    waited.into_result().flatten().or_else(|error| count_or(error, done))
}
