//! Window control of a router, fed whatever a script says: connections with receivers that advertise anything, packets that are
//! lost, late, doubled, damaged, cut off, forged or nonsense, a queue of any length, time, every policy, and tables with hardly any
//! room.
//!
//! What must hold, whatever the script: no panic; nothing but the window and the checksum of an acknowledgement or of a receiver's SYN
//! changes, and a checksum that was right still is; no window is above the receiver's; of flows whose handshake has passed or passes, none is
//! below a segment unless the receiver's was, and none takes back what the sender has been told; what returns together is treated as it is one by
//! one; and the table has no more than its slots.

#[path = "window_flow.rs"]
mod flow;
#[path = "window_packets.rs"]
mod packets;

use crate::bytes::Script;
use flow::{Flow, Held};
use packets::{Arrival, Words, check_passed, packet};
use std::net::SocketAddr;
use transom_base::time::{Duration, Instant};
use transom_router::queue::Length;
use transom_router::window::{
    AckAction, AckContext, ChecksumState, ControlConfig, Policy, PolicyConfig, Returning, Segment,
    SynContext, Verdict, WindowControl,
};
use transom_wire::{Flags, Options, Seq};

/// What there is to choose from, and how long each may hold an acknowledgement, in milliseconds.
const POLICIES: [(&str, u64); 7] = [
    ("target-window(upper=35 packets, lower=15 packets, initial=4kB)", 0),
    (
        "target-window(upper=50kB, lower=20kB, halve-after=3kB, raise=1/2, initial=600B, most=1MiB, syn-windows)",
        0,
    ),
    (
        "target-window(upper=2 packets, lower=1 packets, initial=2kB, rule=section-3.2, syn-windows)",
        0,
    ),
    ("target-window(upper=35 packets, lower=15 packets, initial=2kB, naive)", 0),
    ("fair-share(queue=2kB, rate=1Mbit/s, syn-windows)", 0),
    ("explicit-window(queue=50 packets)", 0),
    ("ack-delay(above=10kB, rate=8Mbit/s, most=50ms)", 50),
];
/// Packets that are sent again, or damaged and then sent.
const KEPT: usize = 16;
/// The most that returns together.
const TOGETHER: usize = 70;

/// Wishes for anything.
#[derive(Debug)]
struct Anything(u64);

impl Anything {
    fn dice(&mut self) -> u64 {
        // The generator of Knuth's MMIX; its lower bits are not worth much.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 32
    }
}

impl Policy for Anything {
    fn on_arrival(&mut self, _: Instant, _: usize, _: Length) {}

    fn on_syn(&mut self, _: Instant, syn: &SynContext) -> Option<u64> {
        let dice = self.dice();
        match dice % 8 {
            0 => None,
            1 => Some(u64::MAX),
            2 => Some(0),
            3 => Some(u64::from(syn.advertised) / 2),
            _ => Some((dice >> 8) % (1 << 16)),
        }
    }

    fn on_ack(&mut self, _: Instant, ack: &AckContext) -> AckAction {
        let dice = self.dice();
        let bytes = match dice % 8 {
            0 => u64::MAX,
            1 => 0,
            2 => return AckAction::AsItIs,
            3 => u64::from(ack.advertised) / 2,
            _ => (dice >> 8) % (1 << 18),
        };
        AckAction::Window { bytes, fall: dice & 256 != 0 }
    }
}

struct Run {
    /// The same twice: what returns comes to one of them packet by packet, to the other together.
    one: WindowControl,
    all: WindowControl,
    config: ControlConfig,
    /// Nothing is held for longer.
    longest: Duration,
    per_flow: bool,
    now: Instant,
    queue: Length,
    flows: [Flow; 4],
    /// What returns together.
    together: Vec<Arrival>,
    kept: Vec<Arrival>,
    /// Rewritten windows about which there was something to ask.
    asked: u64,
}

