//! Policy and marker together, for one queue.
//!
//! The queue's owner passes every packet that comes to the queue ([`WindowControl::forward`]) and every one that returns from behind it
//! ([`WindowControl::returning`]). Only the latter changes packets. A separate file handles SYNs.

use alloc::boxed::Box;
use core::hint::black_box;
use core::num::NonZeroU32;
use core::ops::Range;

use transom_base::time::{Duration, Instant};
use transom_wire::tcp::Flags;

use super::active::Active;
use super::config::{ControlConfig, ControlConfigError};
use super::cover::Cover;
use super::flow::{FlowKey, FlowSummary, Open, Phase, Record};
use super::marker::{Ack, Marked, WindowMarker};
use super::policy::{AckAction, AckContext, Policy};
use super::segment::{ChecksumState, Segment, Unreadable};
use super::table::{Ages, FlowHash, FlowTable, Place, TableStats};
use crate::queue::Length;

mod syns;

/// Half-open flows are forgotten after this long: a SYN is sent again after one, three and seven seconds (RFC 6298).
const OPENING: Duration = Duration::from_secs(10);
/// Flows whose end has been seen, after this long.
const CLOSING: Duration = Duration::from_secs(30);
/// The whole table is swept this many times while an idle flow grows old.
const SWEEPS: u64 = 4;
/// The most steps of a due sweep that are made at once.
const MAX_SWEEP: usize = 4;
/// The number of packets that are looked up together.
const BATCH: usize = 32;

/// Counters, from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came to the queue.
    pub arrived: u64,
    /// Acknowledgements that came back.
    pub acks: u64,
    /// Acknowledgements whose window was rewritten, and SYNs.
    pub rewritten: u64,
    /// Acknowledgements and SYNs that passed unchanged because an option covers their header, or may do so (`Cover`). They do not count as
    /// unknown.
    pub covered: u64,
    /// Acknowledgements of flows that are not known, and passed as they were.
    pub unknown: u64,
    /// Acknowledgements that were impossible for their flow, and passed unchanged.
    pub implausible: u64,
    /// Acknowledgements that were to go on later.
    pub held: u64,
    /// Packets in either direction that passed unchanged because they are truncated, fragments, or not addressed to their receiver yet. With a policy without flow state only
    /// returning packets count, as the others are not read.
    pub unreadable: u64,
    /// Flows whose handshake was seen.
    pub opened: u64,
}

/// The counters and the flow table of window control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowReport {
    /// The counters.
    pub counters: Counters,
    /// The flow table.
    pub table: TableStats,
    /// The window that the policy has arrived at, in bytes, if it is the same for all flows.
    pub target: Option<u64>,
    /// Flows that have had something acknowledged lately.
    pub active: u32,
}

/// The verdict on a returning packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdict {
    /// Its window and, unless it is still to be calculated, its checksum have been rewritten.
    pub rewritten: bool,
    /// It should go on after this long, and nothing of its flow before it.
    pub hold: Duration,
}

/// A packet that came back, for [`WindowControl::returning_all`].
#[derive(Debug)]
pub struct Returning<'a> {
    /// It, from the IP header on; at least its headers.
    pub packet: &'a mut [u8],
    /// Its length.
    pub len: usize,
    /// The state of its checksum field.
    pub checksum: ChecksumState,
    /// The verdict: the result of the call.
    pub verdict: Verdict,
}

/// Advertised-window control of one queue.
#[derive(Debug)]
pub struct WindowControl {
    policy: Box<dyn Policy>,
    per_flow: bool,
    table: FlowTable,
    ages: Ages,
    returns_only: bool,
    /// The least that is advertised to flows of which nothing is known.
    mss: u16,
    active: Active,
    prefetch: Option<fn(&[usize])>,
    sweep_every: Duration,
    sweep_at: Instant,
    counters: Counters,
}

