//! `bind`, `listen`, `accept`, `connect`, and the addresses of a socket.

use crate::address::Family;
use crate::drive::{Awaited, Drive, Port, Sockets, Waited, Waiting};
use crate::errno::{Errno, Result};
use crate::socket::{Role, Socket, Stream};
use crate::table::Table;
use libc::{
    EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EALREADY, ECONNABORTED, EINPROGRESS, EINTR, EINVAL,
    EISCONN, ENETUNREACH, ENOTCONN, SOCK_CLOEXEC, SOCK_NONBLOCK,
};
use std::net::SocketAddr;
use std::sync::Arc;
use transom_stack::mapped::{Bound, canonical, is_mapped, mapped};
use transom_stack::{ConnectionId, ListenConfig, Stack};
use transom_tcp::{Profile, State};

/// The longest accept queue (Linux' `somaxconn`).
const MAX_BACKLOG: i32 = 4096;

impl Socket {
    /// The binding of this socket to `address`.
    fn bound_to(&self, address: SocketAddr) -> Bound {
        Bound::new(address, self.options.v6_only)
    }

    /// An address of the stack's as this socket shows it.
    fn shown(&self, address: SocketAddr) -> SocketAddr {
        match self.family {
            Family::V4 => address,
            Family::V6 => mapped(address),
        }
    }
}

/// Whether nothing stands in the way of being bound so. With SO_REUSEADDR connections do not, nor do sockets that have it
/// too and do not listen.
fn may_bind(stack: &Stack, table: &Table, bound: &Bound, reuse: bool) -> bool {
    let stands = |socket: &Socket| {
        let listens = matches!(socket.role, Role::Listener { .. });
        let shares = reuse && socket.options.reuse_address && !listens;
        !shares && socket.bound.is_some_and(|other| socket.bound_to(other).overlaps(bound))
    };
    !table.iter().any(stands) && (reuse || !stack.is_in_use(bound))
}

