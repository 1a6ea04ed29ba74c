//! What flows have sent, against what came to the first link on their way.

use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::sync::{Arc, Mutex};
use transom_sim::Draw;
use transom_sim::link::{LinkConfig, Traffic};
use transom_sim::network::{HostConfig, LinkId, Network, Topology};
use transom_sim::traffic::{
    Amount, Application, Exchange, FlowId, Pattern, Schedule, bulk, datagram_sink, on_off,
    requests, sink, transfers,
};
use transom_tcp::Profile;
use transom_tcp::time::{Duration, Instant};
use transom_wire::{Flags, IpPacket, Protocol, Seq, TcpPacket};

const FLOW: FlowId = FlowId(0);
const PORT: u16 = 80;

type Ends = (Box<dyn Application>, Box<dyn Application>);

/// A host whose TCP is worked out by hand below, whatever the default is.
fn classic() -> HostConfig {
    HostConfig { profile: Profile::classic().into(), ..HostConfig::default() }
}

/// A client and a server, and the link from the one to the other.
fn network(path: &str, ends: impl FnOnce(SocketAddrV4) -> Ends) -> (Network, LinkId) {
    let mut topology = Topology::new(1);
    let client = topology.host(classic());
    let server = topology.host(classic());
    let there: LinkConfig = path.parse().unwrap();
    let mut back = there.clone();
    back.loss = Default::default();
    let (there, _) = topology.join(client, server, there, back);
    let (at_client, at_server) = ends(SocketAddrV4::new(topology.address(server).unwrap(), PORT));
    topology.run(server, Instant::ZERO, at_server).unwrap();
    topology.run(client, Instant::ZERO, at_client).unwrap();
    (topology.build().unwrap(), there)
}

/// Counts, at a link, the segments that begin before what the same connection has sent there already.
fn count_repeated(network: &mut Network, link: LinkId) -> Arc<Mutex<u64>> {
    let repeated = Arc::new(Mutex::new(0));
    let count = repeated.clone();
    let mut next: BTreeMap<(u16, u16), Seq> = BTreeMap::new();
    let tap = move |_: Instant, bytes: &[u8], _: Option<&str>| {
        let Ok(ip @ IpPacket::V4(_)) = IpPacket::parse(bytes) else { return };
        if ip.protocol() != Protocol::TCP {
            return;
        }
        let segment = TcpPacket::parse(ip.payload()).unwrap();
        let (len, begins) =
            (segment.header.segment_len(segment.payload.len() as u32), segment.header.seq);
        // The answer to a SYN is sent before there is a connection to count it.
        if len == 0 || segment.header.flags.contains(Flags::SYN | Flags::ACK) {
            return;
        }
        let next = next.entry((segment.header.src_port, segment.header.dst_port)).or_insert(begins);
        if begins.before(*next) {
            *count.lock().unwrap() += 1;
        }
        let end = begins + len;
        if next.before(end) {
            *next = end;
        }
    };
    network.tap(link, tap);
    repeated
}

/// Runs it and compares what the flow has sent with what came to the link.
fn check(name: &str, (mut network, link): (Network, LinkId), seconds: u64) -> (Traffic, u64, u64) {
    let repeated = count_repeated(&mut network, link);
    // Also in the midst of it.
    for tenth in 1..=10 * seconds {
        network.run_until(Instant::from_millis(100 * tenth)).unwrap();
        let sent = network.flows().first().map(|flow| flow.sent).unwrap_or_default();
        let offered = network.link_counters(link).unwrap().offered;
        assert_eq!(sent.packets, offered, "{name} at {tenth}");
        assert_eq!(sent.retransmissions, *repeated.lock().unwrap(), "{name} at {tenth}");
    }
    let sent = network.flows()[0].sent;
    (sent.packets, sent.retransmissions, sent.timeouts)
}

fn one_bulk(amount: Amount) -> impl FnOnce(SocketAddrV4) -> Ends {
    move |remote| (bulk(FLOW, remote.into(), amount), sink(FLOW, PORT))
}

const PATH: &str = "rate=10Mbit/s, delay=10ms, queue=30 packets";

#[test]
fn a_flow_that_never_ends() {
    let (_, retransmissions, _) = check("bulk", network(PATH, one_bulk(Amount::Endless)), 20);
    assert!(retransmissions > 0);
}

#[test]
fn a_connection_that_its_application_has_closed() {
    // 3 MB are written long before they are sent.
    let lossy = format!("{PATH}, loss=2%");
    let amount = Amount::Bytes(3_000_000);
    let (packets, retransmissions, _) = check("closed", network(&lossy, one_bulk(amount)), 60);
    assert!(packets.bytes > 3_000_000 && retransmissions > 10);
}

