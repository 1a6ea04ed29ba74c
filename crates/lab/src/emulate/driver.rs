//! The loop that pins a network to the clock.

use std::collections::BTreeMap;
use std::io;

use rustix::event::epoll::EventFlags;
use transom_device::prefer;
use transom_sim::link::Traffic;
use transom_sim::measure::Recorder;
use transom_sim::network::{Network, NodeId};
use transom_sim::traffic::FlowId;
use transom_stack::ConnectionId;
use transom_tcp::ConnectionState;
use transom_tcp::time::{Duration, Instant};

use super::clock::Clock;
use super::fidelity::Lags;
use super::followed::Totals;
use super::host_interface::HostInterface;
use super::observer::{FlowState, Observer};
use super::wait::Waiter;
use super::worker::Worker;
use super::{RunError, system};

/// Before something is due the loop stays awake for so long, because sleeping is not more precise: as an ordinary thread, and as one in
/// the real-time class.
const SPIN: Duration = Duration::from_micros(100);
const SPIN_PREFERRED: Duration = Duration::from_micros(30);
/// In the real-time class it sleeps at least 8 % of each period. The system stops threads that take more than 95 % for much longer (sched(7)).
const RT_SLEEP: Duration = Duration::from_micros(80);
const RT_PERIOD: Duration = Duration::from_micros(1000);
/// The longest sleep.
const LONG: Duration = Duration::from_millis(100);
/// The most packets from one kernel before others and due events are handled.
const BATCH: usize = 64;
/// Between two reports of progress.
const REPORT: Duration = Duration::from_millis(100);
/// The loop's priority in the real-time class: before the applications of hosts.
const PRIORITY: i32 = 10;

/// The state of the loop.
pub(super) struct Driver {
    clock: Clock,
    waiter: Waiter,
    pub(super) interfaces: Vec<HostInterface>,
    pub(super) workers: Vec<Worker>,
    observer: Observer,
    /// The flows whose senders are outside, and where these are.
    senders: Vec<(FlowId, NodeId)>,
    /// The state of the flows.
    known: BTreeMap<FlowId, (Traffic, Totals, Option<ConnectionState>)>,
    counted: BTreeMap<FlowId, Totals>,
    pub(super) lags: Lags,
    /// A buffer for the pieces of a super-segment.
    segments: Vec<Vec<u8>>,
    /// Before something is due it does not sleep.
    awake: Duration,
    /// When it has slept last, if it has to.
    slept_at: Option<Instant>,
}

impl Driver {
    pub(super) fn new(
        clock: Clock,
        interfaces: Vec<HostInterface>,
        workers: Vec<Worker>,
        observer: Observer,
        senders: Vec<(FlowId, NodeId)>,
    ) -> io::Result<Self> {
        Ok(Driver {
            clock,
            waiter: watch(&interfaces)?,
            interfaces,
            workers,
            observer,
            senders,
            known: BTreeMap::new(),
            counted: BTreeMap::new(),
            lags: Lags::new(),
            segments: Vec::new(),
            awake: SPIN,
            slept_at: None,
        })
    }

    /// Runs the network until `end`; false if it was broken off.
    pub(super) fn run(
        &mut self,
        network: &mut Network,
        recorder: &mut Recorder,
        end: Instant,
        mut progress: impl FnMut(Duration, &Recorder) -> bool,
    ) -> Result<bool, RunError> {
        // Only root may; without it the lag tells.
        let preferred = prefer(PRIORITY);
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        self.awake = if preferred.is_ok() { SPIN_PREFERRED } else { SPIN };
        self.slept_at = preferred.is_ok().then_some(Instant::ZERO);
        let mut report = Instant::ZERO;
        let mut ready = Vec::new();
        let complete = loop {
            let now = self.clock.now().min(end);
            if self.interfaces.is_empty()
                && let Some(due) = network.next_event().filter(|due| *due <= now)
            {
                // Nothing leaves the network that could be late.
                self.lags.record(due, now);
            }
            self.advance(network, recorder, now)?;
            self.deliver(network)?;
            if now >= end {
                break true;
            }
            if now >= report {
                let reached = now.since(Instant::ZERO);
                if !progress(reached, recorder) {
                    break false;
                }
                report = now + REPORT;
            }
            let due = network.next_event().unwrap_or(end).min(recorder.next()).min(report).min(end);
            self.wait(due, &mut ready).map_err(system("cannot run the emulation"))?;
            for (number, _) in ready.drain(..) {
                self.take_in(number as usize, network, recorder, end)?;
            }
        };
        if complete {
            // The last look is at the very end.
            progress(end.since(Instant::ZERO), recorder);
        }
        Ok(complete)
    }

    /// Runs the network up to `now`, and takes samples when they are due.
    fn advance(
        &mut self,
        network: &mut Network,
        recorder: &mut Recorder,
        now: Instant,
    ) -> Result<(), RunError> {
        if now >= recorder.next() {
            self.collect(network)?;
        }
        Ok(recorder.run_until(network, now)?)
    }

