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

mod chunk;
mod delivery;
mod fast_open;
pub(crate) mod file_memory;
mod held;
mod options;
mod owned;
mod polling;
mod reports;
mod through;
mod transfer;

use crate::connect_options::ConnectOptions;
use crate::engine::{Channel, Inner};
use crate::error::{connect_error, errno, is_final, socket_error, would_block};
use crate::guard::{guard, guarded};
use crate::observer::{Observable, Observer, ObserverOptions};
use crate::runtime::Runtime;
use crate::socket::{Kept, Place};
use crate::stack::{Shared, Stack, each_address};
pub use chunk::{Chunk, ChunkReader};
pub use held::HeldStream;
use options::{load_timeout, zero_timeout};
pub use polling::Direction;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::net::{Shutdown, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use transom_stack::mapped::{is_mapped, mapped};
use transom_stack::{ConnectionId, SocketError};
use transom_tcp::extension::{Extension, LayerId};
use transom_tcp::time::Instant;
use transom_tcp::{
    Connection, ConnectionState, IcmpError, Profile, ReadError, Received, State, WriteError,
};

/// A TCP connection on a [`Stack`].
///
/// Handles made by [`TcpStream::try_clone`] share the connection. Dropping the last one closes the connection in order, and written data is still
/// delivered; [`TcpStream::set_linger`] changes that.
///
/// A call that says nothing of errors fails with [`io::ErrorKind::NotConnected`] if the connection is gone, or never.
#[derive(Debug)]
pub struct TcpStream {
    socket: Arc<Socket>,
}

#[derive(Debug)]
struct Socket {
    shared: Arc<Shared>,
    id: ConnectionId,
    /// It is an IPv6 socket, also where the connection is IPv4's.
    v6: bool,
    non_blocking: AtomicBool,
    /// Nanoseconds; zero means none.
    read_timeout: AtomicU64,
    write_timeout: AtomicU64,
    linger: Mutex<Option<Duration>>,
    /// A blocking read waits for this many bytes.
    receive_low_water: AtomicUsize,
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
                self.forget_tasks(inner);
                inner.watched.forget(self.id);
                inner.readiness.remove(&self.id);
                inner.observers.remove(&self.id);
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
                    let closing = matches!(
                        connection.state(),
                        State::FinWait1 | State::Closing | State::LastAck
                    );
                    (connection.unacknowledged() == 0 && !closing) || connection.error().is_some()
                });
                (done || inner.has_failed()).then_some(())
            });
        }
        runtime.with(|inner, now| {
            self.forget_tasks(inner);
            inner.watched.forget(self.id);
            inner.readiness.remove(&self.id);
            // When the connection is closed nobody is told any more; its layers go with it.
            inner.observers.remove(&self.id);
            inner.host.close(self.id, now);
        });
    }
}

impl Socket {
    /// Nobody can wait any more.
    fn forget_tasks(&self, inner: &mut Inner) {
        inner.roles.forget_tasks(Channel::Readable(self.id));
        inner.roles.forget_tasks(Channel::Writable(self.id));
    }
}

impl TcpStream {
    /// A separate stream for a connection; with `v6` it shows IPv4 addresses as mapped ones.
    pub(crate) fn new(shared: Arc<Shared>, id: ConnectionId, v6: bool) -> Self {
        let socket = Socket {
            shared,
            id,
            v6,
            non_blocking: AtomicBool::new(false),
            read_timeout: AtomicU64::new(0),
            write_timeout: AtomicU64::new(0),
            linger: Mutex::new(None),
            receive_low_water: AtomicUsize::new(1),
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
        Self::connect_with(stack, addr, &ConnectOptions::default())
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
        Self::connect_with(stack, *addr, &ConnectOptions::default().with_timeout(Some(timeout)))
    }

    /// Connects to the first of `addr`'s addresses that answers: from an address of one's choice, with a profile of one's own, or for so long.
    ///
    /// # Errors
    /// As [`TcpStream::connect`], and [`io::ErrorKind::InvalidInput`] for a profile that does not work or a timeout of zero.
    pub fn connect_with(
        stack: &Stack,
        addr: impl ToSocketAddrs,
        options: &ConnectOptions,
    ) -> io::Result<Self> {
        if options.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(zero_timeout());
        }
        each_address(addr, |remote| {
            let stream = Self::start(stack, remote, options)?;
            stream.wait_until_connected(options.timeout)?;
            Ok(stream)
        })
    }

