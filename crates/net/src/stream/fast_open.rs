//! Connecting with data in the SYN (TCP Fast Open, RFC 7413).

use super::TcpStream;
use crate::error::connect_error;
use crate::stack::Stack;
use std::io;
use std::net::SocketAddr;
use transom_stack::mapped::is_mapped;

impl TcpStream {
    /// Connects to `remote` with `data`, like `sendto` with `MSG_FASTOPEN` on Linux. If the server has given this host a cookie before, the SYN
    /// carries the data that fits. If it has not, the SYN asks for a cookie, and the data follows the handshake. The call waits for the handshake and
    /// returns how much of `data` was accepted; the caller must write the rest.
    ///
    /// Data in a SYN may reach the server's program twice (RFC 7413 section 2.1), if the network duplicates the SYN and the second one arrives after
    /// the connection has ended. So it should be an idempotent request. [`ConnectionState::fast_open`](crate::ConnectionState::fast_open) reports the outcome.
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

    /// Connects to `remote` with the first write, like a socket with `TCP_FASTOPEN_CONNECT` on Linux. If the server has given this host a cookie
    /// before, this returns at once and sends nothing. The SYN leaves with the first data, or without data when the stream is read or shut down. Only
    /// then does an unreachable server show. Without a cookie, it connects as usual and asks for one.
    ///
    /// The rules for data in [`TcpStream::connect_with_data`] also hold for the first write.
    ///
    /// # Errors
    /// As [`TcpStream::connect`].
    pub fn connect_on_write(stack: &Stack, remote: SocketAddr) -> io::Result<Self> {
        let (stream, _) = Self::start_fast(stack, remote, None)?;
        if !stream.inspect(|connection, _| connection.opening().holds_syn)? {
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
            let _ = inner.host.with_connection(id, now, |connection| connection.release(now));
            Ok((id, written))
        })?;
        Ok((TcpStream::new(shared, id, is_mapped(remote.ip())), written))
    }
}
