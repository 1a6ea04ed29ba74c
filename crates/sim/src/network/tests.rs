//! Networks small enough to be worked out by hand.

use super::*;
use crate::link::LinkConfig;
use crate::traffic::{Amount, FlowId, bulk, sink};
use std::sync::{Arc, Mutex};
use transom_tcp::Profile;
use transom_tcp::time::Duration;
use transom_wire::ip::{Ecn, peek_ecn};

const FLOW: FlowId = FlowId(0);
const PORT: u16 = 80;

fn link(text: &str) -> LinkConfig {
    text.parse().unwrap()
}

/// A transfer from the first to the last of hosts and routers in a row, all links alike.
struct Line {
    network: Network,
    links: Vec<LinkId>,
    ends: (NodeId, NodeId),
}

/// A host whose TCP is worked out by hand below, whatever the default is.
fn classic() -> HostConfig {
    HostConfig { profile: Profile::classic().into(), ..HostConfig::default() }
}

fn line(seed: u64, routers: usize, config: &str, bytes: u64) -> Line {
    line_of(classic, seed, routers, config, bytes)
}

fn line_of(host: fn() -> HostConfig, seed: u64, routers: usize, config: &str, bytes: u64) -> Line {
    let mut topology = Topology::new(seed);
    let first = topology.host(host());
    let mut before = first;
    let mut links = Vec::new();
    for _ in 0..routers {
        let next = topology.router();
        links.push(topology.join(before, next, link(config), link(config)).0);
        before = next;
    }
    let last = topology.host(host());
    links.push(topology.join(before, last, link(config), link(config)).0);
    let remote = (topology.address(last).unwrap(), PORT).into();
    let bulk = bulk(FLOW, remote, Amount::Bytes(bytes));
    topology.run(first, Instant::ZERO, bulk).unwrap();
    topology.run(last, Instant::ZERO, sink(FLOW, PORT)).unwrap();
    Line { network: topology.build().unwrap(), links, ends: (first, last) }
}

/// When what came to a link.
type Seen = Arc<Mutex<Vec<(Instant, Vec<u8>)>>>;

/// Collects what comes to a link.
fn tap(network: &mut Network, link: LinkId) -> Seen {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    network.tap(link, move |at, bytes, _| kept.lock().unwrap().push((at, bytes.to_vec())));
    seen
}