impl Sockets<'_> {
    fn is_local(&self, address: SocketAddr) -> bool {
        let ip = canonical(address).ip();
        ip.is_unspecified() || self.stack.config().addresses.iter().any(|&(ours, _)| ours == ip)
    }

    /// `address` for the socket `fd`, with a port of its own if it has none.
    fn with_port(&mut self, fd: i32, address: SocketAddr) -> Result<SocketAddr> {
        if address.port() != 0 {
            return Ok(address);
        }
        let v6_only = self.table.get(fd)?.options.v6_only;
        let is_free = |stack: &Stack, bound: &Bound| may_bind(stack, self.table, bound, false);
        let place = self.stack.free_place(address.ip(), v6_only, is_free);
        let port = place.ok_or(Errno(EADDRINUSE))?.address.port();
        Ok(SocketAddr::new(address.ip(), port))
    }

    /// Whether `bind` is possible for this socket and address, as far as others do not matter; and what it would mean.
    pub(crate) fn before_bind(&self, fd: i32, address: SocketAddr) -> Result<Bound> {
        let socket = self.table.get(fd)?;
        if socket.family != Family::of(address.ip()) {
            return Err(Errno(EAFNOSUPPORT));
        }
        if socket.bound.is_some() || !matches!(socket.role, Role::Fresh) {
            return Err(Errno(EINVAL));
        }
        if socket.options.v6_only && is_mapped(address.ip()) {
            return Err(Errno(EINVAL));
        }
        if !self.is_local(address) {
            return Err(Errno(EADDRNOTAVAIL));
        }
        Ok(socket.bound_to(address))
    }

    pub(crate) fn bind(&mut self, fd: i32, address: SocketAddr, port: Option<Port>) -> Result<()> {
        // Another thread may have been here since.
        self.before_bind(fd, address)?;
        let address = match &port {
            Some(port) => SocketAddr::new(address.ip(), port.address.port()),
            None => self.with_port(fd, address)?,
        };
        let socket = self.table.get(fd)?;
        let reuse = socket.options.reuse_address;
        if !may_bind(self.stack, self.table, &socket.bound_to(address), reuse) {
            return Err(Errno(EADDRINUSE));
        }
        let socket = self.table.get_mut(fd)?;
        socket.bound = Some(address);
        socket.port = port.map(|port| port.reservation);
        Ok(())
    }

    /// The profile for connections of a socket, of one version of IP.
    fn profile_of(&self, socket: &Socket, version: Family) -> Arc<Profile> {
        Arc::new(socket.options.profile(&self.stack.config().profile, version))
    }

    /// How a listening socket is to listen.
    fn listen_config(&self, socket: &Socket, backlog: usize) -> ListenConfig {
        ListenConfig::default()
            .with_backlog(backlog)
            .with_profile(Some(self.profile_of(socket, socket.family)))
            .with_v6_only(socket.options.v6_only)
            .with_fast_open(socket.options.fast_open as usize)
    }

    /// The address that a socket gets by listening, if it is not bound yet.
    pub(crate) fn before_listen(&self, fd: i32) -> Result<Option<Bound>> {
        let socket = self.table.get(fd)?;
        let any = SocketAddr::new(socket.family.unspecified(), 0);
        let binds = matches!(socket.role, Role::Fresh) && socket.bound.is_none();
        Ok(binds.then(|| socket.bound_to(any)))
    }

    pub(crate) fn listen(&mut self, fd: i32, backlog: i32, port: Option<Port>) -> Result<()> {
        let backlog = if (0..MAX_BACKLOG).contains(&backlog) { backlog } else { MAX_BACKLOG };
        let backlog = backlog as usize + 1;
        let socket = self.table.get(fd)?;
        match socket.role {
            Role::Stream(_) => Err(Errno(EINVAL)),
            Role::Listener { id, .. } => {
                self.table.set_role(fd, Role::Listener { id, backlog })?;
                self.renew_listener(fd)
            }
            Role::Fresh => {
                let config = self.listen_config(socket, backlog);
                let any = SocketAddr::new(socket.family.unspecified(), 0);
                let address = match (socket.bound, &port) {
                    (Some(address), _) => address,
                    (None, Some(port)) => SocketAddr::new(any.ip(), port.address.port()),
                    (None, None) => self.with_port(fd, any)?,
                };
                let id = self.stack.listen(address, config)?;
                self.table.set_role(fd, Role::Listener { id, backlog })?;
                let socket = self.table.get_mut(fd)?;
                if socket.bound.replace(address).is_none() {
                    socket.port = port.map(|port| port.reservation);
                }
                Ok(())
            }
        }
    }

    /// Tells a listener of changed options or backlog.
    pub(crate) fn renew_listener(&mut self, fd: i32) -> Result<()> {
        let socket = self.table.get(fd)?;
        if let Role::Listener { id, backlog } = socket.role {
            let config = self.listen_config(socket, backlog);
            self.stack.reconfigure_listener(id, config)?;
        }
        Ok(())
    }

    /// Gives a connection that was taken out of a listener's queue a descriptor.
    fn accepted(
        &mut self,
        fd: i32,
        flags: i32,
        connection: ConnectionId,
        remote: SocketAddr,
    ) -> Result<(i32, SocketAddr)> {
        let socket = self.table.get(fd)?;
        // The limit is the listener's.
        let (family, mut options) = (socket.family, socket.options.clone());
        options.fast_open = 0;
        self.apply_live(connection, &options);
        if family == Family::V6 && remote.is_ipv4() {
            self.apply_network(connection, &options);
        }
        let remote = self.table.get(fd)?.shown(remote);
        let accepted = self.table.insert(Socket {
            family,
            nonblocking: flags & SOCK_NONBLOCK != 0,
            options,
            bound: None,
            port: None,
            role: Role::Stream(Stream::new(connection, false)),
        });
        if accepted.is_err() {
            self.stack.abort(connection, self.now());
        }
        self.settle();
        Ok((accepted?, remote))
    }

    /// The address to bind a fresh socket to before it connects to `remote`.
    fn before_begin(&self, fd: i32, remote: SocketAddr) -> Result<Option<SocketAddr>> {
        let socket = self.table.get(fd)?;
        if socket.family != Family::of(remote.ip()) {
            return Err(Errno(EAFNOSUPPORT));
        }
        if socket.options.v6_only && is_mapped(remote.ip()) {
            return Err(Errno(ENETUNREACH));
        }
        Ok(socket.bound)
    }

    /// Begins to connect a fresh socket from `local`, with Fast Open or without.
    fn begin_from(
        &mut self,
        fd: i32,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        fast: bool,
    ) -> Result<()> {
        let socket = self.table.get(fd)?;
        if !matches!(socket.role, Role::Fresh) {
            // Another thread was faster.
            return Err(Errno(EALREADY));
        }
        let now = self.now();
        let profile = Some(self.profile_of(socket, Family::of(canonical(remote).ip())));
        let options = socket.options.clone();
        let id = match fast {
            true => self.stack.connect_on_write(now, local, remote, profile)?,
            false => self.stack.connect(now, local, remote, profile)?,
        };
        self.table.set_role(fd, Role::Stream(Stream::new(id, true)))?;
        self.apply_live(id, &options);
        self.settle();
        Ok(())
    }

    /// How a call waits for a connection that is being opened.
    pub(crate) fn opening(&self, fd: i32) -> Result<Waiting> {
        let socket = self.table.get(fd)?;
        let (nonblocking, timeout) = (socket.nonblocking, socket.options.send_timeout);
        let Role::Stream(Stream { id, .. }) = socket.role else { return Err(Errno(ECONNABORTED)) };
        Ok(Waiting { awaited: Awaited::Writable(id), nonblocking, timeout })
    }

    /// How an attempt to connect came out, if it has.
    pub(crate) fn connected(&mut self, fd: i32) -> Option<Result<()>> {
        let stream = self.stream(fd).ok()??;
        match self.state(&stream) {
            State::SynSent | State::SynReceived => None,
            State::Closed => {
                // SO_ERROR may have taken the reason.
                let error = self.take_error(fd).unwrap_or(Errno(ECONNABORTED));
                self.forget(fd, &stream);
                Some(Err(error))
            }
            _ => {
                self.stream_mut(fd)?.connecting = false;
                Some(Ok(()))
            }
        }
    }

    /// Makes a socket fresh again whose connection has failed or is given up. Its address from `bind` stays.
    pub(crate) fn forget(&mut self, fd: i32, stream: &Stream) {
        self.stack.abort(stream.id, self.now());
        let _ = self.table.set_role(fd, Role::Fresh);
        self.settle();
    }

    pub(crate) fn local_address(&self, fd: i32) -> Result<SocketAddr> {
        let socket = self.table.get(fd)?;
        let local = match socket.role {
            Role::Stream(stream) => {
                self.stack.local_address(stream.id).map(|local| socket.shown(local))
            }
            Role::Fresh | Role::Listener { .. } => socket.bound,
        };
        Ok(local.unwrap_or_else(|| SocketAddr::new(socket.family.unspecified(), 0)))
    }

    pub(crate) fn peer_address(&self, fd: i32) -> Result<SocketAddr> {
        let stream = self.stream(fd)?.ok_or(Errno(ENOTCONN))?;
        match self.state(&stream) {
            State::Closed | State::SynSent => Err(Errno(ENOTCONN)),
            _ => {
                let remote = self.stack.remote_address(stream.id).ok_or(Errno(ENOTCONN))?;
                Ok(self.table.get(fd)?.shown(remote))
            }
        }
    }
}

