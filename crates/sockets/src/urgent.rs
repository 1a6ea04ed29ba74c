//! The urgent byte (RFC 9293 section 3.8.5) as sockets show it (RFC 6093 section 3.1).
//!
//! TCP's urgent pointer names a place in the stream; sockets make of it one byte beside the stream: the one before that
//! place is read with `MSG_OOB` and left out of ordinary reading, unless `SO_OOBINLINE` is set. Ordinary reading stops in front
//! of it either way, so that a program can tell where it is (`SIOCATMARK`). There is one such byte at a time: a new one makes an
//! old one ordinary.

use crate::drive::Sockets;
use crate::errno::{Errno, Result};
use crate::socket::{Role, Stream};
use libc::{EAGAIN, EINVAL, ENOTCONN, ENOTTY, FIONREAD, SIOCOUTQNSD, TIOCOUTQ};
use transom_tcp::State;

/// Asks whether the next byte is the urgent one (linux/sockios.h; `libc` has it for other systems alone).
const SIOCATMARK: u64 = 0x8905;

impl Sockets<'_> {
    /// How many ordinary bytes precede the urgent one, if it is announced and not passed. It may not have arrived, but if
    /// none precede it, it has.
    pub(crate) fn bytes_before_urgent(&self, stream: &Stream) -> Option<usize> {
        let connection = self.connection(stream)?;
        let before = usize::try_from(connection.urgent_bytes()?).ok()?.checked_sub(1)?;
        (before > 0 || connection.readable() > 0).then_some(before)
    }

    /// The place of the urgent byte in the stream and its distance from what is read next, if it is announced and not read.
    fn unread_urgent(&self, fd: i32, stream: &Stream) -> Result<Option<(u64, usize)>> {
        let inline = self.table.get(fd)?.options.oob_inline;
        let left = self.connection(stream).and_then(|connection| connection.urgent_bytes());
        let Some(before) = left.and_then(|left| usize::try_from(left).ok()?.checked_sub(1)) else {
            return Ok(None);
        };
        let place = stream.consumed + before as u64;
        Ok((!inline && stream.urgent_read != Some(place)).then_some((place, before)))
    }

    /// `recv` with `MSG_OOB`. It never waits.
    pub(crate) fn recv_urgent(&mut self, fd: i32, out: &mut [u8], peek: bool) -> Result<usize> {
        let stream = self.stream(fd)?.ok_or(Errno(ENOTCONN))?;
        let (place, before) = self.unread_urgent(fd, &stream)?.ok_or(Errno(EINVAL))?;
        let Some(connection) = self.connection(&stream) else { return Err(Errno(ENOTCONN)) };
        if connection.readable() <= before {
            let ended = self.at_end(&stream);
            return if ended { Ok(0) } else { Err(Errno(EAGAIN)) };
        }
        let mut bytes = vec![0; before + 1];
        let _ = connection.peek(&mut bytes);
        if !peek && let Some(stream) = self.stream_mut(fd) {
            stream.urgent_read = Some(place);
        }
        match (out.first_mut(), bytes.last()) {
            (Some(out), Some(&byte)) => {
                *out = byte;
                Ok(1)
            }
            _ => Ok(0),
        }
    }

    /// Whether an urgent byte has arrived and not been read.
    pub(crate) fn has_urgent(&self, fd: i32, stream: &Stream) -> bool {
        let inline = self.table.get(fd).is_ok_and(|socket| socket.options.oob_inline);
        let readable = self.connection(stream).map_or(0, |connection| connection.readable());
        match self.unread_urgent(fd, stream) {
            Ok(Some((_, before))) => readable > before,
            _ => inline && self.bytes_before_urgent(stream).is_some_and(|n| readable > n),
        }
    }

    /// Whether there is something to read other than the urgent byte.
    pub(crate) fn has_ordinary(&self, fd: i32, stream: &Stream) -> bool {
        let inline = self.table.get(fd).is_ok_and(|socket| socket.options.oob_inline);
        let readable = self.connection(stream).map_or(0, |connection| connection.readable());
        readable > usize::from(!inline && self.bytes_before_urgent(stream) == Some(0))
    }

    pub(crate) fn ioctl(&self, fd: i32, request: u64) -> Result<i32> {
        let stream = match self.table.get(fd)?.role {
            Role::Stream(stream) => stream,
            Role::Listener { .. } => return Err(Errno(EINVAL)),
            Role::Fresh => {
                let known = [FIONREAD, TIOCOUTQ, SIOCATMARK, SIOCOUTQNSD].contains(&request);
                return if known { Ok(0) } else { Err(Errno(ENOTTY)) };
            }
        };
        let info = self.connection(&stream).map(|connection| connection.info(self.now()));
        let open = !matches!(self.state(&stream), State::SynSent | State::SynReceived);
        let value = match (request, info) {
            (FIONREAD, Some(info)) if open => {
                let upto = self.bytes_before_urgent(&stream);
                let inline = self.table.get(fd)?.options.oob_inline;
                info.readable.min(upto.filter(|_| !inline).unwrap_or(usize::MAX))
            }
            (SIOCATMARK, _) => usize::from(self.bytes_before_urgent(&stream) == Some(0)),
            (TIOCOUTQ, Some(info)) if open => info.unacknowledged,
            (SIOCOUTQNSD, Some(info)) if open => info
                .unacknowledged
                .saturating_sub(usize::try_from(info.snd_nxt.since(info.snd_una)).unwrap_or(0)),
            (FIONREAD | TIOCOUTQ | SIOCOUTQNSD, _) => 0,
            _ => return Err(Errno(ENOTTY)),
        };
        Ok(i32::try_from(value).unwrap_or(i32::MAX))
    }
}
