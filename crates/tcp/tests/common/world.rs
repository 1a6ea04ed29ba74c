//! Two connections over a path that loses, duplicates, reorders and delays, from a seed.
//!
//! The path remembers which data it has lost, and readers which holes they were told of.
#![allow(dead_code, unreachable_pub, missing_docs)] // each test file uses its part

use super::{IRS, ISS, Out, Peer, Setup};
use std::ops::Range;
use std::sync::Arc;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Connection, Endpoint, State};
use transom_testkit::Arrivals;
use transom_wire::{Ecn, Seq};

/// xorshift64*: small, and the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 33) % n.max(1)
    }

    pub fn permille(&mut self, p: u64) -> bool {
        self.below(1000) < p
    }
}

/// A path: losses, duplicates and late packets per thousand, and the delay with its jitter.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub loss: u64,
    pub duplicate: u64,
    pub late: u64,
    pub delay: u64,
    pub jitter: u64,
}

/// What such a path has done so far.
pub struct Lossy {
    path: Path,
    pub random: Random,
    /// How many of a thousand packets that can be marked are.
    pub marks: u64,
    pub carried: u64,
    /// The bytes of each end's stream that were in packets that got lost.
    pub lost: [Vec<Range<u64>>; 2],
    /// What is to be written down of an end after it was given a packet, and after it sent one; nothing unless it is set.
    pub look: Option<fn(&Peer) -> String>,
    /// What was: of each packet that was sent, and of each that arrived, the end, the time and the look.
    pub trace: Vec<String>,
}

impl transom_testkit::Path<Peer> for Lossy {
    fn departs(&mut self, _now: Instant, from: usize, end: &Peer, out: &Out) {
        if let Some(look) = self.look {
            self.trace.push(format!("{from} {:?} sent {} {}", out.at, out.line(), look(end)));
        }
    }

    fn carry(&mut self, _now: Instant, from: usize, out: Out, arrivals: &mut Arrivals<Peer>) {
        self.carried += 1;
        for (offset, piece) in out.pieces() {
            if self.random.permille(self.path.loss) {
                if !piece.payload.is_empty() {
                    let at = (out.seq() - 1) as u64 + offset;
                    self.lost[from].push(at..at + piece.payload.len() as u64);
                }
                continue;
            }
            let marked =
                self.marks > 0 && out.ecn != Ecn::NotEct && self.random.permille(self.marks);
            let ecn = if marked { Ecn::Ce } else { out.ecn };
            let copies = 1 + usize::from(self.random.permille(self.path.duplicate));
            for _ in 0..copies {
                let late = if self.random.permille(self.path.late) { 10 } else { 1 };
                let delay = self.path.delay * late + self.random.below(self.path.jitter + 1);
                let at = out.at + Duration::from_micros(delay);
                arrivals.add(at, 1 - from, Out { ecn, ..piece.clone() });
            }
        }
    }

    fn arrived(&mut self, now: Instant, to: usize, end: &Peer) {
        if let Some(look) = self.look {
            self.trace.push(format!("{to} {now:?} heard {}", look(end)));
        }
    }
}

/// Two ends and such a path.
pub type World = transom_testkit::World<Peer, Lossy>;

/// The holes that each end's reader was told of.
pub type Holes = [Vec<Range<u64>>; 2];

/// Two ends that have just begun to open a connection to each other: simultaneous opens cost nothing and are the harder way in.
pub fn lossy(setups: [&Setup; 2], path: Path, seed: u64) -> World {
    let now = Instant::ZERO;
    let open = |index: usize, local_port, remote_port, iss| {
        let profile = Arc::new(setups[index].profile.clone());
        let endpoint = Endpoint { local_port, remote_port };
        let path = setups[index].path;
        let connection = Connection::connect(profile, endpoint, path, Seq::new(iss), 99, now);
        Peer::wrap(connection, now)
    };
    let path = Lossy {
        path,
        random: Random::new(seed),
        marks: 0,
        carried: 0,
        lost: [vec![], vec![]],
        look: None,
        trace: vec![],
    };
    World::new(vec![open(0, 1, 2, ISS), open(1, 2, 1, IRS)], path, now)
}

/// Each end writes `bytes[end]`, then shuts down, and reads until the end of the stream. Returns the holes that readers were told of.
pub fn transfer(world: &mut World, bytes: [usize; 2], seed: u64) -> Holes {
    let mut holes = Holes::default();
    let mut written = [0; 2];
    let mut read = [0; 2];
    let mut done = [false; 2];
    let mut steps = 0u64;
    loop {
        for end in 0..2 {
            let (peer, random) = (&mut world.ends[end], &mut world.path.random);
            if peer.state() == State::Closed {
                continue;
            }
            let room = peer.connection.writable().unwrap_or(0).min(bytes[end] - written[end]);
            if room > 0 {
                let chunk = room.min(1 + random.below(20_000) as usize);
                peer.write(chunk);
                written[end] += chunk;
            }
            if written[end] == bytes[end] && !done[end] && peer.state().is_synchronized() {
                peer.shutdown();
                done[end] = true;
            }
            let readable = peer.connection.readable();
            if readable > 0 && random.permille(700) {
                let chunk = 1 + random.below(readable as u64) as usize;
                peer.read(chunk);
                read[end] += chunk;
            }
            read[end] += pass_holes(peer, &mut holes[end]);
            world.collect(end);
        }
        if !world.step() {
            break;
        }
        steps += 1;
        let now = world.now;
        assert!(steps < 300_000 && now < Instant::from_secs(7200), "seed {seed}: no end {now:?}");
        if world.ends.iter().all(|end| matches!(end.state(), State::TimeWait | State::Closed)) {
            for (end, peer) in world.ends.iter_mut().enumerate() {
                read[end] += read_rest(peer, &mut holes[end]);
            }
            break;
        }
    }
    for (end, peer) in world.ends.iter().enumerate() {
        assert_eq!(peer.connection.error(), None, "seed {seed}: {}", peer.summary());
        assert_eq!(read[end], bytes[1 - end], "seed {seed}, end {end}: {}", peer.summary());
        assert!(peer.connection.end_of_stream(), "seed {seed}");
    }
    holes
}

/// Reads all that is left, holes included. Returns how long that was.
fn read_rest(peer: &mut Peer, holes: &mut Vec<Range<u64>>) -> usize {
    let mut read = 0;
    loop {
        let readable = peer.connection.readable();
        if readable == 0 && peer.connection.hole().is_none() {
            return read;
        }
        if readable > 0 {
            peer.read(readable);
        }
        read += readable + pass_holes(peer, holes);
    }
}

/// Takes note of the hole that the reader stands before, and says how long it is.
fn pass_holes(peer: &mut Peer, holes: &mut Vec<Range<u64>>) -> usize {
    let Some(hole) = peer.connection.hole() else { return 0 };
    peer.pass_hole(hole.len);
    holes.push(hole.offset..hole.offset + hole.len);
    hole.len as usize
}