pub(crate) fn accept(driver: &mut impl Drive, fd: i32, flags: i32) -> Result<(i32, SocketAddr)> {
    let listener = |sockets: &Sockets<'_>| {
        let socket = sockets.table.get(fd)?;
        match socket.role {
            Role::Listener { id, .. } => {
                let (nonblocking, timeout) = (socket.nonblocking, socket.options.receive_timeout);
                Ok((id, Waiting { awaited: Awaited::Acceptable(id), nonblocking, timeout }))
            }
            Role::Fresh | Role::Stream(_) => Err(Errno(EINVAL)),
        }
    };
    let (id, waiting) = driver.with(|sockets| listener(sockets))?;
    if flags & !(SOCK_NONBLOCK | SOCK_CLOEXEC) != 0 {
        return Err(Errno(EINVAL));
    }
    let waited = waiting.until(driver, |sockets| {
        if let Err(error) = listener(sockets) {
            // Another thread has shut it down.
            return Some(Err(error));
        }
        let (connection, remote) = sockets.stack.accept(id)?;
        Some(sockets.accepted(fd, flags, connection, remote))
    });
    waited.into_result()?
}

pub(crate) fn connect(driver: &mut impl Drive, fd: i32, remote: SocketAddr) -> Result<()> {
    let (fresh, fast) = driver.with(|sockets| {
        let socket = sockets.table.get(fd)?;
        if socket.family != Family::of(remote.ip()) {
            return Err(Errno(EAFNOSUPPORT));
        }
        match socket.role {
            Role::Listener { .. } => Err(Errno(EISCONN)),
            Role::Stream(stream) if !stream.connecting => Err(Errno(EISCONN)),
            Role::Stream(_) => Ok((false, false)),
            Role::Fresh => Ok((true, socket.options.fast_open_connect != 0)),
        }
    })?;
    if fresh {
        begin(driver, fd, remote, fast)?;
        let held = driver.with(|sockets| {
            let held = sockets.holds_syn(fd);
            if held && let Some(stream) = sockets.stream_mut(fd) {
                // The result is told when something is sent.
                stream.connecting = false;
            }
            held
        });
        if held {
            return Ok(());
        }
    }
    let begun = if fresh { EINPROGRESS } else { EALREADY };
    let waiting = driver.with(|sockets| sockets.opening(fd))?;
    match waiting.until(driver, |sockets| sockets.connected(fd)) {
        Waited::Done(outcome) => outcome,
        Waited::TimedOut => Err(Errno(begun)),
        Waited::Interrupted => Err(Errno(EINTR)),
        Waited::Failed(error) => Err(error),
    }
}

/// Begins to connect a fresh socket, with Fast Open or without.
pub(crate) fn begin(
    driver: &mut impl Drive,
    fd: i32,
    remote: SocketAddr,
    fast: bool,
) -> Result<()> {
    let bound = driver.with(|sockets| sockets.before_begin(fd, remote))?;
    // Once the connection is there, it keeps the port.
    let port = driver.reserve_towards(canonical(remote).ip(), bound)?;
    let local = port.as_ref().map(|port| port.address).or(bound);
    driver.with(|sockets| sockets.begin_from(fd, local, remote, fast))
}
