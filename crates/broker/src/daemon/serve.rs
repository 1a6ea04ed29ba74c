//! The loop: waits for requests, ends of processes and changes of the host, and handles them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials, sockopt::PeerPidfd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SocketAddrUnix, SocketFlags};
use transom_device::EventFd;

use super::audit::Event;
use super::closing::ReceivedFd;
use super::{Daemon, DaemonError, Ended};
use crate::policy::Caller;
use crate::protocol::{self, ErrorKind, Refused, Reply, Request};
use crate::wire;

/// The interval of checks for devices that somebody has made outlive their process; the kernel does not report that.
const REFRESH_INTERVAL: Duration = Duration::from_millis(500);
/// The most connections of one user other than root.
const MAX_CONNECTIONS_PER_USER: usize = 64;
/// The most connections of all users whom no rule of the policy names. One user can be many of them, with subordinate numbers.
const MAX_CONNECTIONS: usize = 2048;
/// Further connections for those whom a rule names.
const RESERVED_FOR_NAMED: usize = 1024;
/// Further connections for root, so that root can always ask and stop.
const RESERVED_FOR_ROOT: usize = 64;
/// The most connections.
pub(super) const ALL_CONNECTIONS: usize = MAX_CONNECTIONS + RESERVED_FOR_NAMED + RESERVED_FOR_ROOT;
/// So many connections are accepted before anything else is looked at.
const ACCEPTED_AT_A_TIME: usize = 256;
/// How long no connection is accepted after the descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A client's connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) socket: ReceivedFd,
    pub(super) caller: Caller,
    pub(super) group: u32,
    pub(super) process: u32,
    /// Whether a rule of the policy names the user.
    pub(super) named: bool,
    /// Stands for the process; nothing if it had ended already.
    pub(super) pidfd: Option<OwnedFd>,
    /// The device that it got.
    pub(super) lease: Option<u32>,
}

/// The reason why the loop woke up.
enum WakeReason {
    Stop,
    Listener,
    Changes,
    Ended(u32),
    Connection(u64),
}

impl Daemon {
    /// Has [`Daemon::run`] return when another thread signals it. Packets go on without a broker.
    pub fn stopper(&self) -> Arc<EventFd> {
        Arc::clone(&self.stop)
    }

    /// Answers until somebody ends it.
    ///
    /// # Errors
    /// When the system does not let it wait.
    pub fn run(mut self) -> Result<Ended, DaemonError> {
        let mut refreshed_at = Instant::now();
        loop {
            let wait = REFRESH_INTERVAL.saturating_sub(refreshed_at.elapsed());
            let wait = self.run_quarantine().map_or(wait, |next| wait.min(next));
            let woken = self.wait_for_events(wait).map_err(DaemonError::io("cannot wait"))?;
            let mut changed = refreshed_at.elapsed() >= REFRESH_INTERVAL;
            for reason in woken {
                match reason {
                    WakeReason::Stop => return Ok(Ended::Interrupted),
                    WakeReason::Listener => self.accept(),
                    // Before the requests that have come at the same time: clients ask because of the change.
                    WakeReason::Changes => {
                        if self.changes.any().unwrap_or(true) {
                            self.refresh_host_state();
                            (changed, refreshed_at) = (false, Instant::now());
                        }
                    }
                    WakeReason::Ended(device) => self.end_lease(device, "the process has ended"),
                    WakeReason::Connection(number) => {
                        if self.answer_message(number) {
                            self.shut_down();
                            return Ok(Ended::Stopped);
                        }
                    }
                }
            }
            if changed {
                self.tidy_up();
                self.refresh_host_state();
                refreshed_at = Instant::now();
            }
        }
    }