#[test]
fn a_timeout_after_the_application_has_closed() {
    // The SYN is followed by one segment with all the data and the FIN. It gets lost so many times, and there is nobody to ask for it.
    for (lost, times) in [("1", 1), ("1-2", 2), ("1-3", 3)] {
        let lossy = format!("{PATH}, loss=packets({lost})");
        let (_, retransmissions, timeouts) =
            check("timeout", network(&lossy, one_bulk(Amount::Bytes(1000))), 30);
        assert_eq!((retransmissions, timeouts), (times, times));
    }
}

#[test]
fn a_connection_that_gives_up() {
    // After the handshake nothing gets through any more. Nobody looks until it is over and gone.
    let dead = format!("{PATH}, loss=packets(1-1000000)");
    let (mut network, link) = network(&dead, one_bulk(Amount::Endless));
    let repeated = count_repeated(&mut network, link);
    network.run_until(Instant::from_secs(5000)).unwrap();
    assert_eq!(network.totals().on_their_way, 0);
    let flow = &network.flows()[0];
    let (node, id) = flow.sender.unwrap();
    assert!(network.stack(node).unwrap().connection(id).is_none());
    let sent = flow.sent;
    assert_eq!(sent.retransmissions, *repeated.lock().unwrap());
    assert!(sent.retransmissions > 5 && sent.timeouts > 5, "{sent:?}");
    assert_eq!(flow.sent.packets, network.link_counters(link).unwrap().offered);
}

#[test]
fn many_connections_one_after_the_other_and_at_once() {
    let entries = (0..200).map(|n| (Duration::from_millis(20 * n), 20_000)).collect();
    let lossy = format!("{PATH}, loss=1%");
    let transfers = network(&lossy, |remote| {
        let trace = Schedule::Trace(entries);
        let transfers = transfers(FLOW, remote.into(), trace, Instant::FAR_FUTURE);
        (transfers, sink(FLOW, PORT))
    });
    let (packets, retransmissions, _) = check("transfers", transfers, 60);
    assert!(packets.bytes > 200 * 20_000 && retransmissions > 10, "{retransmissions}");
}

#[test]
fn the_end_that_answers_requests_is_the_sender() {
    let exchange = Exchange {
        request: Draw::Uniform(100, 300),
        response: Draw::Uniform(5_000, 50_000),
        think: Draw::Constant(100_000_000),
    };
    for pattern in [Pattern::Sequence(None), Pattern::Pages { objects: 12, connections: 6 }] {
        // The one who asks is behind the link's other end.
        let mut topology = Topology::new(1);
        let hosts = [(); 2].map(|()| topology.host(classic()));
        let path: LinkConfig = format!("{PATH}, loss=1%").parse().unwrap();
        let (_, back) = topology.join(hosts[0], hosts[1], path.clone(), path);
        let remote = SocketAddrV4::new(topology.address(hosts[1]).unwrap(), PORT);
        let stop = Instant::from_secs(25);
        let (client, server) = requests(FLOW, remote.into(), exchange, pattern, stop);
        topology.run(hosts[1], Instant::ZERO, server).unwrap();
        topology.run(hosts[0], Instant::ZERO, client).unwrap();
        let network = topology.build().unwrap();
        let (packets, retransmissions, _) = check("requests", (network, back), 30);
        assert!(packets.packets > 1000 && retransmissions > 10, "{pattern:?} {packets:?}");
    }
}

#[test]
fn datagrams() {
    let rate = "1Mbit/s".parse().unwrap();
    let always = (Draw::Constant(1_000_000_000), Draw::Constant(0));
    let datagrams = network(PATH, |remote| {
        let source = on_off(FLOW, 5000, remote, rate, 972, always, Instant::from_secs(2));
        (source, datagram_sink(FLOW, PORT))
    });
    let (packets, retransmissions, timeouts) = check("datagrams", datagrams, 3);
    // 1000 bytes every 8 ms.
    assert_eq!(packets, Traffic { packets: 250, bytes: 250_000 });
    assert_eq!((retransmissions, timeouts), (0, 0));
}

#[test]
fn flows_of_one_host_are_told_apart() {
    let mut topology = Topology::new(1);
    let router = topology.router();
    let sender = topology.host(classic());
    let quick: LinkConfig = "delay=1ms".parse().unwrap();
    topology.join(sender, router, quick.clone(), quick);
    let mut links = Vec::new();
    for flow in 0..3 {
        let receiver = topology.host(classic());
        let path: LinkConfig = PATH.parse().unwrap();
        links.push(topology.join(router, receiver, path.clone(), path).0);
        let remote = (topology.address(receiver).unwrap(), PORT);
        let bulk = bulk(FlowId(flow), remote.into(), Amount::Bytes(100_000 << flow));
        topology.run(sender, Instant::ZERO, bulk).unwrap();
        topology.run(receiver, Instant::ZERO, sink(FlowId(flow), PORT)).unwrap();
    }
    let mut network = topology.build().unwrap();
    network.run_until(Instant::from_secs(30)).unwrap();
    for (flow, link) in network.flows().iter().zip(links) {
        assert_eq!(flow.sent.packets, network.link_counters(link).unwrap().offered);
    }
}
