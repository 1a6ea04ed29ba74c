//! The library for programs whose flows are not TCP's.

use super::protocol::{Estimate, Macroflow, Registration, Reply, Request, write};
use super::wire::{PATIENCE, Wire, malformed};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};
use transom_extensions::cm::Feedback;

/// The longest line of the server's: the list of all macroflows.
const LONGEST: usize = 1 << 20;
/// The most grants that are kept; the oldest have expired by then.
const MOST_GRANTS: usize = 1 << 16;

/// A flow of a program's, part of the macroflow of its destination.
///
/// ```no_run
/// # fn main() -> std::io::Result<()> {
/// use std::time::Duration;
/// use transom_remote::cm::{Client, Registration};
///
/// let flow = Registration::new("10.0.0.1".parse().unwrap(), 1200);
/// let mut flow = Client::connect("/run/user/1000/cm", &flow)?;
/// flow.request(1)?;
/// if let Some(grant) = flow.wait_grant(Duration::from_secs(1))? {
///     // … a packet of up to grant.bytes leaves …
///     flow.sent(grant.bytes)?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// A call fails with [`io::ErrorKind::UnexpectedEof`] or [`io::ErrorKind::BrokenPipe`] when the server has gone. Then the program has to control
/// its congestion itself, as with [`transom_extensions::cm::Manager::open`], or to stop.
#[derive(Debug)]
pub struct Client {
    wire: Wire,
    macroflow: String,
    grants: VecDeque<Grant>,
    estimates: VecDeque<Option<Estimate>>,
    macroflows: Option<Vec<Macroflow>>,
}

/// Leave to send a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grant {
    /// Bytes at most.
    pub bytes: u64,
    /// From then on it no longer holds.
    pub expires: Instant,
}

impl Client {
    /// Registers a flow at the server that listens at `path`.
    ///
    /// # Errors
    /// The operating system's, or [`io::ErrorKind::InvalidData`] with the reason of the server.
    pub fn connect(path: impl AsRef<Path>, flow: &Registration) -> io::Result<Self> {
        let mut client = Client::visit(path.as_ref())?;
        client.say(&Request::Register(*flow))?;
        let end = Instant::now() + PATIENCE;
        while client.macroflow.is_empty() {
            if !client.await_lines(end)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(client)
    }

    /// The name of its macroflow.
    pub fn macroflow(&self) -> &str {
        &self.macroflow
    }

    /// It has so many packets to send.
    ///
    /// # Errors
    /// If the server has gone.
    pub fn request(&mut self, packets: u32) -> io::Result<()> {
        self.say(&Request::Request(packets))
    }

    /// So many bytes have left in a packet, by the oldest grant. Zero gives the grant back.
    ///
    /// # Errors
    /// If the server has gone.
    pub fn sent(&mut self, bytes: u64) -> io::Result<()> {
        self.say(&Request::Sent(bytes))
    }

    /// The fate of packets, as the receiver reports it.
    ///
    /// # Errors
    /// If the server has gone.
    pub fn feedback(&mut self, feedback: Feedback) -> io::Result<()> {
        self.say(&Request::Feedback(feedback.into()))
    }

    /// A grant that has come and still holds. Never waits.
    ///
    /// # Errors
    /// If the server has gone, or has refused something.
    pub fn poll_grant(&mut self) -> io::Result<Option<Grant>> {
        self.take_lines()?;
        let now = Instant::now();
        while let Some(grant) = self.grants.pop_front() {
            if now < grant.expires {
                return Ok(Some(grant));
            }
        }
        Ok(None)
    }

    /// The same, and waits for one as long as `patience`.
    ///
    /// # Errors
    /// If the server has gone, or has refused something.
    pub fn wait_grant(&mut self, patience: Duration) -> io::Result<Option<Grant>> {
        let end = Instant::now() + patience;
        loop {
            if let Some(grant) = self.poll_grant()? {
                return Ok(Some(grant));
            }
            if !self.await_lines(end)? {
                return Ok(None);
            }
        }
    }

    /// The rate, round-trip time and loss of the path; `None` before a member of the macroflow has measured a round-trip time.
    ///
    /// # Errors
    /// If the server has gone, or does not answer.
    pub fn query(&mut self) -> io::Result<Option<Estimate>> {
        self.say(&Request::Query {})?;
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(estimate) = self.estimates.pop_front() {
                return Ok(estimate);
            }
            if !self.await_lines(end)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// All macroflows of the server that listens at `path`, without a flow of one's own.
    ///
    /// # Errors
    /// The operating system's, or the server's reason.
    pub fn list(path: impl AsRef<Path>) -> io::Result<Vec<Macroflow>> {
        let mut client = Client::visit(path.as_ref())?;
        client.say(&Request::List {})?;
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(all) = client.macroflows.take() {
                return Ok(all);
            }
            if !client.await_lines(end)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// At the server, without a flow.
    fn visit(path: &Path) -> io::Result<Self> {
        Ok(Client {
            wire: Wire::connect(path, LONGEST)?,
            macroflow: String::new(),
            grants: VecDeque::new(),
            estimates: VecDeque::new(),
            macroflows: None,
        })
    }

    fn say(&mut self, request: &Request) -> io::Result<()> {
        let said = self.wire.send_line(write(request));
        if said.is_err() {
            // The server may have said why it closed.
            self.take_lines()?;
        }
        said
    }

    /// Takes in what has come by `end`. Whether anything could have.
    fn await_lines(&mut self, end: Instant) -> io::Result<bool> {
        let ready = wait(&self.wire, end)?;
        self.take_lines()?;
        Ok(ready)
    }

    fn take_lines(&mut self) -> io::Result<()> {
        let flushed = self.wire.flush();
        let filled = self.wire.fill();
        while let Some(line) = self.wire.line()? {
            match read(&line)? {
                Reply::Registered { macroflow } => self.macroflow = macroflow,
                Reply::Grant { bytes, valid } => {
                    let expires = Instant::now() + Duration::from_nanos(valid);
                    self.grants.push_back(Grant { bytes, expires });
                    if self.grants.len() > MOST_GRANTS {
                        self.grants.pop_front();
                    }
                }
                Reply::Estimate(estimate) => self.estimates.push_back(estimate),
                Reply::Macroflows(all) => self.macroflows = Some(all),
                Reply::Error(reason) => return Err(malformed(reason)),
            }
        }
        flushed.and(filled)
    }
}

impl AsFd for Client {
    /// Readable when a grant or the server's end may have come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

fn read(line: &[u8]) -> io::Result<Reply> {
    serde_json::from_slice(line).map_err(|error| malformed(error.to_string()))
}

/// Waits until there is something to read. Whether there is.
fn wait(wire: &Wire, end: Instant) -> io::Result<bool> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let mut wanted = [PollFd::from_borrowed_fd(wire.as_fd(), PollFlags::IN)];
        match poll(&mut wanted, Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
