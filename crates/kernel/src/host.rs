//! Extensions over the sockets of a control group: a thread that follows them.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use transom_bpf::BpfError;
use transom_bpf::libbpf_rs::{RingBuffer, RingBufferBuilder};
use transom_extensions::policy;
use transom_tcp::arguments::Arguments;
use transom_tcp::congestion::Nice;
use transom_tcp::extension::ExtensionChoice;
use transom_tcp::time::Instant;

use crate::connection::Connection;
use crate::layout::{
    COUNTS, Control, InKernel, NO_SLOT, POLICY_LAYERS, POLICY_UNITS, RECORD, Record, WALK_ENTER,
    WALK_KICK, WALK_LEAVE, policy_bytes,
};
use crate::log::{Log, LogEvent, LogPart};
use crate::namespaces::Places;
use crate::programs::{Programs, Settings, now};
use crate::report::HostReport;
use crate::variable_forms::refusal;
use crate::{Cgroup, KernelError};

/// Requests count for this long after they were renewed last.
pub(crate) const EXPIRY: Duration = Duration::from_secs(1);
/// Sockets go back to the algorithm that they had when nothing was renewed for so long.
pub(crate) const LEAVING: Duration = Duration::from_secs(3);
/// How often they are renewed.
const RENEWAL: Duration = Duration::from_millis(200);
/// The longest wait for records.
const WAIT: Duration = Duration::from_millis(50);
/// How long sockets may take to go back when extensions are detached.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many connections can have limits at a time, if nothing else is said.
pub(crate) const CONNECTIONS: u32 = 16_384;
/// The most that may be said.
pub const MOST_CONNECTIONS: u32 = 1 << 20;

/// How extensions are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Connections of the process's network namespace and of those of the group's processes that are there already are taken in too.
    pub existing: bool,
    /// How many connections can have limits at a time: `CONNECTIONS` by default, at most [`MOST_CONNECTIONS`]. The others are plain TCP, and counted.
    pub connections: u32,
    /// The program in the kernel decides what it can decide by itself, which is `nice` or `policy`. User space is not woken for it.
    pub in_kernel: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { existing: false, connections: CONNECTIONS, in_kernel: false }
    }
}

/// Extensions that run over the sockets of a control group, until it is dropped.
///
/// New connections of the group's processes come under control when they are established. Each gets extensions of its own. The connections that
/// were there are taken in if the caller asks for that. When it is dropped, each goes back to the algorithm that it had, and nothing is left in the kernel.
#[derive(Debug)]
pub struct Host {
    pub(crate) shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    stop: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    cgroup: String,
    extensions: String,
    controller: String,
    room: u32,
    log: Log,
    counts: [u64; COUNTS.len()],
    seen: u64,
    connections: HashMap<u64, Connection>,
    failure: Option<String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn report(&self) -> HostReport {
        let state = self.state();
        let [without_slot, lost_records, garbage, refused, _, kicks, events] = state.counts;
        let mut connections: Vec<_> = state.connections.values().map(Connection::report).collect();
        connections.sort_by_key(|connection| connection.cookie);
        HostReport {
            process: std::process::id(),
            cgroup: state.cgroup.clone(),
            extensions: state.extensions.clone(),
            controller: state.controller.clone(),
            seen: state.seen,
            room: state.room,
            events,
            lost_records,
            without_slot,
            kicks,
            garbage,
            refused,
            connections,
        }
    }

    pub(crate) fn log(&self, from: u64, most: usize) -> LogPart {
        self.state().log.read(from, most)
    }
}