impl Run {
    fn new(script: &mut Script<'_>) -> Self {
        let choice = script.below(POLICIES.len() + 3);
        let (text, longest) = POLICIES.get(choice).copied().unwrap_or(POLICIES[0]);
        let policy: PolicyConfig = text.parse().unwrap();
        let mut config = ControlConfig::new(policy);
        config.flows = script.pick(&[16, 16, 16, 3, 2, 1, 0]);
        config.idle = script.pick(&[300, 5, 1].map(Duration::from_secs));
        config.returns_only = script.below(4) == 3;
        config.mss = script.pick(&[1460, 1]);
        let control = || match POLICIES.get(choice) {
            Some(_) => WindowControl::new(&config, [5; 16]).unwrap(),
            None => WindowControl::with_policy(Box::new(Anything(choice as u64)), &config, [5; 16]),
        };
        let mut all = control();
        // Asked or not, and whatever comes of it, is the same to it.
        all.set_prefetch(choice.is_multiple_of(2).then_some(|_| ()));
        Run {
            one: control(),
            all,
            config,
            longest: Duration::from_millis(longest),
            per_flow: !text.contains("naive")
                && !text.contains("explicit")
                && !text.contains("ack-delay"),
            now: Instant::from_secs(1),
            queue: Length::default(),
            flows: [2, 3, 4, 5].map(Flow::new),
            together: Vec::new(),
            kept: Vec::new(),
            asked: 0,
        }
    }

    /// The flow whose data a segment is or acknowledges, if it is one of the script's connections.
    fn of(&self, segment: &Segment, forward: bool) -> Option<usize> {
        let plain =
            |segment: &Segment| [(segment.src, segment.src_port), (segment.dst, segment.dst_port)];
        let [mut from, mut to] = plain(segment);
        if !forward {
            (from, to) = (to, from);
        }
        let is = |end: SocketAddr, (address, port)| {
            let ip = match end.ip() {
                std::net::IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                std::net::IpAddr::V6(ip) => ip,
            };
            (ip.to_bits(), end.port()) == (address, port)
        };
        self.flows.iter().position(|flow| is(flow.sender, from) && is(flow.receiver, to))
    }

    fn held(&self, flow: &Flow) -> Held {
        let ends = (flow.sender, flow.receiver);
        let found = self.one.flows(self.now).find(|flow| (flow.sender, flow.receiver) == ends);
        match found {
            None => Held::Nothing,
            Some(flow) if flow.is_open => Held::Open,
            Some(_) => Held::HalfOpen,
        }
    }

    fn keep(&mut self, arrival: &Arrival) {
        if self.kept.len() == KEPT {
            self.kept.remove(0);
        }
        self.kept.push(arrival.clone());
    }

    /// What is known of a packet's flow before it passes, and after `pass`.
    fn watched<T>(
        &mut self,
        arrival: &Arrival,
        forward: bool,
        pass: impl FnOnce(&mut Run) -> T,
    ) -> (T, Option<(usize, Segment)>) {
        let segment = Segment::peek(&arrival.bytes, arrival.len);
        let known = segment.and_then(|segment| Some((self.of(&segment, forward)?, segment)));
        let mut before = Held::Nothing;
        if let Some((index, segment)) = &known {
            before = self.held(&self.flows[*index]);
            let times = (self.now, self.config.idle);
            self.flows[*index].passes(arrival, segment, forward, before, times);
        }
        let passed = pass(self);
        if let Some((index, segment)) = &known {
            let after = self.held(&self.flows[*index]);
            self.flows[*index].has_passed(segment, forward, before, after);
        }
        (passed, known)
    }

    fn forward(&mut self, arrival: &Arrival) {
        self.flush();
        self.watched(arrival, true, |run| {
            for control in [&mut run.one, &mut run.all] {
                control.forward(run.now, &arrival.bytes, arrival.len, run.queue);
            }
        });
    }

    fn arrive(&mut self, arrival: Arrival, forward: bool) {
        self.keep(&arrival);
        if forward {
            return self.forward(&arrival);
        }
        self.together.push(arrival);
        if self.together.len() == TOGETHER {
            self.flush();
        }
    }

    /// What has returned meanwhile passes.
    fn flush(&mut self) {
        let arrivals = std::mem::take(&mut self.together);
        let mut copies = arrivals.clone();
        let mut batch: Vec<Returning<'_>> = copies
            .iter_mut()
            .map(|arrival| Returning {
                packet: &mut arrival.bytes,
                len: arrival.len,
                checksum: arrival.checksum,
                verdict: Verdict::default(),
            })
            .collect();
        self.all.returning_all(self.now, &mut batch, self.queue);
        for (arrival, other) in arrivals.iter().zip(&batch) {
            let (after, verdict) = self.back(arrival);
            assert_eq!(
                (&after[..], verdict),
                (&*other.packet, other.verdict),
                "one by one, together"
            );
        }
        assert_eq!(self.one.report(), self.all.report());
    }

