//! The algorithm is there twice: in Rust, and in C for the kernel. Here both get the same packets, and have to make the same of them.
//!
//! The programs run on frames that are on no interface (`BPF_PROG_TEST_RUN`), as if on a loopback interface, whose queue is empty. What differs
//! on purpose is not in the traffic: a flow that has seen too many implausible acknowledgements is given up by the one and not by the other.

mod support;

use std::net::SocketAddr;

use support::run;
use transom_device::namespace::Namespace;
use transom_forwarder::tc::{Options as TcOptions, Tc};
use transom_forwarder::{Deployment, Refusal};
use transom_router::queue::Length;
use transom_router::window::{ChecksumState, ControlConfig, Segment, WindowControl};
use transom_tcp::time::{Duration, Instant};
use transom_testkit::packets;
use transom_wire::seq::Seq;
use transom_wire::tcp::{Flags, Options, TcpHeader};

/// Random numbers: splitmix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// Of any size: small ones are as likely as large ones.
    fn window(&mut self) -> u16 {
        (self.next() as u16) >> self.below(16)
    }
}

/// Both, side by side.
struct Both {
    tc: Tc,
    control: WindowControl,
    now: Instant,
    rewritten: u64,
}

impl Both {
    fn frame(packet: &[u8]) -> Vec<u8> {
        let kind: [u8; 2] = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
        [&[2; 12][..], &kind, packet].concat()
    }

    fn forward(&mut self, packet: &[u8]) {
        self.now += Duration::from_micros(100);
        self.control.forward(self.now, packet, packet.len(), Length::default());
        let frame = Both::frame(packet);
        let (after, _) = self.tc.try_out(true, &frame, 1).unwrap();
        assert_eq!(after, frame, "what goes forward is not changed");
    }

    /// The window that goes on.
    fn back(&mut self, packet: &[u8], what: &str) -> u16 {
        self.now += Duration::from_micros(100);
        let mut changed = packet.to_vec();
        let verdict = self.control.returning(
            self.now,
            &mut changed,
            packet.len(),
            ChecksumState::Complete,
            Length::default(),
        );
        let (after, _) = self.tc.try_out(false, &Both::frame(packet), 1).unwrap();
        assert_eq!(after, Both::frame(&changed), "{what}");
        self.rewritten += u64::from(verdict.rewritten);
        Segment::peek(&changed, changed.len()).map_or(0, |segment| segment.window)
    }
}

/// A connection, and as much of it as its ends must know.
struct Flow {
    sender: SocketAddr,
    receiver: SocketAddr,
    sent: u32,
    received: u32,
    /// The right edge as the sender may at most know it.
    edge: u32,
    scale: u8,
}

impl Flow {
    fn header(flags: Flags, seq: u32, ack: u32, window: u16, options: Options) -> TcpHeader {
        let (seq, ack) = (Seq::new(seq), Seq::new(ack));
        TcpHeader { seq, ack, flags, window, options, ..TcpHeader::default() }
    }

    /// A handshake, opened by either side.
    fn open(number: u16, dice: &mut Dice, both: &mut Both) -> Flow {
        let (sender, receiver) = match dice.one_in(2) {
            true => ("192.0.2.1:1000", "198.51.100.2:80"),
            false => ("[2001:db8::1]:1000", "[2001:db8::2]:80"),
        };
        let (mut sender, receiver): (SocketAddr, SocketAddr) =
            (sender.parse().unwrap(), receiver.parse().unwrap());
        sender.set_port(1000 + number);
        let (sent, received) = (dice.next() as u32, dice.next() as u32);
        let mut options = || Options {
            mss: (!dice.one_in(8)).then(|| 88 + dice.below(9000) as u16),
            window_scale: (!dice.one_in(6)).then(|| dice.below(18) as u8),
            sack_permitted: dice.one_in(2),
            ..Options::default()
        };
        let (ours, theirs) = (options(), options());
        let window = dice.window();
        let by_sender = dice.one_in(2);
        let (first, second) = (Flags::SYN, Flags::SYN | Flags::ACK);
        let sender_syn = |ack: bool| {
            let (flags, number) = if ack { (second, received.wrapping_add(1)) } else { (first, 0) };
            packets::tcp(sender, receiver, &Flow::header(flags, sent, number, 65_535, ours), &[])
        };
        let receiver_syn = |ack: bool| {
            let (flags, number) = if ack { (second, sent.wrapping_add(1)) } else { (first, 0) };
            packets::tcp(
                receiver,
                sender,
                &Flow::header(flags, received, number, window, theirs),
                &[],
            )
        };
        if by_sender {
            both.forward(&sender_syn(false));
            both.back(&receiver_syn(true), "a SYN");
        } else {
            both.back(&receiver_syn(false), "a SYN");
            both.forward(&sender_syn(true));
        }
        let scale = match (ours.window_scale, theirs.window_scale) {
            (Some(_), Some(scale)) => scale.min(14),
            _ => 0,
        };
        let edge = sent.wrapping_add(1).wrapping_add(window.into());
        Flow {
            sender,
            receiver,
            sent: sent.wrapping_add(1),
            received: received.wrapping_add(1),
            edge,
            scale,
        }
    }

