//! `TcpListener`, with the names and behaviour of [`std::net::TcpListener`].

use crate::engine::{Channel, Inner};
use crate::error::{listen_error, would_block};
use crate::guard::guarded_shared;
use crate::stack::{Shared, Stack, each_address};
use crate::stream::TcpStream;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use transom_stack::listener::{ListenConfig, ListenerId};
use transom_stack::mapped::Bound;
use transom_stack::stack::ListenError;

/// A socket server on a [`Stack`].
#[derive(Debug)]
pub struct TcpListener {
    socket: Arc<Socket>,
}

#[derive(Debug)]
struct Socket {
    shared: Arc<Shared>,
    id: ListenerId,
    local: SocketAddr,
    non_blocking: AtomicBool,
    fd: OnceLock<OwnedFd>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        let runtime = &self.shared.runtime;
        runtime.with(|inner, now| {
            inner.listener_readiness.remove(&self.id);
            inner.host.close_listener(self.id, now);
        });
    }
}

impl TcpListener {
    /// Listens at the first of `addr`'s addresses that works. Port 0 chooses a free one; an unspecified address means all of
    /// the host's. As on Linux, the unspecified IPv6 address means those of IPv4 too; [`ListenConfig::v6_only`] changes that.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if somebody listens there, [`io::ErrorKind::AddrNotAvailable`] if the address is not the
    /// host's.
    pub fn bind(stack: &Stack, addr: impl ToSocketAddrs) -> io::Result<Self> {
        each_address(addr, |addr| Self::bind_with(stack, addr, ListenConfig::default()))
    }

    /// Listens at `addr` with its own backlog or profile.
    ///
    /// # Errors
    /// As [`TcpListener::bind`], and [`io::ErrorKind::InvalidInput`] for a profile that does not work.
    pub fn bind_with(stack: &Stack, addr: SocketAddr, config: ListenConfig) -> io::Result<Self> {
        let shared = Arc::clone(&stack.shared);
        let config = ListenConfig {
            profile: config.profile.map(|p| guarded_shared(p, &shared.budget)),
            ..config
        };
        let bound = Bound::new(addr, config.v6_only);
        let (id, local) = shared.runtime.with(|inner, _| {
            if addr.port() != 0 && inner.host.is_listened_at(&bound) {
                return Err(listen_error(ListenError::InUse(addr)));
            }
            let id = inner.host.listen(addr, config).map_err(listen_error)?;
            let port = inner.host.listener_address(id).map_or(addr.port(), |local| local.port());
            Ok((id, SocketAddr::new(addr.ip(), port)))
        })?;
        let socket =
            Socket { shared, id, local, non_blocking: AtomicBool::new(false), fd: OnceLock::new() };
        Ok(TcpListener { socket: Arc::new(socket) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// None at present.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.socket.local)
    }

    /// Another handle to the same listener.
    ///
    /// # Errors
    /// None at present.
    pub fn try_clone(&self) -> io::Result<TcpListener> {
        Ok(TcpListener { socket: Arc::clone(&self.socket) })
    }

    /// Waits for a connection and gives it with the peer's address, as [`TcpStream::peer_addr`] shows it.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if the listener is non-blocking and there is none.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let Socket { shared, id, local, non_blocking, .. } = &*self.socket;
        let runtime = &shared.runtime;
        let attempt = |inner: &mut Inner| {
            let accepted = inner.host.accept(*id);
            if accepted.is_some() {
                inner.update_listener_readiness(*id);
            }
            match (accepted, inner.failure()) {
                (Some(accepted), _) => Some(Ok(accepted)),
                (None, Some(error)) => Some(Err(error)),
                (None, None) => None,
            }
        };
        let accepted = if non_blocking.load(Ordering::Relaxed) {
            runtime.with(|inner, _| {
                attempt(inner).or_else(|| {
                    runtime.poll_once(inner);
                    attempt(inner)
                })
            })
        } else {
            runtime.wait(Channel::Acceptable(*id), None, |inner, _| attempt(inner))
        };
        let (connection, remote) = accepted.unwrap_or_else(|| Err(would_block()))?;
        let stream = TcpStream::new(Arc::clone(shared), connection, local.is_ipv6());
        let remote = stream.shown(remote);
        Ok((stream, remote))
    }

    /// The connections, one after the other.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self }
    }

    /// A pending error of the listener itself; there is never one.
    ///
    /// # Errors
    /// None at present.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    /// Whether [`TcpListener::accept`] returns at once when there is nothing to accept.
    ///
    /// # Errors
    /// None at present.
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
        let fd = self.socket.shared.runtime.export_listener(self.socket.id)?;
        Ok(self.socket.fd.get_or_init(|| fd).as_fd())
    }
}

/// Iterator over a listener's connections; it never ends.
#[derive(Debug)]
pub struct Incoming<'a> {
    listener: &'a TcpListener,
}

impl Iterator for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn next(&mut self) -> Option<io::Result<TcpStream>> {
        Some(self.listener.accept().map(|(stream, _)| stream))
    }
}
