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
//! sleeps soundly only while it leads itself or somebody else has led for long.

use crate::clock::Clock;
use crate::readiness::Readiness;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use transom_device::{Device, Received, RxPacket, TxPacket};
use transom_stack::listener::ListenerId;
use transom_stack::stack::{ConnectionId, Stack as Host, StackEvent};
use transom_tcp::connection::Event;
use transom_tcp::time::{Duration, Instant};

/// Packets taken from the device before answers are sent.
const BATCH: usize = 16;
/// A reader's buffer below this size is not offered to the device: packets might not fit.
const WORTH_SCATTERING: usize = 65_536;
/// How often the background thread looks whether it is needed.
const DOZE: std::time::Duration = std::time::Duration::from_millis(1);

/// What a thread can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Channel {
    Readable(ConnectionId),
    Writable(ConnectionId),
    Acceptable(ListenerId),
}

/// Who leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leader {
    Nobody,
    Application,
    Background,
}

/// How the background thread sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Awake,
    Dozing,
    Sound,
}

/// Threads waiting on a channel.
#[derive(Debug, Default)]
struct Waiters {
    count: usize,
    bell: Arc<Condvar>,
}

pub(crate) struct Inner {
    pub(crate) host: Host,
    device: Box<dyn Device>,
    clock: Clock,
    waiters: HashMap<Channel, Waiters>,
    /// Channels on which somebody follows, for passing the lead on.
    followers: Vec<Arc<Condvar>>,
    readiness: HashMap<ConnectionId, Readiness>,
    listener_readiness: HashMap<ListenerId, Readiness>,
    leader: Leader,
    /// Changes with each change of leader, so that one that was replaced notices.
    reign: u64,
    /// When the leader will look at the timers again by itself.
    leader_wakes_at: Instant,
    rest: Rest,
    stop: bool,
    /// The device failed: nothing will arrive any more.
    failure: Option<io::ErrorKind>,
    dropped: u64,
}

/// A running host.
pub(crate) struct Runtime {
    inner: Mutex<Inner>,
    background: Condvar,
    device_fd: Option<OwnedFd>,
    wake: OwnedFd,
    busy_poll: Duration,
    clock: Clock,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

impl Inner {
    /// Takes what the device has, up to a batch, acts on it and on the clock, and sends the answers. Returns whether anything
    /// arrived.
    fn work(&mut self) -> bool {
        let mut arrived = 0;
        while arrived < BATCH {
            match self.device.recv() {
                Ok(packet) => {
                    arrived += 1;
                    self.take_in(packet);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.failure = Some(error.kind());
                    self.ring_all();
                    break;
                }
            }
        }
        let now = self.clock.now();
        self.host.on_timeout(now);
        self.send(now);
        self.dispatch();
        arrived > 0
    }

    fn take_in(&mut self, packet: RxPacket) {
        let now = self.clock.now();
        let RxPacket { buffer, range, offload } = packet;
        if let Some(buffer) = self.host.on_owned_packet(now, buffer, range, offload) {
            self.device.recycle(buffer);
        }
    }