    /// The receiver says something.
    fn say(&mut self, dice: &mut Dice, both: &mut Both) {
        let window = dice.window();
        let room = self.edge.wrapping_sub(self.sent) as i32;
        if room > 0 && !dice.one_in(4) {
            self.sent = self.sent.wrapping_add(dice.below(room as u64 + 1).min(100_000) as u32);
        }
        // An old one now and then, which came late.
        let late = if dice.one_in(8) { dice.below(20_000) as u32 } else { 0 };
        let ack = self.sent.wrapping_sub(late);
        let flags = match dice.below(64) {
            0 => Flags::ACK | Flags::FIN,
            1 => Flags::RST,
            _ => Flags::ACK,
        };
        let payload = vec![7; dice.below(3) as usize * 30];
        let header = Flow::header(flags, self.received, ack, window, Options::default());
        let packet = packets::tcp(self.receiver, self.sender, &header, &payload);
        let what = format!("ack {ack}, window {window} << {}, flags {flags:?}", self.scale);
        let window = both.back(&packet, &what);
        // The sender sends no more than it is told.
        let told = ack.wrapping_add(u32::from(window) << self.scale);
        if flags.contains(Flags::ACK) && told.wrapping_sub(self.edge) as i32 > 0 {
            self.edge = told;
        }
    }
}

fn same(seed: u64, quiet: &Namespace) -> Option<u64> {
    let text = "target-window(upper=40kB, lower=20kB, initial=6000B, most=64KiB)";
    let config = ControlConfig::new(text.parse().unwrap());
    let tc = match quiet.run(|| Tc::attach(TcOptions::new("lo", config))).unwrap() {
        Ok(tc) => tc,
        Err(error @ (Refusal::Capability { .. } | Refusal::NoTypes | Refusal::BigEndian)) => {
            eprintln!("SKIPPED: {error}");
            return None;
        }
        Err(error) => panic!("{error:?}"),
    };
    let control = WindowControl::new(&config, [7; 16]).unwrap();
    let mut both = Both { tc, control, now: Instant::from_secs(1), rewritten: 0 };
    let mut dice = Dice(seed);
    let mut flows: Vec<Flow> =
        (0..8).map(|number| Flow::open(number, &mut dice, &mut both)).collect();
    for _ in 0..1000 {
        let flow = dice.below(8) as usize;
        match dice.below(16) {
            // Data towards the bottleneck, which raises the target.
            0..4 => {
                let flow = &flows[flow];
                let header =
                    Flow::header(Flags::ACK, flow.sent, flow.received, 1000, Options::default());
                let payload = vec![1; 1 + dice.below(1400) as usize];
                both.forward(&packets::tcp(flow.sender, flow.receiver, &header, &payload));
            }
            // Cut off somewhere, or something that means nothing.
            4 => {
                let flow = &flows[flow];
                let header =
                    Flow::header(Flags::ACK, flow.received, flow.sent, 9, Options::default());
                let mut packet = packets::tcp(flow.receiver, flow.sender, &header, &[]);
                // The kernel wants an IP header to be there.
                let ip = packet.len() - 20;
                packet.truncate(ip + dice.below(20) as usize);
                both.back(&packet, "a truncated packet");
            }
            5 => {
                let flow = &flows[flow];
                let bytes: Vec<u8> = (0..20 + dice.below(40)).map(|_| dice.next() as u8).collect();
                both.back(
                    &packets::raw_tcp(flow.receiver.ip(), flow.sender.ip(), &bytes),
                    "nonsense",
                );
            }
            _ => flows[flow].say(&mut dice, &mut both),
        }
    }
    flows.clear();
    let status = both.tc.status(0).unwrap();
    assert_eq!(status.target, both.control.target(), "the target");
    assert_eq!(status.counters.rewritten, both.rewritten);
    Some(both.rewritten)
}

#[test]
fn the_kernel_does_as_we_do() {
    let Ok(quiet) = Namespace::new() else {
        eprintln!("SKIPPED: no network namespaces here");
        return;
    };
    if !support::installed("tc") {
        return;
    }
    // Nobody says anything there, so that what is tried out is all there is.
    run(&quiet, "tc", &["qdisc", "add", "dev", "lo", "root", "pfifo", "limit", "10"]);
    let mut rewritten = 0;
    for seed in 0..20 {
        let Some(count) = same(seed, &quiet) else { return };
        rewritten += count;
    }
    assert!(rewritten > 1000, "hardly anything was done: {rewritten}");
}
