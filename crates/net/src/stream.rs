//! `TcpStream`, with the names and behaviour of [`std::net::TcpStream`].
//!
//! The same tests run over both (`tests/sockets`). On Linux, these are the differences:
//!
//! - A reset discards what had arrived and was not read, as RFC 9293, section 3.10.7.4, has it ("all segment queues should be
//!   flushed"); Linux lets it be read first.
//! - When the peer has ended its stream in order and then resets the connection, the first write that learns of it fails with
//!   [`io::ErrorKind::ConnectionReset`] here and with [`io::ErrorKind::BrokenPipe`] on Linux. Later ones fail with the latter
//!   in both.
//! - After [`TcpStream::shutdown`] for reading, what still arrives is dropped; on Linux it can be read.

use crate::error::{connect_error, errno, socket_error, would_block};
use crate::runtime::{Channel, Inner};
use crate::stack::{Shared, Stack, each_address};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use transom_stack::stack::{ConnectionId, SocketError};
use transom_tcp::connection::{Connection, Info, ReadError, State, WriteError};
use transom_tcp::profile::{KeepAlive, Profile};
use transom_tcp::time::Instant;

/// A TCP connection on a [`Stack`].
///
/// Handles made by [`TcpStream::try_clone`] share the connection. When the last is dropped it is closed in order, and what was
/// written is still delivered; [`TcpStream::set_linger`] changes that.
#[derive(Debug)]
pub struct TcpStream {
    socket: Arc<Socket>,
}

#[derive(Debug)]
struct Socket {
    shared: Arc<Shared>,
    id: ConnectionId,
    non_blocking: AtomicBool,
    /// Nanoseconds; zero means none.
    read_timeout: AtomicU64,
    write_timeout: AtomicU64,
    linger: Mutex<Option<Duration>>,
    /// The connection's error has been reported once, as the operating system does.
    reported: AtomicBool,
    fd: OnceLock<OwnedFd>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        let runtime = &self.shared.runtime;
        let linger = *self.linger.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if linger == Some(Duration::ZERO) {
            runtime.with(|inner, now| {
                runtime.forget(inner, self.id);
                inner.host.abort(self.id, now);
            });
            return;
        }
        if let Some(linger) = linger {
            let now = runtime.now();
            runtime.with(|inner, now| {
                let _ = inner.host.shutdown_write(self.id, now);
            });
            runtime.wait(Channel::Writable(self.id), Some(now + linger.into()), |inner, _| {
                let done = inner.host.connection(self.id).is_none_or(|connection| {
                    connection.unacknowledged() == 0 || connection.error().is_some()
                });
                done.then_some(())
            });
        }
        runtime.with(|inner, now| {
            runtime.forget(inner, self.id);
            inner.host.close(self.id, now);
        });
    }
}

impl TcpStream {
    pub(crate) fn new(shared: Arc<Shared>, id: ConnectionId) -> Self {
        let socket = Socket {
            shared,
            id,
            non_blocking: AtomicBool::new(false),
            read_timeout: AtomicU64::new(0),
            write_timeout: AtomicU64::new(0),
            linger: Mutex::new(None),
            reported: AtomicBool::new(false),
            fd: OnceLock::new(),
        };
        TcpStream { socket: Arc::new(socket) }
    }

    /// Connects to the first of `addr`'s addresses that answers.
    ///
    /// # Errors
    /// Those of the last address tried: [`io::ErrorKind::ConnectionRefused`], [`io::ErrorKind::TimedOut`], …
    pub fn connect(stack: &Stack, addr: impl ToSocketAddrs) -> io::Result<Self> {
        each_address(addr, |addr| Self::open(stack, None, addr, None, None))
    }

    /// Connects to `addr` or gives up after `timeout`.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] after `timeout`; otherwise as [`TcpStream::connect`].
    pub fn connect_timeout(
        stack: &Stack,
        addr: &SocketAddr,
        timeout: Duration,
    ) -> io::Result<Self> {
        if timeout.is_zero() {
            return Err(zero_timeout());
        }
        Self::open(stack, None, *addr, None, Some(timeout))
    }

