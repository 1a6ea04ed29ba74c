//! `bind`, `listen`, `accept`, `connect`, and the addresses of a socket.

use crate::address::Family;
use crate::errno::{
    EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EALREADY, ECONNABORTED, EINPROGRESS, EINTR, EINVAL,
    EISCONN, ENETUNREACH, ENOTCONN, Errno, Result,
};
use crate::host::{Host, Waited};
use crate::socket::{Role, SOCK_CLOEXEC, SOCK_NONBLOCK, Socket, Stream};
use std::net::SocketAddr;
use std::sync::Arc;
use transom_stack::listener::ListenConfig;
use transom_stack::mapped::{Bound, canonical, is_mapped, mapped};
use transom_tcp::connection::State;
use transom_tcp::profile::Profile;

/// The longest accept queue (Linux' `somaxconn`).
const MAX_BACKLOG: i32 = 4096;

impl Socket {
    /// What being bound to `address` means for this socket.
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

impl Host {
    fn is_local(&self, address: SocketAddr) -> bool {
        let ip = canonical(address).ip();
        ip.is_unspecified() || self.stack.config().addresses.iter().any(|&(ours, _)| ours == ip)
    }

    /// Whether nothing stands in the way of being bound so. With SO_REUSEADDR connections do not, nor do sockets that have it
    /// too and do not listen.
    fn may_bind(&self, bound: &Bound, reuse: bool) -> bool {
        let stands = |socket: &Socket| {
            let listens = matches!(socket.role, Role::Listener { .. });
            let shares = reuse && socket.options.reuse_address && !listens;
            !shares && socket.bound.is_some_and(|other| socket.bound_to(other).overlaps(bound))
        };
        !self.sockets.iter().any(stands) && (reuse || !self.stack.is_in_use(bound))
    }

    /// `address` for `socket`, with a port of its own if it has none.
    fn with_port(&self, socket: &Socket, address: SocketAddr) -> Option<SocketAddr> {
        if address.port() != 0 {
            return Some(address);
        }
        let ports = self.stack.config().ephemeral_ports.clone();
        ports
            .map(|port| SocketAddr::new(address.ip(), port))
            .find(|&address| self.may_bind(&socket.bound_to(address), false))
    }

    /// `bind(2)`. Port 0 takes a free one at once.
    ///
    /// # Errors
    /// `EINVAL` if the socket is bound or connected, or for an IPv4-mapped address and a socket with `IPV6_V6ONLY`,
    /// `EAFNOSUPPORT` for an address of the other family, `EADDRNOTAVAIL` if it is not the host's, `EADDRINUSE`.
    pub fn bind(&mut self, fd: i32, address: SocketAddr) -> Result<()> {
        let socket = self.sockets.get(fd)?;
        let reuse = socket.options.reuse_address;
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
        let address = self.with_port(socket, address).ok_or(Errno(EADDRINUSE))?;
        if !self.may_bind(&socket.bound_to(address), reuse) {
            return Err(Errno(EADDRINUSE));
        }
        self.sockets.get_mut(fd)?.bound = Some(address);
        Ok(())
    }

    /// The profile for connections of a socket, of one version of IP.
    fn profile_of(&self, socket: &Socket, version: Family) -> Arc<Profile> {
        Arc::new(socket.options.profile(&self.stack.config().profile, version))
    }

    /// How a listening socket is to listen.
    fn listen_config(&self, socket: &Socket, backlog: usize) -> ListenConfig {
        ListenConfig {
            backlog,
            profile: Some(self.profile_of(socket, socket.family)),
            v6_only: socket.options.v6_only,
            fast_open: socket.options.fast_open.into(),
            ..ListenConfig::default()
        }
    }