impl WindowControl {
    /// A control with these parameters. `secret` is 16 bytes that no outsider can guess.
    ///
    /// # Errors
    /// [`ControlConfigError`] if the parameters make no sense, or one is missing.
    pub fn new(config: &ControlConfig, secret: [u8; 16]) -> Result<Self, ControlConfigError> {
        config.validate()?;
        let policy = config.policy.build()?;
        Ok(WindowControl::with_policy(policy, config, secret))
    }

    /// A control with a custom policy; that of `config` is ignored.
    pub fn with_policy(policy: Box<dyn Policy>, config: &ControlConfig, secret: [u8; 16]) -> Self {
        let per_flow = policy.per_flow();
        let new = if config.searched { FlowTable::searched } else { FlowTable::new };
        let table = new(if per_flow { config.flows } else { 0 }, secret);
        let millis = |span: Duration| u32::try_from(span.as_millis()).unwrap_or(u32::MAX / 2);
        let ages = Ages {
            idle: millis(config.idle),
            closing: millis(CLOSING.min(config.idle)),
            opening: millis(OPENING.min(config.idle)),
        };
        let sweeps = (table.buckets() as u64).saturating_mul(SWEEPS);
        WindowControl {
            policy,
            per_flow,
            table,
            ages,
            returns_only: config.returns_only,
            mss: config.mss,
            active: Active::default(),
            prefetch: None,
            sweep_every: config.idle.over(sweeps).max(Duration::from_nanos(1)),
            sweep_at: Instant::ZERO,
            counters: Counters::default(),
        }
    }

    /// Sets a function that prefetches the cache lines at some addresses (zero means none), instead of the reads by which
    /// [`returning_all`](Self::returning_all) prefetches otherwise. A processor continues at once after a prefetch, but may wait for a read. It needs
    /// unsafe code, which this crate does not have.
    pub fn set_prefetch(&mut self, prefetch: Option<fn(&[usize])>) {
        self.prefetch = prefetch;
    }

    /// A packet of `len` bytes comes to the queue, which has length `queue` without it. `packet` has at least its headers.
    pub fn forward(&mut self, now: Instant, packet: &[u8], len: usize, queue: Length) {
        self.counters.arrived += 1;
        self.policy.on_arrival(now, len, queue);
        if !self.per_flow {
            return;
        }
        let Some(segment) = self.read(packet, len) else { return };
        let ends = segment.flags.intersects(Flags::FIN | Flags::RST);
        // Other packets on the way forward say nothing about windows that come back, so their flow is not looked up.
        if segment.is_syn() {
            if !ends {
                self.sender_calls(now, &segment, packet);
            }
        } else if ends || segment.payload == 0 {
            let key = FlowKey::forward(&segment);
            let Some(place) = self.table.find(self.table.hash(&key), &key) else { return };
            let micros = now.as_micros() as u32;
            match self.table.record(place).map(|record| &mut record.phase) {
                Some(Phase::Open(open)) => open.closing |= ends,
                Some(Phase::Opening(opening)) => {
                    let opened = opening.sent(&segment, micros);
                    self.open(place, opened);
                }
                Some(Phase::Lost) | None => {}
            }
        }
    }

    /// A packet comes back from behind the queue, in which `queue` waits. `packet` is at least its headers, `len` its length.
    pub fn returning(
        &mut self,
        now: Instant,
        packet: &mut [u8],
        len: usize,
        checksum: ChecksumState,
        queue: Length,
    ) -> Verdict {
        let Some(segment) = self.read(packet, len) else { return Verdict::default() };
        let hash = self.per_flow.then(|| self.table.hash(&FlowKey::returning(&segment)));
        self.returned(now, &segment, hash, packet, checksum, queue)
    }

