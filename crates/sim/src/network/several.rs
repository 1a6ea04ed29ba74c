//! A network on several cores, with the same results to the byte as on one.
//!
//! Theory of operation. The network is cut at links ([`division`](super::division)), and each core has a [`Part`]: nodes, the near end of the links that
//! leave them, and the far end of those that come in. Time advances in *windows*. A window begins with the earliest event of all parts, and lasts for the
//! lookahead, the shortest delay of the cut links. Whatever a part sends over a cut link in a window comes out after its end. So within a window the parts
//! run without knowing of each other (conservative synchronisation with a global window; Nicol, "The Cost of Conservative Synchronization in Parallel
//! Discrete Event Simulations", 1993). At its end packets change sides.
//!
//! *The same order.* Events of different parts at the same time do not touch each other, whichever comes first. But what comes out of a cut link may meet another
//! event of the receiving part at the same nanosecond. On one core the call comes first that was asked for first, and one of the two was asked for
//! in the other part. So each part keeps a [`Journal`] of what it ran, and which calls that asked for. At the end of a window the journals are merged into
//! the order of one core: by time, and at the same time by the order in which the calls were asked for, which the merge knows from before. The merge finds the
//! place, among the receiver's own calls, of each call to a cut link, and the receiver's agenda gets it with that place. Between two places there is
//! room for these.
//!
//! A cut link's call is asked for by whoever makes its next delivery the earliest: a packet that is sent while nothing else is under way, or the delivery
//! before. The merge keeps for each cut link the times at which packets come out, and so knows which of the two it was, also where the delivery before ran in the
//! same window as the sending. That needs the whole future of a packet to be known when it is sent: a reason why only drop-tail links are cut.
//!
//! *Observers.* Taps and readers of event logs see everything in the order of one core too: parts write down what they would be shown, and the
//! merge shows it. Observers of queues are called by the parts, each in its order.
//!
//! *The ledger.* Each part has one. They become one at the end of each run. Hosts whose applications write the same entries are in one part
//! ([`Bond`](crate::traffic::Bond)).

use super::agenda::{Entity, STEP};
use super::host::LogReader;
use super::journal::{Lookout, Seen, Step};
use super::part::Part;
use super::{LinkId, NetworkError, NodeId, Tap};
use crate::traffic::Ledger;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Thread;
use transom_tcp::time::{Duration, Instant};

/// A place in a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) part: u32,
    pub(super) at: u32,
}

/// A direction of a link that is cut, as the merge knows it.
#[derive(Debug)]
struct CutLink {
    /// The end at which packets are sent, and that at which they come out.
    from: Place,
    to: Place,
    /// When they come out.
    due: BinaryHeap<Reverse<Instant>>,
    /// The call that is asked for, and its place among those of the receiving part.
    call: Option<(Instant, u64)>,
    /// Whether that is new in this window.
    is_new: bool,
}

/// What joins the parts of a network.
pub(super) struct Several {
    lookahead: Duration,
    cuts: Vec<CutLink>,
    /// The cut that comes in over a link of a part.
    incoming: Vec<Vec<Option<u32>>>,
    /// The order in which the present calls of each part's entities were asked for.
    ranks: Vec<Vec<u64>>,
    next_rank: u64,
    /// By the name that everybody uses.
    nodes: Vec<Place>,
    /// The near and the far end of each link.
    links: Vec<(Place, Place)>,
    pub(super) ledger: Ledger,
    taps: BTreeMap<LinkId, Tap>,
    arrival_taps: BTreeMap<LinkId, Tap>,
    readers: BTreeMap<NodeId, LogReader>,
}

impl Several {
    /// For parts whose hosts have asked for their first calls in the order of their names. `cuts` are the near and far ends of cut links.
    pub(super) fn new(
        lookahead: Duration,
        parts: &mut [Part],
        cuts: Vec<(Place, Place)>,
        nodes: Vec<Place>,
        links: Vec<(Place, Place)>,
    ) -> Self {
        let mut incoming: Vec<Vec<Option<u32>>> =
            parts.iter().map(|part| vec![None; part.fabric.wires.len()]).collect();
        for (number, (_, cut)) in (0..).zip(&cuts) {
            if let Some(slot) = incoming[cut.part as usize].get_mut(cut.at as usize) {
                *slot = Some(number);
            }
        }
        let mut ranks: Vec<Vec<u64>> =
            parts.iter().map(|part| vec![0; part.fabric.entities()]).collect();
        let mut next_rank = 0;
        for place in &nodes {
            let (part, ranks) = (&parts[place.part as usize], &mut ranks[place.part as usize]);
            if let Some(number) = part.host_number(place.at as usize) {
                ranks[part.fabric.wires.len() + number] = next_rank;
                next_rank += 1;
            }
        }
        let cuts = cuts
            .into_iter()
            .map(|(from, to)| CutLink {
                from,
                to,
                due: BinaryHeap::new(),
                call: None,
                is_new: false,
            })
            .collect();
        for part in parts {
            part.fabric.journal = Some(Box::default());
            part.fabric.agenda.leave_a_gap();
        }
        Several {
            lookahead,
            cuts,
            incoming,
            ranks,
            next_rank,
            nodes,
            links,
            ledger: Ledger::default(),
            taps: BTreeMap::new(),
            arrival_taps: BTreeMap::new(),
            readers: BTreeMap::new(),
        }
    }

