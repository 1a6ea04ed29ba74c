//! Connecting with data in the SYN (TCP Fast Open, RFC 7413).

use super::TcpStream;
use crate::error::connect_error;
use crate::stack::Stack;
use std::io;
use std::net::SocketAddr;
use transom_stack::mapped::is_mapped;

impl TcpStream {
    /// Connects to `remote` with `data`, as `sendto` with `MSG_FASTOPEN` of Linux does: what fits goes with the SYN, if the server has given this host a
    /// cookie before. If it has not, the SYN asks for one, and the data follows the handshake. Waits for the handshake, and gives how much of
    /// `data` was taken; the rest is to be written.
    ///
    /// Data that goes with a SYN may reach the server's program twice (RFC 7413 section 2.1), if the network doubles the SYN and the second one arrives when
    /// the connection is gone: it should be a request that may be served twice. [`Info::fast_open`](crate::Info::fast_open) says what came of it.
    ///
    /// # Errors
    /// As [`TcpStream::connect`].
    pub fn connect_with_data(
        stack: &Stack,
        remote: SocketAddr,
        data: &[u8],
    ) -> io::Result<(Self, usize)> {
        let (stream, written) = Self::start_fast(stack, remote, Some(data))?;
        stream.wait_until_connected(None)?;
        Ok((stream, written))
    }

    /// Connects to `remote` with the first write, as a socket with `TCP_FASTOPEN_CONNECT` of Linux does. If the server has given this host a cookie before,
    /// this returns at once and nothing has left: the SYN goes with the first data that is written, or without any when it is read or shut down. That the
    /// server cannot be reached is found out then. If there is no cookie, it connects as ever and asks for one.
    ///
    /// What is said of data in [`TcpStream::connect_with_data`] holds for the first write.
    ///
    /// # Errors
    /// As [`TcpStream::connect`].
    pub fn connect_on_write(stack: &Stack, remote: SocketAddr) -> io::Result<Self> {
        let (stream, _) = Self::start_fast(stack, remote, None)?;
        if !stream.inspect(|connection, _| connection.holds_syn())? {
            stream.wait_until_connected(None)?;
        }
        Ok(stream)
    }

    fn start_fast(
        stack: &Stack,
        remote: SocketAddr,
        data: Option<&[u8]>,
    ) -> io::Result<(Self, usize)> {
        let (shared, (id, written)) = stack.open(None, remote, &|_, inner, now, local| {
            let opened = inner.host.connect_on_write(now, local, remote, None);
            let id = opened.map_err(connect_error)?;
            let Some(data) = data else { return Ok((id, 0)) };
            let written = inner.host.write(id, now, data).unwrap_or(0);
            // Also without any data.
            let _ = inner.host.with_connection(id, now, |connection| connection.release_syn());
            Ok((id, written))
        })?;
        Ok((TcpStream::new(shared, id, is_mapped(remote.ip())), written))
    }
}