    /// Connects from a local address and port of one's choice (either may be unspecified), with a profile of one's own.
    ///
    /// # Errors
    /// As [`TcpStream::connect`], and [`io::ErrorKind::InvalidInput`] for a profile that does not work.
    pub fn connect_with(
        stack: &Stack,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        profile: Option<Profile>,
        timeout: Option<Duration>,
    ) -> io::Result<Self> {
        Self::open(stack, local, remote, profile, timeout)
    }

    /// Starts connecting and returns at once. The stream becomes writable when it is connected; until then reading and writing
    /// say [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::NotConnected`]. It is non-blocking.
    ///
    /// # Errors
    /// Those that can be told at once.
    pub fn connect_nonblocking(stack: &Stack, remote: SocketAddr) -> io::Result<Self> {
        let stream = Self::start(stack, None, remote, None)?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    fn start(
        stack: &Stack,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        profile: Option<Profile>,
    ) -> io::Result<Self> {
        let shared = Arc::clone(&stack.shared);
        let id = shared.runtime.with(|inner, now| {
            inner.host.connect(now, local, remote, profile.map(Arc::new)).map_err(connect_error)
        })?;
        Ok(TcpStream::new(shared, id))
    }

    fn open(
        stack: &Stack,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        profile: Option<Profile>,
        timeout: Option<Duration>,
    ) -> io::Result<Self> {
        let stream = Self::start(stack, local, remote, profile)?;
        let Socket { shared, id, .. } = &*stream.socket;
        let deadline = timeout.map(|timeout| shared.runtime.now() + timeout.into());
        let outcome = shared.runtime.wait(Channel::Writable(*id), deadline, |inner, _| {
            if let Some(kind) = inner.failure() {
                return Some(Err(io::Error::from(kind)));
            }
            let connection = inner.host.connection(*id)?;
            match (connection.state(), connection.error()) {
                (_, Some(error)) => Some(Err(errno(error).into())),
                (State::SynSent | State::SynReceived, None) => None,
                _ => Some(Ok(())),
            }
        });
        match outcome {
            Some(Ok(())) => Ok(stream),
            Some(Err(error)) => Err(error),
            None => Err(io::Error::new(io::ErrorKind::TimedOut, "connection timed out")),
        }
    }

    fn inspect<T>(&self, look: impl FnOnce(&Connection, Instant) -> T) -> io::Result<T> {
        let runtime = &self.socket.shared.runtime;
        let inner = runtime.lock();
        let now = runtime.now();
        let connection = inner.host.connection(self.socket.id).ok_or(Errno::NOTCONN)?;
        Ok(look(connection, now))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Connection, Instant) -> T) -> io::Result<T> {
        let id = self.socket.id;
        self.socket.shared.runtime.with(|inner, now| {
            let result = inner.host.with_connection(id, now, |connection| change(connection, now));
            inner.show(id);
            result.map_err(socket_error)
        })
    }

