//! `TcpListener`, with the names and behaviour of [`std::net::TcpListener`].

use crate::acceptor::Acceptor;
use crate::engine::{Channel, Inner};
use crate::error::{listen_error, socket_error, would_block};
use crate::guard::guarded_shared;
use crate::ports::Reservation;
use crate::runtime::Runtime;
use crate::socket::{Kept, Place};
use crate::stack::{Shared, Stack, each_address};
use crate::stream::TcpStream;
use crate::tasks::Slot;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use transom_stack::mapped::Bound;
use transom_stack::{
    ConnectionId, ListenConfig, ListenError, ListenTotals, ListenerId, SocketOption,
};

/// A socket server on a [`Stack`].
///
/// A call that says nothing of errors does not fail at present.
#[derive(Debug)]
pub struct TcpListener {
    socket: Arc<Socket>,
}

#[derive(Debug)]
pub(crate) struct Socket {
    /// In each shard of the stack.
    parts: Vec<Part>,
    /// Of several parts: what waits in any of them.
    acceptor: Option<Arc<Acceptor>>,
    /// The part that is asked first.
    turn: AtomicUsize,
    local: SocketAddr,
    v6_only: bool,
    non_blocking: AtomicBool,
    /// SYNs are held, so that connections come by [`TcpListener::wait_incoming`] alone.
    holds: bool,
    /// The options of its connections.
    inherited: Mutex<Kept>,
    fd: OnceLock<OwnedFd>,
    /// The port, if it is not the stack's own. It goes last.
    _port: Option<Reservation>,
}

/// A connection and its peer.
type Accepted = (ConnectionId, SocketAddr);

/// A listener in one shard.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: ListenerId,
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The first part goes last: who gets its place finds that of the others free.
        while self.parts.pop().is_some() {}
    }
}

impl Socket {
    /// Whether calls wait.
    pub(crate) fn waits(&self) -> bool {
        !self.non_blocking.load(Ordering::Relaxed)
    }

    pub(crate) fn parts(&self) -> (&[Part], Option<&Acceptor>) {
        (&self.parts, self.acceptor.as_deref())
    }

    pub(crate) fn holds(&self) -> bool {
        self.holds
    }

    /// A listener that holds SYNs has one way to its connections.
    fn refuse_if_held(&self) -> io::Result<()> {
        let why = "the listener holds SYNs: its connections are those that are admitted";
        match self.holds {
            true => Err(io::Error::new(io::ErrorKind::InvalidInput, why)),
            false => Ok(()),
        }
    }

    /// The stream of a connection of one part, as the listener's connections are.
    pub(crate) fn stream(&self, part: &Part, connection: ConnectionId) -> TcpStream {
        let shared = Arc::clone(&part.shared);
        let inherited = self.inherited().clone();
        if inherited != Kept::default() {
            let runtime = &shared.runtime;
            // What goes wrong here is that the connection is over, and the caller finds that out.
            let _ = runtime
                .with(|inner, now| inner.host.set_options(connection, now, &inherited.options));
        }
        TcpStream::new(shared, connection, self.local.is_ipv6()).with_kept(&inherited)
    }

    fn inherited(&self) -> MutexGuard<'_, Kept> {
        self.inherited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the shards in turn.
    pub(crate) fn ask_parts<'a, T>(
        &self,
        parts: &'a [Part],
        acceptor: &Acceptor,
        waits: bool,
        ask: impl Fn(&Part) -> Option<io::Result<T>>,
    ) -> io::Result<(&'a Part, Option<io::Result<T>>)> {
        loop {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % parts.len();
            let (before, first) = parts.split_at(turn);
            let mut failure = None;
            for part in first.iter().chain(before) {
                match ask(part) {
                    Some(Err(error)) => failure = Some(error),
                    Some(answer) => return Ok((part, Some(answer))),
                    None => {}
                }
            }
            if let Some(error) = failure {
                return Err(error);
            }
            if !waits {
                return Err(would_block());
            }
            acceptor.wait();
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.shared.runtime.with(|inner, now| {
            inner.roles.forget_tasks(Channel::Acceptable(self.id));
            inner.roles.forget_tasks(Channel::Incoming(self.id));
            inner.watched.forget_listener(self.id);
            inner.listener_readiness.remove(&self.id);
            inner.acceptors.remove(&self.id);
            inner.host.close_listener(self.id, now);
        });
    }
}

