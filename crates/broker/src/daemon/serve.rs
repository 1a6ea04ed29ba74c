//! The loop: who wants something, and what has changed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials, sockopt::PeerPidfd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SocketFlags;

use super::audit::Event;
use super::closing::Foreign;
use super::farewell;
use super::{Daemon, DaemonError, Ended};
use crate::policy::Caller;
use crate::protocol::{self, ErrorKind, Refused, Reply};
use crate::wire;

/// The interval of checks for devices that somebody has made outlive their process; the kernel does not report that.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// So many connections a user other than root has at the same time.
const MOST_OF_ONE: usize = 64;
/// So many there are at the same time.
pub(super) const MOST: usize = 2048;
/// And so many more of root, who can always ask and stop.
pub(super) const RESERVED: usize = 64;
/// So long nobody is let in after the descriptors have run out.
const PAUSE: Duration = Duration::from_millis(100);

/// Somebody who asks.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: Foreign,
    pub(super) caller: Caller,
    pub(super) group: u32,
    pub(super) process: u32,
    /// Stands for the process; nothing if it had ended already.
    pub(super) pidfd: Option<OwnedFd>,
    /// The device that it got.
    pub(super) lease: Option<u32>,
}

/// Ends a [`Daemon`] from another thread.
#[derive(Debug)]
pub struct Stopper(OwnedFd);

impl Stopper {
    /// Has [`Daemon::run`] return. Packets go on without a broker.
    pub fn stop(&self) {
        // It can only have ended already.
        let _ = rustix::io::write(&self.0, &[1]);
    }
}

/// The reason why the loop woke up.
enum Woken {
    Stop,
    Listener,
    Changes,
    Ended(u32),
    Connection(u64),
}

