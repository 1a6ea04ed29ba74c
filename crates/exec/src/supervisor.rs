//! The loop: calls, data, connections that come and go.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use transom_device::intercept::{Answer, Notifier};
use transom_net::{Driver, Info, SocketReadiness, Stack, TcpStream};

use crate::destinations::Destinations;
use crate::ledger::{Ledger, RecordedCalls};
use crate::listening::Source;
use crate::outer::{ConnectProgress, OuterConnection};
use crate::pair;
use crate::program;
use crate::pump::{SCRATCH_LEN, Turn};
use crate::socket::{Connecting, Socket, State};

/// How many pairs are kept ready for programs that ask for sockets. A new pair takes six system calls, and no program has to wait for them.
const SPARE_PAIRS: usize = 8;
/// Events that are taken at once.
const EVENTS: usize = 256;
/// The event of the notifier; sockets' events have their inode and [`EventSource`].
const NOTIFIER_TOKEN: u64 = u64::MAX;
/// The event of Transom's device, or of other threads.
const STACK_TOKEN: u64 = u64::MAX - 1;
/// The capacity of a pair, for throughput. Most systems allow 416 KB (`net.core.wmem_max`); with more, program and supervisor wake each other less.
const PAIR_SIZE: usize = 2 << 20;
/// The capacity of a pair in the background: a connection has no control over the data in its pair.
const BACKGROUND_PAIR_SIZE: usize = 32 * 1024;

/// The settings of [`supervise`].
#[derive(Debug)]
pub struct Setup {
    /// Transom's host; without it all destinations are reached by the kernel.
    pub stack: Option<Stack>,
    /// Which destinations are reached by it.
    pub destinations: Destinations,
    /// Whether connections are background traffic, so that little data should wait in front of them.
    pub background: bool,
    /// Is told how Transom's connections go.
    pub watcher: Option<Box<dyn Watcher>>,
    /// Is shown each of Transom's connections.
    pub opened: Option<Box<dyn Opened>>,
}

/// Is shown each of Transom's connections when it is established.
pub trait Opened: std::fmt::Debug {
    /// Takes a look at a new connection. It must not wait.
    fn opened(&mut self, stream: &TcpStream);
}

/// Is told how Transom's connections go: every 5 ms, and when they are closed.
pub trait Watcher: std::fmt::Debug {
    /// Takes the state of a connection. Each connection has its own number. The `last` call comes when the program has closed it, or it has failed.
    fn sample(&mut self, connection: u64, ends: [SocketAddr; 2], info: &Info, last: bool);
}

/// How long after each other a [`Watcher`] is told.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// Counts of the work done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// Which end an event belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventSource {
    /// Our end of the pair.
    Pair,
    /// The outer connection, or a source of a listener's connections.
    Outer,
}

#[derive(Debug)]
pub(crate) struct Supervisor {
    pub(crate) calls: RecordedCalls,
    pub(crate) setup: Setup,
    pub(crate) sockets: HashMap<u64, Socket>,
    pub(crate) counts: Counts,
    /// Transom's work is done here too.
    driver: Option<Driver>,
    /// When the watcher is told next.
    next_sample_at: Instant,
    serial: u64,
    stack_events: Vec<SocketReadiness>,
    epoll: OwnedFd,
    /// Sockets whose turn ended before their work.
    runnable: Vec<u64>,
    scratch: Vec<u8>,
    /// Pairs that no program has yet.
    spare_pairs: Vec<Pair>,
}

/// A pair whose program's end is known by its inode, and whose other end is watched.
#[derive(Debug)]
pub(crate) struct Pair {
    pub(crate) ours: OwnedFd,
    pub(crate) theirs: OwnedFd,
    pub(crate) inode: u64,
}

