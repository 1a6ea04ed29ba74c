//! Each kind of traffic over a path on which it can be worked out by hand what it must do.

use std::net::SocketAddrV4;
use transom_sim::Draw;
use transom_sim::link::LinkConfig;
use transom_sim::network::{HostConfig, Network, NodeId, Topology};
use transom_sim::traffic::{
    Application, Exchange, Flow, FlowId, Pattern, Schedule, datagram_sink, limited, on_off,
    requests, sink, transfers,
};
use transom_sim::units::Rate;
use transom_tcp::time::{Duration, Instant};

const FLOW: FlowId = FlowId(0);
const PORT: u16 = 80;
/// A bit takes 100 ns, and what is sent is there 20 ms later.
const PATH: &str = "rate=10Mbit/s, delay=20ms, queue=1000 packets";

/// A client and a server on [`PATH`], with what each of them runs.
fn run(
    seconds: u64,
    client: impl FnOnce(SocketAddrV4) -> Box<dyn Application>,
    server: Box<dyn Application>,
) -> Flow {
    run_both(seconds, |remote| (client(remote), server))
}

/// The same with both made at once.
fn run_both(
    seconds: u64,
    both: impl FnOnce(SocketAddrV4) -> (Box<dyn Application>, Box<dyn Application>),
) -> Flow {
    let mut topology = Topology::new(1);
    let hosts: [NodeId; 2] = std::array::from_fn(|_| topology.host(HostConfig::default()));
    let link: LinkConfig = PATH.parse().unwrap();
    topology.join(hosts[0], hosts[1], link.clone(), link);
    let remote = SocketAddrV4::new(topology.address(hosts[1]).unwrap(), PORT);
    let (client, server) = both(remote);
    topology.run(hosts[1], Instant::ZERO, server).unwrap();
    topology.run(hosts[0], Instant::ZERO, client).unwrap();
    let mut network: Network = topology.build().unwrap();
    network.run_until(Instant::from_secs(seconds)).unwrap();
    assert_eq!(network.totals().undeliverable, 0);
    network.flows()[0].clone()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_transfer_is_complete_when_its_last_byte_is_there() {
    let trace = Schedule::Trace(vec![(ms(0), 1000), (ms(500), 1000), (ms(501), 1)]);
    let flow = run(
        10,
        |remote| transfers(FLOW, remote.into(), trace, Instant::FAR_FUTURE),
        sink(FLOW, PORT),
    );
    assert_eq!(flow.delivered, 2001);
    // SYN and SYN-ACK of 60 bytes take 48 us each, the acknowledgement before the data (52 bytes) 41.6 us if it goes
    // alone, the data with 52 bytes of headers 841.6 us; three times the delay.
    let least = 60_937_600;
    let took: Vec<u64> = flow.completions.iter().map(|(_, took)| took.as_nanos()).collect();
    assert_eq!(took.len(), 3);
    assert!(took[0] == least || took[0] == least + 41_600, "{took:?}");
    // The second and the third do not wait for one another.
    let ends: Vec<u64> = flow.completions.iter().map(|(at, _)| at.as_nanos()).collect();
    assert!(ends[1] < 562_000_000 && ends[2] < 562_500_000, "{ends:?}");
}

#[test]
fn a_response_takes_a_round_trip_and_its_transmission() {
    let exchange = Exchange {
        request: Draw::Constant(100),
        response: Draw::Constant(1000),
        think: Draw::Constant(100_000_000),
    };
    let ask = |pattern, stop| {
        run_both(5, move |remote| requests(FLOW, remote.into(), exchange, pattern, stop))
    };
    let flow = ask(Pattern::Sequence(None), Instant::from_secs(4));
    // 152 bytes there and 1052 back, at 0.8 us each, and twice the delay.
    let each = 121_600 + 841_600 + 40_000_000;
    let took: Vec<u64> = flow.completions.iter().map(|(_, took)| took.as_nanos()).collect();
    assert!(took.len() > 25, "{}", took.len());
    assert!(took.iter().all(|&took| (each..each + 50_000).contains(&took)), "{took:?}");
    assert_eq!(flow.delivered, 1000 * took.len() as u64);
    assert!(flow.finished.is_some());
    // So many and no more.
    let flow = ask(Pattern::Sequence(Some(7)), Instant::FAR_FUTURE);
    assert_eq!((flow.completions.len(), flow.delivered), (7, 7000));
    assert!(flow.finished.is_some());
}

#[test]
fn a_page_is_fetched_over_several_connections() {
    let exchange = Exchange {
        request: Draw::Uniform(100, 300),
        response: Draw::Uniform(5_000, 20_000),
        think: Draw::Constant(500_000_000),
    };
    let fetch = |connections| {
        let pattern = Pattern::Pages { objects: 12, connections };
        run_both(60, move |remote| {
            let stop = Instant::from_secs(50);
            requests(FLOW, remote.into(), exchange, pattern, stop)
        })
    };
    let (one, six) = (fetch(1), fetch(6));
    for flow in [&one, &six] {
        let objects = flow.completions.len() as u64;
        assert!((5_000 * objects..=20_000 * objects).contains(&flow.delivered), "{flow:?}");
    }
    // A page takes a handshake, and then twelve round trips of 40 ms and more one after the other, or two with six connections.
    let pages = one.completions.len() / 12;
    assert!((30..=52).contains(&pages), "{pages}");
    assert!(
        six.completions.len() as f64 > 1.3 * one.completions.len() as f64,
        "{}",
        six.completions.len()
    );
}

#[test]
fn datagrams_come_in_their_periods() {
    let rate = Rate::from_bits_per_sec(1_000_000).unwrap();
    let flow = run(
        10,
        |remote| {
            let second = Draw::Constant(1_000_000_000);
            on_off(FLOW, 5000, remote, rate, 972, (second, second), Instant::from_secs(4))
        },
        datagram_sink(FLOW, PORT),
    );
    // 1000 bytes every 8 ms from 0 to 992 ms, and again from 2 s on.
    assert_eq!(flow.delivered, 250 * 972);
    assert_eq!(flow.started.unwrap().as_nanos(), 20_800_000);
    assert_eq!(flow.finished.unwrap().as_nanos(), 2_992_000_000 + 20_800_000);
}

#[test]
fn an_application_limits_its_stream() {
    let rate = Rate::from_bits_per_sec(800_000).unwrap();
    let flow = run(
        10,
        |remote| limited(FLOW, remote.into(), rate, 1000, Instant::from_secs(5)),
        sink(FLOW, PORT),
    );
    // 1000 bytes every 10 ms, the first after 10 ms and none at the end.
    assert_eq!(flow.delivered, 499_000);
    let finished = flow.finished.unwrap();
    assert!(finished > Instant::from_secs(5) && finished < Instant::from_millis(5_100));
}

#[test]
fn a_reader_of_the_web_waits_for_a_page_and_then_thinks() {
    let shape = "1.2".parse().unwrap();
    let schedule = Schedule::Web {
        size: Draw::Pareto { scale: 10_000, shape, most: 500_000 },
        think: Draw::Pareto { scale: 100_000_000, shape, most: 10_000_000_000 },
    };
    let flow = run(
        60,
        |remote| transfers(FLOW, remote.into(), schedule, Instant::from_secs(50)),
        sink(FLOW, PORT),
    );
    let count = flow.completions.len() as u64;
    assert!(count > 20, "{count}");
    assert!(flow.delivered >= count * 10_000 && flow.delivered <= count * 500_000);
    for (one, next) in flow.completions.iter().zip(&flow.completions[1..]) {
        let (end, begin) = (one.0, next.0 - next.1);
        // The sender hears of the end 20 ms later, and then thinks for at least 100 ms.
        assert!(begin.since(end) >= ms(120), "{:?}", begin.since(end));
    }
    // A heavy tail: the largest is far above the least.
    let longest = flow.completions.iter().map(|(_, took)| *took).max().unwrap();
    let shortest = flow.completions.iter().map(|(_, took)| *took).min().unwrap();
    assert!(longest.as_nanos() > 2 * shortest.as_nanos());
}
