//! Halves of a stream, which borrow it or share it. Each has what the whole stream has, besides its traits.

use super::stream::TcpStream;
use bytes::Bytes;
use std::fmt;
use std::io::{self, IoSlice};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

/// The reading half of [`TcpStream::split`].
pub type ReadHalf<'a> = ReadingHalf<&'a TcpStream>;
/// The writing half of [`TcpStream::split`]. Dropping it changes nothing; `shutdown` ends the stream to the peer.
pub type WriteHalf<'a> = WritingHalf<&'a TcpStream>;
/// The reading half of [`TcpStream::into_split`].
pub type OwnedReadHalf = ReadingHalf<Arc<TcpStream>>;
/// The writing half of [`TcpStream::into_split`]. Dropping it ends the stream to the peer.
pub type OwnedWriteHalf = WritingHalf<Arc<TcpStream>>;

/// [`ReadHalf`] and [`OwnedReadHalf`].
#[derive(Debug)]
pub struct ReadingHalf<S> {
    stream: S,
    /// What [`AsyncBufRead::poll_fill_buf`] lends. It is consumed from the stream's input.
    lent: Bytes,
}

/// [`WriteHalf`] and [`OwnedWriteHalf`].
#[derive(Debug)]
pub struct WritingHalf<S: Deref<Target = TcpStream>> {
    stream: S,
    ends_on_drop: bool,
}

/// The halves are not of the same stream.
#[derive(Debug)]
pub struct ReuniteError(pub OwnedReadHalf, pub OwnedWriteHalf);

impl fmt::Display for ReuniteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("these halves are not of the same stream")
    }
}

impl std::error::Error for ReuniteError {}

impl<S> ReadingHalf<S> {
    pub(super) fn new(stream: S) -> Self {
        ReadingHalf { stream, lent: Bytes::new() }
    }
}

impl<S: Deref<Target = TcpStream>> WritingHalf<S> {
    pub(super) fn new(stream: S, ends_on_drop: bool) -> Self {
        WritingHalf { stream, ends_on_drop }
    }
}

impl ReadingHalf<Arc<TcpStream>> {
    /// Puts the halves together again.
    ///
    /// # Errors
    /// [`ReuniteError`], which gives the halves back, if they are not of the same stream.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        if !Arc::ptr_eq(&self.stream, &other.stream) {
            return Err(ReuniteError(self, other));
        }
        other.forget();
        // There were only two.
        Arc::try_unwrap(self.stream).map_err(|stream| {
            let writing = WritingHalf::new(Arc::clone(&stream), true);
            ReuniteError(ReadingHalf::new(stream), writing)
        })
    }
}

impl WritingHalf<Arc<TcpStream>> {
    /// Puts the halves together again.
    ///
    /// # Errors
    /// As [`OwnedReadHalf::reunite`].
    pub fn reunite(self, other: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        other.reunite(self)
    }

    /// Drops the half without an end of the stream.
    pub fn forget(mut self) {
        self.ends_on_drop = false;
    }
}

impl<S: Deref<Target = TcpStream>> Drop for WritingHalf<S> {
    fn drop(&mut self) {
        if self.ends_on_drop {
            let _ = self.stream.end();
        }
    }
}

impl<S: Deref<Target = TcpStream>> Deref for ReadingHalf<S> {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}

impl<S: Deref<Target = TcpStream>> Deref for WritingHalf<S> {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}

impl<S: Deref<Target = TcpStream>> AsyncRead for ReadingHalf<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream.input.poll_read(&self.stream.net, context, out)
    }
}

impl<S: Deref<Target = TcpStream> + Unpin> AsyncBufRead for ReadingHalf<S> {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let half = self.get_mut();
        half.lent = ready!(half.stream.input.poll_fill(&half.stream.net, context))?;
        Poll::Ready(Ok(&half.lent[..]))
    }

    fn consume(mut self: Pin<&mut Self>, bytes: usize) {
        self.lent = Bytes::new();
        self.stream.input.consume(bytes);
    }
}

impl<S: Deref<Target = TcpStream>> AsyncWrite for WritingHalf<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream.net.poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream.net.poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.end())
    }
}
