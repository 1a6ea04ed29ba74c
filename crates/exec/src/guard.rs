//! The fate of programs when their supervisor is killed.
//!
//! The private network has lost its only interface then, so new connections fail at once. But established ones would wait for their timeouts, servers would wait for
//! connections that cannot come, and programs could go on asking for sockets. So a second process ends all sockets of the network. It has the programs' calls fail, and kills those that go on calling, and servers that do not end with their listener.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use transom_device::intercept::{Answer, Call, Notifier};
use transom_device::{Diag, KernelTcpState, passing};

use crate::inner::Inner;
use crate::ledger::Ledger;
use crate::program::process_of;

/// The only message to a guard.
const CHARGE: &[u8] = b"guard";
/// The end of all calls.
const SUPERVISOR_GONE: i32 = libc::ENETDOWN;
/// So many calls a process may make to end in order, such as those that close a socket. With the next one it is killed.
const MAX_CALLS_AFTER_END: u32 = 16;
/// A server whose listener was ended may end by itself. After this time it is asked to, and after as long again it is killed: it would try to accept for ever.
const GRACE: Duration = Duration::from_secs(1);
const REQUESTS: [Signal; 2] = [Signal::TERM, Signal::KILL];

/// What a guard acts on: the programs' calls, the record of the one in hand, and a look at the private network's sockets, which also ends them.
#[derive(Debug)]
struct Charge {
    notifier: Notifier,
    ledger: Ledger,
    diag: Diag,
    /// While it is there, a process that has made the network does not end its sockets: a listener that was ended cannot be found any more.
    hold: Option<OwnedFd>,
}

/// Hands a [`guard`] what it needs, through a [socket](passing::pair) whose other end it has. The guard acts when this end is closed.
///
/// # Errors
/// The kernel's.
pub fn charge_guard(
    socket: impl AsFd,
    notifier: &Notifier,
    ledger: &Ledger,
    inner: &Inner,
) -> io::Result<()> {
    let diag = inner.network.diag()?;
    let hold = inner.network.hold()?;
    let mut descriptors = vec![notifier.as_fd(), ledger.as_fd(), diag.as_fd()];
    descriptors.extend(hold.as_ref().map(AsFd::as_fd));
    passing::send(socket, CHARGE, &descriptors)
}

impl Charge {
    /// `None` if the supervisor is gone already.
    fn receive(socket: impl AsFd) -> io::Result<Option<Charge>> {
        let mut descriptors = Vec::new();
        if passing::receive(socket, CHARGE.len(), 4, &mut descriptors)?.is_none() {
            return Ok(None);
        }
        let hold = (descriptors.len() == 4).then(|| descriptors.pop()).flatten();
        let Ok([notifier, ledger, diag]) = <[OwnedFd; 3]>::try_from(descriptors) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        Ok(Some(Charge {
            notifier: Notifier::from_descriptor(notifier),
            ledger: Ledger::from_descriptor(ledger),
            diag: Diag::from_descriptor(diag)?,
            hold,
        }))
    }
}

/// Takes what [`charge_guard`] sends, and waits until the supervisor closes its end of the socket. Then ends every TCP socket of the private network, has the call in
/// the supervisor's hands and all later ones fail with `ENETDOWN`, and kills each process that goes on, until the last has gone.
///
/// # Errors
/// The kernel's.
pub fn guard(socket: impl AsFd) -> io::Result<()> {
    let Some(charge) = Charge::receive(&socket)? else { return Ok(()) };
    let Charge { notifier, ledger, mut diag, hold } = charge;
    poll_until(&mut [PollFd::new(&socket, PollFlags::IN)], None)?;
    let known = ledger.answer(&notifier, SUPERVISOR_GONE)?;
    let servers = servers(&mut diag).unwrap_or_default();
    drop(hold);
    let destroyed = diag.destroy_all();
    let mut requests = REQUESTS.into_iter();
    let mut next_at = (!servers.is_empty()).then(|| Instant::now() + GRACE);
    // If the very first call was in its hands, nobody knows that call's number. No program has a socket yet, and without the notifier each call fails.
    if !known {
        return destroyed.map(drop);
    }
    let mut calls = HashMap::new();
    loop {
        let mut fds = [PollFd::new(&notifier, PollFlags::IN)];
        let wait = next_at.map(|at| at.saturating_duration_since(Instant::now()));
        poll_until(&mut fds, wait)?;
        let events = fds[0].revents();
        if next_at.is_some_and(|at| at <= Instant::now()) {
            let request = requests.next();
            next_at = request.map(|_| Instant::now() + GRACE);
            for (server, signal) in servers.iter().zip(std::iter::repeat(request)) {
                let _ = signal.map(|signal| pidfd_send_signal(server, signal));
            }
        }
        if events.contains(PollFlags::IN) {
            if let Some(call) = notifier.receive()? {
                fail_call(&notifier, &call, &mut calls)?;
            }
        } else if events.intersects(PollFlags::HUP | PollFlags::ERR) {
            return destroyed.map(drop);
        }
    }
}

/// The processes that have a listener of this network namespace.
fn servers(diag: &mut Diag) -> io::Result<Vec<OwnedFd>> {
    let sockets = diag.tcp()?;
    let listening = sockets.iter().filter(|socket| socket.state == KernelTcpState::Listen);
    let links: HashSet<String> =
        listening.map(|socket| format!("socket:[{}]", socket.inode)).collect();
    let mut servers = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        let Some(pid) = Pid::from_raw(pid).filter(|_| !links.is_empty()) else { continue };
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { continue };
        // A process that ends meanwhile takes its number with it, and its successor has no socket of ours.
        if has_one_of(&links, pid) {
            servers.push(process);
        }
    }
    Ok(servers)
}

fn has_one_of(links: &HashSet<String>, pid: Pid) -> bool {
    let directory = format!("/proc/{}/fd", pid.as_raw_nonzero());
    let Ok(descriptors) = fs::read_dir(directory) else { return false };
    let targets = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    targets.into_iter().any(|target| target.to_str().is_some_and(|link| links.contains(link)))
}

/// Waits for an event, or for this long.
fn poll_until(fds: &mut [PollFd<'_>], wait: Option<Duration>) -> io::Result<()> {
    let wait = wait.and_then(|wait| Timespec::try_from(wait).ok());
    loop {
        match poll(fds, wait.as_ref()) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Has a call fail. `calls` has how many each process has made.
fn fail_call(notifier: &Notifier, call: &Call, calls: &mut HashMap<Pid, u32>) -> io::Result<()> {
    let process = process_of(call.thread).ok().and_then(|number| i32::try_from(number).ok());
    if let Some(pid) = process.and_then(Pid::from_raw) {
        let call_count = calls.entry(pid).or_default();
        *call_count += 1;
        let process =
            pidfd_open(pid, PidfdFlags::empty()).ok().filter(|_| *call_count > MAX_CALLS_AFTER_END);
        // The number was the program's if its call still waits.
        if let Some(process) = process.filter(|_| notifier.is_valid(call.id)) {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }
    notifier.answer(call.id, Answer::Error(SUPERVISOR_GONE))?;
    Ok(())
}
