//! Delivery other than as a stream: pieces with their places, and data units.
//!
//! Which of them a connection has is its profile's business ([`OrderingChoice`](transom_tcp::OrderingChoice)); calls for another
//! one fail with [`io::ErrorKind::Unsupported`]. Timeouts, non-blocking streams and descriptors for poll work as for plain reading and
//! writing.

use super::TcpStream;
use crate::engine::Channel;
use std::io;
use transom_tcp::{Adu, Piece};

impl TcpStream {
    /// Reads data as it arrives, with its place in the stream: see
    /// [`Connection::read_unordered`](transom_tcp::Connection::read_unordered). Waits until there is something.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] on a connection of data units, [`io::ErrorKind::WouldBlock`] when the timeout is over or the
    /// stream is non-blocking, otherwise what ended the connection.
    pub fn read_unordered(&self, buffer: &mut [u8]) -> io::Result<Piece> {
        let id = self.socket.id;
        self.repeat(Channel::Readable(id), &self.socket.read_timeout, |inner, now| {
            inner.host.read_unordered(id, now, buffer)
        })
    }

    /// Receives a data unit, into `unit` instead of what is there: see
    /// [`Connection::recv_adu`](transom_tcp::Connection::recv_adu). Waits until one is complete.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] on a connection without data units, [`io::ErrorKind::WouldBlock`] when the timeout is over or the
    /// stream is non-blocking, otherwise what ended the connection.
    pub fn recv_adu(&self, unit: &mut Vec<u8>) -> io::Result<Adu> {
        let id = self.socket.id;
        self.repeat(Channel::Readable(id), &self.socket.read_timeout, |inner, now| {
            inner.host.recv_adu(id, now, unit)
        })
    }

    /// Sends a data unit, whole or not at all: see [`Connection::send_adu`](transom_tcp::Connection::send_adu). Waits
    /// until there is room for it.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a unit larger than agreed, [`io::ErrorKind::Unsupported`] on a connection without data
    /// units, [`io::ErrorKind::WouldBlock`] when the timeout is over or the stream is non-blocking, otherwise what ended the
    /// connection.
    pub fn send_adu(&self, unit: &[u8]) -> io::Result<()> {
        let id = self.socket.id;
        self.repeat(Channel::Writable(id), &self.socket.write_timeout, |inner, now| {
            let now = self.socket.shared.runtime.poll_for_acks(inner, now);
            inner.host.send_adu(id, now, unit)?;
            inner.roles.written_since_poll += unit.len();
            Ok(())
        })
    }
}
