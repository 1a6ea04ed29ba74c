//! Reading where the data lies: the receive queue's own memory, lent to the reader.

use super::{TcpStream, end_after_error};
use crate::stack::Shared;
use std::io::{self, BufRead, Read};
use std::ops::Deref;
use std::sync::Arc;
use transom_tcp::time::Instant;
use transom_tcp::{Connection, Taken};

/// Received data in the memory in which it arrived. It was taken out of the stream; the memory goes back to the device when this is dropped.
#[derive(Debug)]
pub struct Chunk {
    data: Option<Taken>,
    shared: Arc<Shared>,
}

impl Chunk {
    /// Removes this many bytes at the front, or all if there are fewer.
    pub fn advance(&mut self, bytes: usize) {
        if let Some(data) = &mut self.data {
            data.advance(bytes);
        }
    }

    /// Moves as many bytes as fit to the front of `out`, and says how many.
    pub fn read(&mut self, out: &mut [u8]) -> usize {
        let n = self.len().min(out.len());
        let (to, from) = (out.get_mut(..n), self.get(..n));
        if let (Some(to), Some(from)) = (to, from) {
            to.copy_from_slice(from);
        }
        self.advance(n);
        n
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.data.as_ref().map_or(&[], Taken::bytes)
    }
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(buffer) = self.data.take().and_then(Taken::into_buffer) {
            self.shared.runtime.lock().recycle(buffer);
        }
    }
}

impl TcpStream {
    pub(crate) fn chunk(&self, taken: Option<Taken>) -> Option<Chunk> {
        taken.map(|data| Chunk { data: Some(data), shared: Arc::clone(&self.socket.shared) })
    }

    /// Takes the next data out of the stream without a copy: what one packet brought, or several small ones. `None` is the end of the stream.
    ///
    /// Its memory is up to 64 KB of the device's, and no longer counts against the receive window. So a program should not keep many.
    ///
    /// # Errors
    /// As [`io::Read::read`].
    pub fn read_chunk(&self) -> io::Result<Option<Chunk>> {
        let result = self.reading(|connection, now| connection.read_taken(now));
        Ok(self.chunk(end_after_error(result, None)?))
    }

    /// Takes what has arrived, for as long as the next of it lies in one piece of `least` bytes or more, and until `most` bytes are reached. It never waits.
    /// If it takes nothing, reading finds out why.
    pub fn take_chunks(&self, least: usize, most: usize, chunks: &mut impl Extend<Chunk>) {
        let mut taken = 0;
        let take = |connection: &mut Connection, now: Instant| {
            let next = || {
                if taken >= most || connection.readable_slice().len() < least.max(1) {
                    return None;
                }
                let piece = connection.read_taken(now).ok()??;
                taken += piece.bytes().len();
                self.chunk(Some(piece))
            };
            chunks.extend(std::iter::from_fn(next));
        };
        // Without a connection there is nothing to take.
        let _ = self.change(take);
    }
}

/// Reads a stream through [`BufRead`] without a copy: [`BufRead::fill_buf`] lends the memory in which the data arrived.
///
/// Unlike a [`std::io::BufReader`] it has no memory of its own. Data that it has taken out of the stream and not yet given away is lost to
/// other handles, as with any buffering reader.
#[derive(Debug)]
pub struct ChunkReader {
    stream: TcpStream,
    chunk: Option<Chunk>,
}

impl ChunkReader {
    /// Reads from `stream`.
    pub fn new(stream: TcpStream) -> Self {
        ChunkReader { stream, chunk: None }
    }

    /// The stream.
    pub fn get_ref(&self) -> &TcpStream {
        &self.stream
    }

    /// The stream, and the data that was taken out of it and not yet read.
    pub fn into_parts(self) -> (TcpStream, Option<Chunk>) {
        (self.stream, self.chunk)
    }
}

impl Read for ChunkReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.chunk.as_mut().filter(|chunk| !chunk.is_empty()) {
            Some(chunk) => Ok(chunk.read(out)),
            None => self.stream.read(out),
        }
    }
}

impl BufRead for ChunkReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.chunk.as_ref().is_none_or(|chunk| chunk.is_empty()) {
            // First the old one: its memory can be used for what comes.
            self.chunk = None;
            self.chunk = self.stream.read_chunk()?;
        }
        Ok(self.chunk.as_deref().unwrap_or_default())
    }

    fn consume(&mut self, bytes: usize) {
        if let Some(chunk) = &mut self.chunk {
            chunk.advance(bytes);
        }
    }
}
