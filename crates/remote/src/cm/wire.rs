//! A Unix stream that never waits, with bounded buffers.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// A peer that takes nothing for so long, or does not say what it wants, is dropped.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Read at a time, so that every peer has its turn.
const PIECE: usize = 16 * 1024;

/// A connection with another process.
#[derive(Debug)]
pub(super) struct Wire {
    stream: UnixStream,
    input: Vec<u8>,
    /// The longest line or frame that may arrive.
    longest: usize,
    output: Vec<u8>,
    /// When the output that waits began to wait.
    blocked: Option<Instant>,
}

/// The process at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: u32,
    /// Zero if it is in another process namespace.
    pub(super) process: i32,
}

impl Credentials {
    pub(super) fn of(stream: impl AsFd) -> io::Result<Self> {
        let peer = getsockopt(&stream.as_fd(), PeerCredentials)?;
        Ok(Credentials { user: peer.uid(), process: peer.pid() })
    }

    /// Whether it is this process' user, or root.
    pub(super) fn is_trusted(self) -> bool {
        self.user == 0 || self.user == rustix::process::geteuid().as_raw()
    }
}

pub(super) fn malformed(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

impl Wire {
    pub(super) fn new(stream: UnixStream, longest: usize) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Wire { stream, input: Vec::new(), longest, output: Vec::new(), blocked: None })
    }

    /// Connects without waiting, also where the listener takes nobody.
    pub(super) fn connect(path: &Path, longest: usize) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Wire::new(UnixStream::from(socket), longest)
    }

    pub(super) fn credentials(&self) -> io::Result<Credentials> {
        Credentials::of(&self.stream)
    }

    /// Reads what is there, up to a piece.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        let room = (self.longest + PIECE).saturating_sub(self.input.len()).min(PIECE);
        let before = self.input.len();
        self.input.resize(before + room, 0);
        let read = (&self.stream).read(&mut self.input[before..]);
        self.input.truncate(before + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) if room > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(()),
            Err(error) if is_passing(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The next line without its end, if it has arrived.
    pub(super) fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let end = self.input.iter().position(|byte| *byte == b'\n');
        if end.unwrap_or(self.input.len()) > self.longest {
            return Err(malformed(format!("a line has at most {} bytes", self.longest)));
        }
        let Some(end) = end else { return Ok(None) };
        let mut line: Vec<u8> = self.input.drain(..=end).collect();
        line.pop();
        Ok(Some(line))
    }

    /// The next frame without its length, if it has arrived.
    pub(super) fn frame(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some((length, rest)) = self.input.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > self.longest {
            return Err(malformed(format!("a frame has at most {} bytes", self.longest)));
        }
        if rest.len() < length {
            return Ok(None);
        }
        let frame = rest[..length].to_vec();
        self.input.drain(..4 + length);
        Ok(Some(frame))
    }

    /// Sends bytes, or keeps them until there is room.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.output.extend(bytes);
        self.flush()
    }

    pub(super) fn send_line(&mut self, line: impl ToString) -> io::Result<()> {
        let mut line = line.to_string();
        line.push('\n');
        self.send(line.as_bytes())
    }

    /// Sends what is kept.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match (&self.stream).write(&self.output) {
                Ok(sent) => {
                    self.output.drain(..sent);
                    self.blocked = None;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let since = *self.blocked.get_or_insert_with(Instant::now);
                    return match since.elapsed() > PATIENCE {
                        true => Err(io::ErrorKind::TimedOut.into()),
                        false => Ok(()),
                    };
                }
                Err(error) => return Err(error),
            }
        }
        self.blocked = None;
        Ok(())
    }

    /// The bytes that wait for room.
    pub(super) fn waiting(&self) -> usize {
        self.output.len()
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Whether an error of [`Wire::connect`] says that nobody listens there (yet), or has no time now.
pub(super) fn is_absent(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::CONNREFUSED | Errno::NOENT | Errno::AGAIN | Errno::NOTDIR))
}
