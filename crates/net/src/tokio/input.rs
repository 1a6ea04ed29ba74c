//! The reading side of a stream: what was taken out of the receive queue and not yet consumed, and what is still there.

use crate::TcpStream;
use bytes::{Buf, Bytes};
use std::io;
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

    pub(super) fn consume(&self, bytes: usize) {
        let mut rest = self.rest();
        if bytes < rest.len() {
            rest.advance(bytes);
        } else {
            // Its memory goes back to the device.
            *rest = Bytes::new();
        }
    }

    /// Reads what is there.
    pub(super) fn try_read(&self, stream: &TcpStream, out: &mut [u8]) -> io::Result<usize> {
        let Some(mut front) = self.front(out.len()) else {
            return io::Read::read(&mut &*stream, out);
        };
        let n = front.len();
        front.copy_to_slice(&mut out[..n]);
        drop(front);
        self.consume(n);
        Ok(n)
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
        if let Some(front) = self.front(out.remaining()) {
            out.put_slice(&front);
            let n = front.len();
            drop(front);
            self.consume(n);
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
        if !self.has_rest() {
            let taken =
                stream.poll_reading(context, None, |connection, now| connection.read_taken(now));
            let chunk = stream.chunk(ready!(taken)?);
            *self.rest() = chunk.map(Bytes::from_owner).unwrap_or_default();
        }
        Poll::Ready(Ok(self.rest().clone()))
    }
}
