//! A host in virtual time: packets in, packets out, timers, and calls that wait.
//!
//! Time moves in two calls only: [`Host::run_to`], and a socket call that has to wait. Both move from one event to the
//! next. An event is a packet that [`Host::inject`] queued for that time, or a timer of the stack. At the same instant packets
//! come first, in the order in which they were queued. After every event and every call the stack sends what it has to
//! send. These packets wait, with the time at which they left, until [`Host::next_packet`] takes them.
//!
//! # Waiting
//! A call on a blocking socket that cannot finish moves time on, as far as the tool's patience ([`Host::set_patience`])
//! allows. Then it gives `EINTR`, as a call that a signal interrupts. Nothing is lost: the same call made again goes on
//! waiting (`connect` too). If some bytes were transferred before, the call returns their number instead. Patience is
//! zero at first: then only the tool moves time, and a blocking call that has to wait gives `EINTR` at once. The socket's own
//! timeouts (`SO_RCVTIMEO`, `SO_SNDTIMEO`) count as well; they end with `EAGAIN`, as on Linux.

use libc::{EINTR, EINVAL, EMSGSIZE, POLLERR, POLLHUP, POLLNVAL};
use std::collections::{BTreeMap, VecDeque};
use transom_sockets::{Awaited, Drive, Errno, Result, Sockets, Table, Waited};
use transom_stack::{Stack, StackConfig, StackConfigError};
use transom_tcp::time::{Duration, Instant};

/// The longest patience, thirty days. Longer than any timer of TCP, and short enough for a call to end.
const MAX_PATIENCE: Duration = Duration::from_secs(30 * 86_400);

/// The longest IP packet.
const MAX_PACKET: usize = 65_535;

/// More timers than this at one instant are a defect.
const MAX_ROUNDS: u32 = 100_000;

/// A question about a descriptor, and its answer; laid out as Linux' `struct pollfd`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollFd {
    /// The descriptor; a negative one is passed over.
    pub fd: i32,
    /// The events asked for. `POLLERR`, `POLLHUP` and `POLLNVAL` always are.
    pub events: i16,
    /// The events that hold.
    pub revents: i16,
}

/// A host with its sockets and its clock.
#[derive(Debug)]
pub struct Host {
    stack: Stack,
    sockets: Table,
    now: Instant,
    patience: Duration,
    /// Packets on their way to the host, in the order in which they arrive.
    arrivals: BTreeMap<(Instant, u64), Vec<u8>>,
    queued: u64,
    departures: VecDeque<(Instant, Vec<u8>)>,
}

