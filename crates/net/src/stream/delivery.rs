//! Delivery other than as a stream: pieces with their places, and data units.
//!
//! Which of them a connection has is its profile's business ([`OrderingChoice`](transom_tcp::OrderingChoice)); calls for another
//! one fail with [`io::ErrorKind::Unsupported`]. Timeouts, non-blocking streams and descriptors for poll work as for plain reading and
//! writing.

use super::TcpStream;
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
        self.reading(|connection, now| connection.read_unordered(now, buffer))
    }

    /// Receives a data unit, into `unit` instead of what is there: see
    /// [`Connection::recv_adu`](transom_tcp::Connection::recv_adu). Waits until one is complete.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] on a connection without data units, [`io::ErrorKind::WouldBlock`] when the timeout is over or the
    /// stream is non-blocking, otherwise what ended the connection.
    pub fn recv_adu(&self, unit: &mut Vec<u8>) -> io::Result<Adu> {
        self.reading(|connection, now| connection.recv_adu(now, unit))
    }

    /// Sends a data unit, whole or not at all: see [`Connection::send_adu`](transom_tcp::Connection::send_adu). Waits
    /// until there is room for it.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for a unit larger than agreed, [`io::ErrorKind::Unsupported`] on a connection without data
    /// units, [`io::ErrorKind::WouldBlock`] when the timeout is over or the stream is non-blocking, otherwise what ended the
    /// connection.
    pub fn send_adu(&self, unit: &[u8]) -> io::Result<()> {
        let send = self.writing(|connection, now| {
            connection.send_adu(now, unit)?;
            Ok(unit.len())
        });
        send.map(drop)
    }
}
