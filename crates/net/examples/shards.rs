//! How much two shards carry, against one, with two processes of the kernel's side as peers.
//!
//! Run as root, or with user namespaces: `cargo run --release -p transom-net --example shards -- [ROUNDS] [SECONDS]`. Each round measures one shard and
//! two, upwards and downwards, one after the other. The medians and their ratio are printed at the end.

use std::io::{self, Read, Write};
use std::net::{self, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use transom_device::namespace::{Namespace, enter_user_namespace};
use transom_device::tun::Tun;
use transom_net::{Profile, Stack, TcpStream};

const KERNEL: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const OURS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const PORT: u16 = 5001;
const PEERS: usize = 2;

/// Which way the data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// From the kernel to Transom.
    In,
    /// From Transom to the kernel.
    Out,
}

/// Writes until `until`.
fn pump(mut stream: impl Write, until: Instant) -> u64 {
    let piece = vec![7; 256 * 1024];
    let mut bytes = 0;
    while Instant::now() < until {
        match stream.write(&piece) {
            Ok(written) => bytes += written as u64,
            Err(_) => break,
        }
    }
    bytes
}

/// Reads to the end.
fn drain(mut stream: impl Read) -> u64 {
    let mut piece = vec![0; 256 * 1024];
    let mut bytes = 0;
    while let Ok(read @ 1..) = stream.read(&mut piece) {
        bytes += read as u64;
    }
    bytes
}

/// The process of a peer.
fn peer(way: &str, seconds: f64) -> io::Result<()> {
    let stream = net::TcpStream::connect((OURS, PORT))?;
    match way {
        "In" => pump(&stream, Instant::now() + Duration::from_secs_f64(seconds)),
        _ => drain(&stream),
    };
    Ok(())
}

fn start_peer(namespace: &Namespace, way: Way, seconds: f64) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["peer", &format!("{way:?}"), &seconds.to_string()]).stdin(Stdio::null());
    namespace.spawn(&mut command)
}

/// Bytes per second of all peers together, and how they were spread over the shards.
fn measure(shards: usize, way: Way, seconds: f64) -> io::Result<(f64, Vec<usize>)> {
    let namespace = Namespace::new()?;
    let builder = Tun::builder().queues(shards).address(format!("{KERNEL}/24").parse().unwrap());
    let tun = namespace.run(|| builder.open())??;
    let profile = Profile::classic();
    let stack = Stack::builder().profile(profile).address(OURS.into(), 24).start(tun)?;
    loop {
        let listener = stack.listen((OURS, PORT))?;
        let peers = (0..PEERS).map(|_| start_peer(&namespace, way, seconds));
        let peers = peers.collect::<io::Result<Vec<_>>>()?;
        let accepted = (0..PEERS).map(|_| Ok(listener.accept()?.0));
        let streams = accepted.collect::<io::Result<Vec<TcpStream>>>()?;
        let spread = (0..shards).filter_map(|shard| stack.shard(shard));
        let spread: Vec<_> = spread.map(|shard| shard.connection_count()).collect();
        let start = Instant::now();
        let until = start + Duration::from_secs_f64(seconds);
        let bytes: u64 = thread::scope(|scope| {
            let work = |stream| match way {
                Way::In => drain(stream),
                Way::Out => pump(stream, until),
            };
            let threads: Vec<_> =
                streams.into_iter().map(|stream| scope.spawn(move || work(stream))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
        });
        let rate = bytes as f64 / start.elapsed().as_secs_f64();
        for mut peer in peers {
            peer.wait()?;
        }
        // The hash may send both peers to one shard. That is no measurement of two.
        if spread.iter().all(|&connections| connections == PEERS / shards) {
            return Ok((rate, spread));
        }
        stack.drain(Duration::from_secs(5));
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, way, seconds] = &arguments[..]
        && word == "peer"
    {
        return Ok(peer(way, seconds.parse()?)?);
    }
    let rounds: usize = arguments.first().map_or(Ok(7), |text| text.parse())?;
    let seconds: f64 = arguments.get(1).map_or(Ok(2.0), |text| text.parse())?;
    if Namespace::new().is_err() {
        enter_user_namespace()?;
    }
    for way in [Way::In, Way::Out] {
        let mut rates = [Vec::new(), Vec::new()];
        for round in 0..rounds {
            for (shards, rates) in [1, 2].into_iter().zip(&mut rates) {
                let (rate, spread) = measure(shards, way, seconds)?;
                println!(
                    "{way:?} round {round}: {shards} shards {:.2} Gbit/s {spread:?}",
                    rate * 8e-9
                );
                rates.push(rate);
            }
        }
        let [one, two] = rates.each_mut().map(|rates| median(rates));
        println!(
            "{way:?}: one shard {:.2} Gbit/s, two shards {:.2} Gbit/s, ratio {:.2}",
            one * 8e-9,
            two * 8e-9,
            two / one
        );
    }
    Ok(())
}
