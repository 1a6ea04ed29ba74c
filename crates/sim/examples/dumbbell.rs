//! How fast the simulator is: flows through a dumbbell of 1 Gbit/s and 70 ms.
//!
//!     cargo run --release -p transom-sim --example dumbbell -- [FLOWS] [SECONDS]

use std::time::Instant as Clock;
use transom_sim::link::LinkConfig;
use transom_sim::network::{HostConfig, Topology};
use transom_sim::traffic::{Amount, Bulk, FlowId, Sink};
use transom_tcp::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let flows: u32 = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(10), |text| text.parse())?;

    let mut topology = Topology::new(1);
    let (left, right) = (topology.router(), topology.router());
    let bottleneck: LinkConfig = "rate=1Gbit/s, delay=34ms, queue=6000 packets".parse()?;
    let access: LinkConfig = "rate=10Gbit/s, delay=500us, queue=10000 packets".parse()?;
    let (there, _) = topology.join(left, right, bottleneck.clone(), bottleneck);
    for flow in 0..flows {
        let (client, server) =
            (topology.host(HostConfig::default()), topology.host(HostConfig::default()));
        topology.join(client, left, access.clone(), access.clone());
        topology.join(right, server, access.clone(), access.clone());
        let remote = (topology.address(server)?, 80).into();
        let start = Instant::ZERO + Duration::from_millis(u64::from(flow) * 10);
        topology.run(client, start, Box::new(Bulk::new(FlowId(flow), remote, Amount::Endless)))?;
        topology.run(server, Instant::ZERO, Box::new(Sink::new(FlowId(flow), 80)))?;
    }
    let mut network = topology.build()?;
    let clock = Clock::now();
    network.run_until(Instant::from_secs(seconds))?;
    let took = clock.elapsed().as_secs_f64();
    let carried = network.link_counters(there).ok_or("no such link")?;
    let delivered: u64 = network.flows().iter().map(|flow| flow.delivered).sum();
    println!(
        "{flows} flows, {seconds} s: {} data packets at the bottleneck ({} dropped), {:.1} Mbit/s delivered",
        carried.delivered.packets,
        carried.queue_full.packets,
        delivered as f64 * 8.0 / seconds as f64 / 1e6
    );
    println!(
        "{took:.2} s: {:.0} data packets and {:.0} events per second",
        carried.delivered.packets as f64 / took,
        network.events() as f64 / took
    );
    Ok(())
}
