//! Who does the work: whichever thread waits.
//!
//! A stack in the application's own process has no interrupt handler to do its work. Handing every packet to a thread of its
//! own would cost a wake-up per packet, which is more than the packet's processing. Instead a thread that has to wait for
//! its socket *leads*: it waits for the device, processes what arrives, and leaves when its own socket is ready. Other waiting
//! threads *follow*: they sleep until their socket is ready, or until the leader leaves and one of them takes over. When no
//! thread waits at all, a background thread leads, so that acknowledgements and retransmissions go on; a thread that comes to
//! wait takes the lead from it at once.
//!
//! The background thread must not be woken each time a leader leaves, since a program that goes back and forth between its own
//! work and its sockets leaves thousands of times per second. It dozes: it looks every millisecond whether nobody leads, and
//! sleeps soundly only when somebody else has led for long.
//!
//! Three rules keep it live:
//! - Every thread that is done, whatever the reason, calls `leave`: if nobody leads, the lead is passed on; if somebody does and
//!   there is news for it (its channel was rung, a timer is earlier than it knows), it is woken.
//! - The leading application thread and the background thread wait on an eventfd each, and nobody drains another's: a wake-up
//!   cannot be taken by the wrong one.
//! - A leader that finds other threads waiting for the lock lets one in between two batches.

use crate::clock::Clock;
use crate::engine::{Channel, Inner, Leader, Rest};
use crate::readiness::Readiness;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use transom_device::Device;
use transom_stack::listener::ListenerId;
use transom_stack::stack::{ConnectionId, Stack as Host};
use transom_tcp::time::{Duration, Instant};

/// How often the background thread looks whether it is needed.
const DOZE: std::time::Duration = std::time::Duration::from_millis(1);
/// After so many dozes during which somebody else led without a break it sleeps soundly.
const DOZES_UNTIL_SOUND: u32 = 20;
/// A device that failed is tried again so often; one without a descriptor to wait on is looked at so often.
const RETRY_FAILED: Duration = Duration::from_secs(1);
const LOOK_WITHOUT_DESCRIPTOR: Duration = Duration::from_millis(1);

/// A running host.
pub(crate) struct Runtime {
    inner: Mutex<Inner>,
    /// Threads that wait for the lock.
    contenders: AtomicUsize,
    background: Condvar,
    device_fd: Option<OwnedFd>,
    /// Wakes the leading application thread.
    wake_leader: OwnedFd,
    /// Wakes the background thread while it leads.
    wake_background: OwnedFd,
    busy_poll: Duration,
    clock: Clock,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

/// What a thread waits for, and how it works while it leads.
trait Task<T> {
    /// The result, if it is there.
    fn attempt(&mut self, inner: &mut Inner, now: Instant) -> Option<T>;

    /// Handles what has arrived. Returns the result, if that was it, and whether anything arrived.
    fn work(&mut self, inner: &mut Inner) -> (Option<T>, bool) {
        (None, inner.work())
    }
}

/// A task without a way of working of its own.
struct Ordinary<F>(F);

impl<T, F: FnMut(&mut Inner, Instant) -> Option<T>> Task<T> for Ordinary<F> {
    fn attempt(&mut self, inner: &mut Inner, now: Instant) -> Option<T> {
        (self.0)(inner, now)
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

    fn work(&mut self, inner: &mut Inner) -> (Option<io::Result<usize>>, bool) {
        let (filled, arrived) = inner.work_for_reader(self.id, self.out);
        if filled > 0 {
            return (Some(Ok(filled)), true);
        }
        (None, inner.work() || arrived)
    }
}

/// The lead, and with it the lock. It is given back whatever happens: a device or a unit that panics takes only its own
/// thread along.
struct Lead<'a> {
    runtime: &'a Runtime,
    inner: Option<MutexGuard<'a, Inner>>,
    reign: u64,
}

impl<'a> Lead<'a> {
    /// Takes the lead.
    fn take(runtime: &'a Runtime, mut inner: MutexGuard<'a, Inner>, leader: Leader) -> Self {
        inner.leader = leader;
        inner.reign += 1;
        let reign = inner.reign;
        Lead { runtime, inner: Some(inner), reign }
    }

    fn inner(&mut self) -> &mut Inner {
        self.inner.get_or_insert_with(|| self.runtime.lock())
    }

    /// Lets go of the lock for a while, in the way `rest` says.
    fn rest(
        &mut self,
        rest: impl FnOnce(&'a Runtime, MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner>,
    ) {
        if let Some(inner) = self.inner.take() {
            self.inner = Some(rest(self.runtime, inner));
        }
    }

    /// Whether somebody else has taken the lead.
    fn is_replaced(&mut self) -> bool {
        let reign = self.reign;
        self.inner().reign != reign
    }

    fn give_back(&mut self) -> MutexGuard<'a, Inner> {
        let mut inner = self.inner.take().unwrap_or_else(|| self.runtime.lock());
        if inner.reign == self.reign {
            inner.leader = Leader::Nobody;
            inner.leader_channel = None;
            inner.reign += 1;
        }
        inner
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut inner = self.give_back();
            self.runtime.leave(&mut inner);
        }
    }
}

