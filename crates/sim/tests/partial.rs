//! Traffic of which parts may be given up: what arrived and what did not are counted apart, and together they are all that was sent.

use std::net::SocketAddrV4;
use std::sync::Arc;
use transom_sim::Draw;
use transom_sim::network::{HostConfig, Topology};
use transom_sim::traffic::{
    Amount, Application, Exchange, Flow, FlowId, Pattern, bulk, requests, sink,
};
use transom_tcp::compose::compose_classic as compose;
use transom_tcp::time::Instant;

const FLOW: FlowId = FlowId(0);

/// A client and a server, with their profiles, over a path that loses every fiftieth packet, in both directions, until nothing happens any more.
fn run(
    profiles: [&str; 2],
    both: impl FnOnce(SocketAddrV4) -> (Box<dyn Application>, Box<dyn Application>),
) -> Flow {
    let [at_client, at_server] = profiles.map(|tcp| Some(Arc::new(compose(tcp).unwrap())));
    let mut topology = Topology::new(5);
    let [client, server] = std::array::from_fn(|_| topology.host(HostConfig::default()));
    let link = || "rate=10Mbit/s, delay=10ms, loss=2%".parse().unwrap();
    topology.join(client, server, link(), link());
    let remote = SocketAddrV4::new(topology.address(server).unwrap(), 80);
    let (asks, answers) = both(remote);
    topology.run_with(server, Instant::ZERO, answers, at_server).unwrap();
    topology.run_with(client, Instant::ZERO, asks, at_client).unwrap();
    let mut network = topology.build().unwrap();
    network.run_until(Instant::from_secs(600)).unwrap();
    network.flows()[0].clone()
}

#[test]
fn a_transfer_is_what_arrived_and_what_did_not() {
    let bytes = 3_000_000;
    let transfer = |sender: &str, receiver: &str| {
        run([sender, receiver], |remote| {
            let bulk = bulk(FLOW, remote.into(), Amount::Bytes(bytes));
            (bulk, sink(FLOW, 80))
        })
    };
    let partial = transfer("no-retransmission", "accept-holes");
    assert_eq!(partial.delivered + partial.skipped, bytes);
    // A fiftieth, with some room for luck.
    assert!(partial.skipped > bytes / 100 && partial.skipped < bytes / 30, "{partial:?}");
    // SYN or FIN, at most.
    assert!(partial.sent.retransmissions <= 2, "{partial:?}");
    assert_eq!(partial.completions.len(), 1);
    // A receiver that has not agreed gets everything; one that has lost patience does not.
    let plain = transfer("no-retransmission", "sack");
    assert_eq!((plain.delivered, plain.skipped), (bytes, 0));
    assert!(plain.sent.retransmissions > 10);
    let hasty = transfer("sack", "skip-holes(after=30ms)");
    assert_eq!(hasty.delivered + hasty.skipped, bytes);
    assert!(hasty.skipped > 0 && hasty.skipped < partial.skipped, "{hasty:?}");
    assert!(hasty.sent.fast_recoveries + hasty.sent.timeouts > 10, "{hasty:?}");
}

#[test]
fn requests_go_on_whatever_is_missing_of_their_answers() {
    let (count, response) = (300, 20_000);
    let exchange = Exchange {
        request: Draw::Constant(200),
        response: Draw::Constant(response),
        think: Draw::Constant(1_000_000),
    };
    let flow = run(["no-retransmission + nodelay"; 2], |remote| {
        let pattern = Pattern::Sequence(Some(count));
        requests(FLOW, remote.into(), exchange, pattern, Instant::FAR_FUTURE)
    });
    assert_eq!(flow.completions.len(), count as usize, "{flow:?}");
    assert_eq!(flow.delivered + flow.skipped, u64::from(count) * response);
    assert!(flow.skipped > 0);
}
