//! Two connections over a path that loses, duplicates, reorders and delays, from a seed.
//!
//! What must hold whatever the path does: every byte arrives once and in order, both ends close in order, the flight
//! stays within the windows, nothing is sent for ever, and time ends. A failing seed is named by the panic.

mod common;

use common::{IRS, ISS, Peer, Setup, secs};
use std::sync::Arc;
use transom_tcp::connection::{Connection, Endpoint, State};
use transom_tcp::profile::{Profile, RecoveryChoice};
use transom_tcp::time::{Duration, Instant};
use transom_wire::{Flags, Seq, TcpHeader};

/// xorshift64*: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 33) % n.max(1)
    }

    fn permille(&mut self, p: u64) -> bool {
        self.below(1000) < p
    }
}

/// A path: losses, duplicates and late packets per thousand, and the delay with its jitter.
#[derive(Clone, Copy, Debug)]
struct Path {
    loss: u64,
    duplicate: u64,
    late: u64,
    delay: u64,
    jitter: u64,
}

struct InFlight {
    at: Instant,
    order: u64,
    to: usize,
    header: TcpHeader,
    payload: Vec<u8>,
}

struct World {
    ends: [Peer; 2],
    air: Vec<InFlight>,
    path: Path,
    random: Random,
    order: u64,
    carried: u64,
}

impl World {
    fn new(setups: [&Setup; 2], path: Path, seed: u64) -> Self {
        let now = Instant::ZERO;
        // Simultaneous opens cost nothing and are the harder way in; one end opens a little later at random.
        let open = |index: usize, local_port, remote_port, iss| {
            let profile = Arc::new(setups[index].profile);
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
            order: 0,
            carried: 0,
        }
    }

    /// Puts what an end has sent on the path.
    fn collect(&mut self, end: usize) {
        for out in self.ends[end].drain() {
            self.carried += 1;
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
                    continue;
                }
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
                    });
                }
            }
        }
    }

    /// The next thing that happens: an arrival or a deadline. `false` when nothing ever will.
    fn step(&mut self) -> bool {
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
            self.ends[end].deliver(&packet.header, &packet.payload);
            self.ends[end].pump();
            self.collect(end);
        }
        true
    }

    /// Each end writes `bytes[end]`, then shuts down, and reads until the end of the stream.
    fn transfer(&mut self, bytes: [usize; 2], seed: u64) {
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
                for (peer, read) in self.ends.iter_mut().zip(&mut read) {
                    let readable = peer.connection.readable();
                    if readable > 0 {
                        peer.read(readable);
                        *read += readable;
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
}

fn setups(seed: u64) -> [Setup; 2] {
    let mut random = Random::new(seed ^ 0xabcd);
    core::array::from_fn(|_| {
        let mut setup = Setup { profile: Profile::default(), ..Setup::default() };
        setup.profile.options.timestamps = random.permille(500);
        setup.profile.options.window_scale = random.permille(700);
        if random.permille(400) {
            setup.profile.recovery = RecoveryChoice::NewReno;
            setup.profile.options.sack = random.permille(500);
        }
        if random.permille(300) {
            setup.path.max_super_segment = Some(20_000);
        }
        let buffer = 3_000 + random.below(60_000) as usize;
        setup.profile.nodelay = random.permille(300);
        setup = setup.receive_buffers(buffer, 65_535);
        // A path that loses every fourth packet needs more patience than the default. There is no host that would
        // answer for a connection that is gone.
        setup.profile.time_wait = secs(3600);
        setup.profile.r2 = Some(40);
        setup.profile.syn_r2 = 20;
        setup
    })
}

fn run(path: Path, seeds: std::ops::Range<u64>, most: u64) -> u64 {
    let mut carried = 0;
    for seed in seeds {
        let [a, b] = setups(seed);
        let mut world = World::new([&a, &b], path, seed);
        let bytes = [world.random.below(most) as usize, world.random.below(most / 4) as usize];
        world.transfer(bytes, seed);
        carried += world.carried;
    }
    carried
}

#[test]
fn a_clean_path() {
    for seed in 0..60 {
        let delay = [10_000, 60_000, 300_000][seed as usize % 3];
        let path = Path { loss: 0, duplicate: 0, late: 0, delay, jitter: 0 };
        let [a, b] = setups(seed);
        let mut world = World::new([&a, &b], path, seed);
        world.transfer([200_000, 50_000], seed);
        for end in &world.ends {
            let counters = end.info().counters;
            assert_eq!(counters.retransmitted_segments, 0, "seed {seed}: nothing was lost");
            assert_eq!(counters.duplicate_bytes_received, 0, "seed {seed}");
        }
    }
}

#[test]
fn a_little_loss() {
    let path = Path { loss: 20, duplicate: 5, late: 5, delay: 10_000, jitter: 1_000 };
    run(path, 800..1100, 300_000);
}

#[test]
fn much_loss() {
    let path = Path { loss: 250, duplicate: 50, late: 50, delay: 5_000, jitter: 3_000 };
    run(path, 200..500, 60_000);
}

#[test]
fn wild_reordering() {
    let path = Path { loss: 5, duplicate: 200, late: 300, delay: 2_000, jitter: 30_000 };
    run(path, 500..800, 200_000);
}

#[test]
fn a_long_path() {
    let path = Path { loss: 10, duplicate: 10, late: 0, delay: 400_000, jitter: 50_000 };
    run(path, 400..440, 400_000);
}

/// The same seed is the same run, to the packet.
#[test]
fn runs_repeat() {
    let path = Path { loss: 100, duplicate: 50, late: 50, delay: 5_000, jitter: 3_000 };
    assert_eq!(run(path, 7..12, 50_000), run(path, 7..12, 50_000));
}
