//! `TcpStream`, with the names and behaviour of `tokio::net::TcpStream`.

use crate::address::{ToSocketAddrs, each_address};
use crate::input::Input;
use crate::output::async_write;
use crate::split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
use std::future::poll_fn;
use std::io::{self, IoSlice, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use transom_net::{Bytes, ConnectOptions, ConnectionState, Stack};

/// A TCP connection on a [`Stack`].
///
/// Dropping it closes the connection in order; written data is still delivered.
///
/// A call that says nothing of errors fails with [`io::ErrorKind::NotConnected`] if the connection is gone, or never.
#[derive(Debug)]
pub struct TcpStream {
    pub(crate) stream: transom_net::TcpStream,
    pub(crate) input: Input,
}

impl TcpStream {
    /// Connects to the first of `addr`'s addresses that answers.
    ///
    /// # Errors
    /// Those of the last address tried, as [`transom_net::TcpStream::connect`]: refused, timed out, unreachable.
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
            let stream = transom_net::TcpStream::connect_nonblocking_with(stack, remote, options)?;
            poll_fn(|context| stream.poll_connected(context)).await?;
            Ok(TcpStream { stream, input: Input::default() })
        })
        .await
    }

    /// Takes a stream of [`transom_net`], which becomes non-blocking.
    pub fn from_net(stream: transom_net::TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(TcpStream { stream, input: Input::default() })
    }

    /// The stream of [`transom_net`] underneath, for settings that have no method here. Data that a [half](ReadHalf) has lent and nobody has consumed is
    /// not seen there.
    pub fn net(&self) -> &transom_net::TcpStream {
        &self.stream
    }

    /// Gives the stream of [`transom_net`]. It stays non-blocking. Data that a [half](ReadHalf) has lent and nobody has consumed is lost.
    pub fn into_net(self) -> transom_net::TcpStream {
        self.stream
    }

    /// The peer's address.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }

    /// Our own address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.stream.local_addr()
    }

    /// Waits until there is something to read, the end of the stream or an error. Any number of tasks may wait. Cancel safe.
    pub async fn readable(&self) -> io::Result<()> {
        if !self.input.has_rest() {
            self.stream.readable().await;
        }
        Ok(())
    }

    /// Waits until there is room to write, or an error. Any number of tasks may wait. Cancel safe.
    pub async fn writable(&self) -> io::Result<()> {
        self.stream.writable().await;
        Ok(())
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is nothing; otherwise as [`io::Read::read`].
    pub fn try_read(&self, out: &mut [u8]) -> io::Result<usize> {
        self.input.try_read(&self.stream, out)
    }

    /// Writes what there is room for.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is no room; otherwise as [`io::Write::write`].
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        (&self.stream).write(bytes)
    }

    /// Writes several buffers, one behind the other.
    ///
    /// # Errors
    /// As [`TcpStream::try_write`].
    pub fn try_write_vectored(&self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        (&self.stream).write_vectored(buffers)
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
        self.input.poll_peek(&self.stream, context, out)
    }

    /// Writes from the front of `bytes`, and keeps that memory until it is acknowledged instead of a copy. Takes it out of `bytes`, and says how much that
    /// was. Waits until there is room. Cancel safe.
    ///
    /// # Errors
    /// As [`transom_net::TcpStream::write_owned`].
    pub async fn write_owned(&self, bytes: &mut Bytes) -> io::Result<usize> {
        poll_fn(|context| self.stream.poll_write_owned(context, bytes)).await
    }

    /// Splits the stream into a reading and a writing half, which may be used by two futures of one task.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        crate::split::split(self)
    }

    /// Splits the stream into halves that may go to different tasks. Dropping the writing half ends the stream to the peer.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        crate::split::into_split(self)
    }

    /// Switches Nagle's algorithm off (`true`) or on.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.stream.set_nodelay(nodelay)
    }

    /// Whether Nagle's algorithm is off.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.stream.nodelay()
    }

    /// The time to live (hop limit) of the packets sent from now on, 1 to 255.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for another value, [`io::ErrorKind::NotConnected`] if the connection is gone.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.stream.set_ttl(ttl)
    }

    /// The time to live.
    pub fn ttl(&self) -> io::Result<u32> {
        self.stream.ttl()
    }

    /// Resets the connection when the stream is dropped, instead of closing it in order. (A drop that waits would block the executor, so there is none
    /// here.)
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.stream.set_linger(Some(Duration::ZERO))
    }

    /// The error that ended the connection, once.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.stream.take_error()
    }

    /// A snapshot of the connection's state.
    pub fn info(&self) -> io::Result<ConnectionState> {
        self.stream.info()
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.input.poll_read(&self.stream, context, out)
    }
}

async_write!(TcpStream);