    /// Calls `attempt` until it does not say "would block", within the timeout and unless the stream is non-blocking.
    fn repeat<T>(
        &self,
        channel: Channel,
        timeout: &AtomicU64,
        mut attempt: impl FnMut(&mut Inner, Instant) -> Result<T, SocketError>,
    ) -> io::Result<T> {
        let Socket { shared, id, non_blocking, reported, .. } = &*self.socket;
        let runtime = &shared.runtime;
        let mut step = |inner: &mut Inner, now: Instant| {
            let result = attempt(inner, now);
            inner.show(*id);
            match result {
                Ok(value) => Some(Ok(value)),
                Err(
                    SocketError::Read(ReadError::WouldBlock)
                    | SocketError::Write(WriteError::WouldBlock),
                ) => inner.failure().map(|kind| Err(io::Error::from(kind))),
                Err(error) => Some(Err(socket_error(error))),
            }
        };
        let outcome = if non_blocking.load(Ordering::Relaxed) {
            runtime.with(|inner, now| {
                step(inner, now).or_else(|| {
                    runtime.poll_once(inner);
                    step(inner, runtime.now())
                })
            })
        } else {
            let timeout = timeout.load(Ordering::Relaxed);
            let deadline = (timeout > 0)
                .then(|| runtime.now() + transom_tcp::time::Duration::from_nanos(timeout));
            runtime.wait(channel, deadline, &mut step)
        };
        let outcome = outcome.unwrap_or_else(|| Err(would_block()));
        if let Err(error) = &outcome
            && matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::TimedOut
            )
            && reported.swap(true, Ordering::Relaxed)
        {
            // Reported before: from now on the stream is simply over.
            return Err(Errno::PIPE.into());
        }
        outcome
    }

    fn read_with(
        &self,
        mut take: impl FnMut(&mut Connection, Instant) -> Result<usize, ReadError>,
    ) -> io::Result<usize> {
        let id = self.socket.id;
        let result = self.repeat(Channel::Readable(id), &self.socket.read_timeout, |inner, now| {
            Ok(inner.host.with_connection(id, now, |connection| take(connection, now))??)
        });
        match result {
            // After an error has been reported, reading finds the end of the stream.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            other => other,
        }
    }

    /// The peer's address.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let inner = self.socket.shared.runtime.lock();
        Ok(inner.host.remote_address(self.socket.id).ok_or(Errno::NOTCONN)?)
    }

    /// Our own address.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is gone.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let inner = self.socket.shared.runtime.lock();
        Ok(inner.host.local_address(self.socket.id).ok_or(Errno::NOTCONN)?)
    }

    /// Ends reading, writing or both, for all handles.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is over.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.change(|connection, now| {
            if connection.state() == State::Closed {
                return Err(io::Error::from(Errno::NOTCONN));
            }
            if matches!(how, Shutdown::Write | Shutdown::Both) {
                connection.shutdown_write(now);
            }
            if matches!(how, Shutdown::Read | Shutdown::Both) {
                connection.shutdown_read(now);
            }
            Ok(())
        })?
    }

    /// Another handle to the same connection.
    ///
    /// # Errors
    /// None at present.
    pub fn try_clone(&self) -> io::Result<TcpStream> {
        Ok(TcpStream { socket: Arc::clone(&self.socket) })
    }

    /// How long [`Read::read`] waits at most; `None` for as long as it takes.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a timeout of zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        store_timeout(&self.socket.read_timeout, timeout)
    }

    /// How long [`Write::write`] waits at most; `None` for as long as it takes.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a timeout of zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        store_timeout(&self.socket.write_timeout, timeout)
    }

    /// The read timeout.
    ///
    /// # Errors
    /// None at present.
    pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(load_timeout(&self.socket.read_timeout))
    }

    /// The write timeout.
    ///
    /// # Errors
    /// None at present.
    pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
        Ok(load_timeout(&self.socket.write_timeout))
    }

    /// Reads without taking the data out of the stream.
    ///
    /// # Errors
    /// As [`Read::read`].
    pub fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_with(|connection, _| connection.peek(buffer))
    }

    /// What happens to unsent data when the last handle is dropped: `None` leaves it to the stack, a zero duration resets the
    /// connection, any other waits so long for it to be acknowledged.
    ///
    /// # Errors
    /// None at present.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        *self.socket.linger.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = linger;
        Ok(())
    }

    /// The linger setting.
    ///
    /// # Errors
    /// None at present.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        Ok(*self.socket.linger.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Switches Nagle's algorithm off (`true`) or on.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is gone.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.change(|connection, _| connection.set_nodelay(nodelay))
    }

    /// Whether Nagle's algorithm is off.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is gone.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.inspect(|connection, _| connection.nodelay())
    }

    /// Switches keep-alives on with these settings, or off.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is gone.
    pub fn set_keepalive(&self, keep_alive: Option<KeepAlive>) -> io::Result<()> {
        self.change(|connection, _| connection.set_keep_alive(keep_alive))
    }

    /// The keep-alive settings.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is gone.
    pub fn keepalive(&self) -> io::Result<Option<KeepAlive>> {
        self.inspect(|connection, _| connection.keep_alive())
    }

    /// The error that ended the connection, once.
    ///
    /// # Errors
    /// None at present.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = self.inspect(|connection, _| connection.error()).ok().flatten();
        Ok(error
            .filter(|_| !self.socket.reported.swap(true, Ordering::Relaxed))
            .map(|error| errno(error).into()))
    }

    /// Whether calls return [`io::ErrorKind::WouldBlock`] instead of waiting.
    ///
    /// # Errors
    /// None at present.
    pub fn set_nonblocking(&self, non_blocking: bool) -> io::Result<()> {
        self.socket.non_blocking.store(non_blocking, Ordering::Relaxed);
        Ok(())
    }

    /// A snapshot of the connection's state: windows, round-trip times, counters.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is gone.
    pub fn info(&self) -> io::Result<Info> {
        self.inspect(|connection, now| connection.info(now))
    }

    /// Calls `call` with the connection itself, for settings that have no method here.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is gone.
    pub fn with_connection<T>(
        &self,
        call: impl FnOnce(&mut Connection, Instant) -> T,
    ) -> io::Result<T> {
        self.change(call)
    }

    /// Like [`AsFd::as_fd`].
    ///
    /// # Errors
    /// The operating system's, when no descriptor can be had.
    pub fn try_as_fd(&self) -> io::Result<BorrowedFd<'_>> {
        if let Some(fd) = self.socket.fd.get() {
            return Ok(fd.as_fd());
        }
        let fd = self.socket.shared.runtime.export(self.socket.id)?;
        Ok(self.socket.fd.get_or_init(|| fd).as_fd())
    }
}

