//! The thread on which the applications of a host with the kernel's TCP run.
//!
//! Theory of operation. The applications are the simulator's own, over the kernel's sockets ([`KernelSockets`]). An application whose timer expires
//! is called with the time that it requested, even if that is noticed late, as in the simulator. So a source that sends every millisecond does not
//! become slower by being late. The applications write to a ledger of the thread's own, which is handed over every millisecond and before the thread
//! sleeps. No lock is held for longer than that.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use transom_device::namespace::Namespace;
use transom_device::prefer;
use transom_sim::Streams;
use transom_sim::traffic::{Application, FlowId, Io, Ledger};
use transom_tcp::ConnectionState;
use transom_tcp::time::{Duration, Instant};

use super::clock::Clock;
use super::fidelity::Lags;
use super::followed::{Followed, Totals};
use super::sockets::{AppEvent, KernelIo, KernelSockets};
use super::{RunError, system};
use crate::lock;
use crate::run::build::Outside;

/// Between two times at which what was written down is handed over.
const HAND_OVER: Duration = Duration::from_millis(1);
/// The thread's priority in the real-time class.
const PRIORITY: i32 = 5;
/// The longest sleep.
const LONG: Duration = Duration::from_secs(1);
/// The random streams of flows outside are numbered from here; those of the network's links and hosts are below.
const FLOW_STREAMS: u64 = 1 << 48;

/// The data that the thread hands over.
#[derive(Default)]
struct Shared {
    ledger: Ledger,
    followed: Followed,
    lags: Option<Lags>,
    failure: Option<io::Error>,
}

