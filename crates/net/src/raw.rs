//! The running host for a crate that has sockets of its own, as `libtransom` has.
//!
//! [`RawHost`] lends the stack itself, under the runtime's lock, and lets threads wait as streams and listeners do. Its user keeps track of
//! connections, and closes those that it has opened.

use crate::engine::{Channel, Inner};
use crate::ports::Reservation;
pub use crate::readiness::Readiness as ShownReadiness;
use crate::runtime::Runtime;
use crate::stack::{Stack, wait_until};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use transom_stack::mapped::Bound;
use transom_stack::{ConnectionId, ListenerId, Stack as Host};
use transom_tcp::time::{Duration, Instant};

/// The event that a thread waits for, or that has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HostEvent {
    /// There is something to read, or the end.
    Readable(ConnectionId),
    /// There is room to write, or the handshake is over, or the connection is.
    Writable(ConnectionId),
    /// There is a connection to accept.
    Acceptable(ListenerId),
}

impl HostEvent {
    fn channel(self) -> Channel {
        match self {
            HostEvent::Readable(id) => Channel::Readable(id),
            HostEvent::Writable(id) => Channel::Writable(id),
            HostEvent::Acceptable(id) => Channel::Acceptable(id),
        }
    }
}

/// How waiting ended.
#[derive(Debug)]
pub enum HostWait<T> {
    /// The result of the call.
    Done(T),
    /// The deadline passed.
    TimedOut,
    /// A signal's handler ran in this thread while it slept. A thread that follows another one does not notice.
    Interrupted,
    /// The device does not work.
    Failed(io::Error),
}

/// Is told of what happens in a host. The host's lock is held: calls must not wait, nor use anything of the same host.
pub trait HostWatcher: Send + Sync {
    /// Something about a connection has changed: data, room, its state.
    fn connection(&self, host: &mut Host, now: Instant, id: ConnectionId);

    /// A listener has a connection to accept.
    fn listener(&self, host: &mut Host, now: Instant, id: ListenerId);

    /// The device does not work any more, so that every call would end at once.
    fn failed(&self);
}

/// A port that the kernel keeps for this host, until this is dropped and the last connection there has gone.
#[derive(Debug)]
#[non_exhaustive]
pub struct HeldPort {
    /// The address and the port.
    pub address: SocketAddr,
    _reservation: Option<Reservation>,
}

/// A running host of one shard.
#[derive(Clone, Debug)]
pub struct RawHost {
    stack: Stack,
}

impl RawHost {
    /// The host behind `stack`. `None`: it has several shards.
    pub fn new(stack: Stack) -> Option<RawHost> {
        (stack.shard_count() == 1).then_some(RawHost { stack })
    }

    /// The handle for everything else.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    fn runtime(&self) -> &Runtime {
        &self.stack.first().runtime
    }

    /// The present on the host's clock.
    pub fn now(&self) -> Instant {
        self.runtime().now()
    }

    /// Calls `change` with the stack, and sends what follows from it.
    pub fn with<T>(&self, change: impl FnOnce(&mut Host, Instant) -> T) -> T {
        self.runtime().with(|inner, now| change(&mut inner.host, now))
    }

    /// Calls `attempt`, and once more with what lies at the device if it gave nothing. `None`: nothing is there.
    ///
    /// # Errors
    /// Why the device does not work.
    pub fn attempt<T>(
        &self,
        mut attempt: impl FnMut(&mut Host, Instant) -> Option<T>,
    ) -> io::Result<Option<T>> {
        let runtime = self.runtime();
        runtime.with(|inner, now| {
            let mut result = attempt(&mut inner.host, now);
            if result.is_none() {
                runtime.poll_once(inner);
                result = attempt(&mut inner.host, runtime.now());
            }
            match (result, inner.failure()) {
                (Some(value), _) => Ok(Some(value)),
                (None, Some(error)) => Err(error),
                (None, None) => Ok(None),
            }
        })
    }

    /// Calls `attempt` at once and after each `event`, until it gives something or `timeout` has passed.
    pub fn wait<T>(
        &self,
        event: HostEvent,
        timeout: Option<Duration>,
        mut attempt: impl FnMut(&mut Host, Instant) -> Option<T>,
    ) -> HostWait<T> {
        let runtime = self.runtime();
        let deadline = timeout.map(|timeout| runtime.now() + timeout);
        let attempt = |inner: &mut Inner, mut now: Instant| {
            let writer = match event {
                HostEvent::Writable(id) => Some(id),
                HostEvent::Readable(_) | HostEvent::Acceptable(_) => None,
            };
            let queued = |inner: &Inner| {
                writer.and_then(|id| inner.host.connection(id)).map_or(0, |c| c.unacknowledged())
            };
            if writer.is_some() {
                now = runtime.poll_for_acks(inner, now);
            }
            let before = queued(inner);
            let result = attempt(&mut inner.host, now);
            inner.roles.written_since_poll += queued(inner).saturating_sub(before);
            match result {
                Some(value) => Some(HostWait::Done(value)),
                None => inner.failure().map(HostWait::Failed),
            }
        };
        let waited = runtime
            .wait_for_signals_too(event.channel(), deadline, attempt, || HostWait::Interrupted);
        waited.unwrap_or(HostWait::TimedOut)
    }

    /// Has threads that wait for `event` try again: something that no packet tells of has changed.
    pub fn wake(&self, event: HostEvent) {
        self.runtime().with(|inner, _| inner.roles.wake(event.channel()));
    }

    /// Tells `watcher` of everything from now on. Only the first one counts.
    pub fn watch(&self, watcher: Arc<dyn HostWatcher>) {
        // From now on the background thread serves whoever is told.
        self.runtime().with(|inner, _| {
            inner.watcher.get_or_insert(watcher);
        });
    }

    /// Waits until everything that was written is acknowledged, or until `timeout`. Returns whether it is.
    pub fn deliver(&self, timeout: std::time::Duration) -> bool {
        wait_until(std::iter::once(self.runtime()), timeout, |host| !host.has_undelivered())
    }

    /// Has the kernel keep the port at `bound`, or any if it is 0. `None`: the host says itself which ports are free.
    ///
    /// # Errors
    /// The kernel's for bind(2), and those of the [registrar](crate::PortRegistrar).
    pub fn reserve(&self, bound: &Bound) -> io::Result<Option<HeldPort>> {
        let Some(ports) = self.stack.ports() else { return Ok(None) };
        let reservation = ports.reserve(bound)?;
        Ok(Some(HeldPort { address: reservation.address(), _reservation: Some(reservation) }))
    }

    /// The same for a connection to `remote`, from the address that leads there. `bound` is where its socket is bound; a port there is kept already.
    ///
    /// # Errors
    /// As [`RawHost::reserve`], and that there is no way to `remote`.
    pub fn reserve_towards(
        &self,
        remote: IpAddr,
        bound: Option<SocketAddr>,
    ) -> io::Result<Option<HeldPort>> {
        if self.stack.ports().is_none() {
            return Ok(None);
        }
        let ip = match bound.map(|bound| bound.ip()) {
            Some(ip) if !ip.is_unspecified() => ip,
            _ => self.stack.source_for(remote)?,
        };
        let address = SocketAddr::new(ip, bound.map_or(0, |bound| bound.port()));
        match address.port() {
            0 => self.reserve(&Bound::new(address, true)),
            _ => Ok(Some(HeldPort { address, _reservation: None })),
        }
    }
}
