//! Ends that talk over a path, in virtual time.
//!
//! A [`World`] holds any number of ends, the packets between them, and the clock. An [`End`] is whatever takes packets, sends
//! packets and has timers: a connection of a script, a stack, a host with sockets. A [`Path`] says what becomes of each packet
//! that an end sends: when it arrives, at which end, how many copies of it, or that it is lost.
//!
//! Time jumps from one event to the next. At one instant packets come before timers, and in the order in which they were sent.
//! After each packet its end sends what it has, and after the timers all ends do.
//!
//! # Example
//!
//! Two hosts, ten milliseconds apart:
//!
//! ```
//! use transom_stack::{Stack, StackConfig};
//! use transom_tcp::State;
//! use transom_tcp::time::{Duration, Instant};
//! use transom_testkit::{Delay, World};
//!
//! let host = |address: &str| {
//!     let config = StackConfig::new(vec![(address.parse().unwrap(), 24)]);
//!     Stack::new(config, Instant::ZERO).unwrap()
//! };
//! let ends = vec![host("10.0.0.1"), host("10.0.0.2")];
//! let mut world = World::new(ends, Delay(Duration::from_millis(10)), Instant::ZERO);
//! let service = "10.0.0.2:80".parse().unwrap();
//! world.ends[1].listen(service, Default::default()).unwrap();
//! let id = world.ends[0].connect(Instant::ZERO, None, service, None).unwrap();
//! while world.ends[0].connection(id).unwrap().state() != State::Established {
//!     assert!(world.step(), "something happens");
//! }
//! assert_eq!(world.now, Instant::from_millis(20), "a round trip");
//! ```

use crate::sent::Sent;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use transom_stack::Stack;
use transom_tcp::time::{Duration, Instant};
use transom_wire::offload::RxOffload;

/// An end of a path.
pub trait End {
    /// What this end sends and receives.
    type Packet: fmt::Debug;

    /// When this end wants to be called without a packet, if ever.
    fn next_timeout(&self) -> Option<Instant>;

    /// It is `now`: timers that are due go off. An end is told of each instant at which anything happens.
    fn on_timeout(&mut self, now: Instant);

    /// A packet arrives.
    fn on_packet(&mut self, now: Instant, packet: Self::Packet);

    /// The next packet that this end sends.
    fn poll_transmit(&mut self, now: Instant) -> Option<Self::Packet>;
}

/// A path between ends.
pub trait Path<E: End> {
    /// The end with this number has sent `packet`. Each copy that arrives goes into `arrivals`.
    fn carry(&mut self, now: Instant, from: usize, packet: E::Packet, arrivals: &mut Arrivals<E>);

    /// A packet has arrived at the end with this number, which has not answered yet.
    fn arrived(&mut self, _now: Instant, _to: usize, _end: &E) {}

    /// The end with this number is about to send `packet`.
    fn departs(&mut self, _now: Instant, _from: usize, _end: &E, _packet: &E::Packet) {}
}

/// A path of two ends, and no more, on which every packet takes this long.
#[derive(Clone, Copy, Debug)]
pub struct Delay(pub Duration);

impl<E: End> Path<E> for Delay {
    fn carry(&mut self, now: Instant, from: usize, packet: E::Packet, arrivals: &mut Arrivals<E>) {
        arrivals.add(now + self.0, 1 - from, packet);
    }
}

/// Packets on their way.
#[derive(Debug)]
pub struct Arrivals<E: End> {
    flying: BinaryHeap<Reverse<Flying<E::Packet>>>,
    count: u64,
}

impl<E: End> Arrivals<E> {
    /// `packet` arrives at the end with the number `to` at this time.
    pub fn add(&mut self, at: Instant, to: usize, packet: E::Packet) {
        self.count += 1;
        self.flying.push(Reverse(Flying { at, order: self.count, to, packet }));
    }

    fn next(&self) -> Option<Instant> {
        self.flying.peek().map(|Reverse(first)| first.at)
    }

    fn take_due(&mut self, now: Instant) -> Option<(usize, E::Packet)> {
        self.next().filter(|&at| at <= now)?;
        self.flying.pop().map(|Reverse(first)| (first.to, first.packet))
    }
}