    fn back(&mut self, arrival: &Arrival) -> (Vec<u8>, Verdict) {
        let mut after = arrival.bytes.clone();
        let counted = self.one.report().counters;
        let (verdict, known) = self.watched(arrival, false, |run| {
            run.one.returning(run.now, &mut after, arrival.len, arrival.checksum, run.queue)
        });
        let windows = check_passed(&arrival.bytes, &after, arrival.checksum, verdict);
        assert!(verdict.hold <= self.longest, "{:?}", verdict.hold);
        let counts = self.one.report().counters;
        assert_eq!(counts.rewritten - counted.rewritten, u64::from(windows.is_some()));
        assert_eq!(counts.held - counted.held, u64::from(!verdict.hold.is_zero()));
        if let Some((was, is)) = windows
            && !self.per_flow
        {
            assert!(is >= was.min(self.config.mss), "{is} is less than a segment");
        }
        if let Some((index, segment)) = known
            && self.per_flow
        {
            let returns_only = self.config.returns_only;
            let written = windows.map(|(_, is)| is);
            let flow = &mut self.flows[index];
            let asked = match segment.is_syn() {
                true => flow.check_syn(arrival, &segment, written),
                false => flow.check(&segment, written, returns_only),
            };
            self.asked += u64::from(asked);
        }
        (after, verdict)
    }

    /// The table holds what it has room for, and counts it.
    fn check_table(&self) {
        let table = self.one.report().table;
        let asked = if self.per_flow { self.config.flows as usize } else { 0 };
        // Half as many more, in buckets of eight.
        assert_eq!(table.capacity, (3 * asked).div_ceil(16) * 8);
        let (mut held, mut open) = (0, 0);
        for flow in self.one.flows(self.now) {
            held += 1;
            open += usize::from(flow.is_open);
        }
        assert_eq!((table.flows, table.open), (held, open));
        assert!(held <= table.capacity);
    }

    /// Another connection in the place of one, whose end mostly has been seen.
    fn renew(&mut self, script: &mut Script<'_>, index: usize) {
        if script.below(8) != 7 {
            let words = Words { flags: Flags::RST, ..Words::default() };
            let end = self.flows[index].packet(true, &words);
            self.forward(&end);
        }
        self.flush();
        let held = self.held(&self.flows[index]);
        self.flows[index].begin(script, held);
    }

    /// Another connection, with its handshake.
    fn connect(&mut self, script: &mut Script<'_>, index: usize) {
        self.renew(script, index);
        for step in 0..3 {
            let (arrival, forward) = self.flows[index].handshake(step);
            self.arrive(arrival, forward);
        }
        // What the sender may send follows from what has passed.
        self.flush();
    }

    /// A connection's packet of any kind.
    fn some_packet(&mut self, script: &mut Script<'_>) -> (Arrival, bool) {
        let index = script.below(self.flows.len());
        match script.below(8) {
            0 if script.flag() => {
                self.renew(script, index);
                self.flows[index].handshake(0)
            }
            0 | 1 => self.flows[index].handshake(script.below(3)),
            2 => {
                let flags =
                    script.pick(&[Flags::ACK, Flags::ACK | Flags::FIN, Flags::RST, Flags::SYN]);
                let (seq, ack) =
                    (self.flows[index].number(script), self.flows[index].number(script));
                let words = Words { flags, seq, ack, window: 500, ..Words::default() };
                let mut arrival = self.flows[index].packet(true, &words);
                arrival.honest = false;
                (arrival, true)
            }
            3 => {
                // Anybody can say what a receiver might.
                let mut words = Words {
                    flags: script.pick(&[
                        Flags::ACK,
                        Flags::ACK,
                        Flags::SYN | Flags::ACK,
                        Flags::RST,
                    ]),
                    seq: self.flows[index].number(script),
                    ack: self.flows[index].number(script),
                    window: script.word(),
                    ..Words::default()
                };
                words.options.window_scale = script.pick(&[None, Some(3)]);
                let mut arrival = self.flows[index].packet(false, &words);
                arrival.honest = false;
                (arrival, false)
            }
            _ => {
                let mut words = self.flows[index].acknowledgement(script);
                words.longer = script.below(8) == 7;
                words.payload = usize::from(script.pick(&[0, 0, 0, 7, 1448, u16::MAX]));
                let mut arrival = self.flows[index].packet(false, &words);
                if script.below(4) == 3 {
                    arrival.checksum = ChecksumState::ToBeMade;
                }
                (arrival, false)
            }
        }
    }

