//! Packets that come back together go on in their order, and only their windows change.
//!
//! Everything runs on one processor, so that a burst is there as a whole when the thread that decides about it wakes up, and that the kernel
//! itself keeps the order.

use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use crate::inject::{FAR, NEAR, START, Side, segment, sides};
use crate::support::{BOTTLENECK, Net, Offloads, network, policy, wire};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use transom_forwarder::{Deployment, Nfqueue, PolicyFile, Refusal, User};
use transom_router::window::Segment;
use transom_wire::ip::IpPacket;
use transom_wire::tcp::{Flags, Options};

/// Connections whose handshake passes; as many others are not known.
const FLOWS: u16 = 8;
/// Packets of a burst: more than are treated together.
const BURST: u32 = 100;
const BURSTS: u32 = 20;
/// Bytes that a receiver takes at first.
const FIRST: u16 = 60_000;
/// Of each acknowledgement: 64,000 bytes.
const WINDOW: u16 = 500;
const SCALE: u8 = 7;
/// What begins the payload of a numbered packet.
const MARK: &[u8; 4] = b"nr. ";

/// Keeps this thread, and those that it starts, on one processor.
fn one_processor() {
    let may = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|cpu| may.is_set(*cpu)).unwrap();
    let mut set = CpuSet::new();
    set.set(first);
    sched_setaffinity(None, &set).unwrap();
}

