//! Two hosts joined by two links, in virtual time.
//!
//! The smallest network that can go wrong in every way a network can. Each direction is a
//! [`LinkModel`], and time jumps from one event to the next. A run is a function of the configuration
//! and the seed.

use crate::link::{LinkConfig, LinkModel};
use crate::random::Streams;
use transom_stack::Stack;
use transom_tcp::time::Instant;
use transom_wire::offload::RxOffload;

/// Which of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

impl Side {
    /// The other one.
    pub fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// See [`Pair::set_middlebox`].
type Middlebox = Box<dyn FnMut(Instant, Side, &mut Vec<u8>) -> bool>;

/// Two hosts and the links between them.
pub struct Pair {
    now: Instant,
    hosts: [Stack; 2],
    links: [LinkModel<Vec<u8>>; 2],
    middlebox: Option<Middlebox>,
    packets: u64,
}

impl std::fmt::Debug for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pair").field("now", &self.now).field("packets", &self.packets).finish()
    }
}

impl Pair {
    /// Joins `a` and `b`; `config` holds the link from A to B and the one back.
    pub fn new(a: Stack, b: Stack, config: [&LinkConfig; 2], seed: u64, now: Instant) -> Self {
        let links = [
            LinkModel::new(config[0], Streams::new(seed), 0),
            LinkModel::new(config[1], Streams::new(seed), 1),
        ];
        Pair { now, hosts: [a, b], links, middlebox: None, packets: 0 }
    }

    /// Puts something between the hosts and their links. It is called for each packet that leaves a host, with the time, the host and the bytes:
    /// it may change the packet, and says whether it passes. It replaces an earlier one.
    pub fn set_middlebox(
        &mut self,
        middlebox: impl FnMut(Instant, Side, &mut Vec<u8>) -> bool + 'static,
    ) {
        self.middlebox = Some(Box::new(middlebox));
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Packets that left either host.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// A host.
    pub fn host(&mut self, side: Side) -> &mut Stack {
        &mut self.hosts[side as usize]
    }

    /// The link that leaves a host.
    pub fn link(&mut self, from: Side) -> &mut LinkModel<Vec<u8>> {
        &mut self.links[from as usize]
    }

    /// Puts `packet` onto the wire towards `to`, as an attacker on the path would; it arrives at once.
    pub fn inject(&mut self, to: Side, packet: &[u8]) {
        self.hosts[to as usize].on_packet(self.now, packet, RxOffload::default());
    }

    /// Lets both hosts send what they have.
    fn flush(&mut self) {
        for side in [Side::A, Side::B] {
            let host = &mut self.hosts[side as usize];
            while let Some(packet) = host.poll_transmit(self.now) {
                let mut bytes = packet.to_vec();
                self.packets += 1;
                if let Some(middlebox) = &mut self.middlebox
                    && !middlebox(self.now, side, &mut bytes)
                {
                    continue;
                }
                let _ = self.links[side as usize].send_ip(self.now, bytes, Vec::as_slice);
            }
        }
    }

    /// When something happens next, if ever.
    pub fn next_event(&self) -> Option<Instant> {
        let deliveries = self.links.iter().filter_map(LinkModel::next_delivery);
        let timeouts = self.hosts.iter().filter_map(Stack::next_timeout);
        deliveries.chain(timeouts).min().map(|at| at.max(self.now))
    }

    /// Sends what is ready, then moves to the next event if it is not after `limit` and handles it. Returns whether there
    /// was one; if not, it is `limit` now.
    pub fn step(&mut self, limit: Instant) -> bool {
        self.flush();
        let Some(at) = self.next_event().filter(|&at| at <= limit) else {
            self.now = self.now.max(limit);
            return false;
        };
        self.now = at;
        for side in [Side::A, Side::B] {
            while let Some(delivered) = self.links[side as usize].deliver(at) {
                let bytes = delivered.into_packet(Vec::as_mut_slice);
                // Links carry what was sent; whether it is still right is for the receiver to find out.
                let offload = RxOffload::default();
                self.hosts[side.other() as usize].on_packet(at, &bytes, offload);
            }
            self.hosts[side as usize].on_timeout(at);
        }
        true
    }

    /// Runs until `done` or until `limit`; returns whether it was done. `done` may use the hosts.
    pub fn run_until(&mut self, limit: Instant, mut done: impl FnMut(&mut Pair) -> bool) -> bool {
        loop {
            if done(self) {
                return true;
            }
            if !self.step(limit) {
                return done(self);
            }
        }
    }
}
