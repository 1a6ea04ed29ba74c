//! The loop: calls, connections that come and go, and their data.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use transom_device::intercept::Notifier;
use transom_device::{KernelTcpState, Outcome};
use transom_net::{ConnectionState, Driver, Profile, SocketReadiness, Stack, TcpStream};

use crate::calls::Calls;
use crate::destinations::Destinations;
use crate::end::{End, Returned};
use crate::inner::{Inner, Running};
use crate::joint::{Joint, SCRATCH_LEN, Side, Turn};
use crate::ledger::Ledger;
use crate::opening::{Asker, Ends, Opening, Progress};
use crate::options::Settings;
use crate::owners::Owners;
use crate::reserve::{Reserve, Source};

/// Events that are taken at once.
const EVENTS: usize = 256;
/// The events that are no connection's. Connections and places have even numbers from 2.
const NOTIFIER_TOKEN: u64 = u64::MAX;
/// Sockets of programs have ended.
const ENDED_TOKEN: u64 = u64::MAX - 1;
/// From here on: the descriptors of the stacks' driver.
const DRIVER_TOKENS: u64 = u64::MAX - (1 << 16);
/// A program has sent a SYN.
const SYN_TOKEN: u64 = 0;

/// The most sockets that are remembered after their end, until their SYNs are taken.
const MOST_ENDED: usize = 16_384;

/// The most looks for packets before the loop answers a call.
const ROUNDS: usize = 4;

/// The settings of [`supervise`].
pub struct Setup {
    /// Transom's host; without it all destinations are reached by the kernel.
    pub stack: Option<Stack>,
    /// The addresses of that host.
    pub addresses: Vec<IpAddr>,
    /// The profile of its connections.
    pub profile: Profile,
    /// Which destinations are reached by it.
    pub destinations: Destinations,
    /// Whether connections are background traffic, so that little data should wait in front of them.
    pub background: bool,
    /// Is told how Transom's connections go.
    pub watcher: Option<Box<dyn Watcher>>,
    /// Is shown each of Transom's connections when it is established. It must not wait.
    pub opened: Option<OpenedHook>,
    /// Is told the destination of a connection that Transom has asked for a second ago, without an answer. It must not wait.
    pub unanswered: Option<UnansweredHook>,
}

type OpenedHook = Box<dyn FnMut(&TcpStream)>;
type UnansweredHook = Box<dyn FnMut(SocketAddr)>;

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setup").field("destinations", &self.destinations).finish_non_exhaustive()
    }
}

/// Is told how Transom's connections go: every 5 ms, and when they are closed.
pub trait Watcher: std::fmt::Debug {
    /// Takes the state of a connection. Each connection has its own number. The `last` call comes when the program has closed it, or it has failed.
    fn sample(
        &mut self,
        connection: u64,
        ends: [SocketAddr; 2],
        info: &ConnectionState,
        last: bool,
    );
}

/// How long after each other a [`Watcher`] is told.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// Counts of the work done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Calls that were answered.
    pub calls: u64,
    /// Connections by Transom.
    pub by_transom: u64,
    /// Connections by the kernel.
    pub by_kernel: u64,
}

/// How long the supervisor sends the last data of programs that have ended.
const MAX_DRAIN_TIME: Duration = Duration::from_secs(60);

/// A connection.
#[derive(Debug)]
enum Connection {
    Opening(Opening),
    Joined(Joint),
}

pub(crate) struct Supervisor {
    pub(crate) calls: Calls,
    pub(crate) inner: Running,
    pub(crate) setup: Setup,
    pub(crate) counts: Counts,
    /// The work of both stacks is done here too.
    pub(crate) driver: Driver,
    pub(crate) epoll: OwnedFd,
    connections: HashMap<u64, (Connection, Ends)>,
    pub(crate) by_ends: HashMap<Ends, u64>,
    /// Sockets that ended while nothing was known of them: perhaps their SYN is still at the device.
    ended_unknown: HashSet<Ends>,
    pub(crate) reserve: Reserve,
    /// What programs have set before they were connected, by the numbers of their sockets.
    pub(crate) settings: HashMap<u64, Settings>,
    pub(crate) owners: Owners,
    serial: u64,
    changes: Vec<SocketReadiness>,
    /// Connections whose turn ended before their work.
    runnable: Vec<u64>,
    deadlines: BTreeSet<(Instant, u64)>,
    next_sample_at: Instant,
    scratch: Vec<u8>,
    returned: Returned,
}