fn started<T: Deployment + 'static>(result: Result<T, Refusal>) -> Option<T> {
    match result {
        Ok(started) => Some(started),
        Err(error @ (Refusal::Capability { .. } | Refusal::NoQueues(_) | Refusal::Tool { .. })) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

fn ends(flow: u16) -> (SocketAddrV4, SocketAddrV4) {
    (SocketAddrV4::new(NEAR, 40_000 + flow), SocketAddrV4::new(FAR, 80))
}

/// Waits until `done`, but not for ever.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A packet that comes back: the `number`th.
fn returning(number: u32) -> Vec<u8> {
    let flow = (number * 7 % u32::from(2 * FLOWS)) as u16;
    let (sender, receiver) = ends(flow);
    let mut payload = MARK.to_vec();
    payload.extend(number.to_be_bytes());
    // 1000 bytes of the sender's each time.
    let ack = 101 + 1000 * (number / u32::from(2 * FLOWS));
    let seq = 901 + number * 8;
    segment(receiver, sender, Flags::ACK, (seq, ack), WINDOW, &Options::default(), &payload)
}

/// A frame that is no IP, with a number.
fn other(number: u32) -> Vec<u8> {
    let mut frame = vec![0; START - 14];
    frame.extend([2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x88, 0xb5]);
    frame.extend([0; 40]);
    frame.extend(MARK);
    frame.extend(number.to_be_bytes());
    frame
}

/// The number in a frame, if it is one of ours.
fn number(frame: &[u8]) -> Option<u32> {
    let at = frame.windows(4).rposition(|four| four == MARK)? + 4;
    Some(u32::from_be_bytes(*frame.get(at..)?.first_chunk()?))
}

/// A packet without what a router, or window control, changes.
fn blanked(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[8] = 0;
    packet[10..12].fill(0);
    packet[34..38].fill(0);
    packet
}

/// Whether a segment to this port with these flags has arrived at a side.
fn arrives(side: &mut Side, port: u16, flags: Flags) -> bool {
    while let Some(frame) = side.receive() {
        let packet = frame.get(START..).unwrap_or_default();
        let segment = Segment::peek(packet, packet.len());
        if segment.is_some_and(|one| (one.dst_port, one.flags) == (port, flags)) {
            return true;
        }
    }
    false
}

/// Sends bursts and looks at what arrives of them. `others` is whether the deployment sees more than TCP.
fn in_order(net: &Net, deployment: &mut dyn Deployment, others: bool) {
    let [mut near, mut far]: [Side; 2] = sides(net, !others);
    let options = Options { mss: Some(1460), window_scale: Some(SCALE), ..Options::default() };
    for flow in 0..FLOWS {
        let (sender, receiver) = ends(flow);
        let segment = |from, to, flags, numbers, options: &Options| {
            segment(from, to, flags, numbers, FIRST, options, &[])
        };
        near.send(&segment(sender, receiver, Flags::SYN, (100, 0), &options));
        // On its other side. A count of arrivals would not do: hosts say things of their own as well.
        until("the SYN did not come", || arrives(&mut far, receiver.port(), Flags::SYN));
        far.send(&segment(receiver, sender, Flags::SYN | Flags::ACK, (900, 101), &options));
        let answer = Flags::SYN | Flags::ACK;
        until("the answer did not come", || arrives(&mut near, sender.port(), answer));
        near.send(&segment(sender, receiver, Flags::ACK, (101, 901), &Options::default()));
        until("the flow did not open", || {
            deployment.status(0).unwrap().counters.confirmed == u64::from(flow) + 1
        });
    }
    let (mut next, mut rewritten) = (0, 0u64);
    for burst in 0..BURSTS {
        for number in burst * BURST..(burst + 1) * BURST {
            if others && number % 10 == 9 {
                far.send_frame(&other(number));
            } else {
                far.send(&returning(number));
            }
        }
        until("not all of a burst arrived", || {
            while let Some(frame) = near.receive() {
                // Hosts say things of their own as well.
                let Some(number) = number(frame) else { continue };
                assert_eq!(number, next, "not in order");
                next += 1;
                if others && number % 10 == 9 {
                    assert_eq!(frame, other(number));
                    continue;
                }
                rewritten += u64::from(compare(&frame[START..], &returning(number)));
            }
            next == (burst + 1) * BURST
        });
    }
    let status = deployment.status(0).unwrap();
    assert_eq!(status.counters.rewritten, rewritten);
    assert!(rewritten > 500, "{rewritten}");
    let all = u64::from(BURST * BURSTS);
    let acks = if others { all - all / 10 } else { all };
    assert_eq!(status.counters.acks, acks);
}

/// Whether what arrived has another window than what was sent.
fn compare(new: &[u8], old: &[u8]) -> bool {
    assert_eq!(blanked(new), blanked(old));
    assert!(IpPacket::parse(new).unwrap().transport_checksum_ok());
    let segment = |packet: &[u8]| Segment::peek(packet, packet.len()).unwrap();
    let (new, old) = (segment(new), segment(old));
    assert!(new.window <= old.window);
    let known = new.dst_port < 40_000 + FLOWS;
    assert!(known || new.window == old.window, "nothing is known of its flow");
    // The rest of the SYN's window is not taken back.
    let edge = old.ack.get() + (u32::from(new.window) << SCALE);
    let told = 101 + u32::from(FIRST);
    assert!(!known || edge >= told.min(old.ack.get() + 64_000), "{edge} is left of {told}");
    new.window != old.window
}

#[test]
fn nfqueue_keeps_the_order() {
    one_processor();
    let Some(net) = network(Offloads::Off) else { return };
    let config = transom_router::window::ControlConfig {
        policy: "target-window(upper=40kB, lower=20kB, initial=20kB, most=20kB, rule=section-3.2)"
            .parse()
            .unwrap(),
        ..policy()
    };
    let made = net.router.run(|| Nfqueue::start(BOTTLENECK, &config)).unwrap();
    let Some(mut nfqueue) = started(made) else { return };
    in_order(&net, &mut nfqueue, false);
}

#[test]
fn user_keeps_the_order() {
    one_processor();
    let Some(net) = wire(Offloads::Off) else { return };
    let text = "policy = 'target-window(upper=40kB, lower=20kB, initial=20kB, most=20kB, rule=section-3.2)'\nrate = '1Gbit/s'";
    let policy: PolicyFile = text.parse().unwrap();
    let made = net.router.run(|| User::start("in", BOTTLENECK, &policy)).unwrap();
    let Some(mut user) = started(made) else { return };
    in_order(&net, &mut user, true);
}

#[test]
fn held_acknowledgements_keep_the_order() {
    one_processor();
    let Some(net) = wire(Offloads::Off) else { return };
    let text = "policy = 'ack-delay(above=1B, most=5ms)'\nrate = '1Mbit/s'";
    let policy: PolicyFile = text.parse().unwrap();
    let made = net.router.run(|| User::start("in", BOTTLENECK, &policy)).unwrap();
    let Some(mut user) = started(made) else { return };
    let [mut near, far] = sides(&net, false);
    // 20 kB are 160 ms of the link: what comes back meanwhile is held for as long as may be.
    let (from, to) = ends(1);
    for _ in 0..20 {
        near.send(&segment(from, to, Flags::ACK, (1, 1), 1, &Options::default(), &[0; 1000]));
    }
    let mut next = 0;
    for burst in 0..5 {
        (burst * BURST..(burst + 1) * BURST).for_each(|number| far.send(&returning(number)));
        until("not all of a burst arrived", || {
            while let Some(frame) = near.receive() {
                let Some(number) = number(frame) else { continue };
                assert_eq!(number, next, "not in order");
                next += 1;
            }
            next == (burst + 1) * BURST
        });
    }
    let held = user.status(0).unwrap().counters.held;
    assert!(held > 50, "{held} of {next} were held");
}