    /// Gathers what is known outside of the network.
    fn collect(&mut self, network: &mut Network) -> Result<(), RunError> {
        let mut told = BTreeMap::new();
        for worker in &self.workers {
            let failed = system("cannot run the applications of a host");
            told.extend(worker.collect(network.ledger()).map_err(failed)?);
        }
        for &(flow, node) in &self.senders {
            let packets = network.entered(node, flow);
            // Senders of datagrams have no connections, and none are counted.
            let (totals, present) = told.get(&flow).copied().unwrap_or((Totals::NONE, None));
            self.known.insert(flow, (packets, totals, present));
        }
        for FlowState { flow, delivered, from, sender, totals } in self.observer.seen() {
            let packets = network.entered(from, flow);
            let ledger = network.ledger().flow(flow);
            ledger.delivered = ledger.delivered.max(delivered);
            if let Some((number, _)) = sender {
                ledger.sender = Some((from, ConnectionId::from_u64(number)));
            }
            self.known.insert(flow, (packets, totals, sender.map(|(_, info)| info)));
        }
        for (flow, (packets, totals, present)) in &self.known {
            let before = self.counted.entry(*flow).or_insert(*totals);
            *before = totals.at_least(*before);
            network.ledger().flow(*flow).outside = Some(before.sample(*packets, *present));
        }
        Ok(())
    }

    fn deliver(&mut self, network: &mut Network) -> Result<(), RunError> {
        for interface in &mut self.interfaces {
            interface
                .deliver(network, self.clock, &mut self.lags)
                .map_err(system("cannot hand a packet to a host"))?;
        }
        Ok(())
    }

    /// Takes what a kernel has for the network.
    fn take_in(
        &mut self,
        number: usize,
        network: &mut Network,
        recorder: &mut Recorder,
        end: Instant,
    ) -> Result<(), RunError> {
        let mut all = 0;
        while all < BATCH {
            let Some(interface) = self.interfaces.get_mut(number) else { return Ok(()) };
            let before = self.clock.now();
            let taken = interface
                .take_in(&mut self.segments)
                .map_err(system("cannot take a packet from a host"))?;
            if taken.is_none() {
                interface.empty_at(before);
                return Ok(());
            }
            let now = self.clock.now();
            // A kernel does not say when it sent a packet; it was not before the last time at which there was none.
            self.lags.record_all(interface.empty, now, self.segments.len());
            all += self.segments.len().max(1);
            let (node, now) = (interface.node, now.min(end));
            self.advance(network, recorder, now)?;
            let mut segments = self.segments.drain(..);
            segments
                .try_for_each(|segment| network.inject(now, node, segment))
                .map_err(RunError::from)?;
        }
        Ok(())
    }

    /// Waits until `due`, or until a kernel has something, and says which.
    fn wait(&mut self, due: Instant, ready: &mut Vec<(u64, EventFlags)>) -> io::Result<()> {
        let left = self.clock.until(due).min(LONG);
        let mut asleep =
            Duration::from_nanos(left.as_nanos().saturating_sub(self.awake.as_nanos()));
        if let Some(slept_at) = &mut self.slept_at {
            let now = self.clock.now();
            if asleep >= RT_SLEEP.over(2) {
                *slept_at = now;
            } else if now.since(*slept_at) >= RT_PERIOD {
                std::thread::sleep(RT_SLEEP.into());
                *slept_at = self.clock.now();
                asleep = Duration::ZERO;
            }
        }
        if !asleep.is_zero() {
            self.poll(asleep, ready)?;
            if !ready.is_empty() || left >= LONG {
                return Ok(());
            }
        }
        loop {
            self.poll(Duration::ZERO, ready)?;
            if !ready.is_empty() || self.clock.now() >= due {
                return Ok(());
            }
            std::hint::spin_loop();
        }
    }

    /// Waits for packets from the kernels, at most so long, and notes which kernels had none.
    fn poll(&mut self, patience: Duration, ready: &mut Vec<(u64, EventFlags)>) -> io::Result<()> {
        if self.interfaces.is_empty() && patience.is_zero() {
            return Ok(());
        }
        let before = self.clock.now();
        self.waiter.wait(patience, ready)?;
        // A thread that slept was woken by the first packet.
        let slept = (!patience.is_zero()).then(|| self.clock.now());
        for (number, interface) in (0u64..).zip(&mut self.interfaces) {
            let has_none = ready.iter().all(|(one, _)| *one != number);
            match slept {
                Some(after) => interface.empty_at(after),
                None if has_none => interface.empty_at(before),
                None => {}
            }
        }
        Ok(())
    }
}

/// Watches the interfaces, by their place.
fn watch(interfaces: &[HostInterface]) -> io::Result<Waiter> {
    let waiter = Waiter::new()?;
    for (number, interface) in (0u64..).zip(interfaces) {
        if let Some(descriptor) = interface.descriptor() {
            waiter.watch(descriptor, number, EventFlags::IN)?;
        }
    }
    Ok(waiter)
}
