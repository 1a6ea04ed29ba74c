//! Spoofed packets by the hundred thousand: a flow that was there before stays under control, and memory stays bounded.
//!
//! SYNs of both families come from sources that nobody has, with ports at random, from either side; data, acknowledgements and answers to SYNs come of
//! connections that never were. Meanwhile real connections come and go. The tests send as many as take a few seconds; `cargo test -p transom-forwarder --test flood -- --ignored` sends a million.

mod inject;
mod support;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use inject::{FAR, FAR_SIX, NEAR, NEAR_SIX, segment, sides};
use support::{BOTTLENECK, Net, Offloads, network, run, started, wait_until, wire};
use transom_device::namespace::Namespace;
use transom_forwarder::tc::{Options as TcOptions, Tc};
use transom_forwarder::{Deployment, Nfqueue, PolicyFile, User};
use transom_testkit::packets;
use transom_wire::Seq;
use transom_wire::tcp::{Flags, Options, TcpHeader};

/// Flows that a test makes up.
const SOME: u32 = 200_000;
const MILLION: u32 = 1_000_000;
/// Flows that are remembered.
const FLOWS: u32 = 10_000;
/// Windows are to be this, always.
const TARGET: u64 = 20_000;
/// Packets that are on their way to the router at most.
const AHEAD: u64 = 1000;
/// What the process may grow by, in bytes: a table of 15,000 slots and buffers. A million records would be 64 MB.
const GROWTH: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// Floods are run one after the other: they share the processors and the process' memory.
static ALONE: Mutex<()> = Mutex::new(());

fn file() -> PolicyFile {
    let text = format!(
        "policy = 'target-window(upper=40kB, lower=20kB, initial={TARGET}B, most={TARGET}B, rule=section-3.2)'\nflows = {FLOWS}\nrate = '1Gbit/s'"
    );
    text.parse().unwrap()
}

/// A connection that is there for long.
struct Kept {
    sender: TcpStream,
    receiver: TcpStream,
    moved: u32,
}

impl Kept {
    fn open(from: &Namespace, to: &Namespace, address: &str) -> Self {
        let address: Ipv4Addr = address.parse().unwrap();
        let listener = to.run(|| TcpListener::bind((address, 0)).unwrap()).unwrap();
        let at: SocketAddr = listener.local_addr().unwrap();
        let sender = from.run(|| TcpStream::connect_timeout(&at, PATIENCE).unwrap()).unwrap();
        let (receiver, _) = listener.accept().unwrap();
        for stream in [&sender, &receiver] {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
        }
        Kept { sender, receiver, moved: 0 }
    }

    /// Moves bytes that come only once, and looks at them.
    fn move_bytes(&mut self, bytes: u32) {
        let pattern: Vec<u8> = (self.moved..self.moved + bytes)
            .map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[3])
            .collect();
        self.moved += bytes;
        let (sender, receiver) = (&mut self.sender, &mut self.receiver);
        thread::scope(|scope| {
            scope.spawn(|| sender.write_all(&pattern).unwrap());
            let mut arrived = vec![0; pattern.len()];
            receiver.read_exact(&mut arrived).unwrap();
            assert!(arrived == pattern, "other bytes arrived");
        });
    }
}

/// Memory of this process, in bytes (proc(5)).
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// Somebody who is not there.
fn spoofed(state: &mut u64) -> SocketAddrV4 {
    let dice = random(state);
    let [_, a, b, c, high, low, ..] = dice.to_be_bytes();
    SocketAddrV4::new(Ipv4Addr::new(172, 16 | a & 15, b, c), u16::from_be_bytes([high, low]))
}

/// A SYN of somebody of the other family.
fn spoofed_six(state: &mut u64, to: Ipv6Addr, seq: u32, options: &Options) -> Vec<u8> {
    let (high, port) = (random(state), random(state) as u16);
    let source = Ipv6Addr::from(0x2001_0db8 << 96 | u128::from(high));
    let (flags, options, window) = (Flags::SYN, *options, 64_000);
    let header = TcpHeader { seq: Seq::new(seq), flags, window, options, ..TcpHeader::default() };
    packets::tcp((source, port).into(), (to, 80).into(), &header, &[])
}

/// What was sent.
#[derive(Default)]
struct Sent {
    forward: AtomicU64,
    returning: AtomicU64,
}