/// Answers the calls of programs under `notifier` and carries their data, until the last of them has gone and their connections are closed.
/// Calls that wait are noted in `ledger`, for a [`guard`](crate::guard).
///
/// # Errors
/// The kernel's, for what the loop itself needs. An error of one socket goes to its program.
pub fn supervise(notifier: Notifier, ledger: Ledger, setup: Setup) -> io::Result<Counts> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(
        &epoll,
        &notifier,
        epoll::EventData::new_u64(NOTIFIER_TOKEN),
        epoll::EventFlags::IN,
    )?;
    notifier.wake_here();
    let driver = setup.stack.as_ref().map(Stack::driver).transpose()?;
    for descriptor in driver.iter().flat_map(Driver::descriptors) {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, descriptor, epoll::EventData::new_u64(STACK_TOKEN), flags)?;
    }
    let mut supervisor = Supervisor {
        driver,
        next_sample_at: Instant::now(),
        serial: 0,
        stack_events: Vec::new(),
        calls: RecordedCalls::new(notifier, ledger),
        setup,
        sockets: HashMap::new(),
        counts: Counts::default(),
        epoll,
        runnable: Vec::new(),
        scratch: vec![0; SCRATCH_LEN],
        spare_pairs: Vec::new(),
    };
    supervisor.run()?;
    Ok(supervisor.counts)
}

/// The number of an event.
fn token(inode: u64, source: EventSource) -> u64 {
    inode << 1 | u64::from(source == EventSource::Outer)
}

/// The events that are reported of our end of a pair.
fn pair_events(writable: bool) -> epoll::EventFlags {
    use epoll::EventFlags as Flags;
    let mut flags = Flags::IN | Flags::RDHUP | Flags::ET;
    flags.set(Flags::OUT, writable);
    flags
}

