//! Every congestion control algorithm on a path with a bottleneck, in virtual time: a file arrives intact, the link is used, queues are as the
//! algorithm wants them, and background flows give way.

use crate::common;

use common::{IRS, ISS, Out, Peer, Setup};
use std::sync::Arc;
use transom_tcp::arguments::Arguments;
use transom_tcp::congestion::{ALGORITHMS, CongestionChoice};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Connection, EcnChoice, EcnConfig, Endpoint};
use transom_testkit::Arrivals;
use transom_wire::{Ecn, Seq};

fn choice(text: &str) -> CongestionChoice {
    let mut arguments = Arguments::read(text).unwrap();
    let name = arguments.choice();
    let entry = ALGORITHMS.iter().find(|entry| entry.name == name).expect("a known name");
    (entry.read)(&mut arguments).unwrap()
}

/// A link in one direction, with a drop-tail queue; the way back is never full.
#[derive(Clone, Copy)]
struct Path {
    /// Bytes per second.
    rate: u64,
    /// One way.
    delay: Duration,
    /// Bytes.
    queue: u64,
    /// With more than so many bytes in the queue a packet is marked, if it is ECN-capable.
    mark: u64,
}

/// 20 Mbit/s, 40 ms there and back, a queue of 100 kB: as much as is on its way.
const PATH: Path =
    Path { rate: 2_500_000, delay: Duration::from_millis(20), queue: 100_000, mark: u64::MAX };

/// The link, and what has met it.
struct Bottleneck {
    path: Path,
    /// When the link is free.
    free: Instant,
    drops: u64,
    /// The queue met by each packet that arrived at the link, in bytes: how many packets, and their sum.
    met: (u64, u64),
}

impl Bottleneck {
    /// When a packet leaves the link, and with which codepoint; nothing if the queue is full.
    fn pass(&mut self, out: &Out) -> Option<(Instant, Ecn)> {
        let size = out.payload.len() as u64 + 40;
        let queued =
            self.free.since(out.at).as_nanos() as u128 * u128::from(self.path.rate) / 1_000_000_000;
        self.met = (self.met.0 + 1, self.met.1 + queued as u64);
        if queued as u64 + size > self.path.queue {
            self.drops += 1;
            return None;
        }
        let marked = queued as u64 > self.path.mark && out.ecn != Ecn::NotEct;
        let spent = Duration::from_nanos(size * 1_000_000_000 / self.path.rate);
        self.free = self.free.max(out.at) + spent;
        Some((self.free, if marked { Ecn::Ce } else { out.ecn }))
    }
}

/// Ends with even numbers send; the next end receives.
impl transom_testkit::Path<Peer> for Bottleneck {
    fn carry(&mut self, _now: Instant, from: usize, out: Out, arrivals: &mut Arrivals<Peer>) {
        let passed = if from.is_multiple_of(2) { self.pass(&out) } else { Some((out.at, out.ecn)) };
        if let Some((left, ecn)) = passed {
            arrivals.add(left + self.path.delay, from ^ 1, Out { ecn, ..out });
        }
    }
}

/// A flow's application.
struct Flow {
    written: usize,
    read: usize,
    bytes: usize,
}

struct World {
    net: transom_testkit::World<Peer, Bottleneck>,
    flows: Vec<Flow>,
}

impl World {
    fn new(path: Path) -> Self {
        let path = Bottleneck { path, free: Instant::ZERO, drops: 0, met: (0, 0) };
        World { net: transom_testkit::World::new(vec![], path, Instant::ZERO), flows: vec![] }
    }

