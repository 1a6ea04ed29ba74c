//! `TcpStream`, with the names and behaviour of `tokio::net::TcpStream`.

use super::address::{ToSocketAddrs, each_address};
use super::input::Input;
use super::split::{
    Ending, OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReadingHalf, WriteHalf, WritingHalf,
};
use crate::{Bytes, ConnectOptions, Received, Stack};
use std::future::poll_fn;
use std::io::{self, IoSlice, Write};
use std::net::Shutdown;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use transom_tcp::Connection;

/// A TCP connection on a [`Stack`].
///
/// Dropping it closes the connection in order; written data is still delivered.
///
/// Its addresses, settings and state are those of the [stream](crate::TcpStream) that it is made from, and that it can be made into again. That one is
/// non-blocking, and does not see data that a [half](ReadHalf) has lent and nobody has consumed.
///
/// So its calls that read, and that have no namesake here, read behind what was lent: `take_chunks`, `read_through`, `read_unordered`, `poll_with`, and
/// its `poll_read` with a slice. Its calls that wait block the executor: `wait_for_report`, and all after `set_nonblocking(false)`.
#[derive(Debug)]
pub struct TcpStream {
    pub(super) net: crate::TcpStream,
    pub(super) input: Input,
}

impl From<crate::TcpStream> for TcpStream {
    fn from(net: crate::TcpStream) -> Self {
        // It does not fail.
        let _ = net.set_nonblocking(true);
        TcpStream { net, input: Input::default() }
    }
}

impl From<TcpStream> for crate::TcpStream {
    fn from(stream: TcpStream) -> Self {
        stream.net
    }
}

impl Deref for TcpStream {
    type Target = crate::TcpStream;

    fn deref(&self) -> &crate::TcpStream {
        &self.net
    }
}

impl TcpStream {
    /// Connects to the first of `addr`'s addresses that answers.
    ///
    /// # Errors
    /// Those of the last address tried, as [`crate::TcpStream::connect`]: refused, timed out, unreachable.
    pub async fn connect(stack: &Stack, addr: impl ToSocketAddrs) -> io::Result<Self> {
        Self::connect_with(stack, addr, &ConnectOptions::default()).await
    }

    /// Connects to the first of `addr`'s addresses that answers: from an address of one's choice, or with a profile of one's own. If the future is
    /// dropped, the connection is closed. The timeout of `options` is for calls that block: an asynchronous program has `tokio::time::timeout`.
    ///
    /// # Errors
    /// As [`TcpStream::connect`], and [`io::ErrorKind::InvalidInput`] for a profile that does not work.
    pub async fn connect_with(
        stack: &Stack,
        addr: impl ToSocketAddrs,
        options: &ConnectOptions,
    ) -> io::Result<Self> {
        each_address(addr, |remote| async move {
            let stream = TcpStream::from(crate::TcpStream::start(stack, remote, options)?);
            poll_fn(|context| stream.poll_connected(context)).await?;
            Ok(stream)
        })
        .await
    }

    /// Waits until there is something to read, the end of the stream or an error. Any number of tasks may wait. Cancel safe.
    pub async fn readable(&self) -> io::Result<()> {
        if !self.input.has_rest() {
            self.net.readable().await;
        }
        Ok(())
    }

    /// Waits until there is room to write, or an error. Any number of tasks may wait. Cancel safe.
    pub async fn writable(&self) -> io::Result<()> {
        self.net.writable().await;
        Ok(())
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is nothing; otherwise as [`io::Read::read`].
    pub fn try_read(&self, out: &mut [u8]) -> io::Result<usize> {
        self.input.try_read(&self.net, out)
    }

    /// Reads what is there, or takes note of a hole, as [`crate::TcpStream::read_or_hole`]. It does not wait.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is nothing; otherwise as [`crate::TcpStream::read_or_hole`].
    pub fn read_or_hole(&self, out: &mut [u8]) -> io::Result<Received> {
        self.input.read_or_hole(&self.net, out)
    }

    /// Takes the next data out of the stream without a copy, as [`crate::TcpStream::read_chunk`]: first what a half has lent and nobody has consumed.
    /// `None` is the end of the stream. It does not wait.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is nothing; otherwise as [`io::Read::read`].
    pub fn read_chunk(&self) -> io::Result<Option<Bytes>> {
        self.input.read_chunk(&self.net)
    }

    /// Writes what there is room for.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is no room; otherwise as [`io::Write::write`].
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.net).write(bytes)
    }

    /// Writes several buffers, one behind the other.
    ///
    /// # Errors
    /// As [`TcpStream::try_write`].
    pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        (&self.net).write_vectored(buffers)
    }

    /// Reads without taking the data out of the stream. Waits until there is something. Cancel safe.
    ///
    /// # Errors
    /// As [`io::Read::read`].
    pub async fn peek(&self, out: &mut [u8]) -> io::Result<usize> {
        let mut out = ReadBuf::new(out);
        poll_fn(|context| self.poll_peek(context, &mut out)).await
    }

    /// Reads without taking the data out of the stream. Of all calls that read, the last task to poll is woken.
    ///
    /// # Errors
    /// As [`io::Read::read`].
    pub fn poll_peek(
        &self,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        self.input.poll_peek(&self.net, context, out)
    }

    /// Writes from the front of `bytes`, and keeps that memory until it is acknowledged instead of a copy. Takes it out of `bytes`, and says how much that
    /// was. Waits until there is room. Cancel safe.
    ///
    /// # Errors
    /// As [`crate::TcpStream::write_owned`].
    pub async fn write_owned(&self, bytes: &mut Bytes) -> io::Result<usize> {
        let mut write = |connection: &mut Connection, now| connection.write_owned(now, bytes);
        poll_fn(|context| self.net.poll_writing(context, &mut write)).await
    }

    /// Splits the stream into a reading and a writing half, which may be used by two futures of one task.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        let stream = &*self;
        (ReadingHalf::new(stream), WritingHalf::new(stream))
    }

    /// Splits the stream into halves that may go to different tasks. Dropping the writing half ends the stream to the peer.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        let stream = Arc::new(self);
        (ReadingHalf::new(Arc::clone(&stream)), WritingHalf::new(Ending::new(stream)))
    }

    /// Resets the connection when the stream is dropped, instead of closing it in order. (A drop that waits would block the executor, so an asynchronous
    /// program sets no other linger time.)
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.net.set_linger(Some(Duration::ZERO))
    }

    /// Ends the stream to the peer. A connection that is over needs no end.
    pub(super) fn end(&self) -> io::Result<()> {
        match self.net.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            outcome => outcome,
        }
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.input.poll_read(&self.net, context, out)
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.net.poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.net.poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: written data is already on its way.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.end())
    }
}