/// Answers the calls of programs under `notifier`, whose sockets are in `inner`, and carries their data, until the last of them has gone and their connections
/// are closed. The call in hand is noted in `ledger`, for a [`guard`](crate::guard).
///
/// # Errors
/// The kernel's, for what the loop itself needs. An error of one socket goes to its program.
pub fn supervise(
    notifier: Notifier,
    ledger: Ledger,
    inner: Inner,
    mut setup: Setup,
) -> io::Result<Counts> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let inner = inner.start(setup.background)?;
    // What came before a reset is the program's, as on Linux.
    setup.profile.read_after_error = true;
    let driver = Driver::over(std::iter::once(&inner.stack).chain(&setup.stack))?;
    watch(&epoll, &notifier, NOTIFIER_TOKEN, epoll::EventFlags::IN)?;
    watch(&epoll, &inner, ENDED_TOKEN, epoll::EventFlags::IN)?;
    for (descriptor, token) in driver.descriptors().zip(DRIVER_TOKENS..ENDED_TOKEN) {
        watch(&epoll, descriptor, token, epoll::EventFlags::IN)?;
    }
    driver.watch_listener(&inner.listener, SYN_TOKEN);
    notifier.wake_here();
    let mut supervisor = Supervisor {
        calls: Calls::new(notifier, ledger),
        inner,
        setup,
        counts: Counts::default(),
        driver,
        epoll,
        connections: HashMap::new(),
        by_ends: HashMap::new(),
        ended_unknown: HashSet::new(),
        reserve: Reserve::default(),
        settings: HashMap::new(),
        owners: Owners::default(),
        serial: 0,
        changes: Vec::new(),
        runnable: Vec::new(),
        deadlines: BTreeSet::new(),
        next_sample_at: Instant::now(),
        scratch: vec![0; SCRATCH_LEN],
        returned: Returned::default(),
    };
    supervisor.run()?;
    Ok(supervisor.counts)
}

