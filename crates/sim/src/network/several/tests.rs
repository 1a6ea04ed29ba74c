//! A network on several cores does to the byte what it does on one: packets, flows, counters, event logs, and the order in which they are seen.

use crate::link::LinkConfig;
use crate::network::{Division, HostConfig, Indivisible, LinkId, Network, NodeId, Topology};
use crate::random::Draw;
use crate::traffic::{
    Amount, Application, Exchange, FlowId, Io, Pattern, Schedule, bulk, datagram_sink, on_off,
    requests, sink, transfers,
};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use transom_router::window::WindowControl;
use transom_tcp::compose::compose;
use transom_tcp::time::{Duration, Instant};

const PORT: u16 = 80;

/// A flow of a network: its kind, from which host, to which, from when on.
type FlowPlan = (u8, usize, usize, u8);

/// A network by numbers: the links of a tree of routers, further links between routers, the router of each host with its link, and flows.
#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    tree: Vec<(usize, u8)>,
    more: Vec<(usize, usize, u8)>,
    hosts: Vec<(usize, u8)>,
    flows: Vec<FlowPlan>,
}

/// Few kinds, so that many things happen at the same nanosecond.
fn link(kind: u8) -> LinkConfig {
    let text = match kind % 12 {
        0..=2 => "delay=1ms",
        3 | 4 => "delay=2ms",
        5 => "rate=10Mbit/s, delay=2ms, queue=20 packets",
        6 => "rate=8Mbit/s, delay=1ms, queue=10 packets",
        7 => "rate=10Mbit/s, delay=3ms, queue=20 packets, loss=1%, duplicate=1%",
        8 => "rate=20Mbit/s, delay=1ms, jitter=uniform(0ms, 2ms), jitter-order=free",
        9 => "rate=10Mbit/s, delay=2ms, queue=20 packets, reorder=2% by 5ms, corrupt=1%",
        10 => "rate=10Mbit/s, delay=1ms, queue=codel",
        _ => {
            "rate=10Mbit/s, delay=2ms, queue=40 packets, window=target-window(upper=25 packets, lower=10 packets, rule=section-3.2)"
        }
    };
    text.parse().unwrap()
}

fn plan() -> impl Strategy<Value = Plan> {
    let flow = (0u8..5, 0usize..100, 0usize..100, 0u8..3);
    (
        any::<u64>(),
        prop::collection::vec((0usize..100, 0u8..12), 1..6),
        prop::collection::vec((0usize..100, 0usize..100, 0u8..12), 0..3),
        prop::collection::vec((0usize..100, 0u8..12), 2..9),
        prop::collection::vec(flow, 1..9),
    )
        .prop_map(|(seed, tree, more, hosts, flows)| Plan { seed, tree, more, hosts, flows })
}

struct Built {
    network: Network,
    hosts: Vec<NodeId>,
    links: u32,
}

impl Plan {
    fn build(&self, cores: usize) -> Built {
        let mut topology = Topology::new(self.seed);
        let mut routers = vec![topology.router()];
        let mut links = 0;
        let mut join = |topology: &mut Topology, a, b, kind| {
            topology.join(a, b, link(kind), link(kind));
            links += 2;
        };
        for &(above, kind) in &self.tree {
            let router = topology.router();
            join(&mut topology, routers[above % routers.len()], router, kind);
            routers.push(router);
        }
        for &(a, b, kind) in &self.more {
            let (a, b) = (a % routers.len(), b % routers.len());
            if a != b {
                join(&mut topology, routers[a], routers[b], kind);
            }
        }
        let config = HostConfig {
            profile: Arc::new(compose("classic").unwrap()),
            log: true,
            ..HostConfig::default()
        };
        let hosts: Vec<NodeId> = self
            .hosts
            .iter()
            .map(|&(router, kind)| {
                let host = topology.host(config.clone());
                join(&mut topology, host, routers[router % routers.len()], kind);
                host
            })
            .collect();
        for (number, &(kind, from, to, begin)) in (0u16..).zip(&self.flows) {
            let (from, to) = (from % hosts.len(), to % hosts.len());
            if from == to {
                continue;
            }
            let (from, to, port, flow) =
                (hosts[from], hosts[to], PORT + number, FlowId(number.into()));
            let address = topology.address(to).unwrap();
            let remote = (address, port).into();
            let begin = Instant::from_millis(5 * u64::from(begin));
            let end = Instant::from_millis(200);
            let mut run =
                |node, at, one: Box<dyn Application>| topology.run(node, at, one).unwrap();
            match kind {
                0 | 1 => {
                    run(from, begin, bulk(flow, remote, Amount::Bytes(60_000)));
                    run(to, Instant::ZERO, sink(flow, port));
                }
                2 => {
                    let (size, think) = (Draw::Uniform(1, 30_000), Draw::Exponential(5_000_000));
                    let schedule = Schedule::Web { size, think };
                    let transfers = transfers(flow, remote, schedule, end);
                    run(from, begin, transfers);
                    run(to, Instant::ZERO, sink(flow, port));
                }
                3 => {
                    let exchange = Exchange {
                        request: Draw::Uniform(1, 500),
                        response: Draw::Uniform(1, 20_000),
                        think: Draw::Constant(1_000_000),
                    };
                    let pattern = Pattern::Pages { objects: 4, connections: 2 };
                    let (client, server) = requests(flow, remote, exchange, pattern, end);
                    run(from, begin, client);
                    run(to, Instant::ZERO, server);
                }
                _ => {
                    let (rate, draw) = ("2Mbit/s".parse().unwrap(), Draw::Constant(20_000_000));
                    let remote = std::net::SocketAddrV4::new(address, port);
                    let source = on_off(flow, 5000 + number, remote, rate, 500, (draw, draw), end);
                    run(from, begin, source);
                    run(to, Instant::ZERO, datagram_sink(flow, port));
                }
            }
        }
        topology.cores = cores;
        Built { network: topology.build().unwrap(), hosts, links }
    }
}

