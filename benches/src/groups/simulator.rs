//! Simulating bulk flows through a dumbbell, beside ns-3.
//!
//! Both simulate the same: 1 Gbit/s and 70 ms, a queue of 6000 packets, windows of up to 6 MB, so that one flow alone loses nothing.
//! Counted are the data packets that leave the bottleneck, for each second of CPU time, and that is by the simulators' own
//! account; setting up the network is not part of it. ns-3 is Debian's (`libns3-dev`), and its program, `ns3/dumbbell.cc`, is
//! compiled here.

use super::Settings;
use crate::clock::{process_time, thread_time};
use crate::harness::{Bound, Case, Group, Unit};
use crate::pair::fixed_buffers;
use crate::placement::Placement;
use anyhow::{Context, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time;
use transom_sim::link::LinkConfig;
use transom_sim::network::{Division, HostConfig, LinkId, Network, NodeId, Topology};
use transom_sim::traffic::{Amount, FlowId, bulk, sink};
use transom_tcp::time::{Duration, Instant};

/// Simulated seconds. ns-3 takes some ten real ones for them.
const SECONDS: u64 = 2;
/// Bytes of each socket buffer.
const BUFFER: usize = 6 << 20;
const PORT: u16 = 80;

/// Builds the network; the link is the bottleneck in the direction of the data.
///
/// # Errors
/// When the network makes no sense.
pub fn dumbbell(flows: u32) -> anyhow::Result<(Network, LinkId)> {
    let mut topology = Topology::new(1);
    let (left, right) = (topology.router(), topology.router());
    let middle: LinkConfig = "rate=1Gbit/s, delay=34ms, queue=6000 packets".parse()?;
    let access: LinkConfig = "rate=10Gbit/s, delay=500us, queue=10000 packets".parse()?;
    let (bottleneck, _) = topology.join(left, right, middle.clone(), middle);
    let config = HostConfig { profile: Arc::new(fixed_buffers(BUFFER)), ..HostConfig::default() };
    for flow in 0..flows {
        let (client, server) = (topology.host(config.clone()), topology.host(config.clone()));
        topology.join(client, left, access.clone(), access.clone());
        topology.join(right, server, access.clone(), access.clone());
        let remote = (topology.address(server)?, PORT).into();
        let start = Instant::ZERO + Duration::from_millis(10 * u64::from(flow));
        let bulk = bulk(FlowId(flow), remote, Amount::Endless);
        topology.run(client, start, bulk)?;
        topology.run(server, Instant::ZERO, sink(FlowId(flow), PORT))?;
    }
    Ok((topology.build()?, bottleneck))
}

/// Packets per second of CPU time.
fn transom(name: &'static str, flows: u32) -> Case {
    Case::new(name, move |_| {
        let (mut network, bottleneck) = dumbbell(flows)?;
        let started = thread_time();
        network.run_until(Instant::from_secs(SECONDS))?;
        let took = thread_time() - started;
        let carried = network.link_counters(bottleneck).context("no bottleneck")?;
        ensure!(carried.delivered.packets > 10_000, "hardly anything was sent");
        Ok(carried.delivered.packets as f64 / took.as_secs_f64())
    })
}

/// The compiled program, and the directory in which it goes away again.
struct Ns3 {
    _directory: tempfile::TempDir,
    program: PathBuf,
}

impl Ns3 {
    fn compile() -> anyhow::Result<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("ns3/dumbbell.cc");
        let directory = tempfile::tempdir()?;
        let program = directory.path().join("dumbbell");
        let libraries = ["applications", "internet", "point-to-point", "network", "core"];
        let output = Command::new("c++")
            .args(["-O2", "-o"])
            .args([&program, &source])
            .args(libraries.map(|name| format!("-lns3-{name}")))
            .output()
            .context("running c++")?;
        if !output.status.success() {
            bail!(
                "ns-3 is not here (Debian: libns3-dev): {}",
                String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default()
            );
        }
        Ok(Ns3 { _directory: directory, program })
    }

    /// Packets per second of CPU time.
    fn run(&self, flows: u32) -> anyhow::Result<f64> {
        let output = Command::new(&self.program)
            .args([flows.to_string(), SECONDS.to_string()])
            .output()
            .context("running ns-3")?;
        ensure!(output.status.success(), "ns-3 failed: {}", output.status);
        let text = String::from_utf8(output.stdout).context("what ns-3 printed")?;
        let mut numbers = text.split_whitespace().map(str::parse::<f64>);
        let mut number = || numbers.next().context("ns-3 printed too little")?.context("a number");
        let (packets, took) = (number()?, number()?);
        Ok(packets / took)
    }
}

/// Builds the group.
///
/// # Errors
/// When ns-3 cannot be compiled.
pub fn build(_settings: Settings) -> anyhow::Result<Group> {
    const ONE: &str = "ns-3, 1 flow";
    const MANY: &str = "ns-3, 100 flows";
    let ns3 = Arc::new(Ns3::compile()?);
    let case = |name, flows| {
        let ns3 = ns3.clone();
        Case::new(name, move |_| ns3.run(flows))
    };
    let cases = vec![
        case(ONE, 1),
        transom("Transom, 1 flow", 1).figure(ONE, Bound::AtLeast(20.0)),
        case(MANY, 100),
        transom("Transom, 100 flows", 100).figure(MANY, Bound::AtLeast(20.0)),
    ];
    Ok(Group::new(Unit::PerSecond, cases))
}

