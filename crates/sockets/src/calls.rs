//! The socket calls, for the driver of a stack.

use crate::drive::Drive;
use crate::errno::Result;
use crate::info::TcpInfo;
use crate::stream::{Pieces, Sink};
use crate::{closing, fast_open, opening, stream};
use libc::MSG_FASTOPEN;
use std::net::SocketAddr;

/// Linux' socket calls. Errors that any call may give besides those named: `EBADF`, and on a call that waits any error of the driver
/// ([`Waited`](crate::Waited)).
pub trait SocketCalls: Drive + Sized {
    /// `socket(2)`: a TCP socket. `kind` is `SOCK_STREAM`, with `SOCK_NONBLOCK` or `SOCK_CLOEXEC` if wanted.
    ///
    /// # Errors
    /// `EAFNOSUPPORT`, `ESOCKTNOSUPPORT`, `EPROTONOSUPPORT`, `EMFILE`.
    fn socket(&mut self, domain: i32, kind: i32, protocol: i32) -> Result<i32> {
        self.with(|sockets| sockets.socket(domain, kind, protocol))
    }

    /// `bind(2)`. Port 0 takes a free one at once.
    ///
    /// # Errors
    /// `EINVAL` if the socket is bound or connected, or for an IPv4-mapped address and a socket with `IPV6_V6ONLY`,
    /// `EAFNOSUPPORT` for an address of the other family, `EADDRNOTAVAIL` if it is not the host's, `EADDRINUSE`.
    fn bind(&mut self, fd: i32, address: SocketAddr) -> Result<()> {
        let bound = self.with(|sockets| sockets.before_bind(fd, address))?;
        let port = self.reserve(&bound)?;
        self.with(|sockets| sockets.bind(fd, address, port))
    }

    /// `listen(2)`. As on Linux one connection more than `backlog` may wait, a negative one means the most, listening again
    /// changes it, and a socket that is not bound is bound to a free port.
    ///
    /// # Errors
    /// `EINVAL` for a connected socket, `EADDRINUSE`.
    fn listen(&mut self, fd: i32, backlog: i32) -> Result<()> {
        let port = match self.with(|sockets| sockets.before_listen(fd))? {
            Some(bound) => self.reserve(&bound)?,
            None => None,
        };
        self.with(|sockets| sockets.listen(fd, backlog, port))
    }

    /// `accept4(2)`: takes a connection out of the queue and gives its descriptor and the peer's address. The new socket has the
    /// listener's options; it is non-blocking if `flags` has `SOCK_NONBLOCK`.
    ///
    /// # Errors
    /// `EINVAL` if the socket does not listen or `flags` has anything else, `EAGAIN`, `EINTR`, `EMFILE`.
    fn accept(&mut self, fd: i32, flags: i32) -> Result<(i32, SocketAddr)> {
        opening::accept(self, fd, flags)
    }

    /// `connect(2)`. On a blocking socket it waits for the handshake; called again after `EINTR` it goes on waiting. On a
    /// non-blocking one it gives `EINPROGRESS`, then `EALREADY`, once 0 (or the error), then `EISCONN`. After an error the
    /// socket may connect again. With `TCP_FASTOPEN_CONNECT` and a cookie of the server's it gives 0 before anything has left.
    ///
    /// # Errors
    /// Those named and `EAFNOSUPPORT`. `ENETUNREACH` if the address is not a host's or has no route (with `IPV6_V6ONLY`, any
    /// IPv4-mapped address). `EADDRNOTAVAIL` if all ports are in use or the connection exists. `EINVAL` for port 0 or
    /// incompatible options. The failure of the attempt: `ECONNREFUSED`, `ETIMEDOUT`, `EHOSTUNREACH`, …
    fn connect(&mut self, fd: i32, remote: SocketAddr) -> Result<()> {
        opening::connect(self, fd, remote)
    }

    /// `getsockname(2)`: where the socket is bound; unspecified if it is not.
    ///
    /// # Errors
    /// `EBADF`.
    fn local_address(&mut self, fd: i32) -> Result<SocketAddr> {
        self.with(|sockets| sockets.local_address(fd))
    }

    /// `getpeername(2)`.
    ///
    /// # Errors
    /// `ENOTCONN`.
    fn peer_address(&mut self, fd: i32) -> Result<SocketAddr> {
        self.with(|sockets| sockets.peer_address(fd))
    }

    /// `read(2)`.
    ///
    /// # Errors
    /// As [`SocketCalls::recv`].
    fn read(&mut self, fd: i32, out: &mut [u8]) -> Result<usize> {
        self.recv(fd, out, 0)
    }

    /// `recv(2)` with `MSG_PEEK`, `MSG_OOB`, `MSG_WAITALL`, `MSG_DONTWAIT` and `MSG_TRUNC`. `Ok(0)` is the end of the stream. The
    /// urgent byte is left out of the stream unless `SO_OOBINLINE` is set, and reading stops in front of it.
    ///
    /// # Errors
    /// `ENOTCONN`, `EAGAIN`, `EINTR`, `EINVAL` for `MSG_OOB` without an urgent byte to read, `EOPNOTSUPP` for any other flag,
    /// and, once, how the connection ended: `ECONNRESET`, `ETIMEDOUT`, …
    fn recv(&mut self, fd: i32, out: &mut [u8], flags: i32) -> Result<usize> {
        self.recv_into(fd, Sink::Copy(&mut [out]), flags)
    }

    /// The same into several places, or into none.
    ///
    /// # Errors
    /// As [`SocketCalls::recv`].
    fn recv_into(&mut self, fd: i32, sink: Sink<'_, '_>, flags: i32) -> Result<usize> {
        stream::recv(self, fd, sink, flags)
    }