impl Part {
    /// Listens in a shard; without an address, to everything.
    fn listen(
        shared: &Arc<Shared>,
        addr: Option<SocketAddr>,
        config: &ListenConfig,
        place: Option<&Place>,
    ) -> io::Result<Part> {
        let config = config
            .clone()
            .with_profile(config.profile.clone().map(|p| guarded_shared(p, &shared.budget)));
        let id = shared.runtime.with(|inner, _| {
            let Some(addr) = addr else {
                return inner.host.listen_to_everything(config).map_err(listen_error);
            };
            let bound = Bound::new(addr, config.v6_only);
            if let Some(place) = place {
                place.release(shared, inner);
            }
            if addr.port() != 0 && inner.host.is_listened_at(&bound) {
                return Err(listen_error(ListenError::InUse(addr)));
            }
            inner.host.listen(addr, config).map_err(listen_error)
        })?;
        Ok(Part { shared: Arc::clone(shared), id })
    }

    fn port(&self) -> Option<u16> {
        let inner = self.shared.runtime.lock();
        inner.host.listener_address(self.id).map(|local| local.port())
    }

    /// Accepts, with the thread leading its shard while it waits.
    fn accept(&self, waits: bool) -> Option<io::Result<Accepted>> {
        if !waits {
            return self.accept_now();
        }
        let runtime = &self.shared.runtime;
        runtime.wait(Channel::Acceptable(self.id), None, |inner, _| self.take(inner))
    }

    /// Accepts what is there, or is at the device.
    fn accept_now(&self) -> Option<io::Result<Accepted>> {
        self.shared.runtime.try_now(|inner, _| self.take(inner))
    }

    /// Takes a connection; `None` if there is none.
    fn take(&self, inner: &mut Inner) -> Option<io::Result<Accepted>> {
        let accepted = inner.host.accept(self.id);
        inner.update_listener_readiness(self.id);
        match (accepted, inner.failure()) {
            (Some(accepted), _) => Some(Ok(accepted)),
            (None, Some(error)) => Some(Err(error)),
            (None, None) => None,
        }
    }
}

/// The configuration of a listener whose parts count together. A handle to one shard makes a listener that is in that shard alone.
fn shared_config(stack: &Stack, config: ListenConfig) -> ListenConfig {
    let shards = u32::try_from(stack.shard_count()).unwrap_or(u32::MAX);
    let totals = (shards > 1).then(|| Arc::new(ListenTotals::new(shards)));
    config.with_totals(totals)
}

impl TcpListener {
    /// Listens at the first of `addr`'s addresses that works. Port 0 chooses a free one; an unspecified address means all of
    /// the host's. As on Linux, the unspecified IPv6 address means those of IPv4 too; [`ListenConfig::v6_only`] changes that.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if another socket listens there, [`io::ErrorKind::AddrNotAvailable`] if the address is not the
    /// host's. Where the [kernel](crate::PortSource::Kernel) says which ports are free, its errors for bind(2).
    pub fn bind(stack: &Stack, addr: impl ToSocketAddrs) -> io::Result<Self> {
        each_address(addr, |addr| Self::bind_with(stack, addr, ListenConfig::default()))
    }

    /// Listens at `addr` with its own backlog or profile.
    ///
    /// # Errors
    /// As [`TcpListener::bind`], and [`io::ErrorKind::InvalidInput`] for a profile that does not work.
    pub fn bind_with(stack: &Stack, addr: SocketAddr, config: ListenConfig) -> io::Result<Self> {
        Self::bind_at(stack, addr, config, Kept::default(), None)
    }

    /// Listens with options for its connections, at a place that was reserved.
    pub(crate) fn bind_at(
        stack: &Stack,
        addr: SocketAddr,
        config: ListenConfig,
        kept: Kept,
        place: Option<&Place>,
    ) -> io::Result<Self> {
        let mut local = addr;
        let port = stack.ports().map(|ports| ports.reserve(&Bound::new(addr, config.v6_only)));
        let port = port.transpose()?;
        if let Some(port) = &port {
            local.set_port(port.address().port());
        }
        let mut parts = Vec::with_capacity(stack.shard_count());
        let config = shared_config(stack, config);
        // A listener that gets a place in the first shard gets it in all of them, because they have the same listeners.
        for shared in stack.shards() {
            let part = Part::listen(shared, Some(local), &config, place)?;
            local.set_port(part.port().unwrap_or(local.port()));
            parts.push(part);
        }
        Ok(Self::of_parts(parts, local, &config, kept, port))
    }

