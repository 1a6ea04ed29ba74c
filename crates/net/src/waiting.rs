//! How a thread waits: it leads, or it follows.
//!
//! A thread that has to wait for its socket *leads* if no other application thread does. It waits for the device, processes
//! what arrives, and leaves when its own socket is ready. Other waiting threads *follow*: they sleep until their socket is
//! ready, or until the leader leaves and one of them takes over.

use crate::eagerness::{MOMENT, Patience};
use crate::engine::{Channel, ConnectionId, Inner};
use crate::lock::Held;
use crate::roles::Leader;
use crate::runtime::Runtime;
use crate::sync::{Arc, thread};
use crate::wake_event::WakeEvent;
use std::io;
use transom_tcp::time::{Duration, Instant};

/// The interval for retries of a failed device, and for polls of a device without a descriptor.
pub(crate) const RETRY_FAILED: Duration = Duration::from_secs(1);
pub(crate) const LOOK_WITHOUT_DESCRIPTOR: Duration = Duration::from_millis(1);

/// The event that a thread waits for, and its own way of working while it leads.
trait Task<T> {
    /// The result, if it is there.
    fn attempt(&mut self, inner: &mut Inner, now: Instant) -> Option<T>;

    /// Handles what arrives. Returns the result, if that was it, and whether anything arrived.
    fn work(&mut self, inner: &mut Inner, patience: Patience<'_>) -> (Option<T>, bool) {
        (None, inner.work(patience))
    }

    /// The result after a signal's handler has run; by default none, and the wait continues.
    fn interrupted(&mut self) -> Option<T> {
        None
    }
}

/// A task with the ordinary way of working.
struct Ordinary<F>(F);

impl<T, F: FnMut(&mut Inner, Instant) -> Option<T>> Task<T> for Ordinary<F> {
    fn attempt(&mut self, inner: &mut Inner, now: Instant) -> Option<T> {
        (self.0)(inner, now)
    }
}

/// A task that ends when a signal's handler has run.
struct Interruptible<F, G> {
    attempt: F,
    interrupted: G,
}

impl<T, F, G> Task<T> for Interruptible<F, G>
where
    F: FnMut(&mut Inner, Instant) -> Option<T>,
    G: FnMut() -> T,
{
    fn attempt(&mut self, inner: &mut Inner, now: Instant) -> Option<T> {
        (self.attempt)(inner, now)
    }

    fn interrupted(&mut self) -> Option<T> {
        Some((self.interrupted)())
    }
}

/// Reading into memory that is there while the thread waits.
struct Reading<'a, F> {
    id: ConnectionId,
    out: &'a mut [u8],
    attempt: F,
}

impl<F> Task<io::Result<usize>> for Reading<'_, F>
where
    F: FnMut(&mut Inner, Instant, &mut [u8]) -> Option<io::Result<usize>>,
{
    fn attempt(&mut self, inner: &mut Inner, now: Instant) -> Option<io::Result<usize>> {
        (self.attempt)(inner, now, self.out)
    }

    fn work(
        &mut self,
        inner: &mut Inner,
        mut patience: Patience<'_>,
    ) -> (Option<io::Result<usize>>, bool) {
        let (filled, arrived) = inner.work_for_reader(self.id, self.out, &mut patience);
        if filled > 0 {
            return (Some(Ok(filled)), true);
        }
        (None, inner.work(patience) || arrived)
    }
}

/// The lead, and with it the lock. It is given back whatever happens: a device or a unit that panics takes only its own
/// thread along.
pub(crate) struct Lead<'a> {
    runtime: &'a Runtime,
    inner: Option<Held<'a>>,
    leader: Leader,
    epoch: u64,
}

impl<'a> Lead<'a> {
    /// Takes the lead.
    pub(crate) fn take(runtime: &'a Runtime, mut inner: Held<'a>, leader: Leader) -> Self {
        inner.roles.leader = leader;
        let epoch = runtime.background.next_epoch();
        Lead { runtime, inner: Some(inner), leader, epoch }
    }

    pub(crate) fn inner(&mut self) -> &mut Inner {
        self.inner.get_or_insert_with(|| self.runtime.lock())
    }

