//! `TcpListener`, with the names and behaviour of `tokio::net::TcpListener`.

use super::address::{ToSocketAddrs, each_address};
use super::stream::TcpStream;
use crate::{ListenConfig, Stack};
use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::task::{self, Context, Poll};

/// A socket server on a [`Stack`]. It has what the [listener](crate::TcpListener) has that it is made from.
///
/// The calls of that one that wait block the executor: `incoming` and `wait_incoming`. The streams that it gives itself are blocking ones, and become
/// streams of this module by [`TcpStream::from`].
#[derive(Debug)]
pub struct TcpListener(crate::TcpListener);

impl From<crate::TcpListener> for TcpListener {
    fn from(listener: crate::TcpListener) -> Self {
        TcpListener(listener)
    }
}

impl Deref for TcpListener {
    type Target = crate::TcpListener;

    fn deref(&self) -> &crate::TcpListener {
        &self.0
    }
}

impl TcpListener {
    /// Listens at the first of `addr`'s addresses that can be listened at.
    ///
    /// # Errors
    /// Those of the last address tried, as [`crate::TcpListener::bind`].
    pub async fn bind(stack: &Stack, addr: impl ToSocketAddrs) -> io::Result<Self> {
        Self::bind_with(stack, addr, ListenConfig::default()).await
    }

    /// Listens at the first of `addr`'s addresses that can be listened at, with its own backlog or profile.
    ///
    /// # Errors
    /// Those of the last address tried, as [`crate::TcpListener::bind_with`].
    pub async fn bind_with(
        stack: &Stack,
        addr: impl ToSocketAddrs,
        config: ListenConfig,
    ) -> io::Result<Self> {
        each_address(addr, |addr| {
            let listener = crate::TcpListener::bind_with(stack, addr, config.clone());
            ready(listener.map(TcpListener))
        })
        .await
    }

    /// Waits for a connection, and gives it with the peer's address. Any number of tasks may wait. Cancel safe: a connection that was not given out stays
    /// for the next call.
    ///
    /// # Errors
    /// The device's, if it has failed.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = self.0.accepting().await?;
        Ok((stream.into(), peer))
    }

    /// Accepts, or has the task woken when there is a connection. The last task that polled is woken.
    ///
    /// # Errors
    /// As [`TcpListener::accept`].
    pub fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let (stream, peer) = task::ready!(self.0.poll_accept(context))?;
        Poll::Ready(Ok((stream.into(), peer)))
    }
}
