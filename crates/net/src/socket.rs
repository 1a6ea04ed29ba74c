//! `TcpSocket`: options and a local place before there is a connection or a listener.

use crate::engine::Inner;
use crate::error::listen_error;
use crate::listener::TcpListener;
use crate::ports::Reservation;
use crate::stack::{Shared, Stack};
use crate::stream::{HeldStream, TcpStream};
use rustix::io::Errno;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use transom_stack::mapped::Bound;
use transom_stack::{ListenConfig, SocketOption, SocketOptions};
use transom_tcp::{Profile, Setting};

/// A socket that neither is connected nor listens yet: what a program does between socket(2) and connect(2) or listen(2).
///
/// [`TcpSocket::connect`] opens a connection that has the options from its SYN on. [`TcpSocket::listen`] makes a listener whose connections
/// inherit them.
///
/// ```
/// # use transom_device::memory::{MemoryConfig, pair};
/// # use transom_net::{Setting, SocketOption, Stack, TcpSocket};
/// # let (left, right) = pair(&MemoryConfig::default())?;
/// # let alice = Stack::builder().address("10.0.0.1".parse().unwrap(), 24).start(left)?;
/// # let bob = Stack::builder().address("10.0.0.2".parse().unwrap(), 24).start(right)?;
/// let socket = TcpSocket::new(&bob).option(Setting::NoDelay(true));
/// let listener = socket.bind("10.0.0.2:80".parse().unwrap())?.listen(16)?;
///
/// let socket = TcpSocket::new(&alice).option(SocketOption::TimeToLive(32));
/// let socket = socket.option(Setting::ReceiveBuffer(1 << 20)).bind("10.0.0.1:0".parse().unwrap())?;
/// let local = socket.local_addr();
/// let stream = socket.connect("10.0.0.2:80".parse().unwrap())?;
/// assert_eq!(Some(stream.local_addr()?), local);
/// assert_eq!(stream.ttl()?, 32);
/// assert!(listener.accept()?.0.nodelay()?);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a socket does nothing until it connects or listens"]
pub struct TcpSocket {
    stack: Stack,
    kept: Kept,
    profile: Option<Profile>,
    v6_only: bool,
    place: Option<Place>,
}

/// What was set on a socket before its connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Kept {
    /// The options of the connection.
    pub(crate) options: SocketOptions,
    pub(crate) linger: Option<Option<Duration>>,
    pub(crate) read_timeout: Option<Duration>,
    pub(crate) write_timeout: Option<Duration>,
    pub(crate) non_blocking: bool,
}

impl Kept {
    /// That of a connection that holds the answer to its SYN for so long at most, and nothing else.
    pub(crate) fn holding(limit: Duration) -> Self {
        let mut kept = Kept::default();
        kept.options.set(Setting::HoldAnswer(limit.into()));
        kept
    }

    /// What a listener's connections inherit. As on Linux, the non-blocking mode is not inherited.
    pub(crate) fn inherited(self) -> Self {
        Kept { non_blocking: false, ..self }
    }
}

/// A place that a socket is bound to. It is free when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    address: SocketAddr,
    /// The reservation in each shard, if the host chooses its ports itself. Dropping the place releases them.
    own: Mutex<Vec<(Arc<Shared>, Bound)>>,
    /// The reservation, if the host's ports are the kernel's.
    _kernels: Option<Reservation>,
}

impl Place {
    fn reserve(stack: &Stack, address: SocketAddr, v6_only: bool) -> io::Result<Place> {
        if let Some(ports) = stack.ports() {
            let reservation = ports.reserve(&Bound::new(address, v6_only))?;
            let address = SocketAddr::new(address.ip(), reservation.address().port());
            return Ok(Place { address, own: Mutex::default(), _kernels: Some(reservation) });
        }
        let mut place = Place { address, own: Mutex::default(), _kernels: None };
        for shared in stack.shards() {
            let address = place.address;
            let bound = shared.runtime.with(|inner, _| inner.host.reserve(address, v6_only));
            let bound = bound.map_err(listen_error)?;
            place.address.set_port(bound.address.port());
            place.own().push((Arc::clone(shared), bound));
        }
        Ok(place)
    }

    /// Frees the socket's address in a shard, so that the caller can bind it again at once. The caller holds the shard's lock.
    pub(crate) fn release(&self, shard: &Arc<Shared>, inner: &mut Inner) {
        self.own().retain(|(shared, bound)| {
            let ours = Arc::ptr_eq(shared, shard);
            if ours {
                inner.host.unreserve(bound);
            }
            !ours
        });
    }

    fn own(&self) -> MutexGuard<'_, Vec<(Arc<Shared>, Bound)>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Not while it is locked: the host's lock is taken first elsewhere.
        let own = std::mem::take(&mut *self.own());
        for (shared, bound) in own {
            shared.runtime.with(|inner, _| inner.host.unreserve(&bound));
        }
    }
}

