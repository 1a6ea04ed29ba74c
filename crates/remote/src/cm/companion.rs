//! A program with a flow that is not TCP's.

use super::protocol::{self, Estimate, LONGEST, Reply, Request};
use super::wire::{PATIENCE, Wire, malformed};
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Instant as Clock;
use transom_extensions::cm::{Manager, Stream, macroflow_to};
use transom_tcp::time::Instant;

/// While so much waits for a program, it gets no grants, and is not listened to.
const MOST_WAITING: usize = 16 * 1024;
/// The most messages of a program in its turn.
const MOST_AT_ONCE: usize = 256;

/// One.
#[derive(Debug)]
pub(super) struct Companion {
    pub(super) wire: Wire,
    pub(super) process: i32,
    came: Clock,
    /// Since it has registered.
    pub(super) stream: Option<Stream>,
    /// Whether there are further messages in what has been read.
    more: bool,
}

/// Further work for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Nothing,
    /// To list all macroflows to it.
    List,
}

impl Companion {
    pub(super) fn new(stream: UnixStream, process: i32) -> io::Result<Self> {
        let wire = Wire::new(stream, LONGEST)?;
        Ok(Companion { wire, process, came: Clock::now(), stream: None, more: false })
    }

    /// Whether it has requests that could not be granted yet.
    pub(super) fn waits(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.requested() > 0)
    }

    /// Whether it has said more, and may be answered.
    pub(super) fn has_more(&self) -> bool {
        self.more && !self.is_full()
    }

    /// It does not read: nobody listens to it until it does.
    pub(super) fn is_full(&self) -> bool {
        self.wire.waiting() >= MOST_WAITING
    }

    /// Whether it has said nothing of use for too long.
    pub(super) fn is_silent(&self) -> bool {
        self.stream.is_none() && self.came.elapsed() > PATIENCE
    }

    /// Reads and obeys messages.
    pub(super) fn listen(&mut self, manager: &Manager, now: Instant) -> io::Result<Wanted> {
        if !self.more && !self.is_full() {
            self.wire.fill()?;
        }
        let mut wanted = Wanted::Nothing;
        for _ in 0..MOST_AT_ONCE {
            if self.is_full() {
                break;
            }
            let Some(line) = self.wire.line()? else {
                self.more = false;
                return Ok(wanted);
            };
            let request = protocol::read(&line).map_err(malformed)?;
            if request == (Request::List {}) {
                wanted = Wanted::List;
            } else {
                self.apply(request, manager, now)?;
            }
        }
        self.more = true;
        Ok(wanted)
    }

    fn apply(&mut self, request: Request, manager: &Manager, now: Instant) -> io::Result<()> {
        let Some(stream) = &mut self.stream else {
            let Request::Register(register) = request else {
                return Err(malformed("the first message is register"));
            };
            let name = macroflow_to(register.destination);
            let stream = manager.open(name, register.weight, register.packet);
            let macroflow = stream.macroflow().to_owned();
            self.stream = Some(stream);
            return self.say(&Reply::Registered { macroflow });
        };
        match request {
            Request::Register(_) => return Err(malformed("a connection has one flow")),
            Request::Request(packets) => stream.request(now, packets),
            Request::Sent(bytes) => stream.notify(now, bytes),
            Request::Feedback(report) => stream.update(now, report.into()),
            Request::Query {} => {
                let estimate = stream.query(now).map(|known| Estimate {
                    rate: known.rate,
                    rtt: known.rtt.srtt.as_nanos(),
                    rttvar: known.rtt.rttvar.as_nanos(),
                    loss: known.loss.millionths() as f64 / 1e6,
                });
                return self.say(&Reply::Estimate(estimate));
            }
            Request::List {} => {}
        }
        Ok(())
    }

    /// Gives it the grants that it has room for.
    pub(super) fn grant(&mut self, now: Instant) -> io::Result<()> {
        while !self.is_full() {
            let Some(grant) = self.stream.as_mut().and_then(|stream| stream.poll_grant(now)) else {
                break;
            };
            let valid = grant.expires.since(now).as_nanos();
            self.say(&Reply::Grant { bytes: grant.bytes, valid })?;
        }
        Ok(())
    }

    pub(super) fn say(&mut self, reply: &Reply) -> io::Result<()> {
        self.wire.send_line(protocol::write(reply))
    }
}
