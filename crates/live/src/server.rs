//! The status socket of a host in this process.

use crate::place;
use crate::protocol::{
    End, Head, LONGEST_QUESTION, MOST_ROWS, PATIENCE, QUESTION, Refusal, VERSION,
};
use crate::row::Row;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use serde::Serialize;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use transom_device::own_file;
use transom_device::serving::{Deadline, UnixName};
use transom_net::{Stack, WeakStack};

/// The host's socket in the directory of this user. It answers until it is dropped, and does not keep the host alive.
///
/// A client gets the host's connections, and can change nothing. Sixteen are answered at a time, each for two seconds at most; others wait.
#[derive(Debug)]
pub struct StatusSocket {
    name: UnixName,
}

impl StatusSocket {
    /// Whether the environment asks for one: `TRANSOM_STATUS` is set, and neither empty nor 0.
    pub fn is_asked_for() -> bool {
        std::env::var_os("TRANSOM_STATUS").is_some_and(|value| !value.is_empty() && value != "0")
    }

    /// Answers for `stack` in the directory of this user (`place::directory`).
    ///
    /// # Errors
    /// As [`StatusSocket::open_in`].
    pub fn open(stack: &Stack) -> io::Result<StatusSocket> {
        StatusSocket::open_in(&place::directory(), stack)
    }

    /// Answers for `stack` in this directory, which is made if it is not there.
    ///
    /// # Errors
    /// The system's; [`io::ErrorKind::PermissionDenied`] if the directory is another user's, or others can reach it.
    pub fn open_in(directory: &Path, stack: &Stack) -> io::Result<StatusSocket> {
        place::prepare(directory)?;
        // A process can have several hosts.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("{}-{number}.sock", std::process::id()));
        let name = UnixName::listen(&path)?;
        own_file::set_socket_mode(&path, 0o600)?;
        let stack = stack.downgrade();
        name.serve("transom-status", move |stream| answer(&stream, &stack, number))?;
        Ok(StatusSocket { name })
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        self.name.path()
    }
}

fn answer(stream: &UnixStream, stack: &WeakStack, number: u32) -> io::Result<()> {
    // The directory keeps others out already. Root may look at everything anyway.
    let user = socket_peercred(stream)?.uid;
    if user != geteuid() && !user.is_root() {
        return Ok(());
    }
    let mut stream = Deadline::new(stream, PATIENCE);
    let mut question = String::new();
    BufReader::new((&mut stream).take(LONGEST_QUESTION)).read_line(&mut question)?;
    let mut output = BufWriter::with_capacity(64 << 10, stream);
    if question.trim_end() != QUESTION {
        let error = format!("the question is unknown: write `{QUESTION}`");
        put(&mut output, &Refusal { error })?;
        return output.flush();
    }
    let Some(stack) = stack.upgrade() else { return Ok(()) };
    put(&mut output, &Head { transom: VERSION, connections: stack.connection_count() })?;
    let (mut rows, mut outcome) = (0, Ok(()));
    stack.connections(|status| {
        if outcome.is_ok() && rows < MOST_ROWS {
            let mut row = Row::of(&status);
            row.key = format!("{number}.{}", row.key);
            outcome = put(&mut output, &row);
            rows += 1;
        }
    });
    outcome?;
    put(&mut output, &End { end: rows })?;
    output.flush()
}

fn put(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *output, value)?;
    output.write_all(b"\n")
}
