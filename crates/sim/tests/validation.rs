//! The simulator against what is known without it.

use transom_sim::link::LinkConfig;
use transom_sim::measure::{jain_index, per_second};
use transom_sim::network::{HostConfig, LinkId, Network, NodeId, Topology};
use transom_sim::traffic::{Amount, FlowId, bulk, sink};
use transom_tcp::Profile;
use transom_tcp::time::{Duration, Instant};

/// A host whose TCP is worked out by hand below, whatever the default is.
fn classic() -> HostConfig {
    HostConfig { profile: Profile::classic().into(), ..HostConfig::default() }
}

/// Flows through a dumbbell, one client and one server for each; the link is the bottleneck in the direction of the data.
fn dumbbell(seed: u64, bottleneck: &str, access: &[&str]) -> (Network, LinkId, Vec<NodeId>) {
    let mut topology = Topology::new(seed);
    let (left, right) = (topology.router(), topology.router());
    let parse = |text: &str| text.parse::<LinkConfig>().unwrap();
    let without_loss = |text: &str| {
        let mut config = parse(text);
        config.loss = Default::default();
        config
    };
    let (there, _) = topology.join(left, right, parse(bottleneck), without_loss(bottleneck));
    let mut clients = Vec::new();
    for (flow, access) in (0u32..).zip(access) {
        let (client, server) = (topology.host(classic()), topology.host(classic()));
        topology.join(client, left, parse(access), parse(access));
        topology.join(right, server, parse("delay=0ms"), parse("delay=0ms"));
        let remote = (topology.address(server).unwrap(), 80).into();
        let start = Instant::from_millis(100 * u64::from(flow));
        let bulk = bulk(FlowId(flow), remote, Amount::Endless);
        topology.run(client, start, bulk).unwrap();
        topology.run(server, Instant::ZERO, sink(FlowId(flow), 80)).unwrap();
        clients.push(client);
    }
    (topology.build().unwrap(), there, clients)
}

/// What each flow delivers between two times, in bits per second.
fn goodput(network: &mut Network, from: u64, to: u64) -> Vec<f64> {
    network.run_until(Instant::from_secs(from)).unwrap();
    let before: Vec<u64> = network.flows().iter().map(|flow| flow.delivered).collect();
    network.run_until(Instant::from_secs(to)).unwrap();
    let span = Duration::from_secs(to - from);
    network
        .flows()
        .iter()
        .zip(before)
        .map(|(flow, before)| per_second(flow.delivered - before, span))
        .collect()
}

/// Mathis, Semke, Mahdavi and Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm", 1997, equation 3: with
/// one loss every 1/p packets a flow that grows by a segment per round trip and halves has a bandwidth of MSS/RTT · √(3/2) /
/// √p. The derivation lets the window grow from the moment of the loss and be any fraction of a segment. A real flow spends a
/// round trip repairing the loss and sends whole segments only, so that it approaches the law from below as windows grow.
#[test]
fn a_reno_flow_obeys_the_square_root_law() {
    let mut before = 0.0;
    for packets in [800u64, 3200, 12800] {
        // From a packet on that slow start has reached.
        let losses: Vec<String> = (1..=1000).map(|number| (number * packets).to_string()).collect();
        let path = format!("delay=50ms, loss=packets({})", losses.join(", "));
        let (mut network, _, _) = dumbbell(1, &path, &["delay=0ms"]);
        let got = goodput(&mut network, 50, 450)[0];
        let law = 1448.0 * 8.0 / 0.1 * (1.5 * packets as f64).sqrt();
        let ratio = got / law;
        assert!((0.9..1.0).contains(&ratio), "p = 1/{packets}: {ratio:.3} of the law");
        assert!(ratio > before, "p = 1/{packets}: {ratio:.3}, before {before:.3}");
        before = ratio;
    }
}

/// A flow whose queue holds the bandwidth-delay product keeps its link busy: half of twice that is just enough (Villamizar and
/// Song, "High Performance TCP in ANSNET", 1994).
#[test]
fn a_queue_of_the_bandwidth_delay_product_keeps_the_link_busy() {
    // 10 Mbit/s · 100 ms = 125,000 bytes = 83 packets of 1500.
    for (queue, least, most) in [(84, 0.985, 1.0), (8, 0.70, 0.93)] {
        let path = format!("rate=10Mbit/s, delay=50ms, queue={queue} packets");
        let (mut network, link, _) = dumbbell(1, &path, &["delay=0ms"]);
        network.run_until(Instant::from_secs(100)).unwrap();
        let before = network.link_counters(link).unwrap().delivered.bytes;
        network.run_until(Instant::from_secs(400)).unwrap();
        let carried = network.link_counters(link).unwrap().delivered.bytes - before;
        let used = per_second(carried, Duration::from_secs(300)) / 10e6;
        assert!((least..=most).contains(&used), "{queue} packets: {used:.3}");
    }
}

