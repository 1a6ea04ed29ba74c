//! The runtime: a waiting thread does the work.
//!
//! A stack in the application's process has no interrupt handler. A separate thread for every packet would cost a wake-up per
//! packet, which is more than the processing of the packet. So a thread that waits for its socket does the work meanwhile
//! ([`waiting`](crate::waiting)). If no thread waits, a background thread leads, so that acknowledgements and retransmissions go
//! on ([`background`](crate::background)). A thread that starts to wait takes the lead from it at once.
//!
//! Three rules keep it live:
//! - Every thread that has finished, for any reason, calls `leave`. If nobody leads, this passes the lead on. If the leader's
//!   channel was notified, or a timer is earlier than the leader knows, it wakes the leader.
//! - The leading application thread and the background thread each wait on their own eventfd, so that no thread takes the
//!   other's wake-up.
//! - A leader that finds other threads waiting for the lock lets one in between two batches.

use crate::background::Background;
use crate::clock::Clock;
use crate::engine::{BYTES_PER_POLL, Channel, Inner, Leader, Patience};
use crate::lock::{Held, Lock, Waker};
use crate::ports::Ports;
use crate::readiness::Readiness;
use crate::tasks::Slot;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll};
use transom_device::Device;
use transom_stack::listener::ListenerId;
use transom_stack::stack::{ConnectionId, Stack as Host};
use transom_tcp::time::{Duration, Instant};

/// This many threads beside the leader make a crowd.
const CROWD: usize = 2;

/// A running host.
pub(crate) struct Runtime {
    inner: Lock,
    pub(crate) background: Background,
    device_fd: Option<OwnedFd>,
    /// Wakes the leading application thread.
    wake_leader: OwnedFd,
    /// Wakes the background thread while it leads.
    wake_background: OwnedFd,
    busy_poll: Duration,
    clock: Clock,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

impl Runtime {
    pub(crate) fn start(
        host: Host,
        device: Box<dyn Device>,
        clock: Clock,
        busy_poll: Duration,
        ports: Option<Arc<Ports>>,
    ) -> io::Result<Arc<Self>> {
        let device_fd = device.poll_fd().map(|fd| fd.try_clone_to_owned()).transpose()?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let runtime = Arc::new(Runtime {
            inner: Lock::new(Inner::new(host, device, clock, ports)),
            background: Background::default(),
            device_fd,
            wake_leader: eventfd(0, flags)?,
            wake_background: eventfd(0, flags)?,
            busy_poll,
            clock,
        });
        Background::start(&runtime)?;
        Ok(runtime)
    }

    /// Makes one host of several shards, in their order.
    pub(crate) fn join(shards: &[Arc<Runtime>]) {
        for shard in shards {
            shard.inner.join(shards.iter().map(Arc::downgrade).collect());
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(crate) fn lock(&self) -> Held<'_> {
        self.inner.take()
    }

    /// How many threads wait for the lock.
    pub(crate) fn contenders(&self) -> &AtomicUsize {
        self.inner.contenders()
    }

    /// The device's descriptor, if it has one.
    pub(crate) fn device_fd(&self) -> Option<&OwnedFd> {
        self.device_fd.as_ref()
    }

    pub(crate) fn wake_leader(&self) -> &OwnedFd {
        &self.wake_leader
    }

    pub(crate) fn wake_background(&self) -> &OwnedFd {
        &self.wake_background
    }

    /// How long a thread that waits asks the device without sleeping.
    pub(crate) fn busy_poll(&self) -> Duration {
        self.busy_poll
    }

    /// Calls `change` and sends what follows from it.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Inner, Instant) -> T) -> T {
        let mut inner = self.lock();
        let now = self.now();
        let result = change(&mut inner, now);
        inner.send(self.now());
        self.leave(&mut inner);
        result
    }

    /// Whether so many threads wait that passing the lead among them costs more than the background thread.
    pub(crate) fn is_crowded(&self, inner: &Inner) -> bool {
        inner.followers.len() >= CROWD && self.background.is_alive()
    }

