//! A response's body, whatever way it ends.
//!
//! In the chunked coding (RFC 9112, section 7.1) each piece has its size in front, in hexadecimal, and size zero ends
//! the body; extensions and trailer fields are skipped.

use std::io::{self, Read};

use httparse::{Status, parse_chunk_size};

use super::response::Framing;
use crate::hash::{PIECE, read_some};

/// The longest line (a chunk's size with its extensions, a trailer field) that is read.
const MAX_LINE: usize = 16 * 1024;

/// Reads a body piece by piece.
pub(super) struct Body<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The part of the buffer that has been received and not handed out.
    start: usize,
    end: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// This many bytes are left.
    Length(u64),
    /// A chunk's size comes next.
    ChunkSize,
    /// This many bytes of a chunk are left.
    Chunk(u64),
    /// The line end behind a chunk comes next.
    ChunkEnd,
    /// Trailer fields come next.
    Trailer,
    /// The body ends with the connection.
    UntilClose,
    Done,
}

impl<R: Read> Body<R> {
    /// A body that begins with `early` and continues in `reader`.
    pub(super) fn new(reader: R, early: Vec<u8>, framing: Framing) -> Self {
        let state = match framing {
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::ChunkSize,
            Framing::Close => State::UntilClose,
        };
        let mut buffer = early;
        let end = buffer.len();
        buffer.resize(end.max(PIECE), 0);
        Body { reader, buffer, start: 0, end, state }
    }

    /// The next bytes; none at the end of the body.
    pub(super) fn next(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.state {
                State::Done | State::Length(0) => {
                    self.state = State::Done;
                    return Ok(&[]);
                }
                State::Length(left) => {
                    let taken = self.take(left)?;
                    self.state = State::Length(left - taken.len() as u64);
                    return Ok(self.buffer.get(taken).unwrap_or_default());
                }
                State::UntilClose => {
                    if self.start == self.end && self.fill()? == 0 {
                        self.state = State::Done;
                        continue;
                    }
                    let taken = self.take(u64::MAX)?;
                    return Ok(self.buffer.get(taken).unwrap_or_default());
                }
                State::ChunkSize => {
                    self.state = match self.chunk_size()? {
                        0 => State::Trailer,
                        size => State::Chunk(size),
                    };
                }
                State::Chunk(0) => self.state = State::ChunkEnd,
                State::Chunk(left) => {
                    let taken = self.take(left)?;
                    self.state = State::Chunk(left - taken.len() as u64);
                    return Ok(self.buffer.get(taken).unwrap_or_default());
                }
                State::ChunkEnd => {
                    if !self.line()?.is_empty() {
                        return Err(malformed("a chunk is longer than its size"));
                    }
                    self.state = State::ChunkSize;
                }
                State::Trailer => {
                    if self.line()?.is_empty() {
                        self.state = State::Done;
                    }
                }
            }
        }
    }

    fn received(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Takes up to `most` bytes, waiting for at least one.
    fn take(&mut self, most: u64) -> io::Result<std::ops::Range<usize>> {
        if self.start == self.end && self.fill()? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let available = self.end - self.start;
        let length = usize::try_from(most).unwrap_or(usize::MAX).min(available);
        let taken = self.start..self.start + length;
        self.start = taken.end;
        Ok(taken)
    }

    /// Receives more, behind what is there; returns how much.
    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let free = self.buffer.get_mut(self.end..).unwrap_or_default();
        let length = read_some(&mut self.reader, free)?;
        self.end += length;
        Ok(length)
    }

    /// A chunk's size; removes the line that states it.
    fn chunk_size(&mut self) -> io::Result<u64> {
        loop {
            match parse_chunk_size(self.received()) {
                Ok(Status::Complete((length, size))) => {
                    self.start += length;
                    return Ok(size);
                }
                Ok(Status::Partial) => self.more_of_line()?,
                Err(_) => return Err(malformed("a chunk's size is malformed")),
            }
        }
    }

    /// A line without its end.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let Some(at) = self.received().iter().position(|byte| *byte == b'\n') else {
                self.more_of_line()?;
                continue;
            };
            let line = self.received().get(..at).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line).to_vec();
            self.start += at + 1;
            return Ok(line);
        }
    }

    fn more_of_line(&mut self) -> io::Result<()> {
        if self.received().len() > MAX_LINE {
            return Err(malformed("a line between chunks is too long"));
        }
        match self.fill()? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn malformed(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            self.0 = rest;
            out[0] = *first;
            Ok(1)
        }
    }

    /// The body in `bytes`, read at once, byte by byte, and with some of it received early: always the same.
    fn read(bytes: &[u8], framing: Framing) -> Result<Vec<u8>, io::ErrorKind> {
        fn all(mut body: Body<impl Read>) -> Result<Vec<u8>, io::ErrorKind> {
            let mut read = Vec::new();
            loop {
                match body.next() {
                    Ok([]) => return Ok(read),
                    Ok(piece) => read.extend_from_slice(piece),
                    Err(error) => return Err(error.kind()),
                }
            }
        }
        let at_once = all(Body::new(bytes, Vec::new(), framing));
        assert_eq!(all(Body::new(Slow(bytes), Vec::new(), framing)), at_once);
        for early in 0..=bytes.len() {
            let (early, late) = bytes.split_at(early);
            assert_eq!(all(Body::new(late, early.to_vec(), framing)), at_once);
        }
        at_once
    }

    #[test]
    fn a_length_is_kept_to() {
        assert_eq!(read(b"abcdef", Framing::Length(4)).unwrap(), b"abcd");
        assert_eq!(read(b"abc", Framing::Length(0)).unwrap(), b"");
        assert_eq!(read(b"abc", Framing::Length(4)), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(read(b"abc", Framing::Close).unwrap(), b"abc");
    }

    #[test]
    fn chunks_are_joined() {
        let body = b"4\r\nWiki\r\n5;name=value\r\npedia\r\nE\r\n in\r\n\r\nchunks.\r\n0\r\nX: y\r\n\r\nrest";
        assert_eq!(read(body, Framing::Chunked).unwrap(), b"Wikipedia in\r\n\r\nchunks.");
        assert_eq!(read(b"0\r\n\r\n", Framing::Chunked).unwrap(), b"");
    }

    #[test]
    fn broken_chunks_are_errors() {
        use io::ErrorKind::{InvalidData, UnexpectedEof};
        for (body, kind) in [
            (&b"4\r\nWiki"[..], UnexpectedEof),
            (b"4\r\nWiki\r\n", UnexpectedEof),
            (b"4\r\nWiki\r\n0\r\n", UnexpectedEof),
            (b"4\r\nWikipedia\r\n", InvalidData),
            (b"x\r\n", InvalidData),
            (b"-1\r\n", InvalidData),
            (b"FFFFFFFFFFFFFFFFF\r\n", InvalidData),
        ] {
            assert_eq!(read(body, Framing::Chunked), Err(kind), "{body:?}");
        }
    }

    #[test]
    fn endless_lines_are_given_up() {
        let mut body = b"4;".to_vec();
        body.resize(PIECE * 2, b'x');
        let mut endless = Body::new(&*body, Vec::new(), Framing::Chunked);
        assert_eq!(endless.next().unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
