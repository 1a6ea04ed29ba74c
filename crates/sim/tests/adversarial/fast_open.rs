//! TCP Fast Open over adversarial networks (RFC 7413): many short connections one after the other, whose SYNs carry data that is lost, doubled and
//! overtaken. With every seed, both applications have each other's stream exactly, and no connection has any byte twice.
//!
//! Section 2.1 allows one exception: a SYN that comes late, when its first connection is gone, is a connection of its own with the same data. The
//! server's streams are judged for these too.
//!
//! A failing seed is printed: `TRANSOM_FAST_OPEN_SEED=n` replays it.

use super::every_seed;
use super::exchange::{byte, host, link};
use super::seeds::profile;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use transom_sim::{Pair, Rng, Side, Streams};
use transom_stack::{
    ConnectionId, ListenConfig, ListenerId, SocketError, Stack, StackConfig, StackCounters,
};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{FastOpenFailure, OrderingChoice, ReadError, WriteError};
use transom_wire::{Flags, IpPacket, TcpPacket};

const ROUNDS: u64 = 6;

/// The stream of a client's port, and the answer to it.
fn request(port: u16) -> u64 {
    u64::from(port)
}

fn reply(port: u16) -> u64 {
    u64::from(port) | 1 << 20
}

/// One application's end of a connection: what it writes, and what it has read.
struct End {
    id: ConnectionId,
    writes: u64,
    to_write: u64,
    written: u64,
    reads: u64,
    read: u64,
    ended: bool,
    shut: bool,
}

impl End {
    fn new(id: ConnectionId, writes: u64, to_write: u64, reads: u64) -> Self {
        End { id, writes, to_write, written: 0, reads, read: 0, ended: false, shut: false }
    }