impl Supervisor {
    fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        // Connections that have work.
        let mut ready = Vec::new();
        let mut drain_deadline: Option<Instant> = None;
        while drain_deadline.is_none_or(|end| !self.connections.is_empty() && Instant::now() < end)
        {
            let timeout = self.timeout(drain_deadline.is_some());
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) => self.note_drained(&events),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            // To the driver's own events only its work answers.
            let is_drivers = |event: &epoll::Event| driver_place(event.data.u64()).is_some();
            if !events.iter().all(is_drivers) {
                self.driver.wake();
            }
            ready.append(&mut self.runnable);
            let mut called = false;
            for event in &events {
                let flags = event.flags;
                let token = event.data.u64();
                if let Some(place) = driver_place(token) {
                    self.note_driver(place)?;
                    continue;
                }
                match token {
                    NOTIFIER_TOKEN if flags.contains(epoll::EventFlags::IN) => called = true,
                    NOTIFIER_TOKEN => {
                        // The last program has gone; nobody will call any more.
                        drain_deadline = Some(Instant::now() + MAX_DRAIN_TIME);
                        self.programs_gone()?;
                    }
                    ENDED_TOKEN => self.sockets_ended(&mut ready)?,
                    token => self.note_kernel(token, flags, &mut ready),
                }
            }
            let now = Instant::now();
            while let Some(&(at, token)) = self.deadlines.first().filter(|(at, _)| *at <= now) {
                self.deadlines.remove(&(at, token));
                ready.push(token);
            }
            self.driver.work(false, &mut self.changes);
            self.run_ready(&mut ready);
            if called {
                // Its connection may have been established by a packet that lies there. Then the call is about that.
                for _ in 0..ROUNDS {
                    self.driver.work(true, &mut self.changes);
                    if self.changes.is_empty() {
                        break;
                    }
                    self.run_ready(&mut ready);
                }
                self.answer_call()?;
            }
            self.returned.give_back();
            self.notify_watcher();
        }
        Ok(())
    }

    /// If the private network has no packet left, all SYNs of sockets that have ended are taken.
    fn note_drained(&mut self, events: &[epoll::Event]) {
        let is_inner = |event: &epoll::Event| {
            let place = driver_place(event.data.u64());
            place.is_some_and(|place| self.driver.is_of(place, &self.inner.stack))
        };
        // There may be more events than were asked for, and packets that are read but not looked at.
        let all_are_known = events.len() < EVENTS && self.changes.is_empty();
        if !self.ended_unknown.is_empty() && all_are_known && !events.iter().any(is_inner) {
            self.ended_unknown.clear();
        }
    }

    /// Does the work of all connections that have some.
    fn run_ready(&mut self, ready: &mut Vec<u64>) {
        self.note_changes(ready);
        ready.sort_unstable();
        ready.dedup();
        for token in ready.drain(..) {
            self.run_one(token);
        }
    }

    /// For how long to sleep at most.
    fn timeout(&mut self, draining: bool) -> Option<Timespec> {
        let until_stack_work = self.driver.rest();
        let now = Instant::now();
        let until_sample = (self.setup.watcher.is_some() && self.has_watched_connection())
            .then(|| self.next_sample_at.saturating_duration_since(now));
        let until_deadline =
            self.deadlines.first().map(|(at, _)| at.saturating_duration_since(now));
        let draining = draining.then_some(Duration::from_secs(1));
        let busy = !self.runnable.is_empty() || !self.changes.is_empty();
        let busy = busy.then_some(Duration::ZERO);
        let all = [until_stack_work, until_sample, until_deadline, draining, busy];
        // A time that is too long for the kernel is for ever.
        all.into_iter().flatten().min().and_then(|timeout| timeout.try_into().ok())
    }

    /// The number of a new connection or place. The odd number behind it names the outer side of a connection.
    pub(crate) fn next_serial(&mut self) -> u64 {
        self.serial += 2;
        self.serial
    }

    /// Notes that a descriptor of the driver's is readable.
    fn note_driver(&mut self, place: usize) -> io::Result<()> {
        if !self.driver.note(place)
            && let Some(descriptor) = self.driver.descriptors().nth(place)
        {
            epoll::delete(&self.epoll, descriptor)?;
        }
        Ok(())
    }

    /// Notes an event of a socket of the host's kernel.
    fn note_kernel(&mut self, token: u64, flags: epoll::EventFlags, ready: &mut Vec<u64>) {
        if let Some((Connection::Joined(joint), _)) = self.connections.get_mut(&token) {
            joint.note_kernel(flags);
        }
        ready.push(token);
    }

    /// Notes what has happened to streams and listeners of the stacks.
    fn note_changes(&mut self, ready: &mut Vec<u64>) {
        for change in self.changes.drain(..) {
            let (token, side) = named(change.token);
            if let Some((Connection::Joined(joint), _)) = self.connections.get_mut(&token) {
                joint.note(side, change.readable, change.writable);
            }
            ready.push(token);
        }
    }

    /// Adds a connection that is on its way, and goes as far as it can: what happened before it was watched is not reported.
    pub(crate) fn add_opening(&mut self, token: u64, opening: Opening, ends: Ends) {
        self.by_ends.insert(ends, token);
        self.connections.insert(token, (Connection::Opening(opening), ends));
        self.run_one(token);
    }

    /// Does the work of one connection, or of a place.
    fn run_one(&mut self, token: u64) {
        if token == SYN_TOKEN {
            return self.take_syns();
        }
        let Some((connection, _)) = self.connections.get_mut(&token) else {
            return self.take_connections(token);
        };
        match connection {
            Connection::Opening(opening) => match opening.advance(&self.driver, token) {
                Progress::OnItsWay => self.note_silence(token),
                Progress::Open(inner, outer) => self.joined(token, inner, outer),
                Progress::Failed => self.forget(token),
            },
            Connection::Joined(joint) => match joint.turn(&mut self.scratch, &self.returned) {
                Turn::Idle => {}
                Turn::More => self.runnable.push(token),
                Turn::Until(at) => {
                    self.deadlines.insert((at, token));
                }
                Turn::Over => self.forget(token),
            },
        }
    }

    /// Says that a destination does not answer, or looks again when it is time to say so.
    ///
    /// Its program may have closed the socket, and the kernel could not tell of that end. So the socket is looked for.
    fn note_silence(&mut self, token: u64) {
        let Some((Connection::Opening(opening), ends)) = self.connections.get_mut(&token) else {
            return;
        };
        let (program, destination) = *ends;
        let Some(at) = opening.silent_at() else { return };
        if Instant::now() < at {
            self.deadlines.insert((at, token));
        } else if matches!(self.inner.diag.find(program, destination), Ok(None)) {
            self.forget(token);
        } else {
            opening.note_look();
            if opening.is_by_transom()
                && let Some(unanswered) = &mut self.setup.unanswered
            {
                unanswered(destination);
            }
        }
    }

    /// Both sides stand: data may flow.
    fn joined(&mut self, token: u64, inner: End, outer: End) {
        let Some((Connection::Opening(opening), ends)) = self.connections.get_mut(&token) else {
            return;
        };
        let (ends, asked_by, inherited) = (*ends, opening.asked_by, opening.inherited.take());
        match &outer {
            End::Transom(stream) if !self.is_inside(ends.1) => {
                self.counts.by_transom += 1;
                if let Some(opened) = &mut self.setup.opened {
                    opened(stream);
                }
            }
            End::Transom(_) => {}
            End::Kernel(kernel) => {
                self.counts.by_kernel += 1;
                // One that was accepted is not watched yet.
                if asked_by == Side::Outer
                    && watch(&self.epoll, &kernel.stream, token, KERNEL_EVENTS).is_err()
                {
                    inner.reset_on_drop();
                    return self.forget(token);
                }
            }
        }
        if let Some(settings) = inherited.or_else(|| self.settings_of(ends)) {
            settings.apply(&outer);
        }
        if let Some((connection, _)) = self.connections.get_mut(&token) {
            *connection = Connection::Joined(Joint::new(inner, outer));
        }
        self.run_one(token);
    }

    /// Forgets a connection. What it holds is dropped: streams are closed, SYNs are refused.
    fn forget(&mut self, token: u64) {
        let Some((connection, ends)) = self.connections.remove(&token) else { return };
        if self.by_ends.get(&ends) == Some(&token) {
            self.by_ends.remove(&ends);
        }
        if let (Connection::Joined(joint), Some(watcher)) = (&connection, &mut self.setup.watcher) {
            sample(token, joint, &mut **watcher, true);
        }
    }

    /// The joint of a program's socket with these ends.
    pub(crate) fn joint(&self, ends: Ends) -> Option<&Joint> {
        match self.connections.get(self.by_ends.get(&ends)?)? {
            (Connection::Joined(joint), _) => Some(joint),
            (Connection::Opening(_), _) => None,
        }
    }

    /// Takes the connections that peers ask for at a place.
    fn take_connections(&mut self, token: u64) {
        let Some((sources, owner)) = self.reserve.sources(token) else { return };
        let mut askers = Vec::new();
        for source in sources {
            match source {
                Source::Transom(listener) => {
                    while let Ok(incoming) = listener.try_incoming() {
                        let ends = (incoming.syn().local, incoming.syn().remote);
                        askers.push((Asker::Held(incoming), ends));
                    }
                }
                Source::Kernel(listener, owner) => {
                    let accept = || match owner {
                        Some(owner) => owner.as_owner(|| listener.accept()),
                        None => listener.accept(),
                    };
                    while let Ok((stream, peer)) = accept() {
                        let Ok(local) = stream.local_addr() else { continue };
                        if stream.set_nonblocking(true).is_ok() {
                            askers.push((Asker::Kernel(stream), (local, peer)));
                        }
                    }
                }
            }
        }
        for (asker, ends) in askers {
            self.open_inwards(asker, ends, owner);
        }
    }

    /// Programs' sockets have ended. Some of them have said so in no other way: listeners, and those that were being connected.
    fn sockets_ended(&mut self, ready: &mut Vec<u64>) -> io::Result<()> {
        let mut ended = Vec::new();
        let outcome = self.inner.ends.take(|socket| ended.push(socket))?;
        for socket in ended {
            self.settings.remove(&socket.cookie);
            self.owners.forget(socket.cookie);
            if socket.remote.port() == 0 {
                self.reserve.give_up(socket.cookie);
            }
            self.socket_ended((socket.local, socket.remote), Some(socket.cookie), ready);
        }
        match outcome {
            Outcome::Complete => Ok(()),
            Outcome::Missed => self.look_for_ended(ready),
        }
    }

    fn socket_ended(&mut self, ends: Ends, cookie: Option<u64>, ready: &mut Vec<u64>) {
        let Some(&token) = self.by_ends.get(&ends) else {
            // Most of these have no SYN any more.
            if self.ended_unknown.len() >= MOST_ENDED {
                self.ended_unknown.clear();
            }
            self.ended_unknown.insert(ends);
            return;
        };
        // The same ends may be another socket's by now. One that waits to be accepted is no process's yet.
        let other = self.inner.diag.find(ends.0, ends.1).ok().flatten();
        if other.is_some_and(|other| {
            let is_open = KernelTcpState::Established == other.state
                || KernelTcpState::SynReceived == other.state
                || other.inode != 0;
            is_open && Some(other.cookie) != cookie
        }) {
            return;
        }
        match self.connections.get_mut(&token) {
            Some((Connection::Opening(opening), _)) if opening.is_asked_by_program() => {
                self.forget(token);
            }
            Some((Connection::Joined(joint), _)) => {
                joint.lose_program();
                ready.push(token);
            }
            _ => {}
        }
    }

    /// Whether a SYN is of a socket that its program has closed meanwhile: nothing tells of that end a second time.
    pub(crate) fn has_ended(&mut self, ends: Ends) -> bool {
        // Another socket may have the same ends by now.
        self.ended_unknown.remove(&ends) && matches!(self.inner.diag.find(ends.0, ends.1), Ok(None))
    }

    /// More sockets have ended than the kernel could tell. So all are looked at.
    fn look_for_ended(&mut self, ready: &mut Vec<u64>) -> io::Result<()> {
        let sockets = self.inner.diag.tcp()?;
        let cookies: HashSet<u64> = sockets.iter().map(|socket| socket.cookie).collect();
        self.reserve.retain(|cookie| cookies.contains(&cookie));
        self.settings.retain(|cookie, _| cookies.contains(cookie));
        let there: HashSet<Ends> =
            sockets.iter().map(|socket| (socket.local, socket.remote)).collect();
        let gone: Vec<Ends> =
            self.by_ends.keys().filter(|ends| !there.contains(*ends)).copied().collect();
        gone.into_iter().for_each(|ends| self.socket_ended(ends, None, ready));
        Ok(())
    }

    /// The last program has gone. Connections that are joined are carried to their end.
    fn programs_gone(&mut self) -> io::Result<()> {
        epoll::delete(&self.epoll, &self.calls.notifier)?;
        self.reserve.retain(|_| false);
        let opening: Vec<u64> = self
            .connections
            .iter()
            .filter_map(|(token, (one, _))| matches!(one, Connection::Opening(_)).then_some(*token))
            .collect();
        opening.into_iter().for_each(|token| self.forget(token));
        Ok(())
    }

    /// Whether a watcher has a connection to look at.
    fn has_watched_connection(&self) -> bool {
        let is_by_transom = |one: &Connection| match one {
            Connection::Joined(joint) => matches!(joint.outer, End::Transom(_)),
            Connection::Opening(_) => false,
        };
        self.connections.values().any(|(one, _)| is_by_transom(one))
    }

    fn notify_watcher(&mut self) {
        let Some(watcher) = &mut self.setup.watcher else { return };
        let now = Instant::now();
        if now < self.next_sample_at {
            return;
        }
        self.next_sample_at = now + SAMPLE_INTERVAL;
        for (token, (connection, _)) in &self.connections {
            if let Connection::Joined(joint) = connection {
                sample(*token, joint, &mut **watcher, false);
            }
        }
    }
}