    /// Lets go of the lock for a while, in the way `rest` says.
    pub(crate) fn rest(&mut self, rest: impl FnOnce(Held<'a>) -> Held<'a>) {
        if let Some(inner) = self.inner.take() {
            self.inner = Some(rest(inner));
        }
    }

    /// The epoch that this is.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether another thread has taken the lead.
    pub(crate) fn is_replaced(&self) -> bool {
        self.runtime.background.epoch() != self.epoch
    }

    pub(crate) fn give_back(&mut self) -> Held<'a> {
        let mut inner = self.inner.take().unwrap_or_else(|| self.runtime.lock());
        if !self.is_replaced() {
            inner.roles.leader = Leader::Nobody;
            inner.roles.leader_channel = None;
            self.runtime.background.next_epoch();
        }
        inner
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            if self.leader == Leader::Background {
                self.runtime.background.died();
            }
            let mut inner = self.give_back();
            if self.leader == Leader::Background {
                // Nobody serves them any more: they find that out.
                inner.roles.wake_tasks();
            }
            self.runtime.leave(&mut inner);
        }
    }
}

/// How long a leader stays awake when nothing arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awake {
    /// It sleeps as soon as there is nothing to do, unless it has learned better.
    No,
    /// Until then, because the application has set it so.
    Always(Instant),
    /// Until then, to see whether it pays.
    Attempt(Instant),
}

impl Awake {
    /// For `busy_poll` from `now` on, if that is any time at all.
    pub(crate) fn polling(now: Instant, busy_poll: Duration) -> Self {
        if busy_poll.is_zero() { Awake::No } else { Awake::Always(now + busy_poll) }
    }

    /// Learns from what happened until `now`.
    pub(crate) fn learn(&mut self, inner: &mut Inner, arrived: bool, now: Instant) {
        if let Awake::Attempt(until) = *self
            && (arrived || now >= until)
        {
            inner.roles.eagerness.learn(arrived);
            if arrived {
                *self = Awake::No;
            }
        }
    }

    /// Whether to go on without sleeping, though nothing arrived until `now`.
    pub(crate) fn goes_on(&mut self, inner: &mut Inner, now: Instant) -> bool {
        match *self {
            Awake::No if inner.roles.eagerness.stays_awake() => {
                *self = Awake::Attempt(now + MOMENT);
                true
            }
            Awake::No => false,
            Awake::Always(until) => now < until,
            Awake::Attempt(until) => {
                let goes_on = now < until;
                if !goes_on {
                    *self = Awake::No;
                }
                goes_on
            }
        }
    }
}

impl Runtime {
    /// Waits until `attempt` gives a result, leading or following meanwhile. `None`: the deadline passed.
    pub(crate) fn wait<T>(
        &self,
        channel: Channel,
        deadline: Option<Instant>,
        attempt: impl FnMut(&mut Inner, Instant) -> Option<T>,
    ) -> Option<T> {
        self.wait_with(channel, deadline, &mut Ordinary(attempt))
    }

    /// The same, but a leader's wait also ends with `interrupted` when a signal's handler has run in its thread.
    pub(crate) fn wait_for_signals_too<T>(
        &self,
        channel: Channel,
        deadline: Option<Instant>,
        attempt: impl FnMut(&mut Inner, Instant) -> Option<T>,
        interrupted: impl FnMut() -> T,
    ) -> Option<T> {
        self.wait_with(channel, deadline, &mut Interruptible { attempt, interrupted })
    }

    /// Waits for data of `id` with the memory it is to go to. `attempt` reads what is there already.
    pub(crate) fn wait_to_read(
        &self,
        id: ConnectionId,
        deadline: Option<Instant>,
        out: &mut [u8],
        attempt: impl FnMut(&mut Inner, Instant, &mut [u8]) -> Option<io::Result<usize>>,
    ) -> Option<io::Result<usize>> {
        self.wait_with(Channel::Readable(id), deadline, &mut Reading { id, out, attempt })
    }

    fn wait_with<T>(
        &self,
        channel: Channel,
        deadline: Option<Instant>,
        task: &mut impl Task<T>,
    ) -> Option<T> {
        let mut inner = self.lock();
        let result = loop {
            let now = self.now();
            let result = task.attempt(&mut inner, now);
            inner.roles.tried = Some(channel);
            // A writer may have looked for acknowledgements since.
            let mut is_news = false;
            while inner.send_some() {
                if inner.is_wanted() {
                    inner = inner.let_in();
                    // Nobody has noted meanwhile what happened on this channel.
                    is_news = true;
                }
            }
            is_news |= inner.roles.tried.take().is_none();
            if result.is_some() || deadline.is_some_and(|deadline| deadline <= now) {
                break result;
            }
            if is_news {
                // What left made room for more, for example.
                continue;
            }
            if inner.roles.leader == Leader::Application
                || (inner.roles.leader == Leader::Background && self.is_crowded(&inner))
            {
                if inner.roles.has_errands() {
                    // They go out when the lock is free, and asleep this thread would not look again.
                    inner = inner.let_in();
                    continue;
                }
                // The leader may have to hear of what was just sent.
                self.leave(&mut inner);
                inner = self.follow(inner, channel, deadline);
                continue;
            }
            let (result, rest) = self.lead(inner, channel, deadline, task);
            inner = rest;
            break result;
        };
        self.leave(&mut inner);
        result
    }