/// The applications of a host outside, at work.
pub(super) struct Worker {
    shared: Arc<Mutex<Shared>>,
    stop: Arc<AtomicBool>,
    waker: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts the thread. Everything that listens does so when this returns.
    pub(super) fn start(
        outside: Outside,
        namespace: &Arc<Namespace>,
        address: Ipv4Addr,
        seed: u64,
        clock: Clock,
    ) -> Result<Self, RunError> {
        const WHAT: &str = "cannot start the applications of a host";
        let waker =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(system(WHAT))?;
        let other = waker.try_clone().map_err(system(WHAT))?;
        let shared = Arc::new(Mutex::new(Shared::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let mut work = namespace
            .run(|| Work::new(outside, address, seed, clock, other, shared.clone(), stop.clone()))?
            .map_err(system(WHAT))?;
        // Sockets belong to the namespace of the thread that opens them.
        let inside = Arc::clone(namespace);
        let (told, entered) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new()
            .name("kernel-host".into())
            .spawn(move || {
                let result = inside.enter();
                drop(inside);
                let inside = result.is_ok();
                let _ = told.send(result);
                if inside && let Err(error) = work.run() {
                    lock(&work.shared).failure = Some(error);
                }
            })
            .map_err(system(WHAT))?;
        let worker = Worker { shared, stop, waker, thread: Some(thread) };
        entered.recv().map_err(|_| system(WHAT)("its thread has ended"))??;
        Ok(worker)
    }

    /// Takes over the ledger, and the kernel's information on each flow's connections.
    pub(super) fn collect(
        &self,
        ledger: &mut Ledger,
    ) -> io::Result<BTreeMap<FlowId, (Totals, Option<ConnectionState>)>> {
        let mut shared = lock(&self.shared);
        if let Some(failure) = shared.failure.take() {
            return Err(failure);
        }
        ledger.absorb(&mut shared.ledger);
        let followed = shared.followed.clone();
        // The thread is not kept waiting while the kernel is asked.
        drop(shared);
        Ok(followed.ask())
    }

    /// Ends the thread, and says how late its applications were called.
    pub(super) fn stop(&mut self) -> Option<Lags> {
        self.stop.store(true, Ordering::Release);
        let _ = rustix::io::write(&self.waker, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // It has no reason to panic; if it does, that was printed.
            let _ = thread.join();
        }
        lock(&self.shared).lags.take()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The thread's private state.
struct Work {
    clock: Clock,
    sockets: KernelSockets,
    applications: Vec<Option<Box<dyn Application>>>,
    ledger: Ledger,
    lags: Lags,
    shared: Arc<Mutex<Shared>>,
    stop: Arc<AtomicBool>,
    handed_over: Instant,
}

impl Work {
    /// In the host's namespace. The servers are started.
    fn new(
        outside: Outside,
        address: Ipv4Addr,
        seed: u64,
        clock: Clock,
        waker: OwnedFd,
        shared: Arc<Mutex<Shared>>,
        stop: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let Outside { name: _, node, servers, clients } = outside;
        let streams = Streams::new(seed);
        let stream = |flow: FlowId, end: u64| streams.rng(FLOW_STREAMS + u64::from(flow.0), end);
        let random = servers.iter().map(|(flow, _)| stream(*flow, 1));
        let random = random.chain(clients.iter().map(|(flow, ..)| stream(*flow, 0)));
        let random = random.collect();
        let mut sockets = KernelSockets::new(node, address, random, waker)?;
        let first_client = servers.len();
        for (index, (_, start, _)) in clients.iter().enumerate() {
            sockets.timers.call_at(*start, first_client + index);
        }
        let applications: Vec<Option<Box<dyn Application>>> = servers
            .into_iter()
            .map(|(_, application)| Some(application))
            .chain(clients.into_iter().map(|(_, _, application)| Some(application)))
            .collect();
        let mut work = Work {
            clock,
            sockets,
            applications,
            ledger: Ledger::default(),
            lags: Lags::new(),
            shared,
            stop,
            handed_over: Instant::ZERO,
        };
        for server in 0..first_client {
            work.call(Instant::ZERO, server, |application, io| application.on_timer(io));
        }
        Ok(work)
    }

    fn run(&mut self) -> io::Result<()> {
        // Behind the emulator itself, before everything else; only root may.
        let _preferred = prefer(PRIORITY);
        // Timers of ours are as precise as the system's are.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut ready = Vec::new();
        while !self.stop.load(Ordering::Acquire) {
            let now = self.clock.now();
            // The clock stands still before the run begins.
            while now > Instant::ZERO
                && let Some((at, application)) = self.sockets.timers.take(now)
            {
                self.lags.record(at, self.clock.now());
                self.call(at, application, |application, io| application.on_timer(io));
            }
            let next = self.sockets.timers.next();
            let patience = next.map_or(LONG, |at| self.clock.until(at)).min(LONG);
            if patience > HAND_OVER || self.clock.now().since(self.handed_over) >= HAND_OVER {
                self.hand_over();
            }
            self.sockets.wait(patience, &mut ready)?;
            for (number, flags) in ready.drain(..) {
                for (application, event) in self.sockets.interpret(number, flags) {
                    self.happens(application, event);
                }
                if self.clock.now().since(self.handed_over) >= HAND_OVER {
                    self.hand_over();
                }
            }
        }
        self.hand_over();
        lock(&self.shared).lags = Some(self.lags.clone());
        Ok(())
    }

    fn happens(&mut self, application: usize, event: AppEvent) {
        let now = self.clock.now();
        match event {
            AppEvent::Signal(id, signal) if self.sockets.is_held(id) => {
                self.call(now, application, |one, io| one.on_signal(io, id, signal));
            }
            AppEvent::Signal(..) => {}
            AppEvent::Accepted(id) => {
                self.call(now, application, |one, io| one.on_accept(io, id));
            }
            AppEvent::Datagram(length) => {
                self.call(now, application, |one, io| one.on_datagram(io, length));
            }
        }
    }

    fn call(
        &mut self,
        now: Instant,
        index: usize,
        call: impl FnOnce(&mut dyn Application, &mut dyn Io),
    ) {
        if let Some(Some(application)) = self.applications.get_mut(index) {
            let (sockets, ledger) = (&mut self.sockets, &mut self.ledger);
            call(application.as_mut(), &mut KernelIo { now, sockets, ledger, application: index });
        }
    }

    fn hand_over(&mut self) {
        self.handed_over = self.clock.now();
        let mut shared = lock(&self.shared);
        shared.followed.clone_from(&self.sockets.followed);
        shared.ledger.absorb(&mut self.ledger);
    }
}