impl Runtime {
    pub(crate) fn start(
        host: Host,
        device: Box<dyn Device>,
        clock: Clock,
        busy_poll: Duration,
    ) -> io::Result<Arc<Self>> {
        let device_fd = device.poll_fd().map(|fd| fd.try_clone_to_owned()).transpose()?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let runtime = Arc::new(Runtime {
            inner: Mutex::new(Inner::new(host, device, clock)),
            contenders: AtomicUsize::new(0),
            background: Condvar::new(),
            device_fd,
            wake_leader: eventfd(0, flags)?,
            wake_background: eventfd(0, flags)?,
            busy_poll,
            clock,
            thread: Mutex::new(None),
        });
        let handle = Arc::clone(&runtime);
        let thread = std::thread::Builder::new()
            .name("transom".into())
            .spawn(move || handle.run_background())?;
        *runtime.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(runtime)
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.contenders.fetch_add(1, Ordering::Relaxed);
        // A thread that panicked inside left the host as consistent as any call does.
        let guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        self.contenders.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Lets a thread that waits for the lock have it.
    fn let_in<'a>(&'a self, inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        if self.contenders.load(Ordering::Relaxed) == 0 {
            return inner;
        }
        drop(inner);
        // The mutex is not fair: who lets go and asks again at once is usually served first.
        std::thread::yield_now();
        self.lock()
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

    /// What every thread does that has changed something, or stops waiting.
    fn leave(&self, inner: &mut Inner) {
        match inner.leader {
            Leader::Nobody => {
                if let Some(bell) = inner.followers.first() {
                    bell.notify_one();
                } else if inner.rest == Rest::Sound || inner.exports_descriptors() {
                    inner.rest = Rest::Awake;
                    self.background.notify_one();
                }
                // Otherwise the background thread dozes or is awake, and will look by itself.
            }
            Leader::Application => {
                let wake = inner.next_wake(None);
                if inner.leader_rung || wake < inner.leader_wakes_at {
                    inner.leader_wakes_at = inner.leader_wakes_at.min(wake);
                    kick(&self.wake_leader);
                }
            }
            Leader::Background => {
                let wake = inner.next_wake(None);
                if wake < inner.leader_wakes_at {
                    inner.leader_wakes_at = wake;
                    kick(&self.wake_background);
                }
            }
        }
    }

    /// Processes what has arrived, if nobody else is doing so.
    pub(crate) fn poll_once(&self, inner: &mut Inner) {
        if inner.leader != Leader::Application {
            inner.work();
        }
    }

    /// Waits until `attempt` gives a result, leading or following meanwhile. `None`: the deadline passed.
    pub(crate) fn wait<T>(
        &self,
        channel: Channel,
        deadline: Option<Instant>,
        attempt: impl FnMut(&mut Inner, Instant) -> Option<T>,
    ) -> Option<T> {
        self.wait_with(channel, deadline, &mut Ordinary(attempt))
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
            inner.send(now);
            if result.is_some() || deadline.is_some_and(|deadline| deadline <= now) {
                break result;
            }
            if inner.leader == Leader::Application {
                // What was just sent may be news for whoever leads.
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
        inner: MutexGuard<'a, Inner>,
        channel: Channel,
        deadline: Option<Instant>,
        task: &mut impl Task<T>,
    ) -> (Option<T>, MutexGuard<'a, Inner>) {
        if inner.leader == Leader::Background {
            kick(&self.wake_background); // it finds itself replaced
        }
        let mut lead = Lead::take(self, inner, Leader::Application);
        lead.inner().leader_channel = Some(channel);
        let spin_until = self.now() + self.busy_poll;
        let result = loop {
            let inner = lead.inner();
            inner.leader_rung = false;
            let (mut result, arrived) = task.work(inner);
            let now = self.now();
            if result.is_none() {
                result = task.attempt(inner, now);
                inner.send(now);
            }
            if result.is_some() || deadline.is_some_and(|deadline| deadline <= now) {
                break result;
            }
            if arrived {
                lead.rest(Runtime::let_in);
            } else if now < spin_until {
                std::hint::spin_loop();
                lead.rest(Runtime::let_in);
            } else {
                lead.rest(|runtime, inner| runtime.sleep(inner, deadline, &runtime.wake_leader));
            }
        };
        (result, lead.give_back())
    }

    /// Sleeps until the device, a timer or another thread asks for attention.
    fn sleep<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        deadline: Option<Instant>,
        wake: &OwnedFd,
    ) -> MutexGuard<'a, Inner> {
        let now = self.now();
        let mut until = inner.next_wake(deadline);
        inner.leader_wakes_at = until;
        let device = self.device_fd.as_ref().filter(|_| inner.failure().is_none());
        if device.is_none() {
            let look =
                if self.device_fd.is_some() { RETRY_FAILED } else { LOOK_WITHOUT_DESCRIPTOR };
            until = until.min(now + look);
        }
        drop(inner);
        let span = until.since(now);
        let timeout = (until != Instant::FAR_FUTURE).then(|| Timespec {
            tv_sec: i64::try_from(span.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (span.as_nanos() % 1_000_000_000) as _,
        });
        let wake_fd = PollFd::new(wake, PollFlags::IN);
        let woken = match device {
            Some(device) => {
                let mut fds = [wake_fd, PollFd::new(device, PollFlags::IN)];
                let _ = poll(&mut fds, timeout.as_ref());
                fds[0].revents().contains(PollFlags::IN)
            }
            None => {
                let mut fds = [wake_fd];
                let _ = poll(&mut fds, timeout.as_ref());
                fds[0].revents().contains(PollFlags::IN)
            }
        };
        if woken {
            let _ = rustix::io::read(wake, &mut [0u8; 8]);
        }
        self.lock()
    }

    fn follow<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        channel: Channel,
        deadline: Option<Instant>,
    ) -> MutexGuard<'a, Inner> {
        let waiters = inner.waiters.entry(channel).or_default();
        waiters.count += 1;
        let bell = Arc::clone(&waiters.bell);
        inner.followers.push(Arc::clone(&bell));
        inner = match deadline {
            None => bell.wait(inner).unwrap_or_else(PoisonError::into_inner),
            Some(deadline) => {
                let span = deadline.since(self.now()).into();
                bell.wait_timeout(inner, span).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        if let Some(index) = inner.followers.iter().position(|other| Arc::ptr_eq(other, &bell)) {
            inner.followers.remove(index);
        }
        if let Some(waiters) = inner.waiters.get_mut(&channel) {
            waiters.count -= 1;
            if waiters.count == 0 {
                inner.waiters.remove(&channel);
            }
        }
        inner
    }

    fn run_background(self: Arc<Self>) {
        let mut inner = self.lock();
        // How long, in dozes, somebody else has led without a break.
        let mut quiet = 0u32;
        let mut last_reign = inner.reign;
        while !inner.stop {
            let changed = inner.reign != last_reign;
            last_reign = inner.reign;
            if inner.leader == Leader::Nobody && (!changed || inner.exports_descriptors()) {
                (inner, last_reign) = self.lead_in_background(inner);
                quiet = 0;
                continue;
            }
            quiet = if inner.leader == Leader::Application && !changed { quiet + 1 } else { 0 };
            if quiet > DOZES_UNTIL_SOUND {
                inner.rest = Rest::Sound;
                inner = self.background.wait(inner).unwrap_or_else(PoisonError::into_inner);
                quiet = 0;
            } else {
                inner.rest = Rest::Dozing;
                let result = self.background.wait_timeout(inner, DOZE);
                inner = result.unwrap_or_else(PoisonError::into_inner).0;
            }
            inner.rest = Rest::Awake;
        }
    }

    /// Leads until replaced. Returns the reign it was, so that the change is seen as one.
    fn lead_in_background<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
    ) -> (MutexGuard<'a, Inner>, u64) {
        inner.rest = Rest::Awake;
        let mut lead = Lead::take(self, inner, Leader::Background);
        while !lead.is_replaced() && !lead.inner().stop {
            if lead.inner().work() {
                lead.rest(Runtime::let_in);
            } else {
                lead.rest(|runtime, inner| runtime.sleep(inner, None, &runtime.wake_background));
            }
        }
        let reign = lead.reign;
        (lead.give_back(), reign)
    }

    /// Ends the background thread, and with it the device.
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.background.notify_all();
        kick(&self.wake_background);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // It ends within a doze; if it panicked, that has been said already.
            let _ = thread.join();
        }
    }

    /// A descriptor that shows a connection's readiness.
    pub(crate) fn export(&self, id: ConnectionId) -> io::Result<OwnedFd> {
        let mut inner = self.lock();
        if let Entry::Vacant(vacant) = inner.readiness.entry(id) {
            vacant.insert(Readiness::new()?);
        }
        inner.show(id);
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
        inner.show_listener(id);
        let fd =
            inner.listener_readiness.get(&id).map(|readiness| readiness.fd().try_clone_to_owned());
        self.leave(&mut inner);
        fd.unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into()))
    }
}

fn kick(eventfd: &OwnedFd) {
    // It can only fail by overflowing, and then it is readable all the more.
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}