    /// Where a node is.
    pub(super) fn node(&self, node: NodeId) -> Option<Place> {
        self.nodes.get(node.0 as usize).copied()
    }

    /// Where the ends of a link are.
    pub(super) fn link(&self, link: LinkId) -> Option<(Place, Place)> {
        self.links.get(link.0 as usize).copied()
    }

    /// Handles everything up to and including `limit`.
    pub(super) fn run_until(
        &mut self,
        parts: &mut [Part],
        limit: Instant,
    ) -> Result<(), NetworkError> {
        let cells: Vec<Cell<'_>> =
            parts.iter_mut().map(|part| Mutex::new((part, Ok(())))).collect();
        let gate = Gate::new(cells.len() - 1);
        let outcome = std::thread::scope(|scope| {
            let threads: Vec<Thread> = cells
                .iter()
                .skip(1)
                .map(|cell| scope.spawn(|| gate.serve(cell)).thread().clone())
                .collect();
            let open = Opened { gate: &gate, threads };
            self.run_windows(&cells, &open, limit)
        });
        drop(cells);
        for part in &mut *parts {
            part.import();
            part.now = part.now.max(limit);
            self.ledger.absorb(&mut part.fabric.ledger);
        }
        self.settle_clocks(parts);
        for part in parts {
            part.count_in(&mut self.ledger);
        }
        outcome
    }

    /// On one core, a link's time goes on with its deliveries too.
    fn settle_clocks(&self, parts: &mut [Part]) {
        for CutLink { from, to, .. } in &self.cuts {
            let clock = parts[to.part as usize].fabric.wires[to.at as usize].model.clock();
            parts[from.part as usize].fabric.wires[from.at as usize].model.queued(clock);
        }
    }