    fn wait_for_events(&self, timeout: Duration) -> io::Result<Vec<WakeReason>> {
        let mut reasons = vec![WakeReason::Stop, WakeReason::Changes];
        let mut fds = vec![self.stop.as_fd(), self.changes.as_fd()];
        let pause = self.paused_until.map(|until| until.saturating_duration_since(Instant::now()));
        let pause = pause.filter(|left| !left.is_zero());
        if pause.is_none() {
            reasons.push(WakeReason::Listener);
            fds.push(self.listener.as_fd());
        }
        let timeout = pause.map_or(timeout, |left| timeout.min(left));
        for (device, lease) in &self.leases {
            reasons.push(WakeReason::Ended(*device));
            fds.push(lease.process.pidfd.as_fd());
        }
        for (number, connection) in &self.connections {
            reasons.push(WakeReason::Connection(*number));
            fds.push(connection.socket.as_fd());
        }
        let mut fds: Vec<_> =
            fds.into_iter().map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN)).collect();
        match poll(&mut fds, Timespec::try_from(timeout).ok().as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(errno) => return Err(errno.into()),
        }
        let woken = reasons.into_iter().zip(&fds).filter(|(_, one)| !one.revents().is_empty());
        Ok(woken.map(|(reason, _)| reason).collect())
    }

    fn accept(&mut self) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let of_others = |one: &&Connection| !one.named && one.caller.user != 0;
        let mut others = self.connections.values().filter(of_others).count();
        for _ in 0..ACCEPTED_AT_A_TIME {
            let socket = match rustix::net::accept_with(&self.listener, flags) {
                Ok(socket) => socket,
                // The connection keeps the listener readable: without a pause the loop would spin.
                Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS) => {
                    self.paused_until = Some(Instant::now() + ACCEPT_PAUSE);
                    return;
                }
                Err(_) => return,
            };
            let Ok(peer) = getsockopt(&socket, PeerCredentials) else { continue };
            let (user, group) = (peer.uid(), peer.gid());
            // The number may be another process' one later.
            let pidfd = getsockopt(&socket, PeerPidfd).ok();
            // Messages with descriptors may wait in it already.
            let socket = ReceivedFd::new(socket, user, &self.closer);
            let same = |one: &&Connection| one.caller.user == user;
            let crowded = user != 0
                && self.connections.values().filter(same).count() >= MAX_CONNECTIONS_PER_USER;
            if crowded || self.closer.has_backlog(user) {
                self.counters.refused += 1;
                continue;
            }
            let caller = Caller::new(user, group);
            let named = self.policy.names(&caller);
            let full = match (user, named) {
                (0, _) => self.connections.len() >= ALL_CONNECTIONS,
                (_, true) => self.connections.len() >= ALL_CONNECTIONS - RESERVED_FOR_ROOT,
                (_, false) => others >= MAX_CONNECTIONS,
            };
            if full {
                self.counters.refused += 1;
                continue;
            }
            others += usize::from(user != 0 && !named);
            // Zero for a process of another process namespace, which is refused later.
            let process = u32::try_from(peer.pid()).unwrap_or(0);
            self.next_connection += 1;
            let connection =
                Connection { socket, caller, group, process, named, pidfd, lease: None };
            self.connections.insert(self.next_connection, connection);
        }
    }

    /// Answers one message. Whether everything is to end.
    fn answer_message(&mut self, number: u64) -> bool {
        let Some(connection) = self.connections.get(&number) else { return false };
        let user = connection.caller.user;
        let mut descriptors = Vec::new();
        let received = wire::receive_into(&connection.socket, &mut descriptors);
        let foreign = |descriptor| ReceivedFd::new(descriptor, user, &self.closer);
        let descriptors: Vec<_> = descriptors.into_iter().map(foreign).collect();
        if self.closer.has_backlog(user) {
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
        let outcome = Request::try_from(&bytes[..]);
        let outcome =
            outcome.and_then(|request| self.handle_request(number, &request, descriptors));
        let (outcome, lent) = match outcome {
            Ok((reply, lent)) => (Ok(reply), lent),
            Err(refused) => {
                match refused.kind {
                    ErrorKind::Malformed | ErrorKind::Version => self.counters.malformed += 1,
                    _ => self.counters.refused += 1,
                }
                self.log_refusal(number, &refused.message);
                (Err(refused), Vec::new())
            }
        };
        self.closer.wait_for_closes(user);
        let stopping = matches!(outcome, Ok(Reply::Stopping {}));
        if stopping {
            self.end_all_leases("the broker was stopped");
        }
        let lent: Vec<_> = lent.iter().map(AsFd::as_fd).collect();
        self.reply(number, &outcome, &lent);
        stopping
    }

    /// Refusals are in the log too, but nobody fills the disk with them.
    fn log_refusal(&mut self, number: u64, reason: &str) {
        let Some(connection) = self.connections.get(&number) else { return };
        let (limiters, left_out) = &mut self.refusals;
        let limiter = limiters.of(connection.named);
        if !limiter.allows(connection.caller.user, Instant::now()) {
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

/// Whether a process of root's listens at a socket.
pub(super) fn root_listens(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let Ok(socket) = wire::socket(flags) else { return true };
    let Ok(address) = SocketAddrUnix::new(path) else { return false };
    match rustix::net::connect(&socket, &address) {
        Ok(()) => getsockopt(&socket, PeerCredentials).map_or(true, |peer| peer.uid() == 0),
        // Its queue is full.
        Err(Errno::AGAIN) => std::fs::symlink_metadata(path).is_ok_and(|found| found.uid() == 0),
        Err(_) => false,
    }
}