impl Host {
    /// A host as configured whose clock shows `now`.
    ///
    /// # Errors
    /// The fault of the configuration.
    pub fn new(config: StackConfig, now: Instant) -> core::result::Result<Self, StackConfigError> {
        Ok(Host {
            // A caller may put the packets on a real network.
            stack: Stack::new(config.with_simulated(false), now)?,
            sockets: Table::default(),
            now,
            patience: Duration::ZERO,
            arrivals: BTreeMap::new(),
            queued: 0,
            departures: VecDeque::new(),
        })
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The stack, to look at.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// How far a call on a blocking socket may move time on; see the module's introduction.
    ///
    /// # Errors
    /// `EINVAL` for more than thirty days.
    pub fn set_patience(&mut self, patience: Duration) -> Result<()> {
        if patience > MAX_PATIENCE {
            return Err(Errno(EINVAL));
        }
        self.patience = patience;
        Ok(())
    }

    /// Lets a raw IP packet arrive at `at`: at once if that is now, otherwise when time gets there.
    ///
    /// # Errors
    /// `EINVAL` for a time that has passed or a packet without a byte, `EMSGSIZE` for one longer than IP allows. Whether the
    /// packet makes sense, the stack decides.
    pub fn inject(&mut self, at: Instant, packet: &[u8]) -> Result<()> {
        if at < self.now || packet.is_empty() {
            return Err(Errno(EINVAL));
        }
        if packet.len() > MAX_PACKET {
            return Err(Errno(EMSGSIZE));
        }
        if at == self.now {
            self.stack.on_packet(at, packet, Default::default());
            self.settle();
        } else {
            self.arrivals.insert((at, self.queued), packet.to_vec());
            self.queued += 1;
        }
        Ok(())
    }

    /// Takes the next packet that left the host, with the time at which it left.
    pub fn next_packet(&mut self) -> Option<(Instant, Vec<u8>)> {
        self.departures.pop_front()
    }

    /// The packet that [`Host::next_packet`] would take.
    pub(crate) fn peek_packet(&self) -> Option<(Instant, &[u8])> {
        self.departures.front().map(|(at, packet)| (*at, packet.as_slice()))
    }

    /// When the stack's next timer is to be looked at. It may turn out that nothing was due.
    pub fn next_timer(&self) -> Option<Instant> {
        self.stack.next_timeout().map(|at| at.max(self.now))
    }

    /// When something happens next by itself: a timer, or the arrival of a queued packet.
    pub fn next_event(&self) -> Option<Instant> {
        let arrival = self.arrivals.first_key_value().map(|(&(at, _), _)| at);
        match (arrival, self.next_timer()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Moves time on to `at`, with everything that happens on the way and at that instant.
    ///
    /// # Errors
    /// `EINVAL` if that time has passed.
    pub fn run_to(&mut self, at: Instant) -> Result<()> {
        if at < self.now {
            return Err(Errno(EINVAL));
        }
        while self.step(at) {}
        Ok(())
    }

    /// Moves to the next event if it is not after `limit`; if it is, it is `limit` now.
    fn step(&mut self, limit: Instant) -> bool {
        let Some(at) = self.next_event().filter(|&at| at <= limit) else {
            self.now = self.now.max(limit);
            return false;
        };
        self.now = at;
        while let Some(entry) = self.arrivals.first_entry()
            && entry.key().0 <= at
        {
            let packet = entry.remove();
            self.stack.on_packet(at, &packet, Default::default());
            self.flush();
        }
        self.settle();
        true
    }

    fn flush(&mut self) {
        flush(&mut self.stack, self.now, &mut self.departures);
    }

    fn settle(&mut self) {
        settle(&mut self.stack, self.now, &mut self.departures);
    }

    /// `poll(2)`: how many descriptors have something to tell, which is written to `revents`. It waits for `timeout` milliseconds,
    /// for ever if that is negative, and in any case not longer than patience lasts.
    ///
    /// # Errors
    /// `EINTR` if patience ended before `timeout`; repeat the call with what is left of it.
    pub fn poll(&mut self, fds: &mut [PollFd], timeout: i32) -> Result<usize> {
        let look = |sockets: &mut Sockets<'_>| {
            for entry in fds.iter_mut() {
                let asked = entry.events | POLLERR | POLLHUP | POLLNVAL;
                entry.revents = if entry.fd < 0 { 0 } else { sockets.readiness(entry.fd) & asked };
            }
            Some(fds.iter().filter(|entry| entry.revents != 0).count()).filter(|&ready| ready > 0)
        };
        let timeout = u64::try_from(timeout).ok().map(Duration::from_millis);
        let waited = match timeout {
            Some(Duration::ZERO) => self.attempt(look),
            _ => self.wait_for(timeout, look),
        };
        match waited {
            Waited::Done(ready) => Ok(ready),
            Waited::TimedOut => Ok(0),
            Waited::Interrupted | Waited::Failed(_) => Err(Errno(EINTR)),
        }
    }

    /// Calls `attempt` until it gives something, moving time on in between, for as long as `timeout` and patience allow. There
    /// is one attempt after each event, so it has to do all that can be done.
    fn wait_for<T>(
        &mut self,
        timeout: Option<Duration>,
        mut attempt: impl FnMut(&mut Sockets<'_>) -> Option<T>,
    ) -> Waited<T> {
        let timeout = timeout.filter(|&timeout| timeout <= self.patience);
        let limit = self.now + timeout.unwrap_or(self.patience);
        loop {
            if let Some(value) = self.with(&mut attempt) {
                return Waited::Done(value);
            }
            if !self.step(limit) {
                break;
            }
        }
        if timeout.is_some() { Waited::TimedOut } else { Waited::Interrupted }
    }
}

impl Drive for Host {
    fn with<T>(&mut self, call: impl FnOnce(&mut Sockets<'_>) -> T) -> T {
        let Host { stack, sockets, now, departures, .. } = self;
        let now = *now;
        let mut settle = |stack: &mut Stack| settle(stack, now, departures);
        call(&mut Sockets::new(stack, sockets, now, &mut settle))
    }

    fn wait<T>(
        &mut self,
        _: Awaited,
        timeout: Option<Duration>,
        attempt: impl FnMut(&mut Sockets<'_>) -> Option<T>,
    ) -> Waited<T> {
        self.wait_for(timeout, attempt)
    }
}

/// Takes what the stack has to send.
fn flush(stack: &mut Stack, now: Instant, departures: &mut VecDeque<(Instant, Vec<u8>)>) {
    while let Some(packet) = stack.poll_transmit(now) {
        departures.push_back((now, packet.to_vec()));
    }
    // Sockets look at connections themselves; events would only pile up.
    while stack.poll_signal().is_some() {}
}

/// Does what is due now: sends packets, and lets timers fire.
///
/// # Panics
/// If timers keep firing at the same instant, which would be a defect of the stack.
fn settle(stack: &mut Stack, now: Instant, departures: &mut VecDeque<(Instant, Vec<u8>)>) {
    flush(stack, now, departures);
    let mut rounds = 0;
    while stack.next_timeout().is_some_and(|at| at <= now) {
        stack.on_timeout(now);
        flush(stack, now, departures);
        rounds += 1;
        assert!(rounds < MAX_ROUNDS, "timers keep firing at {now:?}");
    }
}