    /// [`Stack::listen_to_everything`].
    pub(crate) fn bind_to_everything(stack: &Stack, config: ListenConfig) -> io::Result<Self> {
        let config = shared_config(stack, config);
        let shards = stack.shards().iter();
        let parts = shards.map(|shared| Part::listen(shared, None, &config, None));
        let parts = parts.collect::<io::Result<Vec<_>>>()?;
        let local = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0);
        Ok(Self::of_parts(parts, local, &config, Kept::default(), None))
    }

    fn of_parts(
        parts: Vec<Part>,
        local: SocketAddr,
        config: &ListenConfig,
        kept: Kept,
        port: Option<Reservation>,
    ) -> Self {
        let acceptor = (parts.len() > 1).then(|| Arc::new(Acceptor::new(parts.len())));
        if let Some(acceptor) = &acceptor {
            for (number, part) in parts.iter().enumerate() {
                part.shared.runtime.with(|inner, _| {
                    inner.acceptors.insert(part.id, (number, Arc::clone(acceptor)));
                    inner.update_listener_readiness(part.id);
                });
            }
        }
        let socket = Socket {
            parts,
            acceptor,
            turn: AtomicUsize::new(0),
            local,
            v6_only: config.v6_only || !local.is_ipv6(),
            non_blocking: AtomicBool::new(kept.non_blocking),
            holds: config.hold_syns.is_some(),
            inherited: Mutex::new(kept.inherited()),
            fd: OnceLock::new(),
            _port: port,
        };
        TcpListener { socket: Arc::new(socket) }
    }

    pub(crate) fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Its parts, each with where it is.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&Runtime, ListenerId)> {
        self.socket.parts.iter().map(|part| (&*part.shared.runtime, part.id))
    }

    /// The address where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.local)
    }

    /// Another handle to the same listener.
    pub fn try_clone(&self) -> io::Result<TcpListener> {
        Ok(TcpListener { socket: Arc::clone(&self.socket) })
    }

    /// Waits for a connection and gives it with the peer's address, as [`TcpStream::peer_addr`] shows it.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if the listener is non-blocking and there is none. [`io::ErrorKind::InvalidInput`] for a listener that
    /// [holds SYNs](ListenConfig::hold_syns), whose connections come by [`TcpListener::wait_incoming`].
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        self.socket.refuse_if_held()?;
        let waits = self.socket.waits();
        let (part, accepted) = match (&*self.socket.parts, &self.socket.acceptor) {
            ([part], _) => (part, part.accept(waits)),
            (parts, Some(acceptor)) => {
                self.socket.ask_parts(parts, acceptor, waits, Part::accept_now)?
            }
            (_, None) => return Err(would_block()),
        };
        Ok(self.stream(part, accepted.unwrap_or_else(|| Err(would_block()))?))
    }

    /// Accepts a connection of one shard, if one is there. With a thread and a [driver](crate::Driver) for each shard, each can answer the connections of
    /// its own shard.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none, [`io::ErrorKind::InvalidInput`] if there is no such shard, and as [`TcpListener::accept`].
    pub fn try_accept_in(&self, shard: usize) -> io::Result<(TcpStream, SocketAddr)> {
        self.socket.refuse_if_held()?;
        let part = self.socket.parts.get(shard).ok_or(io::ErrorKind::InvalidInput)?;
        let accepted = part.accept(false).unwrap_or_else(|| Err(would_block()))?;
        Ok(self.stream(part, accepted))
    }

    fn stream(&self, part: &Part, accepted: Accepted) -> (TcpStream, SocketAddr) {
        let (connection, remote) = accepted;
        let stream = self.socket.stream(part, connection);
        let remote = stream.shown(remote);
        (stream, remote)
    }

    /// Accepts, or has the task woken when there is a connection. The listener keeps the waker of the last task that polled;
    /// tasks that wait beside each other use [`TcpListener::accepting`]. The rules for wakers are those of [`TcpStream::poll_ready`].
    ///
    /// # Errors
    /// The device's, if it has failed.
    pub fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        self.poll_accept_at(Slot::OWN, context)
    }

    /// Waits for a connection. Any number of tasks may wait. Dropping the future loses no connection: one that is there stays for the next call.
    pub fn accepting(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> {
        Accept { listener: self, slot: Slot::new() }
    }

    fn poll_accept_at(
        &self,
        slot: Slot,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        self.socket.refuse_if_held()?;
        let parts = &*self.socket.parts;
        let Some(acceptor) = &self.socket.acceptor else {
            let Some(part) = parts.first() else { return Poll::Ready(Err(would_block())) };
            let runtime = &part.shared.runtime;
            let channel = Channel::Acceptable(part.id);
            let polled = runtime.poll(channel, slot, context, |inner, _| part.take(inner));
            return polled.map_ok(|accepted| self.stream(part, accepted));
        };
        loop {
            let (part, accepted) =
                match self.socket.ask_parts(parts, acceptor, false, Part::accept_now) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        let Some((first, replaced)) = acceptor.put(slot, context.waker()) else {
                            continue;
                        };
                        drop(replaced);
                        if first {
                            // From now on somebody may wait, whom the background threads serve.
                            parts.iter().for_each(|part| part.shared.runtime.with(|_, _| ()));
                        }
                        return Poll::Pending;
                    }
                    outcome => outcome?,
                };
            let accepted = accepted.unwrap_or_else(|| Err(would_block()));
            return Poll::Ready(accepted.map(|accepted| self.stream(part, accepted)));
        }
    }

    fn forget_task(&self, slot: Slot) {
        if let Some(acceptor) = &self.socket.acceptor {
            drop(acceptor.remove(slot));
        } else if let Some(part) = self.socket.parts.first() {
            part.shared.runtime.forget_task(Channel::Acceptable(part.id), slot);
        }
    }

    /// The connections, one after the other, without end.
    pub fn incoming(&self) -> impl Iterator<Item = io::Result<TcpStream>> {
        std::iter::repeat_with(|| self.accept().map(|(stream, _)| stream))
    }

    /// The connections, one after the other, of a listener that the iterator owns.
    pub fn into_incoming(self) -> impl Iterator<Item = io::Result<TcpStream>> {
        std::iter::repeat_with(move || self.accept().map(|(stream, _)| stream))
    }

    fn inherited(&self) -> MutexGuard<'_, Kept> {
        self.socket.inherited()
    }

    /// The time to live (hop limit) of connections that are accepted from now on, 1 to 255. Their SYN-ACKs have the host's own.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for another value.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        let option = SocketOption::TimeToLive(ttl);
        option.check().map_err(socket_error)?;
        self.inherited().options.set(option);
        Ok(())
    }

    /// The time to live that connections inherit.
    pub fn ttl(&self) -> io::Result<u32> {
        let inherited = self.inherited();
        let ttl = inherited.options.iter().find_map(|option| match option {
            SocketOption::TimeToLive(ttl) => Some(*ttl),
            _ => None,
        });
        // Without a choice it is that of all hosts.
        Ok(ttl.unwrap_or(64))
    }

    /// Whether an IPv6 listener is for IPv6 alone (`IPV6_V6ONLY`). It is chosen before: [`TcpSocket::only_v6`](crate::TcpSocket::only_v6),
    /// [`ListenConfig::v6_only`].
    pub fn only_v6(&self) -> io::Result<bool> {
        Ok(self.socket.v6_only)
    }

    /// A pending error of the listener itself; there is never one.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Whether [`TcpListener::accept`] returns at once when there is nothing to accept.
    pub fn set_nonblocking(&self, non_blocking: bool) -> io::Result<()> {
        self.socket.non_blocking.store(non_blocking, Ordering::Relaxed);
        Ok(())
    }
}