#[test]
fn four_alike_share_alike() {
    let path = "rate=20Mbit/s, delay=20ms, queue=100 packets";
    let (mut network, _, _) = dumbbell(3, path, &["delay=5ms"; 4]);
    let shares = goodput(&mut network, 60, 360);
    let index = jain_index(shares.iter().map(|share| *share as u64));
    assert!(index > 0.95, "{index:.3}: {shares:?}");
    let all: f64 = shares.iter().sum();
    // 1448 of each 1500 bytes are payload. At the beginning what waits for a hole to be filled has arrived and is not yet delivered: no more than
    // the queue and the 100 packets (50 ms) on their way hold.
    let waiting = 200.0 * 1448.0 * 8.0 / 300.0;
    assert!(all > 0.93 * 20e6 && all <= 20e6 * 1448.0 / 1500.0 + waiting, "{all}");
}

/// Reno takes from flows of long round trips: with synchronised losses the share goes with 1/RTT² (Lakshman and Madhow, "The
/// Performance of TCP/IP for Networks with High Bandwidth-Delay Products and Random Loss", 1997), with random ones with 1/RTT.
#[test]
fn a_shorter_round_trip_gets_more() {
    let path = "rate=20Mbit/s, delay=10ms, queue=red(200 packets, min=10, max=60, w=0.002, p=1/20, gentle)";
    let (mut network, _, _) = dumbbell(5, path, &["delay=10ms", "delay=70ms"]);
    let shares = goodput(&mut network, 60, 660);
    // Round trips of 40 and 160 ms without the queue, which adds to both.
    let ratio = shares[0] / shares[1];
    assert!((2.0..16.0).contains(&ratio), "{ratio:.2}: {shares:?}");
}

/// The queueing delay that each discipline is there to keep, with enough flows to keep the link busy: drop-tail's queue is near its
/// limit, CoDel's and PIE's near their target, RED's between its thresholds.
#[test]
fn a_discipline_keeps_the_queue_where_it_says() {
    let mean_wait = |queue: &str, flows: usize| {
        let path = format!("rate=20Mbit/s, delay=20ms, queue={queue}");
        let (mut network, link, _) = dumbbell(7, &path, &vec!["delay=5ms"; flows]);
        let (mut sum, mut count) = (0u64, 0u64);
        for tick in 3_000..12_000u64 {
            network.run_until(Instant::from_millis(tick * 10)).unwrap();
            sum += network.sample_link(link).unwrap().waiting.bytes;
            count += 1;
        }
        // Milliseconds at 20 Mbit/s.
        sum as f64 / count as f64 * 8.0 / 20e3
    };
    let limit = 200.0 * 1500.0 * 8.0 / 20e3;
    let drop_tail = mean_wait("200 packets", 20);
    assert!(drop_tail > 0.5 * limit && drop_tail < limit, "drop-tail: {drop_tail:.1} ms");
    let red = mean_wait("red(200 packets, min=10, max=40, w=0.002, p=1/10, gentle)", 20);
    // 10 to 40 packets of 0.6 ms.
    assert!(red > 6.0 && red < 24.0, "RED: {red:.1} ms");
    // Its drops come closer together only slowly: with many flows it takes more than its target.
    let codel = mean_wait("codel", 4);
    assert!(codel < 10.0, "CoDel: {codel:.1} ms");
    let pie = mean_wait("pie", 20);
    assert!(pie > 5.0 && pie < 30.0, "PIE: {pie:.1} ms");
}

/// Nothing but loss limits a bulk flow. It fills a queue of five times the bandwidth-delay product, whose round-trip time is six
/// times what the handshake saw, and then halves. A receiver that tuned its window by the handshake would end it before.
#[test]
fn one_flow_fills_a_long_queue() {
    let path = "rate=10Mbit/s, delay=24ms, queue=200 packets";
    let (mut network, link, _) = dumbbell(1, path, &["delay=0ms"]);
    network.run_until(Instant::from_secs(200)).unwrap();
    let counters = network.link_counters(link).unwrap();
    assert_eq!(counters.queue_peak.packets, 200);
    assert!(counters.queue_full.packets > 3, "{counters:?}");
}