    fn run_windows(
        &mut self,
        cells: &[Cell<'_>],
        open: &Opened<'_>,
        limit: Instant,
    ) -> Result<(), NetworkError> {
        loop {
            let earliest = cells.iter().filter_map(|cell| lock(cell).0.fabric.agenda.peek()).min();
            let Some(first) = earliest.filter(|at| *at <= limit) else { return Ok(()) };
            let end = (first + self.lookahead - Duration::from_nanos(1)).min(limit);
            open.window(end);
            if let Some(cell) = cells.first() {
                run(cell, end);
            }
            open.wait();
            let mut parts: Vec<_> = cells.iter().map(lock).collect();
            self.merge(&mut parts);
            for part in &mut parts {
                std::mem::replace(&mut part.1, Ok(()))?;
            }
        }
    }

    /// Puts what the parts did in a window into the order of one core, and gives them what crosses the cuts.
    fn merge(&mut self, parts: &mut [Locked<'_, '_>]) {
        let mut heads: Vec<Head> = parts.iter_mut().map(|part| Head::of(part.0)).collect();
        loop {
            let mut next: Option<(Instant, u64, usize)> = None;
            for (number, head) in heads.iter().enumerate() {
                let Some(&Step::Ran(at, entity)) = head.steps.get(head.done) else { continue };
                let key = (at, self.ranks[number][entity.0 as usize], number);
                if next.is_none_or(|next| key < next) {
                    next = Some(key);
                }
            }
            let Some((at, _, number)) = next else { break };
            self.replay(&mut heads, number, at);
        }
        let mut exports = Vec::new();
        for (part, head) in parts.iter_mut().zip(heads) {
            let mut steps = head.steps;
            steps.clear();
            if let Some(journal) = &mut part.0.fabric.journal {
                journal.steps = steps;
            }
            exports.append(&mut part.0.fabric.exports);
        }
        for (cut, delivered) in exports {
            let to = self.cuts[cut as usize].to;
            parts[to.part as usize].0.imports.push((LinkId(to.at), delivered));
        }
        for cut in self.cuts.iter_mut().filter(|cut| cut.is_new) {
            cut.is_new = false;
            if let Some(call) = cut.call {
                let agenda = &mut parts[cut.to.part as usize].0.fabric.agenda;
                agenda.call_in_place(Entity(cut.to.at), call);
            }
        }
        for part in parts {
            part.0.fabric.agenda.leave_a_gap();
        }
    }

    /// Goes through the next call of a part.
    fn replay(&mut self, heads: &mut [Head], number: usize, now: Instant) {
        let Some(head) = heads.get_mut(number) else { return };
        let Some(&Step::Ran(_, entity)) = head.steps.get(head.done) else { return };
        head.done += 1;
        head.calls += 1;
        let delivers = self.incoming[number].get(entity.0 as usize).copied().flatten();
        if let Some(cut) = delivers {
            let cut = &mut self.cuts[cut as usize];
            cut.call = None;
            while cut.due.peek().is_some_and(|Reverse(due)| *due <= now) {
                cut.due.pop();
            }
        }
        while let Some(head) = heads.get_mut(number)
            && let Some(&step) = head.steps.get(head.done)
        {
            match step {
                Step::Ran(..) => break,
                Step::Called(entity) => {
                    head.last_place += STEP;
                    head.foreign = 0;
                    self.ranks[number][entity.0 as usize] = self.next_rank;
                    self.next_rank += 1;
                }
                Step::Sent(cut, due) => {
                    self.cuts[cut as usize].due.push(Reverse(due));
                    self.ask(heads, cut);
                }
            }
            if let Some(head) = heads.get_mut(number) {
                head.done += 1;
            }
        }
        if let Some(cut) = delivers {
            self.ask(heads, cut);
        }
        if let Some(head) = heads.get_mut(number) {
            while let Some((_, seen)) = head.sights.next_if(|(call, _)| *call <= head.calls) {
                self.show(seen);
            }
        }
    }

    /// Asks for the call of a cut link's next delivery, if it is not asked for yet.
    fn ask(&mut self, heads: &mut [Head], cut: u32) {
        let cut = &mut self.cuts[cut as usize];
        let Some(&Reverse(due)) = cut.due.peek() else { return };
        if cut.call.is_some_and(|(soon, _)| soon <= due) {
            return;
        }
        let Place { part, at } = cut.to;
        let receiver = &mut heads[part as usize];
        // More than there is room for share a place; that takes millions of calls between two of the receiver's own.
        receiver.foreign = (receiver.foreign + 1).min(STEP - 1);
        cut.call = Some((due, receiver.last_place + receiver.foreign));
        cut.is_new = true;
        self.ranks[part as usize][at as usize] = self.next_rank;
        self.next_rank += 1;
    }

    fn show(&mut self, seen: Seen) {
        match seen {
            Seen::Offered(link, at, bytes, comment) => {
                if let Some(tap) = self.taps.get_mut(&link) {
                    tap(at, &bytes, comment.as_deref());
                }
            }
            Seen::Arrived(link, at, bytes) => {
                if let Some(tap) = self.arrival_taps.get_mut(&link) {
                    tap(at, &bytes, None);
                }
            }
            Seen::Logged(node, record) => {
                if let Some(reader) = self.readers.get_mut(&node) {
                    reader(&record);
                }
            }
        }
    }

    /// Watches what comes to a link.
    pub(super) fn tap(&mut self, parts: &mut [Part], link: LinkId, tap: Tap) {
        let Some((near, _)) = self.link(link) else { return };
        let Some(part) = parts.get_mut(near.part as usize) else { return };
        let lookout = part.lookout();
        let see: Tap = Box::new(move |at, bytes, comment| {
            lookout.saw(Seen::Offered(link, at, bytes.to_vec(), comment.map(str::to_owned)));
        });
        part.fabric.taps.insert(LinkId(near.at), see);
        self.taps.insert(link, tap);
    }

    /// Watches what comes out of a link.
    pub(super) fn tap_arrivals(&mut self, parts: &mut [Part], link: LinkId, tap: Tap) {
        let Some((_, far)) = self.link(link) else { return };
        let Some(part) = parts.get_mut(far.part as usize) else { return };
        let lookout = part.lookout();
        let see: Tap = Box::new(move |at, bytes, _| {
            lookout.saw(Seen::Arrived(link, at, bytes.to_vec()));
        });
        part.fabric.arrival_taps.insert(LinkId(far.at), see);
        self.arrival_taps.insert(link, tap);
    }

    /// Reads a host's event log.
    pub(super) fn watch_log(&mut self, parts: &mut [Part], node: NodeId, reader: LogReader) {
        let Some(place) = self.node(node) else { return };
        let Some(part) = parts.get_mut(place.part as usize) else { return };
        let lookout = part.lookout();
        if let Some(host) = part.host_mut(place.at as usize) {
            host.watch_log(Box::new(move |record| lookout.saw(Seen::Logged(node, *record))));
            self.readers.insert(node, reader);
        }
    }
}

/// How far the merge has come in a part's journal.
struct Head {
    steps: Vec<Step>,
    done: usize,
    /// Calls gone through.
    calls: usize,
    /// The place of the part's last own call, and how many calls from elsewhere came since.
    last_place: u64,
    foreign: u64,
    sights: std::iter::Peekable<std::vec::IntoIter<(usize, Seen)>>,
}

impl Head {
    fn of(part: &mut Part) -> Self {
        let last_place = part.window_place;
        let journal = part.fabric.journal.as_mut();
        let (steps, sights) = match journal {
            Some(journal) => (std::mem::take(&mut journal.steps), journal.take_sights()),
            None => (Vec::new(), Vec::new()),
        };
        let sights = sights.into_iter().peekable();
        Head { steps, done: 0, calls: 0, last_place, foreign: 0, sights }
    }
}

impl Part {
    /// What its taps write into.
    fn lookout(&mut self) -> Lookout {
        let journal = self.fabric.journal.get_or_insert_default();
        journal.lookout.get_or_insert_default().clone()
    }
}

/// A part for whoever has its turn, and how its window ended.
type Cell<'a> = Mutex<(&'a mut Part, Result<(), NetworkError>)>;
type Locked<'a, 'b> = std::sync::MutexGuard<'a, (&'b mut Part, Result<(), NetworkError>)>;