#[derive(Debug)]
struct Flying<P> {
    at: Instant,
    order: u64,
    to: usize,
    packet: P,
}

impl<P> Flying<P> {
    fn key(&self) -> (Instant, u64) {
        (self.at, self.order)
    }
}

impl<P> PartialEq for Flying<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Flying<P> {}

impl<P> PartialOrd for Flying<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Flying<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Ends, what lies between them, and their clock.
#[derive(Debug)]
pub struct World<E: End, P> {
    /// The ends; their places are their numbers.
    pub ends: Vec<E>,
    /// The path between them.
    pub path: P,
    /// The present.
    pub now: Instant,
    /// Packets of one instant are a batch, as a device gives it: ends answer when all of it has arrived. Otherwise they answer each packet.
    pub together: bool,
    arrivals: Arrivals<E>,
}

impl<E: End, P: Path<E>> World<E, P> {
    /// These ends, between which nothing flies yet.
    pub fn new(ends: Vec<E>, path: P, now: Instant) -> Self {
        World {
            ends,
            path,
            now,
            together: false,
            arrivals: Arrivals { flying: BinaryHeap::new(), count: 0 },
        }
    }

    /// Puts what an end has sent on the path.
    pub fn collect(&mut self, from: usize) {
        while let Some(packet) = self.ends[from].poll_transmit(self.now) {
            self.path.departs(self.now, from, &self.ends[from], &packet);
            self.path.carry(self.now, from, packet, &mut self.arrivals);
        }
    }

    /// The same for all ends.
    pub(crate) fn collect_all(&mut self) {
        (0..self.ends.len()).for_each(|end| self.collect(end));
    }

    /// When something happens next, if ever: an arrival or a timer.
    pub fn next_event(&self) -> Option<Instant> {
        let timers = self.ends.iter().filter_map(End::next_timeout);
        timers.chain(self.arrivals.next()).min().map(|at| at.max(self.now))
    }

    /// Sends what is ready, then moves to the next event and handles it. Returns whether there was one.
    pub fn step(&mut self) -> bool {
        self.collect_all();
        let Some(at) = self.next_event() else { return false };
        self.advance(at);
        true
    }

    /// The same if that event is not after `limit`. If it is, it is `limit` now.
    pub fn step_until(&mut self, limit: Instant) -> bool {
        self.collect_all();
        let next = self.next_event().filter(|&at| at <= limit);
        self.advance(next.unwrap_or(limit.max(self.now)));
        next.is_some()
    }

    /// It is `at` now: packets arrive, then timers go off.
    fn advance(&mut self, at: Instant) {
        self.now = at;
        while let Some((to, packet)) = self.arrivals.take_due(at) {
            self.ends[to].on_packet(at, packet);
            self.path.arrived(at, to, &self.ends[to]);
            if !self.together {
                self.collect(to);
            }
        }
        for end in 0..self.ends.len() {
            self.ends[end].on_timeout(at);
            if !self.together {
                self.collect(end);
            }
        }
    }

    /// Carries what arrives without time passing, until there is no more of it.
    pub fn settle(&mut self) {
        self.collect_all();
        while self.arrivals.next().is_some_and(|at| at <= self.now) {
            self.advance(self.now);
            self.collect_all();
        }
    }
}

/// Each packet that leaves a stack is checked, as [`Sent`] says.
impl End for Stack {
    type Packet = Sent;

    fn next_timeout(&self) -> Option<Instant> {
        Stack::next_timeout(self)
    }

    fn on_timeout(&mut self, now: Instant) {
        if Stack::next_timeout(self).is_some_and(|due| due <= now) {
            Stack::on_timeout(self, now);
        }
    }

    fn on_packet(&mut self, now: Instant, packet: Sent) {
        assert_eq!(packet.offload.segmentation, None, "nobody cuts super-segments here");
        Stack::on_packet(self, now, &packet.bytes, RxOffload::default());
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Sent> {
        let packet = Stack::poll_transmit(self, now)?;
        let sent = Sent::new(now, packet.to_vec(), packet.offload);
        Some(Sent { comment: packet.comment.to_owned(), ..sent })
    }
}