fn flood(net: &Net, forwards: bool, flows: u32, deployment: &mut dyn Deployment, sent: &Sent) {
    let [near, far] = sides(net, forwards);
    let options = Options { mss: Some(1460), window_scale: Some(7), ..Options::default() };
    let none = Options::default();
    let (here, there) = (SocketAddrV4::new(NEAR, 80), SocketAddrV4::new(FAR, 80));
    let mut state = 1;
    for number in 0..flows {
        let (from, seq) = (spoofed(&mut state), random(&mut state) as u32);
        if number % 3 == 0 {
            near.send(&spoofed_six(&mut state, FAR_SIX, seq, &options));
        } else {
            near.send(&segment(from, there, Flags::SYN, (seq, 0), 64_000, &options, &[]));
        }
        sent.forward.fetch_add(1, Ordering::Relaxed);
        if number % 4 == 0 {
            let data = segment(from, there, Flags::ACK, (seq, 1), 500, &none, &[0; 10]);
            near.send(&data);
            sent.forward.fetch_add(1, Ordering::Relaxed);
        }
        // Answers to what nobody has asked, either way, and calls from the receivers' side.
        let answer = |to| segment(from, to, Flags::SYN | Flags::ACK, (seq, 1), 500, &options, &[]);
        match number % 12 {
            1 | 5 => far.send(&answer(here)),
            3 => far.send(&spoofed_six(&mut state, NEAR_SIX, seq, &options)),
            7 => far.send(&segment(from, here, Flags::SYN, (seq, 0), 64_000, &options, &[])),
            9 => {
                near.send(&answer(there));
                sent.forward.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
        if number % 4 == 2 {
            far.send(&segment(from, here, Flags::ACK, (seq, 1), 500, &none, &[]));
            sent.returning.fetch_add(1, Ordering::Relaxed);
        }
        if number % 256 == 255 {
            // Packets that come faster than they can be read are lost, or pass unread.
            wait_until(deployment, |status| {
                let counters = status.counters;
                counters.arrivals + AHEAD >= sent.forward.load(Ordering::Relaxed)
                    && counters.unknown + AHEAD >= sent.returning.load(Ordering::Relaxed)
            });
        }
    }
}

/// `forwards` is whether the router's kernel does; else it is a wire.
fn withstands(
    net: &Net,
    forwards: bool,
    flows: u32,
    start: impl FnOnce() -> Option<Box<dyn Deployment>>,
) {
    let Some(mut deployment) = start() else { return };
    let deployment = &mut *deployment;
    let address = if forwards { "10.2.0.2" } else { "10.1.0.3" };
    let mut kept = Kept::open(&net.sender, &net.receiver, address);
    kept.move_bytes(1_000_000);
    let before = deployment.status(1).unwrap();
    assert_eq!((before.counters.confirmed, before.tracked), (1, 1), "{before:?}");
    assert!(before.counters.rewritten > 0, "{before:?}");
    let resident_before = resident();

    let (sent, done) = (Sent::default(), AtomicBool::new(false));
    let begin = Instant::now();
    let came: u64 = thread::scope(|scope| {
        let moving = scope.spawn(|| {
            let mut came = 0;
            while !done.load(Ordering::Relaxed) {
                kept.move_bytes(10_000);
                let mut new = Kept::open(&net.sender, &net.receiver, address);
                new.move_bytes(50_000);
                came += 1;
                thread::sleep(Duration::from_millis(10));
            }
            came
        });
        flood(net, forwards, flows, deployment, &sent);
        done.store(true, Ordering::Relaxed);
        moving.join().unwrap()
    });
    let [forward, returning] =
        [&sent.forward, &sent.returning].map(|sent| sent.load(Ordering::Relaxed));
    let after = wait_until(deployment, |status| {
        status.counters.unknown >= returning && status.counters.arrivals >= forward
    });
    let took = begin.elapsed();
    let grown = resident().saturating_sub(resident_before);
    let counters = after.counters;
    eprintln!(
        "{}: {forward} packets forward and {returning} back in {took:?}, {came} connections came and {} bytes moved meanwhile, grown by {grown} bytes, {counters:?}",
        after.mode,
        kept.moved - 1_000_000
    );
    // Those who are there have come into the table and nobody else, and the first has not left it.
    assert_eq!(counters.confirmed, 1 + came, "{after:?}");
    assert!(came > 0 && (1..=1 + came).contains(&after.tracked), "{after:?}");
    assert_eq!(after.capacity, before.capacity);
    assert_eq!((counters.unknown, counters.implausible, counters.failed), (returning, 0, 0));
    assert!(grown <= GROWTH, "grown by {grown} bytes");
    // And it is still under control.
    kept.move_bytes(1_000_000);
    let last = deployment.status(1).unwrap();
    assert!(last.counters.rewritten > counters.rewritten, "{last:?}, {after:?}");
    let flow = &last.flows[0];
    assert_eq!(flow.sender, kept.sender.local_addr().unwrap());
    assert_eq!(flow.desired, TARGET);
}

/// A network whose bottleneck is none: the flood is not about it.
fn fast() -> Option<Net> {
    let net = network(Offloads::On)?;
    let words = [
        "qdisc", "replace", "dev", BOTTLENECK, "root", "tbf", "rate", "1gbit", "burst", "100kb",
        "limit", "1mb",
    ];
    run(&net.router, "tc", &words);
    Some(net)
}

fn tc(flows: u32) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(net) = fast() else { return };
    withstands(&net, true, flows, || {
        started(net.router.run(|| Tc::attach(TcOptions::new(BOTTLENECK, file().control))).unwrap())
    });
}

fn nfqueue(flows: u32) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(net) = fast() else { return };
    withstands(&net, true, flows, || {
        started(net.router.run(|| Nfqueue::start(BOTTLENECK, &file().control)).unwrap())
    });
}

fn user(flows: u32) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(net) = wire(Offloads::On) else { return };
    withstands(&net, false, flows, || {
        started(net.router.run(|| User::start("in", BOTTLENECK, &file())).unwrap())
    });
}

#[test]
fn tc_withstands_spoofed_flows() {
    tc(SOME);
}

#[test]
fn nfqueue_withstands_spoofed_flows() {
    nfqueue(SOME);
}

#[test]
fn user_withstands_spoofed_flows() {
    user(SOME);
}

#[test]
#[ignore = "takes long"]
fn tc_withstands_a_million() {
    tc(MILLION);
}

#[test]
#[ignore = "takes long"]
fn nfqueue_withstands_a_million() {
    nfqueue(MILLION);
}

#[test]
#[ignore = "takes long"]
fn user_withstands_a_million() {
    user(MILLION);
}
