//! Asking at a status socket. The process behind it may be broken or hostile.

use crate::owners::name_of;
use crate::protocol::{
    End, Head, LONGEST_ANSWER, LONGEST_LINE, MOST_ROWS, PATIENCE, QUESTION, Refusal, VERSION,
};
use crate::row::{Row, Source, clean};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::geteuid;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use transom_device::serving::Deadline;

/// Why a socket has not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// Nobody is there any more.
    #[error("nobody listens there any more")]
    Stale,
    /// It is another user's.
    #[error("it belongs to another user")]
    Foreign,
    /// Its process has another version.
    #[error("it speaks version {0} of the conversation, and this program version {VERSION}")]
    Version(u32),
    /// Its process refused.
    #[error("it answers: {0}")]
    Refused(String),
    /// The answer makes no sense.
    #[error("its answer makes no sense")]
    Garbage,
    /// The answer is longer than any host's.
    #[error("its answer is too long")]
    TooLong,
    /// The answer has no end.
    #[error("its answer was cut off")]
    CutOff,
    /// The system's error; for one, it took too long.
    #[error("no answer: {0}")]
    Io(#[from] io::Error),
}

/// The connections of the host that answers at this socket. All of an answer is taken, or nothing.
///
/// # Errors
/// Whatever is wrong with the socket or its answer, which takes two seconds at most and is bounded in length.
pub(crate) fn ask(path: &Path) -> Result<Vec<Row>, AskError> {
    let stream = connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => AskError::Stale,
        _ => AskError::Io(error),
    })?;
    let peer = socket_peercred(&stream).map_err(io::Error::from)?;
    if peer.uid != geteuid() && !geteuid().is_root() {
        return Err(AskError::Foreign);
    }
    let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).unwrap_or_default();
    // The name that the kernel gives, and not one that the process claims.
    let source = Source::Transom { pid, name: name_of(Path::new("/proc"), pid) };
    let mut stream = Deadline::new(&stream, PATIENCE);
    stream.write_all(format!("{QUESTION}\n").as_bytes())?;
    let mut lines =
        Lines { reader: BufReader::with_capacity(64 << 10, stream), line: Vec::new(), read: 0 };
    let head = lines.next()?;
    let head: Head = serde_json::from_slice(head).map_err(|_| refusal(head))?;
    if head.transom != VERSION {
        return Err(AskError::Version(head.transom));
    }
    let mut rows = Vec::new();
    loop {
        let line = lines.next()?;
        let Ok(mut row) = serde_json::from_slice::<Row>(line) else {
            let end: End = serde_json::from_slice(line).map_err(|_| AskError::Garbage)?;
            return if end.end == rows.len() { Ok(rows) } else { Err(AskError::CutOff) };
        };
        if rows.len() >= MOST_ROWS {
            return Err(AskError::TooLong);
        }
        row.clean();
        row.key = format!("{pid}.{}", row.key);
        row.source = source.clone();
        (row.send_rate, row.receive_rate) = (None, None);
        rows.push(row);
    }
}

/// Connects in bounded time: where nobody accepts and many wait, connecting waits too.
fn connect(path: &Path) -> io::Result<UnixStream> {
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

fn refusal(line: &[u8]) -> AskError {
    match serde_json::from_slice::<Refusal>(line) {
        Ok(Refusal { mut error }) => {
            clean(&mut error);
            AskError::Refused(error)
        }
        Err(_) => AskError::Garbage,
    }
}

/// Lines of bounded length, and not too many of them.
struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    read: u64,
}

impl<R: Read> Lines<R> {
    fn next(&mut self) -> Result<&[u8], AskError> {
        self.line.clear();
        let read = (&mut self.reader).take(LONGEST_LINE).read_until(b'\n', &mut self.line)?;
        self.read += read as u64;
        if self.line.last() == Some(&b'\n') {
            return if self.read <= LONGEST_ANSWER {
                Ok(&self.line)
            } else {
                Err(AskError::TooLong)
            };
        }
        Err(if read as u64 == LONGEST_LINE { AskError::TooLong } else { AskError::CutOff })
    }
}