    /// A flow of `bytes` with this algorithm, from now on.
    fn start(&mut self, text: &str, bytes: usize) {
        let exact = EcnConfig::default().with_offer(true);
        let (now, mark) = (self.net.now, self.net.path.path.mark);
        let open = |local_port, remote_port, iss| {
            let mut setup = Setup::default().receive_buffers(1 << 20, 4 << 20);
            setup.profile.options.timestamps = true;
            setup.profile.options.window_scale = true;
            setup.profile.choose_congestion(choice(text));
            if mark < u64::MAX {
                setup.profile.ecn = EcnChoice::PerPacket(exact);
            }
            let endpoint = Endpoint { local_port, remote_port };
            let profile = Arc::new(setup.profile.clone());
            let connection =
                Connection::connect(profile, endpoint, setup.path, Seq::new(iss), 99, now);
            let mut peer = Peer::wrap(connection, now);
            peer.pump();
            peer
        };
        self.net.ends.extend([open(1, 2, ISS), open(2, 1, IRS)]);
        self.flows.push(Flow { written: 0, read: 0, bytes });
        self.apply(self.flows.len() - 1);
    }

    /// The applications: each writes what there is room for, and reads what there is.
    fn apply(&mut self, number: usize) {
        let Flow { written, read, bytes } = &mut self.flows[number];
        let [sender, receiver] = &mut self.net.ends[2 * number..2 * number + 2] else {
            panic!("a flow has two ends");
        };
        let room = sender.connection.writable().unwrap_or(0).min(*bytes - *written).min(64_000);
        if room > 0 {
            sender.write(room);
            *written += room;
        }
        let readable = receiver.connection.readable();
        if readable > 0 {
            receiver.read(readable);
            *read += readable;
        }
        self.net.collect(2 * number);
        self.net.collect(2 * number + 1);
    }

    fn step(&mut self) {
        assert!(self.net.step(), "something happens");
        for flow in 0..self.flows.len() {
            self.apply(flow);
        }
    }

    /// Runs until the first flow's file has arrived; how long that took.
    fn finish(&mut self) -> Duration {
        let begun = self.net.now;
        while self.flows[0].read < self.flows[0].bytes {
            self.step();
            assert!(self.net.now.since(begun) < Duration::from_secs(600), "it does not end");
        }
        self.net.now.since(begun)
    }

    fn run(&mut self, span: Duration) {
        let end = self.net.now + span;
        while self.net.now < end {
            self.step();
        }
    }

    /// The queue that packets met since the last call, in milliseconds on average.
    fn queue(&mut self) -> u64 {
        let (packets, bytes) = std::mem::take(&mut self.net.path.met);
        bytes * 1000 / packets.max(1) / self.net.path.path.rate
    }
}

/// 10 MB take 4.1 s at least on 20 Mbit/s. A controller that fills the link gets near. Background flows may take twice as long,
/// and without congestion control most packets are sent several times.
#[test]
fn every_algorithm_moves_a_file() {
    let slow = ["ledbat++", "lp", "nice"];
    for entry in ALGORITHMS {
        let mut world = World::new(PATH);
        world.start(entry.name, 10_000_000);
        let took = world.finish();
        let most = match entry.name {
            "none" => 60,
            name if slow.contains(&name) => 9,
            _ => 6,
        };
        let (drops, queued) = (world.net.path.drops, world.queue());
        println!("{}: {took:?}, {drops} packets lost, {queued} ms queued", entry.name);
        assert!(took >= Duration::from_millis(4100), "{}: {took:?}", entry.name);
        assert!(took < Duration::from_secs(most), "{}: {took:?}", entry.name);
        assert_eq!(world.net.ends[1].connection.readable(), 0);
    }
}

/// A queue of 400 ms. Loss-based flows fill it; the others keep to what they aim at: Vegas 2 to 4 segments (a millisecond and a half each
/// 2.5), FAST 20 (12 ms), LEDBAT its target, BBR a fraction of a round trip.
#[test]
fn queues_are_as_wanted() {
    for (text, least, most) in [
        ("reno", 100, 400),
        ("cubic", 100, 400),
        ("vegas", 0, 4),
        ("fast(alpha=20)", 8, 15),
        ("ledbat(target=25ms)", 18, 30),
        ("ledbat(target=25ms, delay=round-trip)", 18, 30),
        ("ledbat++", 0, 65),
        ("nice", 0, 6),
        ("lp", 0, 100),
        ("bbr", 0, 45),
        ("bbr3", 0, 45),
    ] {
        let mut world = World::new(Path { queue: 1_000_000, ..PATH });
        world.start(text, 400_000_000);
        world.run(Duration::from_secs(15));
        world.queue();
        let before = world.flows[0].read;
        world.run(Duration::from_secs(15));
        let queued = world.queue();
        let rate = (world.flows[0].read - before) / 15;
        println!("{text}: {queued} ms queued, {rate} bytes/s");
        assert!((least..=most).contains(&queued), "{text}: {queued} ms");
        // Headers and timestamps take 4%.
        assert!(rate > 2_100_000 || text == "ledbat++" || text == "lp", "{text}: {rate}");
    }
}