/// All that can be seen of a run.
fn all_of(mut built: Built) -> (Division, Vec<String>) {
    let Built { network, hosts, links } = &mut built;
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let see = |text: String| {
        let seen = seen.clone();
        move |more: std::fmt::Arguments<'_>| seen.lock().unwrap().push(format!("{text} {more}"))
    };
    for link in (0..*links).map(LinkId) {
        let say = see(format!("{link:?} offered"));
        network.tap(link, move |at, bytes, _| say(format_args!("{at:?} {}", digest(bytes))));
        let say = see(format!("{link:?} arrived"));
        network
            .tap_arrivals(link, move |at, bytes, _| say(format_args!("{at:?} {}", digest(bytes))));
    }
    for &host in &*hosts {
        let say = see(format!("{host:?} logged"));
        network.watch_log(host, move |record| say(format_args!("{record:?}")));
    }
    // In several runs, with a look in between.
    for millis in [0, 7, 8, 150, 151, 600] {
        network.run_until(Instant::from_millis(millis)).unwrap();
        let mut seen = seen.lock().unwrap();
        let (now, totals, next) = (network.now(), network.totals(), network.next_event());
        seen.push(format!("{now:?} {totals:?} {next:?}"));
        seen.push(format!("{:?}", network.flows()));
        for link in (0..*links).map(LinkId) {
            let control = network.window_control(link);
            let control = control.map(WindowControl::report);
            seen.push(format!("{:?} {control:?}", network.link_counters(link)));
        }
        for link in (0..*links).map(LinkId) {
            seen.push(format!("{:?}", network.sample_link(link)));
        }
        for &host in &*hosts {
            seen.push(format!("{:?}", network.stack(host).unwrap().counters()));
        }
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (network.division().clone(), seen)
}

fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_two_and_three_cores_do_the_same(plan in plan()) {
        let (_, one) = all_of(plan.build(1));
        for cores in [2, 3] {
            let (division, several) = all_of(plan.build(cores));
            let different = one.iter().zip(&several).position(|(one, other)| one != other);
            let at = different.unwrap_or(one.len().min(several.len()));
            prop_assert!(
                one == several,
                "{cores} cores, {division:?}: after {at} of {}\n  one:     {:?}\n  several: {:?}",
                one.len(),
                one.get(at),
                several.get(at)
            );
        }
    }
}

/// Hosts at both ends of a row of routers, all links alike: everything happens at the same time everywhere.
#[test]
fn events_of_one_nanosecond_keep_their_order() {
    let flow = |from, to| (0, from, to, 0);
    let plan = Plan {
        seed: 1,
        tree: vec![(0, 0), (1, 0), (2, 0)],
        more: vec![],
        hosts: vec![(0, 0), (0, 0), (1, 0), (2, 0), (3, 0), (3, 0)],
        flows: vec![flow(0, 4), flow(1, 5), flow(4, 1), flow(5, 0), flow(2, 3), flow(3, 2)],
    };
    let (whole, one) = all_of(plan.build(1));
    assert_eq!(whole, Division::Whole);
    for cores in [2, 3, 4] {
        let (division, several) = all_of(plan.build(cores));
        let Division::Parts { parts, lookahead, .. } = division else { panic!("{division:?}") };
        assert_eq!((parts, lookahead), (cores, Duration::from_millis(1)));
        assert!(one == several, "{cores} cores");
    }
}

struct Silent;

impl Application for Silent {
    fn on_timer(&mut self, _: &mut dyn Io) {}
}

#[test]
fn an_indivisible_network_runs_on_one_core_and_says_why() {
    let build = |kind: &str, silent: bool| {
        let mut topology = Topology::new(1);
        let (a, b) = (topology.host(HostConfig::default()), topology.host(HostConfig::default()));
        let config: LinkConfig = kind.parse().unwrap();
        topology.join(a, b, config.clone(), config);
        if silent {
            topology.run(b, Instant::ZERO, Box::new(Silent)).unwrap();
        }
        topology.cores = 2;
        (topology.build().unwrap(), b)
    };
    let because = |network: &Network| match network.division() {
        Division::Indivisible(reason) => *reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(because(&build("rate=1Mbit/s", false).0), Indivisible::NoCut);
    assert_eq!(
        because(&build("delay=1ms, rate=1Mbit/s, queue=codel", false).0),
        Indivisible::NoCut
    );
    let (network, host) = build("delay=1ms", true);
    assert_eq!(because(&network), Indivisible::Unknown(host));
    assert!(because(&network).to_string().contains("may share state"));
    let (network, _) = build("delay=1ms", false);
    let parts = Division::Parts { parts: 2, lookahead: Duration::from_millis(1), cut_links: 1 };
    assert_eq!(*network.division(), parts);

    let mut topology = Topology::new(1);
    let (a, b) = (topology.host(HostConfig::default()), topology.gateway());
    let config: LinkConfig = "delay=1ms".parse().unwrap();
    topology.join(a, b, config.clone(), config);
    topology.cores = 2;
    assert_eq!(because(&topology.build().unwrap()), Indivisible::Gateway);
}
