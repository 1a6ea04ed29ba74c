//! The algorithm is there twice: in Rust, and in C for the kernel. Here both get the same packets, and have to make the same of them.
//!
//! The programs run on frames that are on no interface (`BPF_PROG_TEST_RUN`), as if on a loopback interface, whose queue is empty. So when the
//! core's target is halved, the programs' is put there. One difference is intended, and the traffic avoids it: the core gives up a flow after too
//! many implausible acknowledgements, and the programs do not.

mod both;

use std::net::UdpSocket;
use std::process::Command;

use crate::support::{self, run};
use both::{Both, Dice, Flow};
use transom_device::interface::Interfaces;
use transom_device::namespace::Namespace;
use transom_forwarder::tc::{Options as TcOptions, Tc};
use transom_forwarder::{Deployment, Refusal};
use transom_router::queue::Length;
use transom_router::window::{ControlConfig, WindowControl};
use transom_testkit::packets;
use transom_wire::tcp::{Flags, Options};

/// Both with this policy, on the loopback interface of the namespace that this runs in. `None` and a word about it where that cannot be had.
fn attached(policy: &str, queue: Option<Length>) -> Option<Both> {
    let config = ControlConfig::new(policy.parse().unwrap());
    let tc = match Tc::attach(TcOptions::new("lo", config)) {
        Ok(tc) => tc,
        Err(error @ (Refusal::Capability { .. } | Refusal::NoTypes | Refusal::BigEndian)) => {
            eprintln!("SKIPPED: {error}");
            return None;
        }
        Err(error) => panic!("{error:?}"),
    };
    Some(Both::new(tc, WindowControl::new(&config, [7; 16]).unwrap(), queue))
}

/// Random packets of these flows.
fn traffic(dice: &mut Dice, flows: &mut [Flow], both: &mut Both, count: u32) {
    for _ in 0..count {
        let flow = dice.below(flows.len() as u64) as usize;
        match dice.below(18) {
            17 => flows[flow].say_oddly(dice, both),
            16 => both.halve(),
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
            _ => flows[flow].say(dice, both),
        }
    }
}

fn same(seed: u64, quiet: &Namespace) -> Option<u64> {
    let switches = ["", ", syn-windows", ", syn-windows, rule=section-3.2"][seed as usize % 3];
    let text = format!(
        "target-window(upper=40kB, lower=20kB, halve-after=1B, raise=1/2, initial=6000B, most=64KiB{switches})"
    );
    let mut both = quiet.run(|| attached(&text, None)).unwrap()?;
    let mut dice = Dice(seed);
    let mut flows: Vec<Flow> =
        (0..32).map(|number| Flow::open(number, &mut dice, &mut both)).collect();
    assert!((both.syns == 0) == seed.is_multiple_of(3), "{} SYNs were rewritten", both.syns);
    traffic(&mut dice, &mut flows, &mut both, 1200);
    flows.clear();
    let status = both.tc.status(0).unwrap();
    assert_eq!(status.target, both.control.report().target, "the target");
    assert_eq!(status.counters.rewritten, both.rewritten);
    let unreadable = both.control.report().counters.unreadable;
    assert!(unreadable > 50, "hardly anything was cut off: {unreadable}");
    assert_eq!(status.counters.unreadable, unreadable);
    let core = both.control.report().counters;
    assert_eq!(status.counters.confirmed, core.opened, "handshakes that are over");
    assert_eq!(status.counters.acks, core.acks);
    assert!(core.covered > 50, "hardly anything was covered: {}", core.covered);
    assert_eq!(status.counters.covered, core.covered);
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
    // No other packets pass there, so only the tested ones are seen.
    run(&quiet, "tc", &["qdisc", "add", "dev", "lo", "root", "pfifo", "limit", "10"]);
    let mut rewritten = 0;
    for seed in 0..48 {
        let Some(count) = same(seed, &quiet) else { return };
        rewritten += count;
    }
    assert!(rewritten > 1000, "hardly anything was done: {rewritten}");
}

