//! Halves of a stream, which borrow it or share it. Each has what the whole stream has, besides its traits. What [`TcpStream`] says of calls that read
//! behind what was lent, or that wait, holds for them too.

use super::stream::TcpStream;
use bytes::Bytes;
use std::fmt;
use std::io::{self, IoSlice};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};

/// The reading half of [`TcpStream::split`]. Dropping it changes nothing: what it has lent and nobody has consumed is read next from the stream.
pub type ReadHalf<'a> = ReadingHalf<&'a TcpStream>;
/// The writing half of [`TcpStream::split`]. Dropping it changes nothing; `shutdown` ends the stream to the peer.
pub type WriteHalf<'a> = WritingHalf<&'a TcpStream>;
/// The reading half of [`TcpStream::into_split`]. Dropping it changes nothing: the other half can still read, by [`TcpStream::try_read`], and what was
/// lent and not consumed comes first.
pub type OwnedReadHalf = ReadingHalf<Arc<TcpStream>>;
/// The writing half of [`TcpStream::into_split`]. Dropping it ends the stream to the peer.
pub type OwnedWriteHalf = WritingHalf<Ending>;

/// [`ReadHalf`] and [`OwnedReadHalf`].
///
/// Calls that it has from [`crate::TcpStream`] read behind what was lent, and those that wait block the executor: see [`TcpStream`].
#[derive(Debug)]
pub struct ReadingHalf<S> {
    stream: S,
    /// What [`AsyncBufRead::poll_fill_buf`] lends. The rest in the stream's input is its end: all of it, if nobody else has read.
    lent: Bytes,
}

/// [`WriteHalf`] and [`OwnedWriteHalf`].
///
/// Calls that it has from [`crate::TcpStream`] read behind what was lent, and those that wait block the executor: see [`TcpStream`].
#[derive(Debug)]
pub struct WritingHalf<S> {
    stream: S,
}

/// The stream of an [`OwnedWriteHalf`], which ends to the peer when this is dropped. Only this has a destructor: a [`WriteHalf`] would borrow the stream
/// until the end of its scope if it had one.
#[derive(Debug)]
pub struct Ending {
    stream: Arc<TcpStream>,
    ends: bool,
}

impl Deref for Ending {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if self.ends {
            let _ = self.stream.end();
        }
    }
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

impl<S> WritingHalf<S> {
    pub(super) fn new(stream: S) -> Self {
        WritingHalf { stream }
    }
}

impl Ending {
    pub(super) fn new(stream: Arc<TcpStream>) -> Self {
        Ending { stream, ends: true }
    }
}

impl ReadingHalf<Arc<TcpStream>> {
    /// Puts the halves together again.
    ///
    /// # Errors
    /// [`ReuniteError`], which gives the halves back, if they are not of the same stream.
    pub fn reunite(self, other: OwnedWriteHalf) -> Result<TcpStream, ReuniteError> {
        if !Arc::ptr_eq(&self.stream, &other.stream.stream) {
            return Err(ReuniteError(self, other));
        }
        other.forget();
        // There were only two.
        Arc::try_unwrap(self.stream).map_err(|stream| {
            let writing = WritingHalf::new(Ending::new(Arc::clone(&stream)));
            ReuniteError(ReadingHalf::new(stream), writing)
        })
    }
}

impl WritingHalf<Ending> {
    /// Puts the halves together again.
    ///
    /// # Errors
    /// As [`OwnedReadHalf::reunite`].
    pub fn reunite(self, other: OwnedReadHalf) -> Result<TcpStream, ReuniteError> {
        other.reunite(self)
    }

    /// Drops the half without an end of the stream.
    pub fn forget(mut self) {
        self.stream.ends = false;
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

impl<S: Deref<Target = TcpStream> + Unpin> AsyncRead for ReadingHalf<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Its memory goes back to the device as soon as it is read.
        self.lent = Bytes::new();
        self.stream.input.poll_read(&self.stream.net, context, out)
    }
}

impl<S: Deref<Target = TcpStream> + Unpin> AsyncBufRead for ReadingHalf<S> {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let half = self.get_mut();
        half.lent = ready!(half.stream.input.poll_fill(&half.stream.net, context))?;
        Poll::Ready(Ok(&half.lent[..]))
    }

    fn consume(self: Pin<&mut Self>, bytes: usize) {
        let half = self.get_mut();
        let bytes = bytes.min(half.lent.len());
        if bytes > 0 {
            half.lent = half.lent.slice(bytes..);
            half.stream.input.leave(half.lent.len());
        }
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
