//! How slow start ends on a link with a drop-tail queue.

use std::sync::Arc;
use transom_sim::network::{HostConfig, Topology};
use transom_sim::traffic::{Amount, FlowId, bulk, sink};
use transom_tcp::compose::compose;
use transom_tcp::time::Instant;

/// A transfer of 4 MiB over 100 Mbit/s and a round trip of 20 ms, with a queue of 256 KiB: packets dropped, and when it was complete in milliseconds.
fn transfer(slow_start: &str) -> (u64, u64) {
    over(slow_start, "256KiB", 4 << 20)
}

/// The same with another queue, and another number of bytes.
fn over(slow_start: &str, queue: &str, bytes: u64) -> (u64, u64) {
    on(slow_start, &format!("rate=100Mbit/s, delay=10ms, queue={queue}"), bytes)
}

/// The same on another link.
fn on(slow_start: &str, link: &str, bytes: u64) -> (u64, u64) {
    let profile = Arc::new(compose(&format!("modern + {slow_start}")).unwrap());
    let host = || HostConfig { profile: profile.clone(), ..HostConfig::default() };
    let mut topology = Topology::new(1);
    let (client, server) = (topology.host(host()), topology.host(host()));
    let there = link.parse().unwrap();
    let (link, _) = topology.join(client, server, there, "delay=10ms".parse().unwrap());
    let remote = (topology.address(server).unwrap(), 80).into();
    let bulk = bulk(FlowId(0), remote, Amount::Bytes(bytes));
    topology.run(client, Instant::ZERO, bulk).unwrap();
    topology.run(server, Instant::ZERO, sink(FlowId(0), 80)).unwrap();
    let mut network = topology.build().unwrap();
    let mut at = 0;
    while network.flows().first().is_none_or(|flow| flow.delivered < bytes) {
        at += 1;
        network.run_until(Instant::from_millis(at)).unwrap();
        assert!(at < 10_000, "{slow_start}: not complete after 10 s");
    }
    (network.link_counters(link).unwrap().dropped().packets, at)
}

/// The path holds 167 packets and its queue 175 more. A window that doubles until a loss overshoots by most of a window.
#[test]
fn slow_starts_end_before_or_after_the_queue_is_full() {
    let (drops, all) = transfer("slow-start");
    assert!(drops > 300, "without a detector: {drops}");
    // RFC 9406 looks at a round's first samples alone. These meet a queue that has drained, so the window overshoots all the same.
    assert_eq!(transfer("hystart++").0, drops);
    // Without the growth that CUBIC adds before the first loss, which fills the queue later.
    let (trained, when) = transfer("hystart + cubic(before-loss=0)");
    assert_eq!(trained, 0, "a train of acknowledgements tells in time");
    // It costs no time: CUBIC grows from half of the path's capacity on.
    assert!(when <= all + all / 20, "{when} ms beside {all}");
    // SEARCH speaks two round trips after the path is full. This queue holds one.
    assert_eq!(transfer("search").0, drops);
    let (limited, _) = transfer("limited-slow-start");
    assert!((1..100).contains(&limited), "{limited}");
}

/// Four products of the rate and the round trip. SEARCH ends slow start before this queue is full, or soon after.
#[test]
fn search_ends_in_time_where_the_queue_is_long() {
    let (all, _) = over("slow-start", "1MB", 16 << 20);
    assert!(all > 1000, "without a detector: {all}");
    let (found, _) = over("search", "1MB", 16 << 20);
    assert!(found < all / 5, "{found} of {all}");
    assert_eq!(over("hystart", "1MB", 16 << 20).0, 0);
}

/// The default has the slow start that ends in time. Then its window grows by a twentieth in a round trip until the first loss, which is one of a few packets.
#[test]
fn the_default_does_not_overshoot_by_a_window() {
    let (drops, _) = transfer("cubic");
    assert!(drops < 30, "{drops}");
}

/// The part of 20 Mbit/s, in per cent, that a flow gets beside one with plain slow start in 25 s. The round trip is 80 ms, and the queue holds four products.
/// Who begins first has more, so it is the mean of both orders.
fn share(words: &str) -> u64 {
    let deliver = |all: [&str; 2]| {
        let mut topology = Topology::new(1);
        let (near, far) = (topology.router(), topology.router());
        let path = "rate=20Mbit/s, delay=40ms, queue=800kB".parse().unwrap();
        topology.join(near, far, path, "delay=40ms".parse().unwrap());
        for (flow, words) in (0u32..).zip(all) {
            let profile = Arc::new(compose(&format!("modern + {words}")).unwrap());
            let host = || HostConfig { profile: profile.clone(), ..HostConfig::default() };
            let (client, server) = (topology.host(host()), topology.host(host()));
            let access = || "delay=0ms".parse().unwrap();
            topology.join(client, near, access(), access());
            topology.join(far, server, access(), access());
            let remote = (topology.address(server).unwrap(), 80).into();
            let bulk = bulk(FlowId(flow), remote, Amount::Endless);
            let start = Instant::from_secs(2 * u64::from(flow));
            topology.run(client, start, bulk).unwrap();
            let sink = sink(FlowId(flow), 80);
            topology.run(server, Instant::ZERO, sink).unwrap();
        }
        let mut network = topology.build().unwrap();
        network.run_until(Instant::from_secs(25)).unwrap();
        [0, 1].map(|flow: usize| network.flows()[flow].delivered)
    };
    let (first, second) =
        (deliver([words, "reno + slow-start"]), deliver(["reno + slow-start", words]));
    let of = |mine: u64, other: u64| 100 * mine / (mine + other);
    (of(first[0], first[1]) + of(second[1], second[0])) / 2
}

/// Reno gains a segment in a round trip. Where slow start ends at half of what the path and its queue carry, it needs hundreds of round trips for the
/// rest. RFC 5681, section 3.1, lets slow start go on until the first loss, and Linux' Reno does so.
#[test]
fn reno_has_its_part_of_a_long_queue() {
    let (default, early) = (share("reno"), share("reno + hystart"));
    assert!((45..=55).contains(&default), "{default} %");
    assert!(early < 30, "HyStart: {early} %");
}

/// A queue of five packets overflows again and again. RACK's reordering window is 5 ms here, two packets. A repair that leaves when it has passed, and not when
/// an acknowledgement tells of room, is dropped by the queue that is still full.
#[test]
fn a_repair_waits_for_room() {
    let (drops, _) = on("rack-tlp", "rate=5Mbit/s, delay=10ms, queue=7500B", 3_000_000);
    assert!((10..=25).contains(&drops), "{drops}");
}