impl Daemon {
    /// A handle that ends it from another thread.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn stopper(&self) -> io::Result<Stopper> {
        self.stop.1.try_clone().map(Stopper)
    }

    /// Answers until somebody ends it.
    ///
    /// # Errors
    /// When the system does not let it wait.
    pub fn run(mut self) -> Result<Ended, DaemonError> {
        let mut looked = Instant::now();
        loop {
            let wait = LOOK_EVERY.saturating_sub(looked.elapsed());
            let more = self.farewells.say_some(&self.farewell);
            let wait = if more { wait.min(farewell::PAUSE) } else { wait };
            let woken = self.wait(wait).map_err(DaemonError::io("cannot wait"))?;
            let mut changed = looked.elapsed() >= LOOK_EVERY;
            for who in woken {
                match who {
                    Woken::Stop => return Ok(Ended::Interrupted),
                    Woken::Listener => self.accept(),
                    // Before the requests that have come at the same time: clients ask because of the change.
                    Woken::Changes => {
                        if self.changes.any().unwrap_or(true) {
                            self.look();
                            (changed, looked) = (false, Instant::now());
                        }
                    }
                    Woken::Ended(device) => self.end(device, "the process has ended"),
                    Woken::Connection(number) => {
                        if self.answer(number) {
                            self.stop_everything();
                            return Ok(Ended::Stopped);
                        }
                    }
                }
            }
            if changed {
                self.look();
                looked = Instant::now();
            }
        }
    }

    fn wait(&self, timeout: Duration) -> io::Result<Vec<Woken>> {
        let mut who = vec![Woken::Stop, Woken::Changes];
        let mut what = vec![self.stop.0.as_fd(), self.changes.as_fd()];
        let pause = self.paused_until.map(|until| until.saturating_duration_since(Instant::now()));
        let pause = pause.filter(|left| !left.is_zero());
        if pause.is_none() {
            who.push(Woken::Listener);
            what.push(self.listener.as_fd());
        }
        let timeout = pause.map_or(timeout, |left| timeout.min(left));
        for (device, lease) in &self.leases {
            who.push(Woken::Ended(*device));
            what.push(lease.process.ended.as_fd());
        }
        for (number, connection) in &self.connections {
            who.push(Woken::Connection(*number));
            what.push(connection.socket.as_fd());
        }
        let mut what: Vec<_> =
            what.into_iter().map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN)).collect();
        let timeout = Timespec {
            tv_sec: timeout.as_secs() as i64,
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        match poll(&mut what, Some(&timeout)) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(errno) => return Err(errno.into()),
        }
        let woken = who.into_iter().zip(&what).filter(|(_, one)| !one.revents().is_empty());
        Ok(woken.map(|(who, _)| who).collect())
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            let socket = match rustix::net::accept_with(&self.listener, flags) {
                Ok(socket) => socket,
                // Whoever connects stays readable at the listener: without a pause the loop would spin.
                Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                    self.paused_until = Some(Instant::now() + PAUSE);
                    return;
                }
                Err(_) => return,
            };
            let Ok(peer) = getsockopt(&socket, PeerCredentials) else { continue };
            let (user, group) = (peer.uid(), peer.gid());
            // The number may be another process' one later.
            let pidfd = getsockopt(&socket, PeerPidfd).ok();
            // Messages with descriptors may wait in it already.
            let socket = Foreign::new(socket, user, &self.closer);
            let same = |one: &&Connection| one.caller.user == user;
            let crowded =
                user != 0 && self.connections.values().filter(same).count() >= MOST_OF_ONE;
            let most = if user == 0 { MOST + RESERVED } else { MOST };
            if crowded || self.closer.is_behind(user) || self.connections.len() >= most {
                self.counters.refused += 1;
                continue;
            }
            let caller = Caller::new(user, group);
            // Zero for a process of another process namespace, which is refused later.
            let process = u32::try_from(peer.pid()).unwrap_or(0);
            self.next_connection += 1;
            let connection = Connection { socket, caller, group, process, pidfd, lease: None };
            self.connections.insert(self.next_connection, connection);
        }
    }

    /// Answers one message. Whether everything is to end.
    fn answer(&mut self, number: u64) -> bool {
        let Some(connection) = self.connections.get(&number) else { return false };
        let user = connection.caller.user;
        let mut descriptors = Vec::new();
        let received = wire::receive_into(&connection.socket, &mut descriptors);
        let foreign = |descriptor| Foreign::new(descriptor, user, &self.closer);
        let descriptors: Vec<_> = descriptors.into_iter().map(foreign).collect();
        if self.closer.is_behind(user) {
            self.counters.refused += 1;
            self.disconnect(number);
            return false;
        }
        let bytes = match received {
            Ok(Some(message)) => message,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.counters.malformed += 1;
                let refused = Refused::new(ErrorKind::Malformed, error.to_string());
                self.reply(number, &Err(refused), &[]);
                return false;
            }
            Ok(None) | Err(_) => {
                self.disconnect(number);
                return false;
            }
        };
        self.counters.requests += 1;
        let outcome = protocol::read_request(&bytes);
        let outcome = outcome.and_then(|request| self.decide(number, &request, descriptors));
        let (outcome, lent) = match outcome {
            Ok((reply, lent)) => (Ok(reply), lent),
            Err(refused) => {
                match refused.kind {
                    ErrorKind::Malformed | ErrorKind::Version => self.counters.malformed += 1,
                    _ => self.counters.refused += 1,
                }
                self.tell_refusal(number, &refused.message);
                (Err(refused), Vec::new())
            }
        };
        self.closer.settle(user);
        let stopping = matches!(outcome, Ok(Reply::Stopping {}));
        if stopping {
            self.end_all("the broker was stopped");
        }
        let lent: Vec<_> = lent.iter().map(AsFd::as_fd).collect();
        self.reply(number, &outcome, &lent);
        stopping
    }

    /// Refusals are in the log too, but nobody fills the disk with them.
    fn tell_refusal(&mut self, number: u64, reason: &str) {
        let Some(connection) = self.connections.get(&number) else { return };
        let (pace, left_out) = &mut self.refusals;
        if !pace.allows(connection.caller.user, Instant::now()) {
            *left_out += 1;
            return;
        }
        let left_out = Some(std::mem::take(left_out)).filter(|count| *count > 0);
        let lease = connection.lease.and_then(|device| self.leases.get(&device));
        self.audit.write(&Event {
            event: "refused",
            user: Some(connection.caller.user),
            process: Some(connection.process),
            device: lease.map(|lease| lease.device.as_str()),
            reason: Some(reason),
            left_out,
            ..Event::default()
        });
    }

    /// Sends an answer. A client that does not read answers is not served any more.
    fn reply(
        &mut self,
        number: u64,
        outcome: &Result<Reply, Refused>,
        descriptors: &[BorrowedFd<'_>],
    ) {
        let Some(connection) = self.connections.get(&number) else { return };
        let mut bytes = protocol::write_reply(outcome);
        if bytes.len() > protocol::LONGEST {
            let refused = Refused::new(ErrorKind::Failed, "the answer is too long");
            bytes = protocol::write_reply(&Err(refused));
        }
        if wire::send(&connection.socket, &bytes, descriptors).is_err() {
            self.disconnect(number);
        }
    }

    fn disconnect(&mut self, number: u64) {
        let Some(connection) = self.connections.remove(&number) else { return };
        if let Some(lease) = connection.lease.and_then(|device| self.leases.get_mut(&device)) {
            lease.connected = false;
        }
    }
}