    /// Something that was sent once, sent again, damaged or cut off; or noise.
    fn noise(&mut self, script: &mut Script<'_>) -> (Arrival, bool) {
        let kept = self.kept.get(script.below(KEPT)).cloned();
        let Some(mut arrival) = kept else {
            let mut bytes = script.take(script.clone().below(100)).to_vec();
            if bytes.len() > 40 {
                (bytes[0], bytes[6], bytes[7], bytes[9]) = (0x45, 0, 0, 6);
            }
            let len = bytes.len();
            let checksum = ChecksumState::Complete;
            return (Arrival { bytes, len, checksum, honest: false }, script.flag());
        };
        arrival.honest = false;
        for _ in 0..script.below(4) {
            let at = script.below(256);
            let value = script.byte();
            if let Some(byte) = arrival.bytes.get_mut(at) {
                *byte ^= value;
            }
        }
        if script.below(4) == 3 {
            arrival.bytes.truncate(script.below(100));
            arrival.len = if script.flag() { arrival.bytes.len() } else { arrival.len };
        }
        let forward = if script.below(4) == 3 { script.flag() } else { is_forward(&arrival.bytes) };
        (arrival, forward)
    }

    /// SYNs of nobody.
    fn flood(&mut self, script: &mut Script<'_>) {
        let (from, count) = (script.word(), script.byte());
        let words = Words { flags: Flags::SYN, options: Options::default(), ..Words::default() };
        for number in 0..u32::from(count) {
            let ip = 0x0a00_0000 + (u32::from(from) << 8) + number;
            let sender = SocketAddr::new(std::net::Ipv4Addr::from_bits(ip).into(), 9);
            let to = "198.51.100.2:80".parse().unwrap();
            let syn = packet(sender, to, &Words { seq: Seq::new(number), ..words });
            self.forward(&syn);
        }
    }

    fn step(&mut self, script: &mut Script<'_>) {
        match script.below(16) {
            0 => {
                self.flush();
                let span = match script.below(8) {
                    0..4 => Duration::from_millis(script.byte().into()),
                    4..7 => Duration::from_secs(script.byte().into()),
                    _ => Duration::from_secs(script.long().into()),
                };
                self.now += span;
            }
            1 => {
                self.flush();
                let packets = u64::from(script.byte()) / 2;
                self.queue = Length { packets, bytes: packets * 750 };
            }
            2 => {
                let (arrival, forward) = self.noise(script);
                self.arrive(arrival, forward);
            }
            3 if script.below(4) == 3 => self.flood(script),
            4 => {
                let index = script.below(self.flows.len());
                self.connect(script, index);
            }
            5 => self.flush(),
            6 => {
                let flow = &self.flows[script.below(self.flows.len())];
                let payload = usize::from(script.word()) * 2;
                let seq = flow.number(script);
                let words = Words { flags: Flags::ACK, seq, payload, ..Words::default() };
                let mut data = flow.packet(true, &words);
                data.honest = false;
                self.arrive(data, true);
            }
            _ => {
                let (arrival, forward) = self.some_packet(script);
                // Sent, but by another way, or lost before it came here.
                if script.below(16) != 15 {
                    self.arrive(arrival, forward);
                }
            }
        }
        self.check_table();
    }
}

/// Whether a packet is of a sender's: they have port 40000.
fn is_forward(bytes: &[u8]) -> bool {
    let port = if bytes.first().is_some_and(|first| first >> 4 == 6) { 40 } else { 20 };
    bytes.get(port..port + 2) == Some(&40_000u16.to_be_bytes())
}

/// Plays a script. Returns how many windows were rewritten about which there was something to ask.
pub(crate) fn play(bytes: &[u8]) -> u64 {
    let mut script = Script::new(bytes);
    let mut run = Run::new(&mut script);
    if script.flag() {
        (0..run.flows.len()).for_each(|index| run.connect(&mut script, index));
    }
    while !script.is_empty() {
        run.step(&mut script);
    }
    run.flush();
    run.check_table();
    run.asked
}