/// Bytes of the datagrams that wait.
const DATAGRAM: usize = 1000;
/// Bytes of what is about one on a loopback interface: Ethernet, IPv4 and UDP.
const HEADERS: u32 = 14 + 20 + 8;
const LOOPBACK: u32 = 1;

/// A queue from which hardly anything leaves, with so many datagrams in it.
fn fill(waiting: u32) -> Length {
    let to = UdpSocket::bind("127.0.0.1:0").unwrap();
    let from = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut interfaces = Interfaces::open().unwrap();
    // The first goes at once, on what the bucket holds.
    for _ in 0..=waiting {
        from.send_to(&[0; DATAGRAM], to.local_addr().unwrap()).unwrap();
    }
    let queue = interfaces.root_queue(LOOPBACK).unwrap();
    assert_eq!((queue.packets, queue.drops), (waiting, 0), "{queue:?}");
    assert_eq!(queue.bytes, waiting * (DATAGRAM as u32 + HEADERS));
    Length { packets: queue.packets.into(), bytes: queue.bytes.into() }
}

/// The target after random traffic in front of a queue of this length; `None` where there is no kernel to compare with.
fn in_front_of(seed: u64, policy: &str, waiting: u32) -> Option<u64> {
    // Another kind in between, or it would be the same queue with what is in it.
    for kind in ["pfifo limit 1", "tbf rate 8bit burst 1500 limit 1mb"] {
        let words = "qdisc replace dev lo root".split(' ').chain(kind.split(' '));
        assert!(Command::new("tc").args(words).status().unwrap().success());
    }
    let queue = fill(waiting);
    let mut both = attached(policy, Some(queue))?;
    let mut dice = Dice(seed);
    let mut flows: Vec<Flow> =
        (0..8).map(|number| Flow::open(number, &mut dice, &mut both)).collect();
    traffic(&mut dice, &mut flows, &mut both, 300);
    let status = both.tc.status(0).unwrap();
    let what = format!("{policy} in front of {queue:?}, seed {seed}");
    assert_eq!(status.target, both.control.report().target, "{what}");
    assert_eq!(status.counters.rewritten, both.rewritten, "{what}");
    let still = Interfaces::open().unwrap().root_queue(LOOPBACK).unwrap();
    assert_eq!(still.packets, waiting, "somebody else was there");
    status.target
}

/// With a queue that really is as long, in either unit, just at the thresholds too.
#[test]
fn the_kernel_finds_the_same_queue() {
    let Ok(slow) = Namespace::new() else {
        eprintln!("SKIPPED: no network namespaces here");
        return;
    };
    if !support::installed("tc") {
        return;
    }
    run(&slow, "ip", &["link", "set", "lo", "up"]);
    let each = DATAGRAM as u32 + HEADERS;
    let (low, high) = (10 * each, 30 * each);
    let common = "initial=20kB, most=64KiB";
    let policies = [
        format!(
            "target-window(upper=30 packets, lower=10 packets, halve-after=15 packets, raise=1/64, {common})"
        ),
        format!(
            "target-window(upper={high}B, lower={low}B, halve-after=9000B, raise=1/64, {common})"
        ),
        format!(
            "target-window(upper=30 packets, lower=10 packets, halve-after=3000B, raise=1/8, rule=section-3.2, {common})"
        ),
        format!(
            "target-window(upper={high}B, lower={low}B, halve-after=7 packets, raise=1/8, syn-windows, {common})"
        ),
    ];
    slow.run(|| {
        for (seed, policy) in policies.iter().enumerate() {
            let target = |waiting| in_front_of(seed as u64, policy, waiting);
            let Some(short) = target(9) else { return };
            assert!(short > 20_000, "{policy}: {short} in front of a short queue");
            for waiting in [10, 20, 30] {
                assert_eq!(target(waiting), Some(20_000), "{policy}: {waiting} wait");
            }
            let long = target(31).unwrap();
            assert!(long < 20_000, "{policy}: {long} in front of a long queue");
        }
    })
    .unwrap();
}