impl TcpSocket {
    /// Sets an option, as [`TcpStream::set_option`]; the SYN has it too. An impossible value is told when the socket connects.
    pub fn option(mut self, option: impl Into<SocketOption>) -> Self {
        self.kept.options.set(option);
        self
    }

    /// As [`TcpStream::set_linger`].
    pub fn linger(mut self, linger: Option<Duration>) -> Self {
        self.kept.linger = Some(linger);
        self
    }

    /// As [`TcpStream::set_read_timeout`]; zero means none.
    pub fn read_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.kept.read_timeout = timeout;
        self
    }

    /// As [`TcpStream::set_write_timeout`]; zero means none.
    pub fn write_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.kept.write_timeout = timeout;
        self
    }

    /// Whether calls of the stream or listener return [`io::ErrorKind::WouldBlock`] instead of waiting. [`TcpSocket::connect`] then returns at once.
    pub fn nonblocking(mut self, non_blocking: bool) -> Self {
        self.kept.non_blocking = non_blocking;
        self
    }

    /// A socket of a host, without options.
    pub fn new(stack: &Stack) -> Self {
        TcpSocket {
            stack: stack.clone(),
            kept: Kept::default(),
            profile: None,
            v6_only: false,
            place: None,
        }
    }

    /// The profile of its connections. The other options are laid over it.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// At the unspecified IPv6 address, listen for IPv6 alone (`IPV6_V6ONLY`). To be called before [`TcpSocket::bind`].
    pub fn only_v6(mut self, v6_only: bool) -> Self {
        self.v6_only = v6_only;
        self
    }

    /// Binds the socket, and with it reserves the port: no other socket gets it until this one is dropped. Port 0 chooses a free one.
    ///
    /// # Errors
    /// As [`TcpListener::bind`]; [`io::ErrorKind::InvalidInput`] if the socket is bound.
    pub fn bind(mut self, address: SocketAddr) -> io::Result<Self> {
        if self.place.is_some() {
            return Err(Errno::INVAL.into());
        }
        self.place = Some(Place::reserve(&self.stack, address, self.v6_only)?);
        Ok(self)
    }

    /// The bound address.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.place.as_ref().map(|place| place.address)
    }

    /// Connects to `remote`; a socket that is not blocking only starts to.
    ///
    /// # Errors
    /// As [`TcpStream::connect_with`], and [`io::ErrorKind::InvalidInput`] for an option's value that is not possible.
    pub fn connect(self, remote: SocketAddr) -> io::Result<TcpStream> {
        self.connect_within(remote, None)
    }

    /// Connects to `remote` or gives up after `timeout`.
    ///
    /// # Errors
    /// As [`TcpSocket::connect`], and [`io::ErrorKind::TimedOut`].
    pub fn connect_timeout(self, remote: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        self.connect_within(remote, Some(timeout))
    }

    /// Starts to connect to `remote`, and holds the last acknowledgement for `limit` at most: see [`TcpStream::connect_held`].
    ///
    /// # Errors
    /// As [`TcpSocket::connect`], those that can be told at once.
    pub fn connect_held(self, remote: SocketAddr, limit: Duration) -> io::Result<HeldStream> {
        let TcpSocket { stack, mut kept, profile, place, .. } = self;
        kept.options.set(Setting::HoldAnswer(limit.into()));
        let local = place.as_ref().map(|place| place.address);
        let place = place.as_ref();
        let stream = TcpStream::start_with(&stack, local, remote, profile, &kept, place)?;
        Ok(HeldStream::new(stream))
    }

    fn connect_within(
        self,
        remote: SocketAddr,
        timeout: Option<Duration>,
    ) -> io::Result<TcpStream> {
        let TcpSocket { stack, kept, profile, place, .. } = self;
        let local = place.as_ref().map(|place| place.address);
        let place = place.as_ref();
        let stream = TcpStream::start_with(&stack, local, remote, profile, &kept, place)?;
        if !kept.non_blocking {
            stream.wait_until_connected(timeout)?;
        }
        Ok(stream)
    }

    /// Listens, with room for this many connections that wait to be accepted. They inherit the socket's options.
    ///
    /// # Errors
    /// As [`TcpListener::bind_with`]; [`io::ErrorKind::InvalidInput`] if the socket is not bound, as there would be no address to tell others.
    pub fn listen(self, backlog: usize) -> io::Result<TcpListener> {
        let config = ListenConfig::default().with_backlog(backlog);
        self.listen_with(config)
    }

    /// Listens with these settings. The socket's profile and `only_v6` win over those of `config`.
    ///
    /// # Errors
    /// As [`TcpSocket::listen`].
    pub fn listen_with(self, config: ListenConfig) -> io::Result<TcpListener> {
        let TcpSocket { stack, kept, profile, v6_only, place } = self;
        let place = place.ok_or(Errno::INVAL)?;
        let profile = profile.map(Arc::new).or(config.profile.clone());
        let config = config.with_profile(profile).with_v6_only(v6_only);
        TcpListener::bind_at(&stack, place.address, config, kept, Some(&place))
    }
}