    /// `write(2)`.
    ///
    /// # Errors
    /// As [`SocketCalls::send`].
    fn write(&mut self, fd: i32, bytes: &[u8]) -> Result<usize> {
        self.send(fd, bytes, 0)
    }

    /// `send(2)` with `MSG_OOB`, `MSG_EOR`, `MSG_MORE`, `MSG_DONTWAIT` and `MSG_NOSIGNAL`. On a blocking socket it waits until all bytes
    /// are queued, on a non-blocking one it queues what there is room for.
    ///
    /// # Errors
    /// `EAGAIN`, `EINTR`, `EPIPE` if the connection is closed for writing or was never opened (there is no signal), `EOPNOTSUPP` for
    /// any other flag, and, once, how the connection ended.
    fn send(&mut self, fd: i32, bytes: &[u8], flags: i32) -> Result<usize> {
        self.send_pieces(fd, &[bytes], flags, None)
    }

    /// `sendto(2)`. With `MSG_FASTOPEN` a fresh socket connects to `remote`, and the data goes with the SYN if the server has given a
    /// cookie before. A blocking socket waits for the handshake and sends everything. A non-blocking one gives how much was queued, or
    /// `EINPROGRESS` and queues nothing if there is no cookie. Without `MSG_FASTOPEN`, `remote` is not looked at, and it is
    /// [`SocketCalls::send`].
    ///
    /// # Errors
    /// `EALREADY` while the socket connects, `EISCONN` if it listens or is connected, `EINVAL` without an address, and those of
    /// [`SocketCalls::connect`] and [`SocketCalls::send`].
    fn send_to(
        &mut self,
        fd: i32,
        bytes: &[u8],
        flags: i32,
        remote: Option<SocketAddr>,
    ) -> Result<usize> {
        self.send_pieces(fd, &[bytes], flags, remote)
    }

    /// The same from several places, one behind the other. No other thread's bytes come in between while there is room for them.
    ///
    /// # Errors
    /// As [`SocketCalls::send_to`].
    fn send_pieces(
        &mut self,
        fd: i32,
        pieces: Pieces<'_>,
        flags: i32,
        remote: Option<SocketAddr>,
    ) -> Result<usize> {
        if flags & MSG_FASTOPEN != 0 {
            return fast_open::send_to(self, fd, pieces, flags & !MSG_FASTOPEN, remote);
        }
        stream::send(self, fd, pieces, flags)
    }

    /// `shutdown(2)`. As on Linux, after `SHUT_RD` what has arrived and what still arrives can be read, and then the end; a listener
    /// stops listening, and an attempt to connect is given up.
    ///
    /// # Errors
    /// `EINVAL` for another `how`, `ENOTCONN`.
    fn shutdown(&mut self, fd: i32, how: i32) -> Result<()> {
        let awaited = self.with(|sockets| sockets.shutdown(fd, how))?;
        awaited.into_iter().for_each(|awaited| self.wake(awaited));
        Ok(())
    }

    /// `close(2)`. The descriptor is free afterwards, whatever happens. Unread data, or `SO_LINGER` of zero seconds, reset the
    /// connection; a longer `SO_LINGER` waits on a blocking socket for so long until everything is acknowledged. The connection
    /// then ends by itself.
    ///
    /// # Errors
    /// `EBADF`.
    fn close(&mut self, fd: i32) -> Result<()> {
        closing::close(self, fd, true)
    }

    /// The same without waiting.
    ///
    /// # Errors
    /// `EBADF`.
    fn close_at_once(&mut self, fd: i32) -> Result<()> {
        closing::close(self, fd, false)
    }

    /// `setsockopt(2)`.
    ///
    /// # Errors
    /// `ENOPROTOOPT` for an unknown option. `EINVAL` for a value that is too short or out of range. Also `EINVAL` for `IPV6_V6ONLY` once
    /// the socket is bound, `TCP_FASTOPEN` once it is connected and `TCP_FASTOPEN_CONNECT` once it listens too. `ENOENT` for an unknown
    /// congestion controller.
    fn set_option(&mut self, fd: i32, level: i32, name: i32, value: &[u8]) -> Result<()> {
        self.with(|sockets| sockets.set_option(fd, level, name, value))
    }

    /// `getsockopt(2)`: the option's value as bytes. Reading `SO_ERROR` clears it.
    ///
    /// # Errors
    /// `ENOPROTOOPT` for an option there is not, `ENOTCONN` for `IP_MTU` and `IPV6_MTU` without a connection.
    fn option(&mut self, fd: i32, level: i32, name: i32) -> Result<Vec<u8>> {
        self.with(|sockets| sockets.option(fd, level, name))
    }

    /// The structure of `TCP_INFO`.
    ///
    /// # Errors
    /// `EBADF`.
    fn tcp_info(&mut self, fd: i32) -> Result<TcpInfo> {
        self.with(|sockets| sockets.tcp_info(fd))
    }

    /// `fcntl(2)` for the status and descriptor flags.
    ///
    /// # Errors
    /// `EBADF`; `EINVAL` for any other command.
    fn fcntl(&mut self, fd: i32, command: i32, argument: i32) -> Result<i32> {
        self.with(|sockets| sockets.fcntl(fd, command, argument))
    }

    /// `ioctl(2)` for `FIONREAD`, `TIOCOUTQ`, `SIOCATMARK` and `SIOCOUTQNSD`.
    ///
    /// # Errors
    /// `EINVAL` for a listener or a fresh socket, `ENOTTY` for any other request.
    fn ioctl(&mut self, fd: i32, request: u64) -> Result<i32> {
        self.with(|sockets| sockets.ioctl(fd, request))
    }
}

impl<D: Drive> SocketCalls for D {}