    fn read_on(&mut self, host: &mut Stack, now: Instant) -> Result<(), String> {
        let mut buffer = [0; 3000];
        while !self.ended {
            match host.read(self.id, now, &mut buffer) {
                Ok(0) => self.ended = true,
                Ok(n) => {
                    for &got in &buffer[..n] {
                        assert_eq!(got, byte(self.reads, self.read), "byte {}", self.read);
                        self.read += 1;
                    }
                }
                Err(SocketError::Read(ReadError::WouldBlock)) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    fn write_on(&mut self, host: &mut Stack, now: Instant, most: u64) -> Result<(), String> {
        while self.written < self.to_write {
            let upto = (self.written + most).min(self.to_write);
            let bytes: Vec<u8> = (self.written..upto).map(|i| byte(self.writes, i)).collect();
            match host.write(self.id, now, &bytes) {
                Ok(n) => self.written += n as u64,
                Err(SocketError::Write(WriteError::WouldBlock)) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        if !self.shut {
            self.shut = true;
            host.shutdown_write(self.id, now).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.ended && self.shut && self.written == self.to_write
    }
}

type Syns = Arc<Mutex<Vec<Vec<u8>>>>;

struct Server {
    listener: ListenerId,
    /// SYNs with data that have left the client: any of them may come again at any time.
    syns: Syns,
    ends: Vec<End>,
    /// How many connections each port has had.
    seen: HashMap<u16, u64>,
}

impl Server {
    /// Serves for a while.
    fn serve(&mut self, pair: &mut Pair, span: Duration, rng: &mut Rng) {
        let until = pair.now() + span;
        pair.run_until(until, |pair| {
            self.act(pair, rng);
            false
        });
    }

    fn act(&mut self, pair: &mut Pair, rng: &mut Rng) {
        if rng.below(10) == 0 {
            let syns = self.syns.lock().unwrap();
            if let Some(syn) = syns.get(rng.below(syns.len() as u64) as usize) {
                pair.inject(Side::B, syn);
            }
        }
        let now = pair.now();
        let host = pair.host(Side::B);
        while let Some((id, remote)) = host.accept(self.listener) {
            let port = remote.port();
            *self.seen.entry(port).or_default() += 1;
            self.ends.push(End::new(id, reply(port), 1 + rng.below(9_000), request(port)));
        }
        let early = rng.below(2) == 0;
        self.ends.retain_mut(|end| {
            // One whose client knows nothing of it fails, sooner or later; what it has read was right.
            let mut outcome = end.read_on(host, now);
            if outcome.is_ok() && (end.ended || (early && end.read > 0)) {
                outcome = end.write_on(host, now, 700);
            }
            let over = outcome.is_err() || end.is_done();
            if over {
                host.close(end.id, now);
            }
            !over
        });
    }
}

/// What all seeds together have seen.
#[derive(Debug, Default)]
struct Seen {
    active: u64,
    passive: u64,
    not_taken: u64,
    repeated: u64,
    bad_cookies: u64,
    overflows: u64,
    again: u64,
}

impl Seen {
    fn add(&mut self, client: StackCounters, server: StackCounters) {
        self.active += client.fast_opens_active;
        self.passive += server.fast_opens_passive;
        self.bad_cookies += server.fast_open_bad_cookies;
        self.overflows += server.fast_open_overflows;
    }
}

fn end_host(address: &str, seed: u64, rng: &mut Rng) -> Stack {
    let base = profile(seed, rng).with_ordering(OrderingChoice::InOrder);
    let stack = host(address, base, rng);
    let mut config: StackConfig = stack.config().clone();
    // Keys change while clients hold cookies.
    config.fast_open.key_lifetime = Duration::from_secs(rng.between(1, 40));
    Stack::new(config, Instant::ZERO).unwrap()
}

/// A client opens; what it will write is the stream of its port.
fn open(pair: &mut Pair, rng: &mut Rng) -> End {
    let now = pair.now();
    let host = pair.host(Side::A);
    let id = host.connect_on_write(now, None, "10.0.0.2:80".parse().unwrap(), None).unwrap();
    let port = host.local_address(id).unwrap().port();
    End::new(id, request(port), rng.below(4_000), reply(port))
}

fn run(seed: u64, trace: bool, seen: &mut Seen) {
    let rng = &mut Streams::new(seed).rng(0, 77);
    let links = [link(rng), link(rng)];
    let (client, mut server) = (end_host("10.0.0.1", seed, rng), end_host("10.0.0.2", seed, rng));
    let fast_open = rng.below(4) as usize;
    let config = ListenConfig::default().with_fast_open(fast_open);
    let listener = server.listen("10.0.0.2:80".parse().unwrap(), config).unwrap();
    let mut pair = Pair::new(client, server, [&links[0], &links[1]], seed, Instant::ZERO);
    if trace {
        eprintln!("{links:?}, at most {fast_open}");
    }
    let syns: Syns = Syns::default();
    let kept = syns.clone();
    pair.set_middlebox(move |at, side, bytes| {
        let packet = IpPacket::parse(bytes).unwrap();
        let segment = TcpPacket::parse(packet.payload()).unwrap();
        if trace {
            eprintln!("{at:?} {side:?} {segment:?}");
        }
        if segment.header.flags.contains(Flags::SYN) && !segment.payload.is_empty() {
            kept.lock().unwrap().push(bytes.clone());
        }
        true
    });
    let mut server = Server { listener, syns, ends: Vec::new(), seen: HashMap::new() };
    for _ in 0..ROUNDS {
        let mut clients: Vec<_> = (0..=rng.below(4)).map(|_| open(&mut pair, rng)).collect();
        if rng.below(4) == 0 {
            // The applications are slow to write.
            server.serve(&mut pair, Duration::from_millis(rng.below(300)), rng);
        }
        let pieces = rng.between(1, 4_000);
        let limit = pair.now() + Duration::from_secs(900);
        let done = pair.run_until(limit, |pair| {
            server.act(pair, rng);
            let now = pair.now();
            let host = pair.host(Side::A);
            host.check().unwrap();
            for end in &mut clients {
                end.write_on(host, now, pieces).unwrap();
                end.read_on(host, now).unwrap();
            }
            clients.iter().all(End::is_done)
        });
        assert!(done, "a stream did not arrive");
        for end in clients {
            let now = pair.now();
            let host = pair.host(Side::A);
            if let Some(connection) = host.connection(end.id) {
                let failure = connection.info(now).fast_open.failure;
                seen.not_taken += u64::from(failure == FastOpenFailure::DataNotAcked);
                seen.repeated += u64::from(failure == FastOpenFailure::SynRetransmitted);
            }
            host.close(end.id, now);
        }
        server.serve(&mut pair, Duration::from_millis(rng.below(20_000)), rng);
    }
    server.syns.lock().unwrap().clear();
    server.serve(&mut pair, Duration::from_secs(1_000), rng);
    assert_eq!(pair.host(Side::A).connection_count(), 0, "the client's connections end");
    assert_eq!(pair.host(Side::B).connection_count(), 0, "the server's connections end");
    seen.again += server.seen.values().map(|&count| count - 1).sum::<u64>();
    let counters = [Side::A, Side::B].map(|side| pair.host(side).counters());
    seen.add(counters[0], counters[1]);
}

#[test]
fn every_stream_is_exact() {
    let mut seen = Seen::default();
    let all = every_seed("TRANSOM_FAST_OPEN_SEED", 150, "fast_open", |seed, trace| {
        run(seed, trace, &mut seen);
    });
    if all.is_some_and(|seeds| seeds >= 150) {
        eprintln!("{seen:?}");
        let Seen { active, passive, not_taken, repeated, bad_cookies, overflows, again } = seen;
        let all = [active, passive, not_taken, repeated, bad_cookies, overflows, again];
        assert!(all.iter().all(|&count| count > 0), "something was not tried: {seen:?}");
    }
}