    /// `listen(2)`. As on Linux one connection more than `backlog` may wait, a negative one means the most, listening again
    /// changes it, and a socket that is not bound is bound to a free port.
    ///
    /// # Errors
    /// `EINVAL` for a connected socket, `EADDRINUSE`.
    pub fn listen(&mut self, fd: i32, backlog: i32) -> Result<()> {
        let backlog = if (0..MAX_BACKLOG).contains(&backlog) { backlog } else { MAX_BACKLOG };
        let backlog = backlog as usize + 1;
        let socket = self.sockets.get(fd)?;
        match socket.role {
            Role::Stream(_) => Err(Errno(EINVAL)),
            Role::Listener { id, .. } => {
                self.sockets.get_mut(fd)?.role = Role::Listener { id, backlog };
                self.renew_listener(fd)
            }
            Role::Fresh => {
                let config = self.listen_config(socket, backlog);
                let any = SocketAddr::new(socket.family.unspecified(), 0);
                let address = match socket.bound {
                    Some(address) => address,
                    None => self.with_port(socket, any).ok_or(Errno(EADDRINUSE))?,
                };
                let id = self.stack.listen(address, config)?;
                let socket = self.sockets.get_mut(fd)?;
                socket.bound = Some(address);
                socket.role = Role::Listener { id, backlog };
                Ok(())
            }
        }
    }

    /// Tells a listener of changed options or backlog.
    pub(crate) fn renew_listener(&mut self, fd: i32) -> Result<()> {
        let socket = self.sockets.get(fd)?;
        if let Role::Listener { id, backlog } = socket.role {
            let config = self.listen_config(socket, backlog);
            self.stack.reconfigure_listener(id, config)?;
        }
        Ok(())
    }

    /// `accept4(2)`: takes a connection out of the queue and gives its descriptor and the peer's address. The new socket has the
    /// listener's options; it is non-blocking if `flags` has `SOCK_NONBLOCK`.
    ///
    /// # Errors
    /// `EINVAL` if the socket does not listen or `flags` has anything else, `EAGAIN`, `EINTR`, `EMFILE`.
    pub fn accept(&mut self, fd: i32, flags: i32) -> Result<(i32, SocketAddr)> {
        let socket = self.sockets.get(fd)?;
        let Role::Listener { id, .. } = socket.role else { return Err(Errno(EINVAL)) };
        if flags & !(SOCK_NONBLOCK | SOCK_CLOEXEC) != 0 {
            return Err(Errno(EINVAL));
        }
        let (nonblocking, timeout) = (socket.nonblocking, socket.options.receive_timeout);
        let waited = self.wait_unless(nonblocking, timeout, |host| host.stack.accept(id));
        let (connection, remote) = waited.into_result()?;
        let socket = self.sockets.get(fd)?;
        // The limit is the listener's.
        let (family, mut options) = (socket.family, socket.options.clone());
        options.fast_open = 0;
        self.apply_controls(connection, &options);
        if family == Family::V6 && remote.is_ipv4() {
            self.apply_network(connection, &options);
        }
        let remote = self.sockets.get(fd)?.shown(remote);
        let accepted = self.sockets.insert(Socket {
            family,
            nonblocking: flags & SOCK_NONBLOCK != 0,
            options,
            bound: None,
            role: Role::Stream(Stream::new(connection, false)),
        });
        if accepted.is_err() {
            self.stack.abort(connection, self.now());
        }
        self.settle();
        Ok((accepted?, remote))
    }