    /// Like [`Inner::work`] for a reader of `id` that waits with `out`: data that arrives as expected goes straight there.
    /// Returns how many bytes of it, and whether anything arrived.
    fn work_for_reader(&mut self, id: ConnectionId, out: &mut [u8]) -> (usize, bool) {
        let mut filled = 0;
        let mut arrived = false;
        for _ in 0..BATCH {
            let body = out.get_mut(filled..).unwrap_or_default();
            let Some(head_len) =
                self.host.expected_headers(id).filter(|_| body.len() >= WORTH_SCATTERING)
            else {
                break;
            };
            match self.device.recv_scattered(head_len, body) {
                Ok(Received::Whole(packet)) => {
                    arrived = true;
                    self.take_in(packet);
                }
                Ok(Received::Split { head, body_len, offload }) => {
                    arrived = true;
                    let now = self.clock.now();
                    let body = body.get(..body_len).unwrap_or_default();
                    match self.host.on_expected(now, id, head.bytes(), body, offload) {
                        Some(kept) => filled += kept,
                        None => {
                            if let Some(packet) = self.device.gather(&head, body) {
                                self.take_in(packet);
                            }
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Trouble with the device is met again by the ordinary way.
                Err(_) => break,
            }
        }
        if arrived {
            let now = self.clock.now();
            self.host.on_timeout(now);
            self.send(now);
            self.dispatch();
        }
        (filled, arrived)
    }

    /// Sends what the host has to send.
    pub(crate) fn send(&mut self, now: Instant) {
        while let Some(buffer) = self.host.reclaim() {
            self.device.recycle(buffer);
        }
        while let Some(packet) = self.host.poll_transmit(now) {
            let packet = TxPacket {
                headers: packet.headers,
                payload: packet.payload,
                offload: packet.offload,
            };
            // A device that is full drops, as a network would; the retransmission timer knows.
            if self.device.send(&packet).is_err() {
                self.dropped += 1;
            }
        }
    }

    /// Tells whoever waits what happened.
    fn dispatch(&mut self) {
        while let Some(event) = self.host.poll_event() {
            match event {
                StackEvent::Acceptable(id) => {
                    self.ring(Channel::Acceptable(id));
                    self.show_listener(id);
                }
                StackEvent::Connection(id, event) => {
                    match event {
                        Event::Readable => self.ring(Channel::Readable(id)),
                        Event::Connected | Event::Writable => self.ring(Channel::Writable(id)),
                        Event::Closed => {
                            self.ring(Channel::Readable(id));
                            self.ring(Channel::Writable(id));
                        }
                        Event::Urgent | Event::Trouble | Event::TimeWait => {}
                    }
                    self.show(id);
                }
            }
        }
    }

    fn ring(&mut self, channel: Channel) {
        if let Some(waiters) = self.waiters.get(&channel) {
            waiters.bell.notify_all();
        }
    }

    fn ring_all(&mut self) {
        for waiters in self.waiters.values() {
            waiters.bell.notify_all();
        }
    }

    /// Brings a connection's exported descriptor up to date.
    pub(crate) fn show(&mut self, id: ConnectionId) {
        if let Some(readiness) = self.readiness.get_mut(&id) {
            let (readable, writable) = readiness_of(&mut self.host, id, self.clock.now());
            // The descriptor is only a signal; if the kernel refuses it there is nobody to tell.
            let _ = readiness.show(readable, writable);
        }
    }

    pub(crate) fn show_listener(&mut self, id: ListenerId) {
        if let Some(readiness) = self.listener_readiness.get_mut(&id) {
            let _ = readiness.show(self.host.acceptable(id) > 0, true);
        }
    }

    /// Why the device stopped, if it did.
    pub(crate) fn failure(&self) -> Option<io::ErrorKind> {
        self.failure
    }

    fn next_wake(&self, deadline: Option<Instant>) -> Instant {
        let timeout = self.host.next_timeout().unwrap_or(Instant::FAR_FUTURE);
        timeout.min(deadline.unwrap_or(Instant::FAR_FUTURE))
    }

    fn exports_descriptors(&self) -> bool {
        !self.readiness.is_empty() || !self.listener_readiness.is_empty()
    }
}

/// Whether a connection is readable and writable in poll's sense.
fn readiness_of(host: &mut Host, id: ConnectionId, now: Instant) -> (bool, bool) {
    host.with_connection(id, now, |connection| {
        let ended = connection.error().is_some();
        let readable = connection.readable() > 0 || connection.end_of_stream() || ended;
        let writable = match connection.writable() {
            Ok(space) => space > 0 && connection.state().is_synchronized(),
            Err(_) => true,
        };
        (readable, writable)
    })
    .unwrap_or((true, true))
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

impl Runtime {
    pub(crate) fn start(
        host: Host,
        device: Box<dyn Device>,
        clock: Clock,
        busy_poll: Duration,
    ) -> io::Result<Arc<Self>> {
        let device_fd = device.poll_fd().map(|fd| fd.try_clone_to_owned()).transpose()?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let runtime = Arc::new(Runtime {
            inner: Mutex::new(Inner {
                host,
                device,
                clock,
                waiters: HashMap::new(),
                followers: Vec::new(),
                readiness: HashMap::new(),
                listener_readiness: HashMap::new(),
                leader: Leader::Nobody,
                reign: 0,
                leader_wakes_at: Instant::FAR_FUTURE,
                rest: Rest::Awake,
                stop: false,
                failure: None,
                dropped: 0,
            }),
            background: Condvar::new(),
            device_fd,
            wake,
            busy_poll,
            clock,
        });
        let handle = Arc::clone(&runtime);
        std::thread::Builder::new()
            .name("transom".into())
            .spawn(move || handle.run_background())?;
        Ok(runtime)
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        // A thread that panicked inside left the host as consistent as any call does.
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Calls `change` and sends what follows from it.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut Inner, Instant) -> T) -> T {
        let mut inner = self.lock();
        let now = self.now();
        let result = change(&mut inner, now);
        inner.send(now);
        inner.dispatch();
        self.remind(&mut inner);
        result
    }

    /// If a timer has been set that the leader does not know of, wake it up.
    fn remind(&self, inner: &mut Inner) {
        match inner.leader {
            Leader::Nobody if inner.rest == Rest::Sound => {
                inner.rest = Rest::Awake;
                self.background.notify_one();
            }
            Leader::Nobody => {}
            Leader::Application | Leader::Background => {
                if inner.next_wake(None) < inner.leader_wakes_at {
                    self.kick();
                    inner.leader_wakes_at = inner.next_wake(None);
                }
            }
        }
    }

    fn kick(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
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
        loop {
            let now = self.now();
            let result = task.attempt(&mut inner, now);
            inner.send(now);
            inner.dispatch();
            if result.is_some() {
                self.remind(&mut inner);
                return result;
            }
            if deadline.is_some_and(|deadline| deadline <= now) {
                return None;
            }
            if inner.leader == Leader::Application {
                inner = self.follow(inner, channel, deadline);
                continue;
            }
            if inner.leader == Leader::Background {
                self.kick(); // it finds itself replaced
            }
            inner.leader = Leader::Application;
            inner.reign += 1;
            let (result, rest) = self.lead(inner, deadline, task);
            inner = rest;
            inner.leader = Leader::Nobody;
            inner.reign += 1;
            self.pass_on(&mut inner);
            return result;
        }
    }

    fn lead<'a, T>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        deadline: Option<Instant>,
        task: &mut impl Task<T>,
    ) -> (Option<T>, MutexGuard<'a, Inner>) {
        let spin_until = self.now() + self.busy_poll;
        loop {
            let (mut result, arrived) = task.work(&mut inner);
            let now = self.now();
            if result.is_none() {
                result = task.attempt(&mut inner, now);
                inner.send(now);
                inner.dispatch();
            }
            if result.is_some() || deadline.is_some_and(|deadline| deadline <= now) {
                return (result, inner);
            }
            if arrived {
                continue;
            }
            if now < spin_until {
                drop(inner);
                std::hint::spin_loop();
                inner = self.lock();
                continue;
            }
            inner = self.sleep(inner, deadline);
        }
    }

    /// Sleeps until the device, a timer or another thread asks for attention.
    fn sleep<'a>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        deadline: Option<Instant>,
    ) -> MutexGuard<'a, Inner> {
        let until = inner.next_wake(deadline);
        inner.leader_wakes_at = until;
        let failed = inner.failure.is_some();
        drop(inner);
        let span = until.since(self.now());
        let timeout = (until != Instant::FAR_FUTURE).then(|| Timespec {
            tv_sec: i64::try_from(span.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (span.as_nanos() % 1_000_000_000) as _,
        });
        let wake = PollFd::new(&self.wake, PollFlags::IN);
        let woken = match self.device_fd.as_ref().filter(|_| !failed) {
            Some(device) => {
                let mut fds = [wake, PollFd::new(device, PollFlags::IN)];
                let _ = poll(&mut fds, timeout.as_ref());
                fds[0].revents().contains(PollFlags::IN)
            }
            None => {
                let mut fds = [wake];
                let _ = poll(&mut fds, timeout.as_ref());
                fds[0].revents().contains(PollFlags::IN)
            }
        };
        if woken {
            let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
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
            None => bell.wait(inner).unwrap_or_else(std::sync::PoisonError::into_inner),
            Some(deadline) => {
                let span = deadline.since(self.now()).into();
                bell.wait_timeout(inner, span).unwrap_or_else(std::sync::PoisonError::into_inner).0
            }
        };
        if let Some(index) = inner.followers.iter().position(|other| Arc::ptr_eq(other, &bell)) {
            inner.followers.swap_remove(index);
        }
        if let Some(waiters) = inner.waiters.get_mut(&channel) {
            waiters.count -= 1;
            if waiters.count == 0 {
                inner.waiters.remove(&channel);
            }
        }
        inner
    }

    /// The lead is free: a follower takes it, or the background thread does.
    fn pass_on(&self, inner: &mut Inner) {
        if let Some(bell) = inner.followers.first() {
            bell.notify_one();
        } else if inner.rest == Rest::Sound || inner.exports_descriptors() {
            inner.rest = Rest::Awake;
            self.background.notify_one();
        }
    }

    fn run_background(self: Arc<Self>) {
        let mut inner = self.lock();
        // How long, in dozes, somebody else has led without a break.
        let mut quiet = 0u32;
        let mut last_reign = inner.reign;
        loop {
            if inner.stop {
                return;
            }
            let changed = inner.reign != last_reign;
            last_reign = inner.reign;
            match inner.leader {
                Leader::Nobody if !changed || inner.exports_descriptors() => {
                    quiet = 0;
                    inner.leader = Leader::Background;
                    inner.reign += 1;
                    let reign = inner.reign;
                    inner.rest = Rest::Awake;
                    while inner.reign == reign && !inner.stop {
                        if !inner.work() {
                            inner = self.sleep(inner, None);
                        }
                    }
                    if inner.reign == reign {
                        inner.leader = Leader::Nobody;
                    }
                    last_reign = inner.reign;
                    continue;
                }
                Leader::Application if !changed => quiet += 1,
                _ => quiet = 0,
            }
            if quiet > 20 {
                inner.rest = Rest::Sound;
                inner =
                    self.background.wait(inner).unwrap_or_else(std::sync::PoisonError::into_inner);
                quiet = 0;
            } else {
                inner.rest = Rest::Dozing;
                inner = self
                    .background
                    .wait_timeout(inner, DOZE)
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .0;
            }
            inner.rest = Rest::Awake;
        }
    }

    /// Ends the background thread.
    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.background.notify_all();
        self.kick();
    }

