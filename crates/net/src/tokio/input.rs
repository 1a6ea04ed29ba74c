//! The reading side of a stream: what was taken out of the receive queue and not yet consumed, and what is still there.

use crate::{Received, TcpStream};
use bytes::Bytes;
use std::io;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;

/// At most this much of a [`ReadBuf`] that is not initialised is filled with zeros for one read.
const MOST_ZEROED: usize = 64 * 1024;

/// What was taken out and not consumed. It is in front of what the receive queue has.
#[derive(Debug, Default)]
pub(super) struct Input(Mutex<Bytes>);

impl Input {
    fn rest(&self) -> MutexGuard<'_, Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is a rest.
    pub(super) fn has_rest(&self) -> bool {
        !self.rest().is_empty()
    }

    /// The front of the rest, as far as `room` goes; `None` if there is no rest.
    fn front(&self, room: usize) -> Option<Bytes> {
        let rest = self.rest();
        (!rest.is_empty()).then(|| rest.slice(..rest.len().min(room)))
    }

    /// Takes the front of the rest out, as far as `room` goes, and gives it to `put`. Says how much that was; `None` if there is no rest. Whoever reads
    /// beside this gets other bytes.
    fn take(&self, room: usize, put: impl FnOnce(&[u8])) -> Option<usize> {
        let mut rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let front = rest.slice(..rest.len().min(room));
        put(&front);
        *rest = rest.slice(front.len()..);
        Some(front.len())
    }

    fn take_into(&self, out: &mut [u8]) -> Option<usize> {
        self.take(out.len(), |front| out[..front.len()].copy_from_slice(front))
    }

    /// Takes all of the rest out.
    fn take_all(&self) -> Option<Bytes> {
        Some(mem::take(&mut *self.rest())).filter(|rest| !rest.is_empty())
    }

    /// Leaves only the last bytes of the rest, so many at most. If there are none, their memory goes back to the device.
    pub(super) fn leave(&self, most: usize) {
        let mut rest = self.rest();
        if let Some(gone) = rest.len().checked_sub(most) {
            *rest = rest.slice(gone..);
        }
    }

    /// Reads what is there.
    pub(super) fn try_read(&self, stream: &TcpStream, out: &mut [u8]) -> io::Result<usize> {
        match self.take_into(out) {
            Some(n) => Ok(n),
            None => io::Read::read(&mut &*stream, out),
        }
    }

    pub(super) fn read_or_hole(&self, stream: &TcpStream, out: &mut [u8]) -> io::Result<Received> {
        match self.take_into(out) {
            Some(n) => Ok(Received::Bytes(n)),
            None => stream.read_or_hole(out),
        }
    }

    pub(super) fn read_chunk(&self, stream: &TcpStream) -> io::Result<Option<Bytes>> {
        match self.take_all() {
            Some(rest) => Ok(Some(rest)),
            None => Ok(stream.read_chunk()?.map(Bytes::from_owner)),
        }
    }

    pub(super) fn poll_peek(
        &self,
        stream: &TcpStream,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        if let Some(front) = self.front(out.remaining()) {
            out.put_slice(&front);
            return Poll::Ready(Ok(front.len()));
        }
        let space = out.initialize_unfilled_to(out.remaining().min(MOST_ZEROED));
        let n = ready!(stream.poll_peek(context, space))?;
        out.advance(n);
        Poll::Ready(Ok(n))
    }

    pub(super) fn poll_read(
        &self,
        stream: &TcpStream,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.take(out.remaining(), |front| out.put_slice(front)).is_some() {
            return Poll::Ready(Ok(()));
        }
        let space = out.initialize_unfilled_to(out.remaining().min(MOST_ZEROED));
        let n = ready!(stream.poll_read(context, space))?;
        out.advance(n);
        Poll::Ready(Ok(()))
    }

    /// The rest, which is what one packet brought if there was none. Empty at the end of the stream.
    pub(super) fn poll_fill(
        &self,
        stream: &TcpStream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Bytes>> {
        if let Some(rest) = self.front(usize::MAX) {
            return Poll::Ready(Ok(rest));
        }
        let taken =
            stream.poll_reading(context, None, |connection, now| connection.read_taken(now));
        let chunk = stream.chunk(ready!(taken)?).map(Bytes::from_owner).unwrap_or_default();
        *self.rest() = chunk.clone();
        Poll::Ready(Ok(chunk))
    }
}