/// FNV-1a over times and bytes of everything that comes to any link.
fn fingerprint(line: &mut Line) -> u64 {
    let hash = Arc::new(Mutex::new(0xcbf2_9ce4_8422_2325u64));
    for &link in &line.links {
        for link in [link, link.back()] {
            let hash = hash.clone();
            line.network.tap(link, move |at, bytes, _| {
                let mut hash = hash.lock().unwrap();
                for byte in at.as_nanos().to_le_bytes().iter().chain(bytes) {
                    *hash = (*hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
                }
            });
        }
    }
    line.network.run_until(Instant::from_secs(60)).unwrap();
    let hash = hash.lock().unwrap();
    *hash
}

#[test]
fn a_handshake_takes_the_time_its_packets_take() {
    let mut line = line(1, 1, "rate=10Mbit/s, delay=20ms, queue=50 packets", 1);
    let there = tap(&mut line.network, line.links[0]);
    let back = tap(&mut line.network, line.links[1].back());
    line.network.run_until(Instant::from_secs(1)).unwrap();
    let times = |seen: &Seen| -> Vec<(u64, usize)> {
        seen.lock().unwrap().iter().map(|(at, bytes)| (at.as_nanos(), bytes.len())).collect()
    };
    let (there, back) = (times(&there), times(&back));
    // A SYN of 20 + 40 bytes is on each of the two wires for 48 us and under way for 20 ms; so is the answer.
    assert_eq!(there[0], (0, 60));
    assert_eq!(back[0], (40_096_000, 60));
    // Then an acknowledgement of 52 bytes, and the byte with the FIN in a packet of 53.
    assert_eq!(there[1].0, 80_192_000);
    assert_eq!(line.network.flows()[0].delivered, 1);
}

#[test]
fn a_bulk_transfer_fills_the_link() {
    let mut line = line(1, 2, "rate=10Mbit/s, delay=5ms, queue=100 packets", 10_000_000);
    line.network.run_until(Instant::from_secs(60)).unwrap();
    let flow = &line.network.flows()[0];
    assert_eq!(flow.delivered, 10_000_000);
    // 1448 bytes of payload in packets of 1500: 8.287 s at full rate, and no less.
    let least = 10_000_000.0 * 1500.0 / 1448.0 * 8.0 / 10e6;
    let took = flow.finished.unwrap().as_nanos() as f64 / 1e9;
    assert!(took > least && took < least * 1.05, "{took} s, at least {least} s");
    assert_eq!(line.network.totals().on_their_way, 0);
    assert_eq!(line.network.totals().undeliverable, 0);
}

#[test]
fn each_router_takes_one_from_the_hop_limit() {
    let mut line = line(1, 3, "delay=1ms", 100_000);
    let first = tap(&mut line.network, line.links[0]);
    let last = tap(&mut line.network, line.links[3]);
    line.network.run_until(Instant::from_secs(10)).unwrap();
    let hops = |seen: &Seen| -> Vec<u8> {
        seen.lock().unwrap().iter().map(|(_, bytes)| bytes[8]).collect()
    };
    let (first, last) = (hops(&first), hops(&last));
    assert_eq!(first.len(), last.len());
    assert!(first.iter().zip(&last).all(|(first, last)| first - 3 == *last));
    // Also the checksum was put right, or nothing would have arrived.
    assert_eq!(line.network.flows()[0].delivered, 100_000);
}

#[test]
fn damage_is_found_by_the_receiver_wherever_it_happens() {
    for routers in [0, 2] {
        let mut line =
            line(3, routers, "rate=10Mbit/s, delay=5ms, queue=100 packets, corrupt=1%", 2_000_000);
        line.network.run_until(Instant::from_secs(60)).unwrap();
        assert_eq!(line.network.flows()[0].delivered, 2_000_000, "{routers} routers");
        let server = line.network.stack(line.ends.1).unwrap();
        let counters = server.counters();
        assert!(
            counters.bad_checksum + counters.malformed + counters.misaddressed > 5,
            "{counters:?}"
        );
        assert_eq!(line.network.totals().on_their_way, 0);
    }
}

/// The codepoints of all packets that come to a link.
fn codepoints(seen: &Seen) -> Vec<Ecn> {
    seen.lock().unwrap().iter().map(|(_, bytes)| peek_ecn(bytes)).collect()
}

#[test]
fn a_link_that_bleaches_clears_codepoints_for_those_behind_it() {
    for (bleach, behind) in [("none", Ecn::Ect0), ("ect", Ecn::NotEct), ("ect1", Ecn::Ect0)] {
        let config = format!("delay=1ms, bleach={bleach}");
        let mut line = line_of(HostConfig::default, 1, 1, &config, 50_000);
        let [before, after] = [0, 1].map(|at| tap(&mut line.network, line.links[at]));
        line.network.run_until(Instant::from_secs(1)).unwrap();
        assert!(codepoints(&before).contains(&Ecn::Ect0), "{bleach}");
        assert_eq!(codepoints(&after).contains(&Ecn::Ect0), behind == Ecn::Ect0, "{bleach}");
        assert_eq!(line.network.flows()[0].delivered, 50_000, "{bleach}");
    }
}

#[test]
fn a_lossy_reordering_duplicating_path_delivers_everything_once() {
    let config =
        "rate=10Mbit/s, delay=5ms, queue=20 packets, loss=1%, duplicate=2%, reorder=1% by 8ms";
    let mut line = line(5, 2, config, 3_000_000);
    let last = tap(&mut line.network, line.links[2]);
    line.network.run_until(Instant::from_secs(120)).unwrap();
    assert_eq!(line.network.flows()[0].delivered, 3_000_000);
    assert_eq!(line.network.totals().on_their_way, 0);
    // A copy is counted down by itself, not together with what it is a copy of.
    assert!(last.lock().unwrap().iter().all(|(_, bytes)| bytes[8] == 64 - 2));
}

#[test]
fn a_run_is_a_function_of_the_seed() {
    let config = "rate=5Mbit/s, delay=10ms, queue=20 packets, jitter=uniform(0ms, 2ms), loss=1%, duplicate=1%, corrupt=0.5%";
    let run = |seed| fingerprint(&mut line(seed, 2, config, 500_000));
    let first = run(7);
    assert_eq!(first, run(7));
    assert_ne!(first, run(8));
    // The same on every machine. A change of what TCP does changes it too; then, and only then, it is written anew.
    assert_eq!(first, 0xb375_865b_4603_20a9);
}

#[test]
fn mistakes_in_a_network_are_named() {
    let mut topology = Topology::new(1);
    let (a, b) = (topology.host(classic()), topology.host(classic()));
    let router = topology.router();
    topology.join(a, router, link(""), link(""));
    assert!(
        matches!(topology.address(router), Err(NetworkError::NotAHost(node)) if node == router)
    );
    let sink = sink(FLOW, PORT);
    assert!(matches!(topology.run(router, Instant::ZERO, sink), Err(NetworkError::NotAHost(_))));
    let error = topology.build().unwrap_err();
    assert!(matches!(error, NetworkError::Unreachable(from, to) if (from, to) == (b, a)));
    assert_eq!(error.to_string(), "no path leads from node 1 to node 0");

    let mut topology = Topology::new(1);
    let a = topology.host(classic());
    topology.join(a, a, link(""), link(""));
    assert!(matches!(topology.build(), Err(NetworkError::BadLink(_))));

    let mut topology = Topology::new(1);
    topology.host(HostConfig { mtu: 20, ..classic() });
    assert!(matches!(topology.build(), Err(NetworkError::Host(_))));
}

#[test]
fn two_ways_and_the_shorter_one_is_taken() {
    let mut topology = Topology::new(1);
    let (a, b) = (topology.host(classic()), topology.host(classic()));
    let routers: Vec<_> = (0..3).map(|_| topology.router()).collect();
    let mut join = |one, other| topology.join(one, other, link("delay=1ms"), link("delay=1ms")).0;
    join(a, routers[0]);
    let long = join(routers[0], routers[1]);
    join(routers[1], routers[2]);
    let short = join(routers[0], routers[2]);
    join(routers[2], b);
    let remote = (topology.address(b).unwrap(), PORT).into();
    topology.run(a, Instant::ZERO, bulk(FLOW, remote, Amount::Bytes(10_000))).unwrap();
    topology.run(b, Instant::ZERO, sink(FLOW, PORT)).unwrap();
    let mut network = topology.build().unwrap();
    network.run_until(Instant::from_secs(1)).unwrap();
    assert_eq!(network.flows()[0].delivered, 10_000);
    assert_eq!(network.link_counters(long).unwrap().offered.packets, 0);
    assert!(network.link_counters(short).unwrap().offered.packets > 7);
    // The flow began with a round trip for the handshake.
    assert!(network.flows()[0].finished.unwrap() >= Instant::ZERO + Duration::from_millis(9));
}

#[test]
fn no_way_leads_through_a_host() {
    let mut topology = Topology::new(1);
    let hosts: Vec<_> = (0..3).map(|_| topology.host(classic())).collect();
    let routers: Vec<_> = (0..3).map(|_| topology.router()).collect();
    let mut join = |one, other| topology.join(one, other, link("delay=1ms"), link("delay=1ms")).0;
    join(hosts[0], routers[0]);
    join(hosts[1], routers[1]);
    // The third host has a link to each of the two routers, which would be the shorter way.
    let shorter = join(routers[0], hosts[2]);
    join(hosts[2], routers[1]);
    join(routers[0], routers[2]);
    let longer = join(routers[2], routers[1]);
    let remote = (topology.address(hosts[1]).unwrap(), PORT).into();
    let bulk = bulk(FLOW, remote, Amount::Bytes(10_000));
    topology.run(hosts[0], Instant::ZERO, bulk).unwrap();
    topology.run(hosts[1], Instant::ZERO, sink(FLOW, PORT)).unwrap();
    let mut network = topology.build().unwrap();
    network.run_until(Instant::from_secs(1)).unwrap();
    assert_eq!(network.flows()[0].delivered, 10_000);
    assert_eq!(network.link_counters(shorter).unwrap().offered.packets, 0);
    assert!(network.link_counters(longer).unwrap().offered.packets > 7);
}

/// A sender on a fast link, a router, a slow link behind it, with window control or without.
fn narrowing(bottleneck: &str, bytes: u64) -> (Network, LinkId) {
    let mut topology = Topology::new(1);
    let (sender, receiver) = (topology.host(classic()), topology.host(classic()));
    let router = topology.router();
    let fast = link("rate=100Mbit/s, delay=1ms");
    topology.join(sender, router, fast.clone(), fast);
    let back = link("rate=10Mbit/s, delay=1ms");
    let (there, _) = topology.join(router, receiver, link(bottleneck), back);
    let remote = (topology.address(receiver).unwrap(), PORT).into();
    let bulk = bulk(FLOW, remote, Amount::Bytes(bytes));
    topology.run(sender, Instant::ZERO, bulk).unwrap();
    topology.run(receiver, Instant::ZERO, sink(FLOW, PORT)).unwrap();
    (topology.build().unwrap(), there)
}

#[test]
fn window_control_keeps_a_queue_short_without_a_loss() {
    let link = "rate=10Mbit/s, delay=1ms, queue=50 packets";
    let (mut alone, bottleneck) = narrowing(link, 5_000_000);
    alone.run_until(Instant::from_secs(20)).unwrap();
    let dropped = alone.link_counters(bottleneck).unwrap().dropped().packets;
    assert!(dropped > 0, "without control the queue overflows");
    assert!(alone.window_control(bottleneck).is_none());

    let control = "window=target-window(upper=35 packets, lower=15 packets, rule=section-3.2)";
    let (mut network, bottleneck) = narrowing(&format!("{link}, {control}"), 5_000_000);
    // A new flow begins with what the receiver offers, and slow start is over before the target has come down.
    network.run_until(Instant::from_secs(1)).unwrap();
    let in_slow_start = network.link_counters(bottleneck).unwrap().dropped().packets;
    network.run_until(Instant::from_secs(20)).unwrap();
    assert_eq!(network.flows()[0].delivered, 5_000_000);
    assert_eq!(network.link_counters(bottleneck).unwrap().dropped().packets, in_slow_start);
    let counters = network.window_control(bottleneck).unwrap().report().counters;
    assert_eq!((counters.opened, counters.implausible, counters.unknown), (1, 0, 0));
    assert!(counters.rewritten > 1000, "{counters:?}");
    assert!(network.window_control(bottleneck.back()).is_none());
}

#[test]
fn held_acknowledgements_come_late_and_in_order() {
    let link = "rate=10Mbit/s, delay=1ms, queue=500 packets";
    let (mut network, bottleneck) =
        narrowing(&format!("{link}, window=ack-delay(above=15kB, most=50ms)"), 2_000_000);
    let acks = tap(&mut network, LinkId(1));
    network.run_until(Instant::from_secs(20)).unwrap();
    assert_eq!(network.flows()[0].delivered, 2_000_000);
    assert!(network.window_control(bottleneck).unwrap().report().counters.held > 100);
    let numbers: Vec<u32> = acks
        .lock()
        .unwrap()
        .iter()
        .map(|(_, packet)| u32::from_be_bytes(packet[28..32].try_into().unwrap()))
        .collect();
    assert!(numbers.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) < 1 << 31));
    assert_eq!(network.totals().on_their_way, 0);
}