    fn lead<'a, T>(
        &'a self,
        inner: Held<'a>,
        channel: Channel,
        deadline: Option<Instant>,
        task: &mut impl Task<T>,
    ) -> (Option<T>, Held<'a>) {
        if inner.roles.leader == Leader::Background {
            self.wake_background().signal(); // it finds itself replaced
        }
        let mut lead = Lead::take(self, inner, Leader::Application);
        lead.inner().roles.leader_channel = Some(channel);
        let mut awake = Awake::polling(self.now(), self.busy_poll());
        let mut signalled = false;
        let result = loop {
            let inner = lead.inner();
            inner.roles.leader_notified = false;
            let patience = self.patience(inner, &awake, deadline);
            let (mut result, arrived) = task.work(inner, patience);
            let now = self.now();
            awake.learn(inner, arrived, now);
            if result.is_none() {
                result = task.attempt(inner, now);
            }
            while lead.inner().send_some() {
                lead.rest(Held::let_in);
            }
            let inner = lead.inner();
            if std::mem::take(&mut signalled) && result.is_none() {
                result = task.interrupted();
            }
            if result.is_some() || deadline.is_some_and(|deadline| deadline <= now) {
                break result;
            }
            // Sending may be news for this thread, too.
            if arrived || inner.roles.leader_notified || awake.goes_on(inner, now) {
                lead.rest(Held::let_in);
            } else {
                lead.rest(|inner| {
                    let (inner, by_signal) = self.sleep(inner, deadline, self.wake_leader());
                    signalled = by_signal;
                    inner
                });
            }
        };
        (result, lead.give_back())
    }

    /// How long to ask the device before anything else has to be done.
    pub(crate) fn patience(
        &self,
        inner: &Inner,
        awake: &Awake,
        deadline: Option<Instant>,
    ) -> Patience<'_> {
        match *awake {
            Awake::No => Patience::default(),
            Awake::Always(until) | Awake::Attempt(until) => {
                Patience::until(until.min(inner.next_wake(deadline)), self.contenders())
            }
        }
    }

    /// Sleeps until the device, a timer or another thread asks for attention, or a signal's handler has run: then it says so.
    pub(crate) fn sleep<'a>(
        &'a self,
        mut inner: Held<'a>,
        deadline: Option<Instant>,
        wake: &WakeEvent,
    ) -> (Held<'a>, bool) {
        let now = self.now();
        let mut until = inner.next_wake(deadline);
        inner.roles.leader_wakes_at = until;
        let device = self.telling_fd(&inner);
        if device.is_none() {
            let look =
                if self.device_fd().is_some() { RETRY_FAILED } else { LOOK_WITHOUT_DESCRIPTOR };
            until = until.min(now + look);
        }
        drop(inner);
        let span = (until != Instant::FAR_FUTURE).then(|| until.since(now));
        let by_signal = wake.sleep(device, span);
        (self.lock(), by_signal)
    }

    fn follow<'a>(
        &'a self,
        mut inner: Held<'a>,
        channel: Channel,
        deadline: Option<Instant>,
    ) -> Held<'a> {
        let waiters = inner.roles.waiters.entry(channel).or_default();
        waiters.count += 1;
        let notifier = Arc::clone(&waiters.notifier);
        inner.roles.followers.push(Arc::clone(&notifier));
        let limit = deadline.map(|deadline| deadline.since(self.now()));
        inner = inner.sleep(&notifier, limit);
        if let Some(index) =
            inner.roles.followers.iter().position(|other| Arc::ptr_eq(other, &notifier))
        {
            inner.roles.followers.remove(index);
        }
        if let Some(waiters) = inner.roles.waiters.get_mut(&channel) {
            waiters.count -= 1;
            if waiters.count == 0 {
                inner.roles.waiters.remove(&channel);
            }
        }
        inner
    }
}
