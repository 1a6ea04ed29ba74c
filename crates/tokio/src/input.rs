//! The reading side of a stream: what was taken out of the receive queue and not yet consumed, and what is still there.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::ReadBuf;
use transom_net::{Chunk, TcpStream};

/// At most this much of a [`ReadBuf`] that is not initialised is filled with zeros for one read.
const MOST_ZEROED: usize = 64 * 1024;

/// What was taken out and not consumed. It is in front of what the receive queue has.
#[derive(Debug, Default)]
pub(crate) struct Input(Mutex<Option<Chunk>>);

impl Input {
    /// Calls `use_it` with the rest of what was taken out, if there is any.
    fn rest<T>(&self, use_it: impl FnOnce(&mut Chunk) -> T) -> Option<T> {
        let mut chunk = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if chunk.as_ref().is_some_and(|chunk| chunk.is_empty()) {
            *chunk = None;
        }
        chunk.as_mut().map(use_it)
    }

    /// Whether there is a rest.
    pub(crate) fn has_rest(&self) -> bool {
        self.rest(|_| ()).is_some()
    }

    /// Reads what is there.
    pub(crate) fn try_read(&self, stream: &TcpStream, out: &mut [u8]) -> io::Result<usize> {
        if let Some(n) = self.rest(|chunk| chunk.read(out)) {
            return Ok(n);
        }
        io::Read::read(&mut &*stream, out)
    }

    pub(crate) fn poll_peek(
        &self,
        stream: &TcpStream,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        let seen = self.rest(|chunk| {
            let n = chunk.len().min(out.remaining());
            out.put_slice(&chunk[..n]);
            n
        });
        if let Some(n) = seen {
            return Poll::Ready(Ok(n));
        }
        let space = out.initialize_unfilled_to(out.remaining().min(MOST_ZEROED));
        let n = ready!(stream.poll_peek(context, space))?;
        out.advance(n);
        Poll::Ready(Ok(n))
    }

    pub(crate) fn poll_read(
        &self,
        stream: &TcpStream,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.rest(|chunk| {
            let n = chunk.len().min(out.remaining());
            out.put_slice(&chunk[..n]);
            chunk.advance(n);
        });
        if read.is_some() {
            return Poll::Ready(Ok(()));
        }
        let space = out.initialize_unfilled_to(out.remaining().min(MOST_ZEROED));
        let n = ready!(stream.poll_read(context, space))?;
        out.advance(n);
        Poll::Ready(Ok(()))
    }

    pub(crate) fn poll_fill<'a>(
        &'a mut self,
        stream: &TcpStream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<&'a [u8]>> {
        let chunk = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if chunk.as_ref().is_none_or(|chunk| chunk.is_empty()) {
            // First the old one: its memory can be used for what comes.
            *chunk = None;
            *chunk = ready!(stream.poll_read_chunk(context))?;
        }
        Poll::Ready(Ok(chunk.as_deref().unwrap_or_default()))
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        if let Some(chunk) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner) {
            chunk.advance(bytes);
        }
    }
}
