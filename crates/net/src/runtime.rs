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
use crate::eagerness::Patience;
use crate::engine::{BYTES_PER_POLL, Channel, Inner};
use crate::lock::{Held, Lock, Waker};
use crate::roles::Leader;
use crate::sync::Arc;
use crate::sync::atomic::AtomicUsize;
use crate::tasks::Slot;
use crate::wake_event::{DeviceFd, WakeEvent};
use std::io;
use std::task::{Context, Poll};
use transom_tcp::time::{Duration, Instant};

/// This many threads beside the leader make a crowd.
const CROWD: usize = 2;

/// A running host.
pub(crate) struct Runtime {
    inner: Lock,
    pub(crate) background: Background,
    device_fd: Option<DeviceFd>,
    /// The same in two parts, if it has them.
    device_parts: Option<[DeviceFd; 2]>,
    /// Wakes the leading application thread.
    wake_leader: WakeEvent,
    /// Wakes the background thread while it leads.
    wake_background: WakeEvent,
    busy_poll: Duration,
    clock: Clock,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

impl Runtime {
    pub(crate) fn start(inner: Inner, clock: Clock, busy_poll: Duration) -> io::Result<Arc<Self>> {
        let runtime = Arc::new(Runtime {
            device_fd: inner.device_fd()?,
            device_parts: inner.device_parts()?,
            inner: Lock::new(inner),
            background: Background::default(),
            wake_leader: WakeEvent::new()?,
            wake_background: WakeEvent::new()?,
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
    pub(crate) fn device_fd(&self) -> Option<&DeviceFd> {
        self.device_fd.as_ref()
    }

    /// The descriptors for an event loop that tells them apart: the device's, or those of its two parts.
    pub(crate) fn device_fds(&self) -> &[DeviceFd] {
        match &self.device_parts {
            Some(parts) => parts,
            None => self.device_fd.as_slice(),
        }
    }

    /// The same while it says that packets are there. A device that has failed does not.
    pub(crate) fn telling_fd(&self, inner: &Inner) -> Option<&DeviceFd> {
        self.device_fd().filter(|_| !inner.has_failed())
    }

    pub(crate) fn wake_leader(&self) -> &WakeEvent {
        &self.wake_leader
    }

    pub(crate) fn wake_background(&self) -> &WakeEvent {
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
        inner.send();
        self.leave(&mut inner);
        result
    }

    /// Whether so many threads wait that passing the lead among them costs more than the background thread.
    pub(crate) fn is_crowded(&self, inner: &Inner) -> bool {
        inner.roles.followers.len() >= CROWD && self.background.is_alive()
    }

    /// Must be called by every thread that has changed something, or stops waiting.
    pub(crate) fn leave(&self, inner: &mut Inner) {
        match inner.roles.leader {
            Leader::Nobody => {
                let crowded = self.is_crowded(inner);
                let follower = inner.roles.followers.first().filter(|_| !crowded);
                if let Some(notifier) = follower {
                    inner.roles.wakers.push(Waker::One(notifier.clone()));
                } else if !self.background.is_alive() {
                    // Nobody will serve tasks: they find that out.
                    inner.roles.wake_tasks();
                } else if inner.roles.background_parked || crowded || inner.needs_background() {
                    inner.roles.background_parked = false;
                    self.background.call();
                }
                // Otherwise the background thread dozes or is awake, and will look by itself.
            }
            // A driver at work looks by itself before it sleeps.
            Leader::Application if inner.roles.driver_awake => {}
            Leader::Application => {
                let wake = inner.next_wake(None);
                if inner.roles.leader_notified || wake < inner.roles.leader_wakes_at {
                    inner.roles.leader_wakes_at = inner.roles.leader_wakes_at.min(wake);
                    self.wake_leader.signal();
                }
            }
            Leader::Background => {
                let wake = inner.next_wake(None);
                if wake < inner.roles.leader_wakes_at {
                    inner.roles.leader_wakes_at = wake;
                    self.wake_background.signal();
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
        if inner.roles.leader == Leader::Application
            || inner.roles.written_since_poll < BYTES_PER_POLL
        {
            return now;
        }
        inner.roles.written_since_poll = 0;
        if inner.roles.leader == Leader::Background {
            inner.roles.leader = Leader::Nobody;
            self.wake_background.signal(); // it finds itself replaced
        }
        self.background.next_epoch();
        inner.work(Patience::default());
        self.now()
    }

    /// Processes arrived packets, if no other thread does.
    pub(crate) fn poll_once(&self, inner: &mut Inner) {
        if inner.roles.leader != Leader::Application {
            inner.work(Patience::default());
            inner.send();
        }
    }

    /// Calls `attempt`, and once more with what lies at the device if it gives nothing.
    pub(crate) fn try_now<T>(
        &self,
        mut attempt: impl FnMut(&mut Inner, Instant) -> Option<T>,
    ) -> Option<T> {
        self.with(|inner, now| {
            attempt(inner, now).or_else(|| {
                self.poll_once(inner);
                attempt(inner, self.now())
            })
        })
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
        if result.is_none() && !self.background.is_alive() && inner.roles.leader == Leader::Nobody {
            result =
                Some(Err(io::Error::other("the runtime has stopped: the device has panicked")));
        }
        if result.is_none() {
            let replaced = inner.roles.tasks.put(channel, slot, context.waker());
            inner.roles.wakers.extend(replaced.map(Waker::Forgotten));
        }
        inner.send();
        self.leave(&mut inner);
        result.map_or(Poll::Pending, Poll::Ready)
    }

    /// The task waits no more.
    pub(crate) fn forget_task(&self, channel: Channel, slot: Slot) {
        self.lock().roles.forget_task(channel, slot);
    }
}
