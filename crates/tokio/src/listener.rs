//! `TcpListener`, with the names and behaviour of `tokio::net::TcpListener`.

use crate::address::{ToSocketAddrs, each_address};
use crate::stream::TcpStream;
use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::task::{self, Context, Poll};
use transom_net::{ListenConfig, Stack};

/// A socket server on a [`Stack`].
///
/// A call that says nothing of errors does not fail at present.
#[derive(Debug)]
pub struct TcpListener {
    listener: transom_net::TcpListener,
}

impl TcpListener {
    /// Listens at the first of `addr`'s addresses that can be listened at.
    ///
    /// # Errors
    /// Those of the last address tried, as [`transom_net::TcpListener::bind`].
    pub async fn bind(stack: &Stack, addr: impl ToSocketAddrs) -> io::Result<Self> {
        Self::bind_with(stack, addr, ListenConfig::default()).await
    }

    /// Listens at the first of `addr`'s addresses that can be listened at, with its own backlog or profile.
    ///
    /// # Errors
    /// Those of the last address tried, as [`transom_net::TcpListener::bind_with`].
    pub async fn bind_with(
        stack: &Stack,
        addr: impl ToSocketAddrs,
        config: ListenConfig,
    ) -> io::Result<Self> {
        each_address(addr, |addr| {
            let listener = transom_net::TcpListener::bind_with(stack, addr, config.clone());
            ready(listener.map(Self::from_net))
        })
        .await
    }

    /// Takes a listener of [`transom_net`].
    pub fn from_net(listener: transom_net::TcpListener) -> Self {
        TcpListener { listener }
    }

    /// The listener of [`transom_net`] underneath.
    pub fn net(&self) -> &transom_net::TcpListener {
        &self.listener
    }

    /// Waits for a connection, and gives it with the peer's address. Any number of tasks may wait. Cancel safe: a connection that was not given out stays
    /// for the next call.
    ///
    /// # Errors
    /// The device's, if it has failed.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.listener.accepting().await?;
        Ok((TcpStream::from_net(stream)?, peer))
    }

    /// Accepts, or has the task woken when there is a connection. The last task that polled is woken.
    ///
    /// # Errors
    /// As [`TcpListener::accept`].
    pub fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let (stream, peer) = task::ready!(self.listener.poll_accept(context))?;
        Poll::Ready(Ok((TcpStream::from_net(stream)?, peer)))
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