    /// Must be called by every thread that has changed something, or stops waiting.
    pub(crate) fn leave(&self, inner: &mut Inner) {
        match inner.leader {
            Leader::Nobody => {
                let crowded = self.is_crowded(inner);
                let follower = inner.followers.first().filter(|_| !crowded);
                if let Some(condvar) = follower {
                    inner.wakers.push(Waker::One(condvar.clone()));
                } else if inner.background_parked || crowded || inner.needs_background() {
                    inner.background_parked = false;
                    self.background.call();
                }
                // Otherwise the background thread dozes or is awake, and will look by itself.
            }
            // A driver at work looks by itself before it sleeps.
            Leader::Application if inner.watched.awake => {}
            Leader::Application => {
                let wake = inner.next_wake(None);
                if inner.leader_notified || wake < inner.leader_wakes_at {
                    inner.leader_wakes_at = inner.leader_wakes_at.min(wake);
                    signal(&self.wake_leader);
                }
            }
            Leader::Background => {
                let wake = inner.next_wake(None);
                if wake < inner.leader_wakes_at {
                    inner.leader_wakes_at = wake;
                    signal(&self.wake_background);
                }
            }
        }
    }

    /// Looks for acknowledgements after a long write, unless an application thread does so. The writer leads for a moment: a
    /// thread that writes all the time does not need the background thread, and would only wait for the lock with it.
    ///
    /// A writer that continued until its buffer is full would find the acknowledgements late. Its round-trip times would be
    /// wrong, and the whole of a large buffer would pass through the caches instead of the same small part.
    ///
    /// Returns the time to go on with: later than `now` if this has looked. Time must not run backwards for the host.
    pub(crate) fn poll_for_acks(&self, inner: &mut Inner, now: Instant) -> Instant {
        if inner.leader == Leader::Application || inner.written_since_poll < BYTES_PER_POLL {
            return now;
        }
        inner.written_since_poll = 0;
        if inner.leader == Leader::Background {
            inner.leader = Leader::Nobody;
            signal(&self.wake_background); // it finds itself replaced
        }
        self.background.next_epoch();
        inner.work(Patience::default());
        self.now()
    }

    /// Processes arrived packets, if no other thread does.
    pub(crate) fn poll_once(&self, inner: &mut Inner) {
        if inner.leader != Leader::Application {
            inner.work(Patience::default());
            inner.send(self.now());
        }
    }

    /// Tries, also with what lies at the device. Where that gives nothing, the task is woken when `channel` has news.
    ///
    /// Attempt and waker go together under the lock, so that no news comes between them.
    pub(crate) fn poll<T>(
        &self,
        channel: Channel,
        slot: Slot,
        context: &mut Context<'_>,
        mut attempt: impl FnMut(&mut Inner, Instant) -> Option<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let mut inner = self.lock();
        let mut result = attempt(&mut inner, self.now());
        if result.is_none() {
            self.poll_once(&mut inner);
            result = attempt(&mut inner, self.now());
        }
        if result.is_none() && !self.background.is_alive() && inner.leader == Leader::Nobody {
            result = Some(Err(io::Error::other("nobody serves tasks: the device has panicked")));
        }
        if result.is_none() {
            let replaced = inner.tasks.put(channel, slot, context.waker());
            inner.wakers.extend(replaced.map(Waker::Forgotten));
        }
        inner.send(self.now());
        self.leave(&mut inner);
        result.map_or(Poll::Pending, Poll::Ready)
    }

    /// The task waits no more.
    pub(crate) fn forget_task(&self, channel: Channel, slot: Slot) {
        self.lock().forget_task(channel, slot);
    }

    /// A descriptor that shows a connection's readiness.
    pub(crate) fn export(&self, id: ConnectionId) -> io::Result<OwnedFd> {
        let mut inner = self.lock();
        if let Entry::Vacant(vacant) = inner.readiness.entry(id) {
            vacant.insert(Readiness::new()?);
        }
        inner.update_readiness(id);
        let fd = inner.readiness.get(&id).map(|readiness| readiness.fd().try_clone_to_owned());
        self.leave(&mut inner);
        fd.unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into()))
    }

    /// The same for a listener.
    pub(crate) fn export_listener(&self, id: ListenerId) -> io::Result<OwnedFd> {
        let mut inner = self.lock();
        if let Entry::Vacant(vacant) = inner.listener_readiness.entry(id) {
            vacant.insert(Readiness::new()?);
        }
        inner.update_listener_readiness(id);
        let fd =
            inner.listener_readiness.get(&id).map(|readiness| readiness.fd().try_clone_to_owned());
        self.leave(&mut inner);
        fd.unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into()))
    }
}

/// Makes an eventfd readable.
pub(crate) fn signal(eventfd: &OwnedFd) {
    // It can only fail by overflowing, and then it is readable all the more.
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}
