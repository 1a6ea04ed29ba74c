//! Tasks instead of threads: calls that return at once and have a task woken later.
//!
//! Each call tries first. Where it would have to wait it keeps the task's [`Waker`](std::task::Waker), under the same lock as the attempt, so no news is
//! lost between the two. News takes the waker out and calls it once, when the lock is free. There is no descriptor and no thread for
//! each stream: the leading thread calls the wakers, and while only tasks wait, its background thread leads.
//!
//! Of the `poll_…` calls for one direction, the stream keeps the waker of the last one, as [`std::future::Future::poll`] does.
//! Tasks that wait beside each other use [`TcpStream::readable`] and [`TcpStream::writable`], where each has a place of its own.
//!
//! A waker is called by any thread of the program or the stack. It must not wait long, and must not panic. It may call the stack.

use super::TcpStream;
use super::transfer::write_each;
use super::{end_after_error, settled};
use crate::engine::{Channel, Inner};
use crate::tasks::Slot;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use transom_stack::SocketError;
use transom_tcp::time::Instant;
use transom_tcp::{Connection, ReadError, WriteError, WriteOptions};

/// A direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Data from the peer, its end, or an error.
    Read,
    /// Room for data to the peer, the end of the handshake, or an error.
    Write,
}

impl TcpStream {
    pub(super) fn channel(&self, direction: Direction) -> Channel {
        match direction {
            Direction::Read => Channel::Readable(self.socket.id),
            Direction::Write => Channel::Writable(self.socket.id),
        }
    }

    /// Tries `attempt` until it does not say "would block".
    fn poll_at<T>(
        &self,
        direction: Direction,
        context: &mut Context<'_>,
        mut attempt: impl FnMut(&mut Inner, Instant) -> Result<T, SocketError>,
    ) -> Poll<io::Result<T>> {
        let id = self.socket.id;
        let runtime = &self.socket.shared.runtime;
        let polled = runtime.poll(self.channel(direction), Slot::OWN, context, |inner, now| {
            let result = attempt(inner, now);
            inner.update_readiness(id);
            settled(inner, result)
        });
        polled.map(|outcome| self.report(Some(outcome)))
    }

    /// Takes something out of the connection; `end` after an error that was reported.
    pub(crate) fn poll_reading<T>(
        &self,
        context: &mut Context<'_>,
        end: T,
        mut take: impl FnMut(&mut Connection, Instant) -> Result<T, ReadError>,
    ) -> Poll<io::Result<T>> {
        let polled = self
            .poll_at(Direction::Read, context, |inner, now| self.take_now(inner, now, &mut take));
        polled.map(|result| end_after_error(result, end))
    }

    /// Gives something to the connection.
    pub(crate) fn poll_writing(
        &self,
        context: &mut Context<'_>,
        mut put: impl FnMut(&mut Connection, Instant) -> Result<usize, WriteError>,
    ) -> Poll<io::Result<usize>> {
        self.poll_at(Direction::Write, context, |inner, now| self.put_now(inner, now, &mut put))
    }

    /// Reads as [`io::Read::read`] does, or has the task woken when there is something to read.
    ///
    /// # Errors
    /// As [`io::Read::read`], but for [`io::ErrorKind::WouldBlock`].
    pub fn poll_read(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_reading(context, 0, |connection, now| connection.read(now, buffer))
    }

    /// Reads without taking the data out of the stream.
    ///
    /// # Errors
    /// As [`TcpStream::poll_read`].
    pub fn poll_peek(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_reading(context, 0, |connection, _| connection.peek(buffer))
    }

    /// Writes as [`io::Write::write`] does, or has the task woken when there is room.
    ///
    /// # Errors
    /// As [`io::Write::write`], but for [`io::ErrorKind::WouldBlock`].
    pub fn poll_write(&self, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(buffer)])
    }

    /// Writes several buffers, one behind the other.
    ///
    /// # Errors
    /// As [`TcpStream::poll_write`].
    pub fn poll_write_vectored(
        &self,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let options = WriteOptions::default();
        self.poll_writing(context, |connection, now| write_each(connection, now, buffers, options))
    }

    /// Waits for the end of the handshake, on a stream of [`TcpStream::connect_nonblocking`].
    ///
    /// # Errors
    /// As [`TcpStream::connect`].
    pub fn poll_connected(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let runtime = &self.socket.shared.runtime;
        runtime.poll(self.channel(Direction::Write), Slot::OWN, context, |inner, _| {
            self.connected(inner)
        })
    }

    /// Waits until a call in this direction would not have to wait, as poll(2) does: see [`Setting::ReceiveLowWater`](crate::Setting::ReceiveLowWater) and
    /// [`Setting::NotsentLowWater`](crate::Setting::NotsentLowWater). Errors are found by that call.
    pub fn poll_ready(&self, direction: Direction, context: &mut Context<'_>) -> Poll<()> {
        self.poll_ready_at(direction, Slot::OWN, context)
    }

    fn poll_ready_at(
        &self,
        direction: Direction,
        slot: Slot,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let id = self.socket.id;
        let runtime = &self.socket.shared.runtime;
        let polled = runtime.poll(self.channel(direction), slot, context, |inner, now| {
            let ready = inner.host.with_connection(id, now, |connection| match direction {
                Direction::Read => connection.has_enough(usize::MAX),
                Direction::Write => connection.is_writable() || !connection.expect_room(),
            });
            (inner.has_failed() || ready.unwrap_or(true)).then_some(Ok(()))
        });
        // The next call finds the error.
        polled.map(|_| ())
    }

    /// Calls `attempt` with the connection itself until it is ready, as [`TcpStream::with_connection`] does. Where it is not, the task is woken by the
    /// next news in this direction.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is gone; the device's, if it has failed and `attempt` is not ready.
    pub fn poll_with<T>(
        &self,
        direction: Direction,
        context: &mut Context<'_>,
        mut attempt: impl FnMut(&mut Connection, Instant) -> Poll<T>,
    ) -> Poll<io::Result<T>> {
        self.poll_at(direction, context, |inner, now| {
            let id = self.socket.id;
            let outcome = inner.host.with_connection(id, now, |connection| {
                let outcome = attempt(connection, now);
                if outcome.is_pending() && direction == Direction::Write {
                    connection.expect_room();
                }
                outcome
            })?;
            match outcome {
                Poll::Ready(value) => Ok(value),
                Poll::Pending => Err(SocketError::Read(ReadError::WouldBlock)),
            }
        })
    }

    /// Waits until there is something to read. Any number of tasks may wait. Dropping the future takes nothing away from the stream.
    pub fn readable(&self) -> impl Future<Output = ()> {
        Readiness { stream: self, direction: Direction::Read, slot: Slot::new() }
    }

    /// Waits until there is room to write. Any number of tasks may wait.
    pub fn writable(&self) -> impl Future<Output = ()> {
        Readiness { stream: self, direction: Direction::Write, slot: Slot::new() }
    }
}

/// Waits until a stream is ready, by [`TcpStream::readable`] or [`TcpStream::writable`].
struct Readiness<'a> {
    stream: &'a TcpStream,
    direction: Direction,
    slot: Slot,
}

impl Future for Readiness<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.stream.poll_ready_at(self.direction, self.slot, context)
    }
}

impl Drop for Readiness<'_> {
    fn drop(&mut self) {
        let runtime = &self.stream.socket.shared.runtime;
        runtime.forget_task(self.stream.channel(self.direction), self.slot);
    }
}