fn zero_timeout() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a timeout of zero is not possible")
}

fn store_timeout(slot: &AtomicU64, timeout: Option<Duration>) -> io::Result<()> {
    let nanos = match timeout {
        None => 0,
        Some(Duration::ZERO) => return Err(zero_timeout()),
        Some(timeout) => u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
    };
    slot.store(nanos, Ordering::Relaxed);
    Ok(())
}

fn load_timeout(slot: &AtomicU64) -> Option<Duration> {
    Some(slot.load(Ordering::Relaxed)).filter(|&nanos| nanos > 0).map(Duration::from_nanos)
}

impl Read for &TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_with(|connection, now| connection.read(now, buffer))
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.read_with(|connection, now| {
            let mut total = 0;
            for buffer in buffers.iter_mut().filter(|buffer| !buffer.is_empty()) {
                match connection.read(now, buffer) {
                    Ok(n) => {
                        total += n;
                        if n < buffer.len() {
                            return Ok(total);
                        }
                    }
                    Err(_) if total > 0 => return Ok(total),
                    Err(error) => return Err(error),
                }
            }
            Ok(total)
        })
    }
}

impl Write for &TcpStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(buffer)])
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let id = self.socket.id;
        self.repeat(Channel::Writable(id), &self.socket.write_timeout, |inner, now| {
            let written = inner.host.with_connection(id, now, |connection| {
                let mut total = 0;
                for buffer in buffers.iter().filter(|buffer| !buffer.is_empty()) {
                    match connection.write(now, buffer) {
                        Ok(n) => {
                            total += n;
                            if n < buffer.len() {
                                break;
                            }
                        }
                        Err(_) if total > 0 => break,
                        Err(error) => return Err(error),
                    }
                }
                Ok(total)
            })?;
            Ok(written?)
        })
    }

    /// Does nothing: what was written is on its way.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for TcpStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }

    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        (&*self).read_vectored(buffers)
    }
}

impl Write for TcpStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        (&*self).write(buffer)
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(buffers)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for TcpStream {
    /// A descriptor that is readable and writable when the stream is, for poll and epoll. It is only for waiting: its own bytes
    /// mean nothing.
    ///
    /// # Panics
    /// If the process has no descriptors left; [`TcpStream::try_as_fd`] returns the error.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.try_as_fd().expect("a file descriptor for the stream")
    }
}