impl AsFd for TcpListener {
    /// A descriptor that becomes readable when there is a connection to accept. It is only for waiting.
    ///
    /// # Panics
    /// If the process has no descriptors left; [`TcpListener::try_as_fd`] returns the error.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.try_as_fd().expect("a file descriptor for the listener")
    }
}

impl TcpListener {
    /// Like [`AsFd::as_fd`].
    ///
    /// # Errors
    /// The operating system's, when no descriptor can be had.
    pub fn try_as_fd(&self) -> io::Result<BorrowedFd<'_>> {
        if let Some(fd) = self.socket.fd.get() {
            return Ok(fd.as_fd());
        }
        let fd = match (&self.socket.acceptor, &*self.socket.parts) {
            (Some(acceptor), parts) => {
                let fd = acceptor.export()?;
                // From now on somebody may wait for it, whom the background threads serve.
                parts.iter().for_each(|part| part.shared.runtime.with(|_, _| ()));
                fd
            }
            (None, [part, ..]) => part.shared.runtime.export_listener(part.id)?,
            (None, []) => return Err(io::ErrorKind::NotConnected.into()),
        };
        Ok(self.socket.fd.get_or_init(|| fd).as_fd())
    }
}

/// Waits for a connection, by [`TcpListener::accepting`].
struct Accept<'a> {
    listener: &'a TcpListener,
    slot: Slot,
}

impl Future for Accept<'_> {
    type Output = io::Result<(TcpStream, SocketAddr)>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.listener.poll_accept_at(self.slot, context)
    }
}

impl Drop for Accept<'_> {
    fn drop(&mut self) {
        self.listener.forget_task(self.slot);
    }
}