/// Builds the group that shows what many flows cost.
///
/// # Errors
/// None so far.
pub fn build_scale(_settings: Settings) -> anyhow::Result<Group> {
    const TEN: &str = "10 flows";
    let cases = vec![
        transom(TEN, 10),
        transom("1,000 flows", 1_000).figure(TEN, Bound::AtLeast(1.0 / 1.3)),
        transom("10,000 flows", 10_000).figure(TEN, Bound::AtLeast(1.0 / 1.3)),
    ];
    Ok(Group::new(Unit::PerSecond, cases))
}

/// Routers in each row and column of the grid.
const SIDE: usize = 10;
/// Simulated milliseconds of the grid.
const GRID_MILLIS: u64 = 500;

/// A hundred routers in a square, each joined to its neighbours, and flows between two hosts of their own at routers that differ.
///
/// # Errors
/// When the network makes no sense.
pub fn grid(flows: u32, cores: usize) -> anyhow::Result<Network> {
    let mut topology = Topology::new(1);
    let routers: Vec<NodeId> = (0..SIDE * SIDE).map(|_| topology.router()).collect();
    let core: LinkConfig = "rate=1Gbit/s, delay=2ms, queue=1000 packets".parse()?;
    for (place, &router) in routers.iter().enumerate() {
        let right = Some(place + 1).filter(|next| next % SIDE != 0);
        for next in right.into_iter().chain([place + SIDE]) {
            if let Some(&other) = routers.get(next) {
                topology.join(router, other, core.clone(), core.clone());
            }
        }
    }
    let access: LinkConfig = "rate=4Mbit/s, delay=500us, queue=50 packets".parse()?;
    let config = HostConfig { profile: Arc::new(fixed_buffers(1 << 16)), ..HostConfig::default() };
    for flow in 0..flows {
        // Multiples of odd numbers are an order without a pattern.
        let from = flow as usize * 37 % routers.len();
        let to = (from + 1 + flow as usize * 61 % (routers.len() - 1)) % routers.len();
        let (client, server) = (topology.host(config.clone()), topology.host(config.clone()));
        topology.join(client, routers[from], access.clone(), access.clone());
        topology.join(routers[to], server, access.clone(), access.clone());
        let remote = (topology.address(server)?, PORT).into();
        let start = Instant::ZERO + Duration::from_millis(u64::from(flow % 100));
        let bulk = bulk(FlowId(flow), remote, Amount::Endless);
        topology.run(client, start, bulk)?;
        topology.run(server, Instant::ZERO, sink(FlowId(flow), PORT))?;
    }
    topology.cores = cores;
    Ok(topology.build()?)
}

/// What it may take to set up 100,000 flows and run them.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(900);

/// Packets that leave a host, for each second that passes, or of CPU time.
fn on_cores(name: &'static str, flows: u32, cores: usize, placement: Placement) -> Case {
    Case::new(name, move |_| {
        let mut network = grid(flows, cores)?;
        if cores > 1 {
            let divided =
                matches!(network.division(), Division::Parts { parts, .. } if *parts == cores);
            ensure!(divided, "{:?}", network.division());
        }
        let (started, worked) = (time::Instant::now(), process_time());
        network.run_until(Instant::from_millis(GRID_MILLIS))?;
        let took = match placement {
            Placement::One => process_time() - worked,
            Placement::Free | Placement::Apart => started.elapsed(),
        };
        let packets = network.totals().packets;
        ensure!(packets > 100_000, "hardly anything was sent");
        Ok(packets as f64 / took.as_secs_f64())
    })
    .with_grace(PATIENCE)
}

/// Builds the group that shows what several cores bring: in the time that passes, and with one CPU in CPU time, which shows the cost of the division.
///
/// # Errors
/// None so far.
pub fn build_cores(settings: Settings) -> anyhow::Result<Group> {
    const ONE: &str = "10,000 flows, 100 routers, one core";
    const MANY: &str = "100,000 flows, 100 routers, one core";
    let placement = settings.placement;
    let two = on_cores("the same on two cores", 10_000, 2, placement);
    let two = match placement {
        Placement::One => two.against(ONE),
        Placement::Free | Placement::Apart => two.figure(ONE, Bound::AtLeast(1.7)),
    };
    // Ten times as many share the routers' links: it shows what more flows cost, and how much memory they take.
    let many = on_cores(MANY, 100_000, 1, placement).against(ONE);
    let many_on_two = on_cores("100,000 flows on two cores", 100_000, 2, placement).against(MANY);
    let one = on_cores(ONE, 10_000, 1, placement);
    Ok(Group::new(Unit::PerSecond, vec![one, two, many, many_on_two]))
}