/// Marks from 30 kB on (12 ms, more than RTT·C/7 as RFC 8257's authors advise): DCTCP keeps the queue about there and the link full, without a loss;
/// Reno, which halves for a mark, does not always have enough in flight.
#[test]
fn dctcp_keeps_the_queue_at_the_mark() {
    let [dctcp, reno] = ["dctcp", "reno"].map(|text| {
        let mut world = World::new(Path { queue: 1_000_000, mark: 30_000, ..PATH });
        world.start(text, 400_000_000);
        world.run(Duration::from_secs(10));
        world.queue();
        world.net.path.drops = 0;
        let before = world.flows[0].read;
        world.run(Duration::from_secs(20));
        assert_eq!(world.net.path.drops, 0);
        (world.queue(), (world.flows[0].read - before) / 20)
    });
    println!("dctcp: {dctcp:?}, reno: {reno:?} (ms queued, bytes/s)");
    assert!((6..=16).contains(&dctcp.0), "{dctcp:?}");
    assert!(dctcp.1 > 2_400_000, "{dctcp:?}");
    assert!(reno.1 < dctcp.1, "{reno:?} {dctcp:?}");
}

/// A background flow that has the link to itself, and then Reno comes: Reno gets nearly all of it.
#[test]
fn background_flows_give_way() {
    for (text, most) in
        [("nice", 20), ("lp", 20), ("ledbat(target=10ms)", 20), ("ledbat++(target=10ms)", 20)]
    {
        let mut world = World::new(PATH);
        world.start(text, 400_000_000);
        world.run(Duration::from_secs(5));
        world.start("reno", 400_000_000);
        world.run(Duration::from_secs(5));
        let before = [0, 1].map(|flow| world.flows[flow].read);
        world.run(Duration::from_secs(20));
        let [background, reno] = [0, 1].map(|flow| world.flows[flow].read - before[flow]);
        println!("{text}: {background} bytes beside reno's {reno}");
        assert!(background * 100 <= reno * most, "{text}: {background} beside {reno}");
        assert!(reno > 20 * 2_000_000, "{text}: reno gets {reno}");
    }
}

/// On a path that holds 48 segments in all: LTCP with windows below 50 segments is Reno. MulTCP's two get √(2·1.75/0.5)/√1.5 = 2.2 times
/// Reno's share when losses hit each by itself. When they hit both, the windows are as 2·4 to 1·2: four times. That is worked out without
/// timeouts, so it has a path of four times the size: on the small one Reno's part is so few segments that losses often end in one.
#[test]
fn shares() {
    for (text, size, least, most) in
        [("reno", 1, 70, 140), ("ltcp", 1, 70, 160), ("multcp(n=2)", 4, 200, 480)]
    {
        let (queue, rate) = (size * 30_000, 1_000_000 * size);
        let mut world = World::new(Path { queue, rate, ..PATH });
        world.start(text, 400_000_000);
        world.start("reno", 400_000_000);
        world.run(Duration::from_secs(10));
        let before = [0, 1].map(|flow| world.flows[flow].read);
        world.run(Duration::from_secs(60));
        let [ours, reno] = [0, 1].map(|flow| world.flows[flow].read - before[flow]);
        let percent = ours * 100 / reno;
        println!("{text}: {percent}% of reno's");
        assert!((least..=most).contains(&percent), "{text}: {percent}% of reno's");
    }
}