/// After a panic nothing here is used any more: the scope of the threads passes it on.
fn lock<'a, 'b>(cell: &'a Cell<'b>) -> Locked<'a, 'b> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a part to the end of a window.
fn run(cell: &Cell<'_>, end: Instant) {
    let mut cell = lock(cell);
    let part = &mut *cell.0;
    part.import();
    part.window_place = part.fabric.agenda.last_place();
    let outcome = part.run_until(end);
    cell.1 = outcome;
}

/// Where threads wait for the next window, and for the end of one.
struct Gate {
    /// The number of the window.
    window: AtomicU64,
    /// Its end, in nanoseconds.
    end: AtomicU64,
    /// Threads that are not done with it.
    busy: AtomicUsize,
    helpers: usize,
    closed: AtomicBool,
    leader: Thread,
}

/// So often a thread looks before it sleeps: some tens of microseconds.
const LOOKS: u32 = 10_000;

/// Waits a little busily, and then asleep; who makes it true wakes the thread.
fn wait_until(is_true: impl Fn() -> bool) {
    for _ in 0..LOOKS {
        if is_true() {
            return;
        }
        std::hint::spin_loop();
    }
    while !is_true() {
        std::thread::park();
    }
}

impl Gate {
    fn new(helpers: usize) -> Self {
        Gate {
            window: AtomicU64::new(0),
            end: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            helpers,
            closed: AtomicBool::new(false),
            leader: std::thread::current(),
        }
    }

    /// What a helping thread does.
    fn serve(&self, cell: &Cell<'_>) {
        let mut seen = 0;
        loop {
            wait_until(|| {
                self.closed.load(Ordering::Acquire) || self.window.load(Ordering::Acquire) != seen
            });
            if self.closed.load(Ordering::Acquire) {
                return;
            }
            seen = self.window.load(Ordering::Acquire);
            // Also after a panic, so that the leader does not wait for ever.
            let _done = Done(self);
            run(cell, Instant::from_nanos(self.end.load(Ordering::Acquire)));
        }
    }
}

struct Done<'a>(&'a Gate);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.closed.store(true, Ordering::Release);
        }
        if self.0.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.leader.unpark();
        }
    }
}

/// The gate as the leading thread has it. It closes when that is done.
struct Opened<'a> {
    gate: &'a Gate,
    threads: Vec<Thread>,
}

impl Opened<'_> {
    fn window(&self, end: Instant) {
        self.gate.busy.store(self.gate.helpers, Ordering::Release);
        self.gate.end.store(end.as_nanos(), Ordering::Release);
        self.gate.window.fetch_add(1, Ordering::AcqRel);
        self.threads.iter().for_each(Thread::unpark);
    }

    fn wait(&self) {
        wait_until(|| self.gate.busy.load(Ordering::Acquire) == 0);
        // Another thread's panic goes on when the scope ends.
        assert!(!self.gate.closed.load(Ordering::Acquire), "a part of the network panicked");
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        self.gate.closed.store(true, Ordering::Release);
        self.threads.iter().for_each(Thread::unpark);
    }
}

#[cfg(test)]
mod tests;