    /// Handles several packets at once, with the same result as `returning` one by one. With many flows it is
    /// several times as fast: the memory for all of them is prefetched together.
    pub fn returning_all(&mut self, now: Instant, packets: &mut [Returning<'_>], queue: Length) {
        for batch in packets.chunks_mut(BATCH) {
            let mut seen = [None; BATCH];
            for (seen, one) in seen.iter_mut().zip(batch.iter()) {
                *seen = self.read(one.packet, one.len).map(|segment| {
                    let key = FlowKey::returning(&segment);
                    (segment, self.per_flow.then(|| self.table.hash(&key)))
                });
            }
            let hashes = || seen.iter().flatten().filter_map(|(_, hash)| *hash);
            if let Some(prefetch) = self.prefetch {
                let mut tags = [[0; 2]; BATCH];
                for (at, hash) in tags.iter_mut().zip(hashes()) {
                    *at = self.table.tags_at(hash);
                }
                prefetch(tags.as_flattened());
                let mut slots = [0; BATCH];
                for (at, hash) in slots.iter_mut().zip(hashes()) {
                    *at = self.table.slot_at(hash);
                }
                prefetch(&slots);
            } else {
                hashes().for_each(|hash| _ = black_box(self.table.touch_tags(hash)));
                hashes().for_each(|hash| _ = black_box(self.table.touch(hash)));
            }
            for (seen, one) in seen.iter().zip(batch) {
                one.verdict = match seen {
                    Some((segment, hash)) => {
                        self.returned(now, segment, *hash, one.packet, one.checksum, queue)
                    }
                    None => Verdict::default(),
                };
            }
        }
    }

    /// Reads a packet, and counts those that should have been readable.
    fn read(&mut self, packet: &[u8], len: usize) -> Option<Segment> {
        let read = Segment::read(packet, len);
        self.counters.unreadable += u64::from(read == Err(Unreadable::Broken));
        read.ok()
    }

    fn returned(
        &mut self,
        now: Instant,
        segment: &Segment,
        hash: Option<FlowHash>,
        packet: &mut [u8],
        checksum: ChecksumState,
        queue: Length,
    ) -> Verdict {
        let (marked, hold) = match hash {
            Some(hash) => self.known(now, segment, hash, packet, queue),
            None => self.unknown(now, segment, packet, queue),
        };
        if let Some(window) = marked {
            self.counters.rewritten += 1;
            segment.set_window(packet, window, checksum);
        }
        self.counters.held += u64::from(!hold.is_zero());
        Verdict { rewritten: marked.is_some(), hold }
    }

    /// The window and the delay of a packet when no flow is remembered.
    fn unknown(
        &mut self,
        now: Instant,
        segment: &Segment,
        packet: &[u8],
        queue: Length,
    ) -> (Option<u16>, Duration) {
        let outside = Flags::SYN | Flags::RST;
        if segment.flags.intersects(outside) || !segment.flags.contains(Flags::ACK) {
            return (None, Duration::ZERO);
        }
        self.counters.acks += 1;
        let is_covered = self.is_covered(segment, packet);
        let context = AckContext {
            queue,
            advertised: segment.window.into(),
            newly_acked: 0,
            mss: self.mss,
            rtt: None,
            active: 1,
        };
        match self.policy.on_ack(now, &context) {
            AckAction::AsItIs => (None, Duration::ZERO),
            AckAction::Hold(delay) => (None, delay),
            AckAction::Window { .. } if is_covered => (None, Duration::ZERO),
            AckAction::Window { bytes, .. } => {
                let window = u16::try_from(bytes.max(self.mss.into())).unwrap_or(u16::MAX);
                ((window < segment.window).then_some(window), Duration::ZERO)
            }
        }
    }

    /// The window and the delay of a packet whose flow may be known.
    fn known(
        &mut self,
        now: Instant,
        segment: &Segment,
        hash: FlowHash,
        packet: &[u8],
        queue: Length,
    ) -> (Option<u16>, Duration) {
        self.sweep(now);
        let none = (None, Duration::ZERO);
        let key = FlowKey::returning(segment);
        let is_ack = segment.flags.contains(Flags::ACK) && !segment.flags.contains(Flags::RST);
        if segment.is_syn() {
            let ends = segment.flags.intersects(Flags::FIN | Flags::RST);
            let told =
                if ends { None } else { self.receiver_calls(now, segment, hash, packet, queue) };
            return (told.filter(|window| *window != segment.window), Duration::ZERO);
        }
        self.counters.acks += u64::from(is_ack);
        let is_covered = is_ack && self.is_covered(segment, packet);
        let is_unknown = u64::from(is_ack && !is_covered);
        let Some(place) = self.table.find(hash, &key) else {
            self.counters.unknown += is_unknown;
            return none;
        };
        let micros = now.as_micros() as u32;
        let opened = match self.table.record(place) {
            Some(Record { phase: Phase::Opening(opening), .. }) if is_ack => {
                opening.returned(segment, micros)
            }
            _ => None,
        };
        self.open(place, opened);
        let Some(record) = self.table.record(place) else { return none };
        record.seen = now.as_millis() as u32;
        let Phase::Open(open) = &mut record.phase else {
            self.counters.unknown += is_unknown;
            return none;
        };
        open.closing |= segment.flags.intersects(Flags::FIN | Flags::RST);
        if !is_ack {
            return none;
        }
        let ack = Ack { number: segment.ack, window: segment.window };
        let (marked, hold) = if WindowMarker::is_plausible(open, ack.number) {
            let newly_acked = WindowMarker::newly_acked(open, ack.number);
            let active = self.active.count(now, open, newly_acked);
            let context = AckContext {
                queue,
                advertised: u32::from(ack.window) << open.scale,
                newly_acked: newly_acked.map_or(0, NonZeroU32::get),
                mss: open.mss,
                rtt: (open.rtt > 0).then(|| Duration::from_micros(open.rtt.into())),
                active,
            };
            let wish = match self.policy.on_ack(now, &context) {
                // Its window passes, and the edge that it tells is remembered.
                AckAction::Window { .. } if is_covered => AckAction::AsItIs,
                wish => wish,
            };
            let hold = if let AckAction::Hold(delay) = wish { delay } else { Duration::ZERO };
            (WindowMarker::mark(open, ack, wish), hold)
        } else {
            (WindowMarker::strike(open), Duration::ZERO)
        };
        match marked {
            Marked::Rewritten(window) => (Some(window), hold),
            Marked::AsItWas => (None, hold),
            Marked::Implausible | Marked::Lost => {
                self.counters.implausible += 1;
                if marked == Marked::Lost {
                    self.table.set_phase(place, Phase::Lost);
                }
                none
            }
        }
    }

    /// Whether a packet must pass unchanged because of its options; counts those.
    fn is_covered(&mut self, segment: &Segment, packet: &[u8]) -> bool {
        let is_covered = segment.cover(packet) != Cover::None;
        self.counters.covered += u64::from(is_covered);
        is_covered
    }

    fn open(&mut self, place: Place, opened: Option<Open>) {
        if let Some(open) = opened {
            self.counters.opened += 1;
            self.table.set_phase(place, Phase::Open(open));
        }
    }

    /// Forgets what is old, a little at a time.
    fn sweep(&mut self, now: Instant) {
        for _ in 0..MAX_SWEEP {
            if now < self.sweep_at {
                return;
            }
            self.table.sweep(now.as_millis() as u32, &self.ages);
            self.sweep_at += self.sweep_every;
        }
        // After a silence there is no need to hurry.
        self.sweep_at = self.sweep_at.max(now);
    }

    /// The counters, and the state of now.
    pub fn report(&self) -> WindowReport {
        WindowReport {
            counters: self.counters,
            table: self.table.stats(),
            target: self.policy.target(),
            active: self.active.flows(),
        }
    }

    /// The flows that are remembered, in no particular order.
    pub fn flows(&self, now: Instant) -> impl Iterator<Item = FlowSummary> {
        self.table.iter().map(move |(key, record)| FlowSummary::new(key, record, now))
    }

    /// The addresses of the memory of flows, for large pages.
    pub fn memory(&self) -> [Range<usize>; 2] {
        self.table.memory()
    }
}

#[cfg(test)]
mod tests;