impl Host {
    /// Attaches these extensions to the sockets of a control group and the groups below it.
    ///
    /// # Errors
    /// An extension cannot run on the kernel's sockets, or the program in the kernel cannot decide it; the kernel does not take the programs; the process may not
    /// load them; a number of connections that is zero or too large.
    pub fn attach(
        cgroup: &Cgroup,
        extensions: &[ExtensionChoice],
        options: Options,
    ) -> Result<Self, KernelError> {
        for choice in extensions {
            if let Some(reason) = refusal(&*choice.extension()) {
                return Err(KernelError::Refused(reason));
            }
        }
        if !(1..=MOST_CONNECTIONS).contains(&options.connections) {
            let connections = options.connections;
            return Err(KernelError::Refused(format!(
                "{connections} connections cannot have limits at a time: it is between 1 and \
                 {MOST_CONNECTIONS}"
            )));
        }
        let mut choices = extensions.to_vec();
        let in_kernel = if options.in_kernel { Some(taken_out(&mut choices)?) } else { None };
        let place = in_kernel
            .as_ref()
            .map_or_else(String::new, |one| format!(" ({} in the kernel)", one.name()));
        let settings = Settings { connections: options.connections, in_kernel };
        let named: Vec<String> = extensions.iter().map(ToString::to_string).collect();
        let state = State {
            cgroup: cgroup.path().display().to_string(),
            extensions: format!("{}{place}", named.join(" + ")),
            room: options.connections,
            ..State::default()
        };
        let shared = Arc::new(Shared { stop: AtomicBool::new(false), state: Mutex::new(state) });
        let (tell, told) = sync_channel(1);
        let (cgroup, its, existing) = (cgroup.clone(), shared.clone(), options.existing);
        let thread = thread::Builder::new()
            .name("transom-kernel".into())
            .spawn(move || run(&its, &cgroup, &settings, choices, existing, &tell))
            .map_err(KernelError::io("cannot start a thread"))?;
        let mut host = Host { shared, thread: Some(thread) };
        match told.recv() {
            Ok(Ok(())) => Ok(host),
            Ok(Err(error)) => {
                host.join();
                Err(error)
            }
            Err(_) => Err(KernelError::Refused("the thread that follows sockets has ended".into())),
        }
    }

    /// The connections and what each asks and gets.
    pub fn report(&self) -> HostReport {
        self.shared.report()
    }

    /// The log's lines from a number on, at most `most`. The last 16,384 are kept.
    pub fn log(&self, from: u64, most: usize) -> LogPart {
        self.shared.log(from, most)
    }

    /// How many connections got no limits, as there was no room for them.
    pub fn without_room(&self) -> u64 {
        self.shared.state().counts[0]
    }

    /// Why it does not follow the sockets any more, if so.
    pub fn failure(&self) -> Option<String> {
        self.shared.state().failure.clone()
    }

    fn join(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; the kernel lets the limits expire.
            let _ = thread.join();
        }
    }
}

/// Takes `nice` or `policy` out of these extensions, for the program in the kernel.
fn taken_out(choices: &mut Vec<ExtensionChoice>) -> Result<InKernel, KernelError> {
    let decided = |choice: &ExtensionChoice| matches!(choice.extension().name(), "nice" | "policy");
    let Some(found) = choices.iter().position(decided) else {
        return Err(KernelError::Refused(
            "the program in the kernel decides `nice` and `policy` only, and neither is among the extensions"
                .to_owned(),
        ));
    };
    let text = choices.remove(found).to_string();
    let mut arguments =
        Arguments::read(&text).map_err(|error| KernelError::Refused(error.to_string()))?;
    let refused =
        |error: transom_tcp::arguments::ArgumentError| KernelError::Refused(error.to_string());
    if arguments.choice() == "nice" {
        return Nice::read(&mut arguments).map(InKernel::Nice).map_err(refused);
    }
    let network = policy::chosen(&mut arguments).map_err(refused)?;
    policy_bytes(&network).map(InKernel::Policy).ok_or_else(|| {
        KernelError::Refused(format!(
            "the program in the kernel has room for a policy of {POLICY_LAYERS} layers with {POLICY_UNITS} inputs and outputs each"
        ))
    })
}

impl Drop for Host {
    fn drop(&mut self) {
        self.join();
    }
}

