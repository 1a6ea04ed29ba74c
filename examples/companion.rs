//! Datagrams beside a connection: they leave at the rate that TCP allows itself between the same two hosts, and not at one of their own.
//!
//! The path has 8 Mbit/s; from the tenth second on there are two more connections on it. All in virtual time.

use std::error::Error;
use std::net::SocketAddrV4;
use std::sync::Arc;
use transom_extensions::{Allowance, Companion};
use transom_sim::link::LinkConfig;
use transom_sim::network::{HostConfig, Topology};
use transom_sim::traffic::{Amount, Application, FlowId, Io, Sends, bulk, datagram_sink, sink};
use transom_tcp::Profile;
use transom_tcp::arguments::Fraction;
use transom_tcp::time::{Duration, Instant};

const TCP: FlowId = FlowId(0);
const UDP: FlowId = FlowId(1);
const PAYLOAD: u16 = 1200;

/// Has datagrams to send all the time.
struct Beside {
    allowance: Allowance,
    remote: SocketAddrV4,
}

impl Application for Beside {
    fn on_timer(&mut self, io: &mut dyn Io) {
        let now = io.now();
        if self.allowance.may_send(now) {
            io.sends(UDP, Sends::To(self.remote.into()));
            io.send_datagram(5000, self.remote, PAYLOAD);
            self.allowance.on_send(now, PAYLOAD.into());
        }
        // The rate may change with each acknowledgement: not to sleep for longer than a round trip.
        let soon = now + Duration::from_millis(40);
        io.call_at(self.allowance.next_time(now).unwrap_or(soon).min(soon));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let companion = Companion::default();
    let profile = Arc::new(Profile::default().with_extensions(vec![companion.publisher()]));

    let mut topology = Topology::new(7);
    let (alice, bob) = (topology.host(HostConfig::default()), topology.host(HostConfig::default()));
    let link: LinkConfig = "rate=8Mbit/s, delay=20ms, queue=40 packets".parse()?;
    topology.join(alice, bob, link.clone(), link);
    let address = topology.address(bob)?;
    let (stream, datagrams) = (SocketAddrV4::new(address, 80), SocketAddrV4::new(address, 5000));
    let beside = Beside { allowance: companion.allowance(Fraction::ONE), remote: datagrams };
    let stream = bulk(TCP, stream.into(), Amount::Endless);
    topology.run_with(alice, Instant::ZERO, stream, Some(profile))?;
    topology.run(alice, Instant::ZERO, Box::new(beside))?;
    topology.run(bob, Instant::ZERO, sink(TCP, 80))?;
    topology.run(bob, Instant::ZERO, datagram_sink(UDP, 5000))?;
    let others = Instant::from_secs(10);
    for (flow, port) in [(FlowId(2), 81), (FlowId(3), 82)] {
        let bulk = bulk(flow, SocketAddrV4::new(address, port).into(), Amount::Endless);
        topology.run(alice, others, bulk)?;
        topology.run(bob, Instant::ZERO, sink(flow, port))?;
    }
    let mut network = topology.build()?;

    println!("second  TCP kB/s  UDP kB/s  loss");
    let mut before = [0, 0];
    for second in 1..=20u64 {
        network.run_until(Instant::from_secs(second))?;
        let delivered = [TCP, UDP].map(|flow| network.ledger().flow(flow).delivered);
        let rates = [0, 1].map(|i: usize| (delivered[i] - before[i]) / 1000);
        let loss = companion.path().map_or_else(String::new, |path| path.loss.to_string());
        println!("{second:6}  {:8}  {:8}  {loss}", rates[0], rates[1]);
        before = delivered;
    }
    Ok(())
}
