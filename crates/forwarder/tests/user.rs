//! Mode user between kernels: the router is a wire.

use std::net::SocketAddrV4;
use std::time::{Duration, Instant};

use crate::inject::{FAR, NEAR, segment, sides};
use crate::support::{
    BOTTLENECK, Net, Offloads, Way, audited, audited_with_syns, every_policy, intact, policy, run,
    senders, wire,
};
use transom_forwarder::{Deployment, PartStatus, PolicyFile, Refusal, User};
use transom_wire::tcp::{Flags, Options};

const TEXT: &str = "policy = 'target-window(upper=40kB, lower=20kB, rule=section-3.2)'\nrate = '10Mbit/s'\nqueue = '75kB'";

/// Started in the router, or `None` and a word about it.
fn start(net: &Net, text: &str) -> Option<User> {
    let policy: PolicyFile = text.parse().unwrap();
    match net.router.run(|| User::start("in", BOTTLENECK, &policy)).unwrap() {
        Ok(started) => Some(started),
        Err(error @ Refusal::Capability { .. }) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

#[test]
fn less_is_lost_than_without_control() {
    let drops = |text| {
        let net = wire(Offloads::On)?;
        let mut user = start(&net, text)?;
        net.transfer(Way { senders: senders(), ..Way::default() }, 10, 1_000_000);
        let status = user.status(0).unwrap();
        // Ten megabytes at ten megabits in a second, and headers; whoever sends faster has not waited.
        assert!(status.queue.sent_bytes > 10_000_000, "{status:?}");
        Some((status.queue.drops, status.counters))
    };
    // The same queue and link, and nothing else.
    let nothing = "policy = 'none'\nrate = '10Mbit/s'\nqueue = '75kB'";
    let (Some((without, seen)), Some((with, counters))) = (drops(nothing), drops(TEXT)) else {
        return;
    };
    assert_eq!((seen.confirmed, seen.rewritten, seen.held), (10, 0, 0));
    assert!(seen.acks > 100, "{seen:?}");
    assert_eq!((counters.confirmed, counters.unknown, counters.implausible), (10, 0, 0));
    eprintln!("without control {without} dropped, with it {with}");
    assert!(with * 2 < without, "{with} dropped, {without} without control");
}

#[test]
fn every_queue_carries_kernel_senders() {
    through_every_queue(senders());
}

/// BBR asks neither for a short queue nor for marks: it keeps two products of rate and round trip in flight, and four segments at least. Its four flows
/// have a queue that stands, which the disciplines mark all the time.
#[test]
fn every_queue_carries_kernel_senders_with_bbr() {
    let kinds = senders();
    match kinds.iter().position(|kind| *kind == "bbr") {
        Some(at) => through_every_queue(&kinds[at..=at]),
        None => eprintln!("SKIPPED: this kernel has no BBR"),
    }
}

/// Kernel senders with ECN through each queue discipline: all arrives, the queue's parts add up to the whole, and the metrics show them.
fn through_every_queue(senders: &'static [&'static str]) {
    for (queue, parts, marks) in [
        ("fq-codel(300 packets, target=1ms, interval=10ms)", &["sparse", "bulk"][..], true),
        ("dualpi2(300 packets, target=5ms)", &["low-latency", "classic"], true),
        ("cake(200kB, bandwidth=9Mbit/s, rtt=10ms)", &["sparse", "bulk"], true),
        ("fq(300 packets, maxrate=8Mbit/s)", &["flows"], false),
        ("codel(target=1ms, interval=10ms, ecn)", &[], true),
    ] {
        let Some(net) = wire(Offloads::Off) else { return };
        for end in [&net.sender, &net.receiver] {
            end.run(|| std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").unwrap()).unwrap();
        }
        let text = format!("policy = 'none'\nrate = '10Mbit/s'\nqueue = '{queue}'");
        let Some(mut user) = start(&net, &text) else { return };
        net.transfer(Way { senders, ..Way::default() }, 4, 300_000);
        let status = user.status(0).unwrap();
        let seen: Vec<&str> = status.queue.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(seen, parts, "{queue}");
        eprintln!("{queue}: {:?}", status.queue);
        if !parts.is_empty() {
            let of =
                |count: fn(&PartStatus) -> u64| status.queue.parts.iter().map(count).sum::<u64>();
            assert!(of(|part| part.sent_packets) >= status.queue.sent_packets, "{queue}");
            assert_eq!(of(|part| part.marks), status.queue.marks, "{queue}");
            assert_eq!(of(|part| part.drops), status.queue.drops, "{queue}");
        }
        assert!(status.queue.sent_bytes > 4 * 300_000, "{queue}");
        assert_eq!(status.queue.marks > 0, marks, "{queue}: {:?}", status.queue);
        let metrics = status.metrics();
        assert!(metrics.contains("transom_router_queue_marks_total{"));
        for part in parts {
            let line = format!(
                "transom_router_part_sent_packets_total{{device=\"{BOTTLENECK}\",mode=\"user\",queue=\"{part}\"}}"
            );
            assert!(metrics.contains(&line), "{metrics}");
        }
    }
}

#[test]
fn every_packet_is_as_it_should_be() {
    let Some(net) = wire(Offloads::Off) else { return };
    let Some(mut user) = start(&net, TEXT) else { return };
    audited(&net, &mut user);
}

#[test]
fn syns_are_as_they_should_be() {
    let Some(net) = wire(Offloads::Off) else { return };
    let syns = "initial=8kB, most=32kB, syn-windows)'";
    let Some(mut user) = start(&net, &TEXT.replace(")'", &format!(", {syns}"))) else { return };
    audited_with_syns(&net, &mut user);
}

#[test]
fn offloaded_packets_arrive_intact() {
    let Some(net) = wire(Offloads::On) else { return };
    let Some(mut user) = start(&net, TEXT) else { return };
    intact(&net, &mut user);
}

#[test]
fn every_policy_lets_everything_arrive() {
    let Some(net) = wire(Offloads::On) else { return };
    every_policy(&net, |policy| {
        let text = format!("policy = '{policy}'\nrate = '10Mbit/s'\nqueue = '75kB'");
        Some(Box::new(start(&net, &text)?))
    });
}

#[test]
fn unreadable_packets_are_counted() {
    let Some(net) = wire(Offloads::Off) else { return };
    let Some(mut user) = start(&net, TEXT) else { return };
    let [near, far] = sides(&net, false);
    let (here, there) = (SocketAddrV4::new(NEAR, 1), SocketAddrV4::new(FAR, 2));
    let mut fragment = segment(there, here, Flags::ACK, (1, 1), 500, &Options::default(), &[]);
    fragment[6] = 0x20;
    // One forward, two back.
    near.send(&fragment);
    far.send(&fragment);
    far.send(&fragment);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let counters = user.status(0).unwrap().counters;
        if counters.unreadable == 3 {
            assert_eq!((counters.acks, counters.failed), (0, 0));
            return;
        }
        assert!(counters.unreadable < 3 && Instant::now() < deadline, "{counters:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Frames that are longer than the interface carries.
#[test]
fn frames_that_an_interface_refuses_are_counted() {
    let Some(net) = wire(Offloads::Off) else { return };
    let Some(mut user) = start(&net, TEXT) else { return };
    let [near, far] = sides(&net, false);
    let (here, there) = (SocketAddrV4::new(NEAR, 1), SocketAddrV4::new(FAR, 2));
    let mut lost = |expected: u64| {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let status = user.status(0).unwrap();
            if status.counters.lost == expected {
                return status;
            }
            assert!(status.counters.lost < expected && Instant::now() < deadline, "{status:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let mtu = |name, bytes| run(&net.router, "ip", &["link", "set", name, "mtu", bytes]);
    let long = |from, to| {
        let (flags, none) = (Flags::ACK, Options::default());
        segment(from, to, flags, (1, 1), 500, &none, &[7; 1300])
    };
    // IPv6 needs 1280.
    mtu(BOTTLENECK, "1280");
    for _ in 0..20 {
        near.send(&long(here, there));
    }
    let queue = lost(20).queue;
    // Interfaces say something by themselves now and then.
    assert!(queue.sent_bytes < 20 * 1300, "what is lost was not sent: {queue:?}");
    mtu(BOTTLENECK, "1500");
    mtu("in", "1280");
    for _ in 0..10 {
        far.send(&long(there, here));
    }
    lost(30);
}

#[test]
fn the_rate_is_kept() {
    let Some(net) = wire(Offloads::On) else { return };
    let Some(mut user) = start(&net, &TEXT.replace("10Mbit", "20Mbit")) else { return };
    let start = Instant::now();
    net.transfer(Way::default(), 4, 500_000);
    // Frames cannot leave faster than the link carries them. The last one, up to 64 KiB, is handed over when its
    // transmission begins.
    let least = user.status(0).unwrap().queue.sent_bytes.saturating_sub(1 << 16) * 8 / 20_000;
    assert!(
        start.elapsed().as_millis() as u64 + 1 >= least,
        "{:?} for {least} ms of bytes",
        start.elapsed()
    );
}

#[test]
fn impossible_settings_are_refused() {
    let Some(net) = wire(Offloads::On) else { return };
    let refused = |from: &str, text: &str| {
        let policy: PolicyFile = text.parse().unwrap();
        net.router.run(|| User::start(from, BOTTLENECK, &policy)).unwrap().unwrap_err()
    };
    assert!(matches!(refused("nowhere", TEXT), Refusal::NoDevice { .. }));
    assert!(matches!(refused("lo", TEXT), Refusal::Hardware { .. }));
    assert!(refused(BOTTLENECK, TEXT).to_string().contains("name another interface"));
    let text = refused("in", &format!("policy = '{}'", policy().policy)).to_string();
    assert!(text.contains("rate"), "{text}");
    // Its own queue holds a thousand packets.
    let long = "policy = 'target-window(upper=1000 packets, lower=15 packets, rule=section-3.2)'\nrate = '10Mbit/s'";
    let text = refused("in", long).to_string();
    assert!(text.contains("(1000 packets)") && text.contains("limited to 1000 packets"), "{text}");
}