fn run(
    shared: &Shared,
    cgroup: &Cgroup,
    settings: &Settings,
    choices: Vec<ExtensionChoice>,
    existing: bool,
    tell: &SyncSender<Result<(), KernelError>>,
) {
    let records = RefCell::new(Vec::new());
    let begun = Programs::attach(cgroup, settings).and_then(|programs| {
        let ring = ring(&programs, &records)?;
        let mut follower = Follower {
            programs,
            places: Places::new(cgroup.path())?,
            choices,
            timers: BTreeSet::new(),
            dirty: Vec::new(),
            renewed: 0,
            control: Control::default(),
        };
        shared.state().controller.clone_from(&follower.programs.name);
        follower.renew(now())?;
        follower.programs.enter(cgroup)?;
        if existing {
            follower.enter()?;
        }
        Ok((follower, ring))
    });
    let (mut follower, ring) = match begun {
        Ok(begun) => begun,
        Err(error) => {
            let _ = tell.send(Err(error));
            return;
        }
    };
    let _ = tell.send(Ok(()));
    if let Err(error) = follower.follow(shared, &ring, &records) {
        shared.state().failure = Some(error.to_string());
    }
    if let Err(error) = follower.leave(shared, &ring, &records) {
        shared.state().failure.get_or_insert(error.to_string());
    }
}

fn ring<'a>(
    programs: &Programs,
    records: &'a RefCell<Vec<[u8; RECORD]>>,
) -> Result<RingBuffer<'a>, KernelError> {
    let mut builder = RingBufferBuilder::new();
    let keep = |bytes: &[u8]| {
        if let Some(record) = bytes.first_chunk::<RECORD>() {
            records.borrow_mut().push(*record);
        }
        0
    };
    builder.add(&programs.records, keep).map_err(BpfError::of("cannot open the ring"))?;
    Ok(builder.build().map_err(BpfError::of("cannot open the ring"))?)
}