    /// `connect(2)`. On a blocking socket it waits for the handshake; called again after `EINTR` it goes on waiting. On a
    /// non-blocking one it gives `EINPROGRESS`, then `EALREADY`, once 0 (or the error), then `EISCONN`. After an error the
    /// socket may connect again. With `TCP_FASTOPEN_CONNECT` and a cookie of the server's it gives 0 before anything has left.
    ///
    /// # Errors
    /// Those named and `EAFNOSUPPORT`. `ENETUNREACH` if the address is not a host's or has no route (with `IPV6_V6ONLY`, any
    /// IPv4-mapped address). `EADDRNOTAVAIL` if all ports are in use or the connection exists. `EINVAL` for port 0 or
    /// incompatible options. The failure of the attempt: `ECONNREFUSED`, `ETIMEDOUT`, `EHOSTUNREACH`, …
    pub fn connect(&mut self, fd: i32, remote: SocketAddr) -> Result<()> {
        let socket = self.sockets.get(fd)?;
        let (nonblocking, timeout) = (socket.nonblocking, socket.options.send_timeout);
        let fast = socket.options.fast_open_connect;
        if socket.family != Family::of(remote.ip()) {
            return Err(Errno(EAFNOSUPPORT));
        }
        let begun = match socket.role {
            Role::Listener { .. } => return Err(Errno(EISCONN)),
            Role::Stream(stream) if !stream.connecting => return Err(Errno(EISCONN)),
            Role::Stream(_) => EALREADY,
            Role::Fresh => {
                self.begin(fd, remote, fast)?;
                if self.holds_syn(fd) {
                    // What comes of it is told when something is sent.
                    self.stream_mut(fd).into_iter().for_each(|stream| stream.connecting = false);
                    return Ok(());
                }
                EINPROGRESS
            }
        };
        match self.wait_unless(nonblocking, timeout, |host| host.connected(fd)) {
            Waited::Done(outcome) => outcome,
            Waited::TimedOut => Err(Errno(begun)),
            Waited::Interrupted => Err(Errno(EINTR)),
        }
    }

    /// Begins to connect a fresh socket, with Fast Open or without.
    pub(crate) fn begin(&mut self, fd: i32, remote: SocketAddr, fast: bool) -> Result<()> {
        let socket = self.sockets.get(fd)?;
        if socket.family != Family::of(remote.ip()) {
            return Err(Errno(EAFNOSUPPORT));
        }
        if socket.options.v6_only && is_mapped(remote.ip()) {
            return Err(Errno(ENETUNREACH));
        }
        let (local, now) = (socket.bound, self.now());
        let profile = Some(self.profile_of(socket, Family::of(canonical(remote).ip())));
        let options = socket.options.clone();
        let id = match fast {
            true => self.stack.connect_on_write(now, local, remote, profile)?,
            false => self.stack.connect(now, local, remote, profile)?,
        };
        self.sockets.get_mut(fd)?.role = Role::Stream(Stream::new(id, true));
        self.apply_controls(id, &options);
        self.settle();
        Ok(())
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

    /// Makes a socket fresh again whose connection has failed or is given up. What `bind` did stays.
    pub(crate) fn forget(&mut self, fd: i32, stream: &Stream) {
        self.stack.abort(stream.id, self.now());
        if let Ok(socket) = self.sockets.get_mut(fd) {
            socket.role = Role::Fresh;
        }
        self.settle();
    }

    /// `getsockname(2)`: where the socket is bound; unspecified if it is not.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn local_address(&self, fd: i32) -> Result<SocketAddr> {
        let socket = self.sockets.get(fd)?;
        let local = match socket.role {
            Role::Stream(stream) => {
                self.stack.local_address(stream.id).map(|local| socket.shown(local))
            }
            Role::Fresh | Role::Listener { .. } => socket.bound,
        };
        Ok(local.unwrap_or_else(|| SocketAddr::new(socket.family.unspecified(), 0)))
    }

    /// `getpeername(2)`.
    ///
    /// # Errors
    /// `ENOTCONN`.
    pub fn peer_address(&self, fd: i32) -> Result<SocketAddr> {
        let stream = self.stream(fd)?.ok_or(Errno(ENOTCONN))?;
        match self.state(&stream) {
            State::Closed | State::SynSent => Err(Errno(ENOTCONN)),
            _ => {
                let remote = self.stack.remote_address(stream.id).ok_or(Errno(ENOTCONN))?;
                Ok(self.sockets.get(fd)?.shown(remote))
            }
        }
    }
}