    /// Starts connecting and returns at once. The stream becomes writable when it is connected; until then reading and writing
    /// say [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::NotConnected`]. It is non-blocking.
    ///
    /// # Errors
    /// Those that can be told at once.
    pub fn connect_nonblocking(stack: &Stack, remote: SocketAddr) -> io::Result<Self> {
        let stream = Self::start(stack, remote, &ConnectOptions::default())?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    /// Waits for the end of the handshake.
    pub(crate) fn wait_until_connected(&self, timeout: Option<Duration>) -> io::Result<()> {
        let Socket { shared, id, .. } = &*self.socket;
        let deadline = timeout.map(|timeout| shared.runtime.now() + timeout.into());
        let channel = Channel::Writable(*id);
        let outcome = shared.runtime.wait(channel, deadline, |inner, _| self.connected(inner));
        let timed_out = || io::Error::new(io::ErrorKind::TimedOut, "connection timed out");
        outcome.unwrap_or_else(|| Err(timed_out()))
    }

    /// How the handshake ended, once it has.
    fn connected(&self, inner: &Inner) -> Option<io::Result<()>> {
        self.opening(inner, |connection| {
            let opens = matches!(connection.state(), State::SynSent | State::SynReceived);
            (!opens).then_some(Ok(()))
        })
    }

    /// How an open ended, if it failed; otherwise the answer of `ask`.
    fn opening(
        &self,
        inner: &Inner,
        ask: impl FnOnce(&Connection) -> Option<io::Result<()>>,
    ) -> Option<io::Result<()>> {
        if let Some(error) = inner.failure() {
            return Some(Err(error));
        }
        let Some(connection) = inner.host.connection(self.socket.id) else {
            return Some(Err(Errno::NOTCONN.into()));
        };
        match connection.error() {
            Some(error) => Some(Err(errno(error).into())),
            None => ask(connection),
        }
    }

    pub(crate) fn start(
        stack: &Stack,
        remote: SocketAddr,
        options: &ConnectOptions,
    ) -> io::Result<Self> {
        let ConnectOptions { local, profile, .. } = options;
        Self::start_with(stack, *local, remote, profile.clone(), &Kept::default(), None)
    }

    /// Starts connecting with options that the SYN has too, from a place that was reserved.
    pub(crate) fn start_with(
        stack: &Stack,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        profile: Option<Profile>,
        kept: &Kept,
        place: Option<&Place>,
    ) -> io::Result<Self> {
        let (shared, id) = stack.open(local, remote, &|shared, inner, now, local| {
            let profile = profile.clone();
            let profile = profile.map(|profile| Arc::new(guarded(profile, &shared.budget)));
            if let Some(place) = place {
                place.release(shared, inner);
            }
            let id = inner.host.connect(now, local, remote, profile).map_err(connect_error)?;
            let set = inner.host.set_options(id, now, &kept.options);
            set.map_err(socket_error).inspect_err(|_| inner.host.abort(id, now))?;
            Ok(id)
        })?;
        Ok(TcpStream::new(shared, id, is_mapped(remote.ip())).with_kept(kept))
    }

    /// The settings that are the handle's own.
    pub(crate) fn with_kept(self, kept: &Kept) -> Self {
        self.socket.non_blocking.store(kept.non_blocking, Ordering::Relaxed);
        if let Some(choice) = kept.linger {
            *self.socket.linger.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = choice;
        }
        kept.options.iter().for_each(|option| self.socket.take_notice(option));
        // Zero is none.
        let _ = self.set_read_timeout(kept.read_timeout);
        let _ = self.set_write_timeout(kept.write_timeout);
        self
    }

    /// The runtime and the identifier of the connection.
    pub(crate) fn place(&self) -> (&Runtime, ConnectionId) {
        (&self.socket.shared.runtime, self.socket.id)
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
            inner.update_readiness(id);
            result.map_err(socket_error)
        })
    }

    /// Calls `attempt` until it does not say "would block", within the direction's timeout and unless the stream is non-blocking.
    fn repeat<T>(
        &self,
        direction: Direction,
        mut attempt: impl FnMut(&mut Inner, Instant) -> Result<T, SocketError>,
    ) -> io::Result<T> {
        let Socket { shared, id, non_blocking, .. } = &*self.socket;
        let runtime = &shared.runtime;
        let step = |inner: &mut Inner, now: Instant| {
            let result = attempt(inner, now);
            inner.update_readiness(*id);
            settled(inner, result)
        };
        let outcome = if non_blocking.load(Ordering::Relaxed) {
            runtime.try_now(step)
        } else {
            runtime.wait(self.channel(direction), self.deadline(direction), step)
        };
        self.report(outcome)
    }

    fn deadline(&self, direction: Direction) -> Option<Instant> {
        let timeout = match direction {
            Direction::Read => &self.socket.read_timeout,
            Direction::Write => &self.socket.write_timeout,
        };
        Some(self.socket.shared.runtime.now() + load_timeout(timeout)?.into())
    }

    /// Takes something out of the connection, and waits until there is something.
    fn reading<T>(
        &self,
        mut take: impl FnMut(&mut Connection, Instant) -> Result<T, ReadError>,
    ) -> io::Result<T> {
        self.repeat(Direction::Read, |inner, now| self.take_now(inner, now, &mut take))
    }

    /// Takes what is there.
    fn take_now<T>(
        &self,
        inner: &mut Inner,
        now: Instant,
        take: impl FnOnce(&mut Connection, Instant) -> Result<T, ReadError>,
    ) -> Result<T, SocketError> {
        Ok(inner
            .host
            .with_connection(self.socket.id, now, |connection| take(connection, now))??)
    }

    /// Gives something to the connection, and waits until there is room.
    fn writing(
        &self,
        mut put: impl FnMut(&mut Connection, Instant) -> Result<usize, WriteError>,
    ) -> io::Result<usize> {
        self.repeat(Direction::Write, |inner, now| self.put_now(inner, now, &mut put))
    }

    /// Writes what there is room for.
    fn put_now(
        &self,
        inner: &mut Inner,
        now: Instant,
        put: impl FnOnce(&mut Connection, Instant) -> Result<usize, WriteError>,
    ) -> Result<usize, SocketError> {
        let now = self.socket.shared.runtime.poll_for_acks(inner, now);
        let id = self.socket.id;
        let written = inner.host.with_connection(id, now, |connection| put(connection, now))??;
        inner.roles.written_since_poll += written;
        Ok(written)
    }

    /// The outcome in the operating system's form: an error that ended the connection is reported once.
    fn report<T>(&self, outcome: Option<io::Result<T>>) -> io::Result<T> {
        let outcome = outcome.unwrap_or_else(|| Err(would_block()));
        if outcome.as_ref().is_err_and(is_final)
            && self.socket.reported.swap(true, Ordering::Relaxed)
        {
            // From now on the stream is simply over.
            return Err(Errno::PIPE.into());
        }
        outcome
    }

    /// Reads into memory that the device may be given while the thread waits.
    fn read_into(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let Socket { shared, id, .. } = &*self.socket;
        let deadline = self.deadline(Direction::Read);
        let outcome = shared.runtime.wait_to_read(*id, deadline, buffer, |inner, now, out| {
            let result = inner.host.read(*id, now, out);
            inner.update_readiness(*id);
            settled(inner, result)
        });
        end_after_error(self.report(outcome), 0)
    }

    /// Reads when the low-water mark is reached. When the timeout has passed, reads the available data.
    fn read_enough(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let Socket { shared, id, .. } = &*self.socket;
        let deadline = self.deadline(Direction::Read);
        let wanted = buffer.len();
        let mut read = |inner: &mut Inner, now: Instant, at_least: usize| {
            let enough = inner.host.connection(*id).is_none_or(|c| c.has_enough(at_least));
            if !enough && !inner.has_failed() {
                return None;
            }
            let result = inner.host.read(*id, now, buffer);
            inner.update_readiness(*id);
            settled(inner, result)
        };
        let channel = Channel::Readable(*id);
        let outcome = shared.runtime.wait(channel, deadline, |inner, now| read(inner, now, wanted));
        let outcome = outcome.or_else(|| shared.runtime.with(|inner, now| read(inner, now, 1)));
        end_after_error(self.report(outcome), 0)
    }

    /// The peer's address. As on Linux it is an IPv4-mapped address, `::ffff:192.0.2.1`, where an IPv6 listener accepted an
    /// IPv4 connection, or the stream was connected to such an address.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        let inner = self.socket.shared.runtime.lock();
        let remote = inner.host.remote_address(self.socket.id).ok_or(Errno::NOTCONN)?;
        Ok(self.shown(remote))
    }

    /// Our own address, in the same form as [`TcpStream::peer_addr`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let inner = self.socket.shared.runtime.lock();
        let local = inner.host.local_address(self.socket.id).ok_or(Errno::NOTCONN)?;
        Ok(self.shown(local))
    }

    /// An address as this socket shows it.
    pub(crate) fn shown(&self, address: SocketAddr) -> SocketAddr {
        if self.socket.v6 { mapped(address) } else { address }
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
    pub fn try_clone(&self) -> io::Result<TcpStream> {
        Ok(TcpStream { socket: Arc::clone(&self.socket) })
    }

    /// Reads bytes, or takes note of a hole: a part of the stream that was given up and will never come. Waits until there is
    /// something. See [`Connection::read_or_hole`].
    ///
    /// In front of a hole, [`io::Read::read`] and [`TcpStream::peek`] fail with [`io::ErrorKind::InvalidData`] at every call. So a program that
    /// ignores holes never joins the data on both sides of one. This call continues behind the hole. Holes exist only if the profile gives up data,
    /// or accepts or skips holes ([`Profile::persistence`], [`Profile::holes`]).
    ///
    /// # Errors
    /// As [`io::Read::read`], but for [`io::ErrorKind::InvalidData`].
    pub fn read_or_hole(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let result = self.reading(|connection, now| connection.read_or_hole(now, buffer));
        end_after_error(result, Received::Bytes(0))
    }

    /// Reads without taking the data out of the stream.
    ///
    /// # Errors
    /// As [`io::Read::read`].
    pub fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        end_after_error(self.reading(|connection, _| connection.peek(buffer)), 0)
    }

    /// The error that ended the connection, once.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let error = self.inspect(|connection, _| connection.error()).ok().flatten();
        Ok(error
            .filter(|_| !self.socket.reported.swap(true, Ordering::Relaxed))
            .map(|error| errno(error).into()))
    }

    /// The last error that the network reported about the connection's packets, such as an unreachable host. Each is returned once. It does not end
    /// the connection (RFC 9293 section 3.9.2.2). If the connection times out later, it ends with this error.
    pub fn take_soft_error(&self) -> io::Result<Option<IcmpError>> {
        self.change(|connection, _| connection.take_soft_error())
    }

    /// A snapshot of the connection's state: windows, round-trip times, counters.
    pub fn info(&self) -> io::Result<ConnectionState> {
        self.inspect(|connection, now| connection.info(now))
    }

    /// Attaches an [observer](Observer): a layer of the connection that another thread, or this one, works from outside. A [`Wake`](transom_tcp::extension::Wake) alone chooses its events.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is not established (any more); [`io::ErrorKind::InvalidInput`] with an
    /// [`AttachError`](transom_tcp::extension::AttachError) inside if it has too many layers or not what the observer requires.
    pub fn observer(&self, options: impl Into<ObserverOptions>) -> io::Result<Observer> {
        Observer::attach(&self.socket.shared, self.socket.id, options.into())
    }

    /// The connection as something to attach observers to later, when this handle may be gone.
    pub fn observable(&self) -> Observable {
        Observable::new(&self.socket.shared, self.socket.id)
    }

    /// Attaches an extension as the topmost layer, guarded like those of [profiles](crate::StackBuilder::profile). [`Connection::poll_departure`]
    /// reports when it is removed.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the connection is gone; [`io::ErrorKind::InvalidInput`] with the [reason](transom_tcp::extension::AttachError) if it
    /// cannot be attached.
    pub fn attach(&self, extension: Box<dyn Extension>) -> io::Result<LayerId> {
        let extension = guard(|| extension, &self.socket.shared.budget);
        self.change(|connection, now| connection.attach(now, extension))?
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
    }

    /// Detaches a layer and cancels its requests. Returns whether there was such a layer.
    pub fn detach(&self, layer: LayerId) -> io::Result<bool> {
        self.change(|connection, now| connection.detach(now, layer).is_some())
    }

    /// Calls `call` with the connection itself, for settings that have no method here. `call` runs under the host's lock: it must
    /// not use streams or listeners of the same [`Stack`].
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

/// The result of an attempt, unless it has to be made again later.
fn settled<T>(inner: &Inner, result: Result<T, SocketError>) -> Option<io::Result<T>> {
    match result {
        Ok(value) => Some(Ok(value)),
        Err(
            SocketError::Read(ReadError::WouldBlock) | SocketError::Write(WriteError::WouldBlock),
        ) => inner.failure().map(Err),
        Err(error) => Some(Err(socket_error(error))),
    }
}

/// After an error has been reported, reading finds the end of the stream.
fn end_after_error<T>(result: io::Result<T>, end: T) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(end),
        other => other,
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