/// What the thread has.
struct Follower {
    programs: Programs,
    places: Places,
    choices: Vec<ExtensionChoice>,
    /// When the clock wakes a layer of which socket.
    timers: BTreeSet<(u64, u64)>,
    /// Sockets with something to be written.
    dirty: Vec<u64>,
    renewed: u64,
    control: Control,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Follower {
    fn follow(
        &mut self,
        shared: &Shared,
        ring: &RingBuffer<'_>,
        records: &RefCell<Vec<[u8; RECORD]>>,
    ) -> Result<(), KernelError> {
        while !shared.stop.load(Ordering::Acquire) {
            let time = now();
            if time.saturating_sub(self.renewed) >= nanos(RENEWAL) {
                let asleep = self.renewed > 0
                    && time.saturating_sub(self.renewed) >= nanos(LEAVING - RENEWAL);
                self.renew(time)?;
                if asleep {
                    // The process was stopped, and its sockets have left.
                    self.enter()?;
                }
                shared.state().counts = self.programs.counts();
            }
            self.wait(ring, time)?;
            self.turn(shared, records)?;
        }
        Ok(())
    }

    /// Waits for records, or until a layer wants to be woken.
    fn wait(&self, ring: &RingBuffer<'_>, time: u64) -> Result<(), KernelError> {
        let first = self.timers.first().map_or(u64::MAX, |(at, _)| at.saturating_sub(time));
        // In whole milliseconds: not before the time.
        let wait = first.min(nanos(WAIT)).div_ceil(1_000_000);
        match ring.poll_raw(Duration::from_millis(wait)) {
            // Some records wake nobody. EINTR (4): a signal came in between.
            0 | -4 => {
                ring.consume_raw();
                Ok(())
            }
            1.. => Ok(()),
            error => Err(KernelError::io("cannot read the ring")(
                std::io::Error::from_raw_os_error(-error),
            )),
        }
    }

    /// Handles what has arrived and what is due, and writes what came of it.
    fn turn(
        &mut self,
        shared: &Shared,
        records: &RefCell<Vec<[u8; RECORD]>>,
    ) -> Result<(), KernelError> {
        let mut state = shared.state();
        let arrived = std::mem::take(&mut *records.borrow_mut());
        for bytes in &arrived {
            match Record::read(bytes) {
                Some(Record::Event(raw)) => {
                    self.touch(&mut state, raw.cookie, |connection| connection.on_event(&raw));
                }
                Some(Record::Decided(raw, decision)) => {
                    self.touch(&mut state, raw.cookie, |connection| {
                        connection.on_decision(&raw, decision);
                    });
                }
                Some(Record::Open(opening)) => {
                    state.seen += 1;
                    self.places.learn(opening.place);
                    let connection = Connection::open(&opening, &self.choices);
                    state.connections.insert(opening.cookie, connection);
                    // There are values to be written even if nothing is asked.
                    self.dirty.push(opening.cookie);
                    self.touch(&mut state, opening.cookie, |_| {});
                }
                Some(Record::Close { cookie }) => {
                    if state.connections.contains_key(&cookie) {
                        state.log.write(now(), cookie, LogEvent::Closed);
                    }
                    if let Some(gone) = state.connections.remove(&cookie)
                        && let Some(at) = gone.next_wake()
                    {
                        self.timers.remove(&(at, cookie));
                    }
                }
                None => {}
            }
        }
        let time = now();
        while let Some(&(at, cookie)) = self.timers.first().filter(|(at, _)| *at <= time) {
            self.timers.remove(&(at, cookie));
            self.touch(&mut state, cookie, |connection| {
                connection.on_time(Instant::from_nanos(time));
            });
        }
        let mut kick = BTreeSet::new();
        for cookie in std::mem::take(&mut self.dirty) {
            let Some(connection) = state.connections.get_mut(&cookie) else { continue };
            if std::mem::take(&mut connection.needs_kick) {
                connection.request.changes = connection.request.changes.wrapping_add(1);
                kick.insert(connection.place);
            }
            if connection.slot != NO_SLOT {
                self.programs.write(connection.slot, &connection.request)?;
            }
        }
        drop(state);
        if !kick.is_empty() {
            self.walk(WALK_KICK, &kick)?;
        }
        // The memory is used again.
        let mut empty = arrived;
        empty.clear();
        let mut records = records.borrow_mut();
        if records.is_empty() {
            *records = empty;
        }
        Ok(())
    }

    fn touch(&mut self, state: &mut State, cookie: u64, what: impl FnOnce(&mut Connection)) {
        let Some(connection) = state.connections.get_mut(&cookie) else { return };
        let (before, request) = (connection.next_wake(), connection.request);
        what(connection);
        for event in connection.log.drain(..) {
            state.log.write(now(), cookie, event);
        }
        let after = connection.next_wake();
        if before != after
            && let Some(at) = before
        {
            self.timers.remove(&(at, cookie));
        }
        if let Some(at) = after {
            self.timers.insert((at, cookie));
        }
        if connection.request != request || connection.needs_kick {
            self.dirty.push(cookie);
        }
    }

    fn renew(&mut self, time: u64) -> Result<(), BpfError> {
        self.renewed = time;
        self.control.alive_until = time.saturating_add(nanos(EXPIRY));
        self.control.leave_at = time.saturating_add(nanos(LEAVING));
        self.programs.control(&self.control)
    }

    fn walk(&mut self, purpose: u64, places: &BTreeSet<u32>) -> Result<(), KernelError> {
        self.control.walk = purpose;
        self.programs.control(&self.control)?;
        self.places.within(places, || self.programs.walk())
    }

    /// Takes in the connections that are there.
    fn enter(&mut self) -> Result<(), KernelError> {
        self.places.learn_all();
        let places = self.places.all();
        self.walk(WALK_ENTER, &places)
    }

    /// Every socket goes back to the algorithm that it had.
    fn leave(
        &mut self,
        shared: &Shared,
        ring: &RingBuffer<'_>,
        records: &RefCell<Vec<[u8; RECORD]>>,
    ) -> Result<(), KernelError> {
        self.programs.shut();
        self.control.alive_until = 0;
        self.control.leave_at = 0;
        let places = self.places.all();
        self.walk(WALK_LEAVE, &places)?;
        // Those of network namespaces that no process of the group is in go with their next acknowledgement.
        let until = now().saturating_add(nanos(PATIENCE));
        loop {
            let _ = ring.poll_raw(Duration::from_millis(5));
            let arrived = std::mem::take(&mut *records.borrow_mut());
            let mut state = shared.state();
            for record in arrived.iter().filter_map(Record::read) {
                if let Record::Close { cookie } = record {
                    state.connections.remove(&cookie);
                }
            }
            if state.connections.is_empty() || now() >= until {
                state.counts = self.programs.counts();
                return Ok(());
            }
        }
    }
}
