//! Two connections over a path that loses, duplicates, reorders and delays, from a seed.
//!
//! The path remembers which data it has lost, and readers which holes they were told of.
#![allow(dead_code, unreachable_pub, missing_docs)] // each test file uses its part

use super::{IRS, ISS, Peer, Setup};
use std::ops::Range;
use std::sync::Arc;
use transom_tcp::connection::{Connection, Endpoint, State};
use transom_tcp::time::{Duration, Instant};
use transom_wire::{Ecn, Flags, Seq, TcpHeader};

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

struct InFlight {
    at: Instant,
    order: u64,
    to: usize,
    header: TcpHeader,
    payload: Vec<u8>,
    ecn: Ecn,
}

pub struct World {
    pub ends: [Peer; 2],
    air: Vec<InFlight>,
    path: Path,
    pub random: Random,
    /// How many of a thousand packets that can be marked are.
    pub marks: u64,
    order: u64,
    pub carried: u64,
    /// The bytes of each end's stream that were in packets that got lost.
    pub lost: [Vec<Range<u64>>; 2],
    /// The holes that each end's reader was told of.
    pub holes: [Vec<Range<u64>>; 2],
    /// What is to be written down of an end after it was given a packet, and after it sent one; nothing unless it is set.
    pub look: Option<fn(&Peer) -> String>,
    /// What was: of each packet that was sent, and of each that arrived, the end, the time and the look.
    pub trace: Vec<String>,
}

impl World {
    pub fn new(setups: [&Setup; 2], path: Path, seed: u64) -> Self {
        let now = Instant::ZERO;
        // Simultaneous opens cost nothing and are the harder way in; one end opens a little later at random.
        let open = |index: usize, local_port, remote_port, iss| {
            let profile = Arc::new(setups[index].profile.clone());
            let endpoint = Endpoint { local_port, remote_port };
            let path = setups[index].path;
            let connection = Connection::connect(profile, endpoint, path, Seq::new(iss), 99, now);
            Peer::wrap(connection, now)
        };
        World {
            ends: [open(0, 1, 2, ISS), open(1, 2, 1, IRS)],
            air: vec![],
            path,
            random: Random::new(seed),
            marks: 0,
            order: 0,
            carried: 0,
            lost: [vec![], vec![]],
            holes: [vec![], vec![]],
            look: None,
            trace: vec![],
        }
    }

    /// Puts what an end has sent on the path.
    pub fn collect(&mut self, end: usize) {
        for out in self.ends[end].drain() {
            self.carried += 1;
            if let Some(look) = self.look {
                let seen = look(&self.ends[end]);
                self.trace.push(format!("{end} {:?} sent {} {seen}", out.at, out.line()));
            }
            let size = out.segment_size.map_or(out.payload.len().max(1), usize::from);
            let count = out.payload.len().div_ceil(size).max(1);
            for index in 0..count {
                let from = index * size;
                let payload = &out.payload[from..(from + size).min(out.payload.len())];
                let mut header = out.header;
                header.seq += from as u32;
                if index + 1 < count {
                    header.flags -= Flags::FIN | Flags::PSH;
                }
                if self.random.permille(self.path.loss) {
                    if !payload.is_empty() {
                        let at = (out.seq() - 1) as u64 + from as u64;
                        self.lost[end].push(at..at + payload.len() as u64);
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
                    self.order += 1;
                    self.air.push(InFlight {
                        at,
                        order: self.order,
                        to: 1 - end,
                        header,
                        payload: payload.to_vec(),
                        ecn,
                    });
                }
            }
        }
    }

    /// The next thing that happens: an arrival or a deadline. `false` when nothing ever will.
    pub fn step(&mut self) -> bool {
        let arrival = self.air.iter().map(|packet| packet.at).min();
        let timers = self.ends.iter().filter_map(|end| end.connection.next_timeout()).min();
        let Some(at) = arrival.into_iter().chain(timers).min() else { return false };
        for index in 0..2 {
            let at = at.max(self.ends[index].now);
            self.ends[index].run_until(at);
            self.collect(index);
        }
        let mut due = vec![];
        let mut index = 0;
        while index < self.air.len() {
            if self.air[index].at <= at {
                due.push(self.air.swap_remove(index));
            } else {
                index += 1;
            }
        }
        due.sort_by_key(|packet| (packet.at, packet.order));
        for packet in due {
            let end = packet.to;
            self.ends[end].deliver_marked(&packet.header, &packet.payload, packet.ecn);
            if let Some(look) = self.look {
                self.trace.push(format!("{end} {at:?} heard {}", look(&self.ends[end])));
            }
            self.ends[end].pump();
            self.collect(end);
        }
        true
    }

    /// Each end writes `bytes[end]`, then shuts down, and reads until the end of the stream.
    pub fn transfer(&mut self, bytes: [usize; 2], seed: u64) {
        let mut written = [0; 2];
        let mut read = [0; 2];
        let mut done = [false; 2];
        let mut steps = 0u64;
        loop {
            for end in 0..2 {
                let peer = &mut self.ends[end];
                if peer.state() == State::Closed {
                    continue;
                }
                let room = peer.connection.writable().unwrap_or(0).min(bytes[end] - written[end]);
                if room > 0 {
                    let chunk = room.min(1 + self.random.below(20_000) as usize);
                    peer.write(chunk);
                    written[end] += chunk;
                }
                if written[end] == bytes[end] && !done[end] && peer.state().is_synchronized() {
                    peer.shutdown();
                    done[end] = true;
                }
                let readable = peer.connection.readable();
                if readable > 0 && self.random.permille(700) {
                    let chunk = 1 + self.random.below(readable as u64) as usize;
                    peer.read(chunk);
                    read[end] += chunk;
                }
                read[end] += self.pass_holes(end);
                self.collect(end);
            }
            if !self.step() {
                break;
            }
            steps += 1;
            let now = self.ends[0].now;
            assert!(
                steps < 300_000 && now < Instant::from_secs(7200),
                "seed {seed}: no end {now:?}"
            );
            if self.ends.iter().all(|end| matches!(end.state(), State::TimeWait | State::Closed)) {
                for (end, read) in read.iter_mut().enumerate() {
                    loop {
                        let readable = self.ends[end].connection.readable();
                        if readable == 0 && self.ends[end].connection.hole().is_none() {
                            break;
                        }
                        if readable > 0 {
                            self.ends[end].read(readable);
                        }
                        *read += readable + self.pass_holes(end);
                    }
                }
                break;
            }
        }
        for end in 0..2 {
            let peer = &self.ends[end];
            assert_eq!(peer.connection.error(), None, "seed {seed}: {}", peer.summary());
            assert_eq!(read[end], bytes[1 - end], "seed {seed}, end {end}: {}", peer.summary());
            assert!(peer.connection.end_of_stream(), "seed {seed}");
        }
    }

    /// Takes note of the hole that the reader stands before, and says how long it is.
    fn pass_holes(&mut self, end: usize) -> usize {
        let Some(hole) = self.ends[end].connection.hole() else { return 0 };
        self.ends[end].pass_hole(hole.len);
        self.holes[end].push(hole.offset..hole.offset + hole.len);
        hole.len as usize
    }
}