    /// A descriptor that shows a connection's readiness.
    pub(crate) fn export(&self, id: ConnectionId) -> io::Result<OwnedFd> {
        let mut inner = self.lock();
        if let Entry::Vacant(vacant) = inner.readiness.entry(id) {
            vacant.insert(Readiness::new()?);
        }
        inner.show(id);
        let fd = match inner.readiness.get(&id) {
            Some(readiness) => readiness.fd().try_clone_to_owned()?,
            None => return Err(io::ErrorKind::NotConnected.into()),
        };
        self.wake_background(&mut inner);
        Ok(fd)
    }

    /// The same for a listener.
    pub(crate) fn export_listener(&self, id: ListenerId) -> io::Result<OwnedFd> {
        let mut inner = self.lock();
        if let Entry::Vacant(vacant) = inner.listener_readiness.entry(id) {
            vacant.insert(Readiness::new()?);
        }
        inner.show_listener(id);
        let fd = match inner.listener_readiness.get(&id) {
            Some(readiness) => readiness.fd().try_clone_to_owned()?,
            None => return Err(io::ErrorKind::NotConnected.into()),
        };
        self.wake_background(&mut inner);
        Ok(fd)
    }

    fn wake_background(&self, inner: &mut Inner) {
        if inner.leader == Leader::Nobody {
            inner.rest = Rest::Awake;
            self.background.notify_one();
        }
    }

    pub(crate) fn forget(&self, inner: &mut Inner, id: ConnectionId) {
        inner.readiness.remove(&id);
    }

    pub(crate) fn forget_listener(&self, inner: &mut Inner, id: ListenerId) {
        inner.listener_readiness.remove(&id);
    }

    /// Packets the device refused.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }
}