impl Supervisor {
    fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        let mut programs_running = true;
        let mut drain_deadline = None;
        while programs_running
            || (!self.sockets.is_empty() && drain_deadline.is_none_or(|end| Instant::now() < end))
        {
            let timeout = self.timeout(programs_running);
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if let Some(driver) = &self.driver {
                driver.wake();
            }
            let mut ready_sockets = HashSet::new();
            let mut device_ready = false;
            for event in &events {
                let flags = event.flags;
                match event.data.u64() {
                    // First, since a thread waits for it.
                    NOTIFIER_TOKEN if flags.contains(epoll::EventFlags::IN) => {
                        self.answer_call()?
                    }
                    NOTIFIER_TOKEN => {
                        // The last program has gone; nobody will call any more.
                        programs_running = false;
                        drain_deadline = Some(Instant::now() + MAX_DRAIN_TIME);
                        // While a connection is on its way we hold the program's end too, and do not hear that it is closed.
                        self.sockets
                            .retain(|_, socket| matches!(socket.state, State::Connected(_)));
                        epoll::delete(&self.epoll, &self.calls.notifier)?;
                    }
                    STACK_TOKEN => device_ready = true,
                    token => {
                        let source =
                            if token & 1 == 0 { EventSource::Pair } else { EventSource::Outer };
                        if self.record_event(token >> 1, source, flags) {
                            ready_sockets.insert(token >> 1);
                        }
                    }
                }
            }
            // The peer may have answered at once.
            self.drive_stack(device_ready || !self.runnable.is_empty());
            ready_sockets.extend(self.runnable.drain(..));
            for SocketReadiness { token, readable, writable } in
                std::mem::take(&mut self.stack_events)
            {
                let mut flags = epoll::EventFlags::empty();
                flags.set(epoll::EventFlags::IN, readable);
                flags.set(epoll::EventFlags::OUT, writable);
                if self.record_event(token, EventSource::Outer, flags) {
                    ready_sockets.insert(token);
                }
            }
            ready_sockets.into_iter().for_each(|inode| self.run_socket(inode));
            self.notify_watcher();
            if programs_running {
                self.prepare_pairs();
            }
        }
        Ok(())
    }

    /// For how long to sleep at most.
    fn timeout(&mut self, programs_running: bool) -> Option<Timespec> {
        let until_stack_work = self.driver.as_mut().and_then(Driver::rest);
        let until_sample = self
            .has_watched_connection()
            .then(|| self.next_sample_at.saturating_duration_since(Instant::now()));
        let until_work = until_sample.into_iter().chain(until_stack_work).min();
        let timeout =
            match (self.runnable.is_empty() && self.stack_events.is_empty(), programs_running) {
                (false, _) => Some(Duration::ZERO),
                (true, false) => {
                    Some(until_work.unwrap_or(Duration::MAX).min(Duration::from_secs(1)))
                }
                (true, true) => until_work,
            };
        timeout.map(|timeout| Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        })
    }

    /// Whether a watcher has a connection to look at.
    fn has_watched_connection(&self) -> bool {
        let is_by_transom =
            |socket: &Socket| matches!(socket.outer(), Some(OuterConnection::Transom(_)));
        self.setup.watcher.is_some() && self.sockets.values().any(is_by_transom)
    }

    fn notify_watcher(&mut self) {
        let now = Instant::now();
        if self.setup.watcher.is_none() || now < self.next_sample_at {
            return;
        }
        self.next_sample_at = now + SAMPLE_INTERVAL;
        let Some(watcher) = &mut self.setup.watcher else { return };
        self.sockets.values().for_each(|socket| socket.sample_for_watcher(&mut **watcher, false));
    }

    /// Forgets a socket.
    fn remove(&mut self, inode: u64) -> Option<Socket> {
        let socket = self.sockets.remove(&inode)?;
        if let Some(watcher) = &mut self.setup.watcher {
            socket.sample_for_watcher(&mut **watcher, true);
        }
        Some(socket)
    }

    /// The number of a new socket.
    pub(crate) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Does the stack's work: with `read_device` also for packets that have arrived.
    pub(crate) fn drive_stack(&mut self, read_device: bool) {
        if let Some(driver) = &mut self.driver {
            driver.work(read_device, &mut self.stack_events);
        }
    }

    /// Processes the packets that have arrived. Packets to send leave with [`Supervisor::drive_stack`].
    pub(crate) fn process_arrivals(&mut self) {
        if let Some(driver) = &mut self.driver {
            driver.take_in();
        }
    }

    /// Notes an event of a socket. Returns whether the socket has work to do.
    fn record_event(&mut self, inode: u64, source: EventSource, flags: epoll::EventFlags) -> bool {
        use epoll::EventFlags as Flags;
        let Some(socket) = self.sockets.get_mut(&inode) else { return false };
        let hung_up = source == EventSource::Pair && flags.intersects(Flags::HUP | Flags::ERR);
        if let State::Connected(pump) = &mut socket.state {
            pump.hung_up |= hung_up;
            let ready = &mut pump.ready;
            let readable = flags.intersects(Flags::IN | Flags::RDHUP | Flags::HUP | Flags::ERR);
            let writable = flags.intersects(Flags::OUT | Flags::HUP | Flags::ERR);
            match source {
                EventSource::Pair => {
                    ready.program_readable |= readable;
                    ready.program_writable |= writable;
                }
                EventSource::Outer => {
                    ready.outer_readable |= readable;
                    ready.outer_writable |= writable;
                }
            }
            return true;
        }
        if hung_up || source == EventSource::Pair && socket.is_listener_shut_down() {
            self.remove_unconnected(inode);
            return false;
        }
        source == EventSource::Outer
    }

    /// Forgets a socket that is not connected. Calls that wait for it fail, as they do after `shutdown(2)`.
    fn remove_unconnected(&mut self, inode: u64) {
        let Some(socket) = self.sockets.remove(&inode) else { return };
        let (waiting, error) = match socket.state {
            State::Connecting(connecting) => (connecting.waiting, libc::ECONNABORTED),
            State::Listening(listening) => {
                (listening.waiting.iter().map(|waiting| waiting.id).collect(), libc::EINVAL)
            }
            State::New | State::Bound(_) | State::Connected(_) => return,
        };
        for id in waiting {
            // It may be gone.
            let _ = self.calls.answer(id, Answer::Error(error));
        }
    }

    /// Runs a socket after the calls are answered.
    pub(crate) fn run_later(&mut self, inode: u64) {
        self.runnable.push(inode);
    }

    /// Does the work of one socket.
    pub(crate) fn run_socket(&mut self, inode: u64) {
        let Some(socket) = self.sockets.get_mut(&inode) else { return };
        match &mut socket.state {
            // Neither the data written last nor an end is sent any more.
            State::Connected(pump) if pump.hung_up && socket.settings.resets_on_close() => {
                self.apply_turn(inode, Turn::Abandoned);
            }
            State::Connected(pump) => {
                let turn = pump.turn(&socket.ours, &mut self.scratch);
                let waits = pump.waits_for_program_to_read();
                if waits != socket.room_watched {
                    socket.room_watched = waits;
                    self.watch_room(inode);
                }
                self.apply_turn(inode, turn);
            }
            State::Connecting(connecting) => match connecting.outer.connect_progress() {
                ConnectProgress::InProgress => {}
                ConnectProgress::Connected => self.connected(inode),
                ConnectProgress::Failed(error) => self.connect_failed(inode, error),
            },
            State::Listening(_) => self.take_connections(inode),
            State::New | State::Bound(_) => {}
        }
    }

    fn apply_turn(&mut self, inode: u64, turn: Turn) {
        match turn {
            Turn::Idle => {}
            Turn::More => self.runnable.push(inode),
            Turn::Closed => {
                self.remove(inode);
            }
            Turn::Abandoned => {
                if let Some(Socket { state: State::Connected(pump), .. }) = self.remove(inode) {
                    pump.outer.abort();
                }
            }
            Turn::Failed(_) => self.reset_program_end(inode),
        }
    }

    /// Tells the program that the connection was reset, and forgets it.
    fn reset_program_end(&mut self, inode: u64) {
        let Some(socket) = self.remove(inode) else { return };
        if pair::is_empty(&socket.ours) {
            // Something has to lie unread in our end when it is closed.
            let (thread, descriptor) = socket.last_used_as;
            let same_inode = program::inode_of(thread, descriptor) == Some(inode);
            let descriptor =
                if same_inode { Some(descriptor) } else { program::find_descriptor(thread, inode) };
            let theirs =
                descriptor.and_then(|number| program::socket_of(thread, number, inode).ok()?);
            if let Some(theirs) = theirs {
                pair::put_token(theirs);
            }
        }
    }

    /// Shows an established connection to the caller's [`Opened`].
    pub(crate) fn show_connection(&mut self, outer: &OuterConnection) {
        if let (Some(opened), OuterConnection::Transom(stream)) = (&mut self.setup.opened, outer) {
            opened.opened(stream);
        }
    }

    /// How much may lie in a pair.
    pub(crate) fn pair_size(&self) -> usize {
        if self.setup.background { BACKGROUND_PAIR_SIZE } else { PAIR_SIZE }
    }

    /// A pair for a new socket.
    pub(crate) fn take_pair(&mut self, non_blocking: bool) -> io::Result<Pair> {
        let pair = match self.spare_pairs.pop() {
            Some(pair) => pair,
            None => self.new_pair()?,
        };
        if non_blocking {
            pair::set_non_blocking(&pair.theirs)?;
        }
        Ok(pair)
    }

    fn new_pair(&self) -> io::Result<Pair> {
        let (ours, theirs) = pair::new(self.pair_size())?;
        let inode = program::inode(&theirs)?;
        let events = epoll::EventData::new_u64(token(inode, EventSource::Pair));
        epoll::add(&self.epoll, &ours, events, pair_events(false))?;
        Ok(Pair { ours, theirs, inode })
    }

    fn prepare_pairs(&mut self) {
        while self.spare_pairs.len() < SPARE_PAIRS {
            // Without descriptors there is none in advance; the program is told when it asks.
            let Ok(pair) = self.new_pair() else { return };
            self.spare_pairs.push(pair);
        }
    }

    /// Has room in a socket's pair reported, or not. While it is not full, each read of the program's would be an event, with nothing to do.
    pub(crate) fn watch_room(&self, inode: u64) {
        let Some(socket) = self.sockets.get(&inode) else { return };
        let data = epoll::EventData::new_u64(token(inode, EventSource::Pair));
        // The kernel reports at once what is so already. It fails only for what is not watched.
        let _ = epoll::modify(&self.epoll, &socket.ours, data, pair_events(socket.room_watched));
    }

    /// Has the outer side of a socket watched.
    fn watch(&self, inode: u64, descriptor: impl AsFd) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        let data = epoll::EventData::new_u64(token(inode, EventSource::Outer));
        let flags = Flags::IN | Flags::OUT | Flags::RDHUP | Flags::ET;
        Ok(epoll::add(&self.epoll, descriptor, data, flags)?)
    }

    /// Has an outer connection watched.
    pub(crate) fn watch_outer(&self, inode: u64, outer: &OuterConnection) -> io::Result<()> {
        match (outer, &self.driver) {
            (OuterConnection::Kernel(stream), _) => self.watch(inode, stream),
            (OuterConnection::Transom(stream), Some(driver)) => {
                driver.watch(stream, inode);
                Ok(())
            }
            (OuterConnection::Transom(_), None) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Has a source of a listener's connections watched.
    pub(crate) fn watch_source(&self, inode: u64, source: &Source) -> io::Result<()> {
        match (source, &self.driver) {
            (Source::Kernel(listener), _) => self.watch(inode, listener),
            (Source::Transom(listener), Some(driver)) => {
                driver.watch_listener(listener, inode);
                Ok(())
            }
            (Source::Transom(_), None) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// A connection was made: data flows from now on.
    fn connected(&mut self, inode: u64) {
        let size = self.pair_size();
        let Some(socket) = self.sockets.get_mut(&inode) else { return };
        let State::Connecting(connecting) = std::mem::replace(&mut socket.state, State::New) else {
            return;
        };
        let Connecting { outer, theirs, filled, waiting } = connecting;
        self.show_connection(&outer);
        let Some(socket) = self.sockets.get_mut(&inode) else { return };
        pair::discard(&socket.ours, filled);
        if filled > 0 {
            pair::set_size(&theirs, size);
        }
        drop(theirs);
        socket.open(outer);
        socket.connect_unreported = true;
        for id in waiting {
            let delivered = self.calls.answer(id, Answer::Value(0));
            socket.connect_unreported &= !delivered.unwrap_or(false);
        }
        self.runnable.push(inode);
    }

    /// A connection could not be made. The socket can be used again.
    fn connect_failed(&mut self, inode: u64, error: i32) {
        let size = self.pair_size();
        let Some(socket) = self.sockets.get_mut(&inode) else { return };
        let State::Connecting(connecting) = std::mem::replace(&mut socket.state, State::New) else {
            return;
        };
        pair::discard(&socket.ours, connecting.filled);
        if connecting.filled > 0 {
            pair::set_size(&connecting.theirs, size);
        }
        socket.error = Some(error);
        for id in connecting.waiting {
            if self.calls.answer(id, Answer::Error(error)).unwrap_or(false) {
                socket.error = None;
            }
        }
    }

    /// Takes in connections that have arrived, as far as they may wait here.
    pub(crate) fn take_connections(&mut self, inode: u64) {
        loop {
            let Some(socket) = self.sockets.get_mut(&inode) else { return };
            let State::Listening(listening) = &mut socket.state else { return };
            if listening.queue.len() >= listening.backlog {
                return;
            }
            let Some(outer) = listening.sources.iter().find_map(|source| source.accept()) else {
                return;
            };
            self.hand_to_accept(inode, outer);
        }
    }

    /// Gives a new connection to a call that waits for one, or lets it wait for a call.
    pub(crate) fn hand_to_accept(&mut self, inode: u64, outer: OuterConnection) {
        let mut outer = outer;
        loop {
            let Some(socket) = self.sockets.get_mut(&inode) else { return };
            let State::Listening(listening) = &mut socket.state else { return };
            let Some(waiting) = listening.waiting.pop_front() else {
                listening.queue.push_back(outer);
                pair::put_token(&socket.ours);
                return;
            };
            match self.answer_accept(inode, waiting, outer) {
                None => return,
                Some(returned) => outer = returned,
            }
        }
    }
}