/// Which of the driver's descriptors a token stands for, if it is one of those.
fn driver_place(token: u64) -> Option<usize> {
    let place = (DRIVER_TOKENS..ENDED_TOKEN).contains(&token).then(|| token - DRIVER_TOKENS)?;
    usize::try_from(place).ok()
}

/// The name under which a stack reports what happens to one side of a connection.
pub(crate) fn name_of(token: u64, side: Side) -> u64 {
    token | u64::from(side == Side::Outer)
}

/// The connection, and its side.
fn named(name: u64) -> (u64, Side) {
    (name & !1, if name & 1 == 1 { Side::Outer } else { Side::Inner })
}

/// The events of a connection of the host's kernel.
pub(crate) const KERNEL_EVENTS: epoll::EventFlags = epoll::EventFlags::IN
    .union(epoll::EventFlags::OUT)
    .union(epoll::EventFlags::RDHUP)
    .union(epoll::EventFlags::ET);

/// Has events of a descriptor reported under a token.
pub(crate) fn watch(
    epoll: &OwnedFd,
    descriptor: impl AsFd,
    token: u64,
    events: epoll::EventFlags,
) -> io::Result<()> {
    Ok(epoll::add(epoll, descriptor, epoll::EventData::new_u64(token), events)?)
}

/// Gives a watcher a sample of a connection, if it is Transom's.
fn sample(token: u64, joint: &Joint, watcher: &mut dyn Watcher, last: bool) {
    let End::Transom(stream) = &joint.outer else { return };
    if let (Ok(ends), Ok(info)) = (joint.outer.names(), stream.info()) {
        watcher.sample(token, ends, &info, last);
    }
}
