//! What mode tc costs: nanoseconds for each packet, and the throughput of a bulk transfer with and without it.
//!
//! Kernel TCP in two network namespaces, with a router between them, whose queue is a `pfifo` that does not slow anything down. The kernel counts the
//! programs' time itself (`BPF_ENABLE_STATS`), which costs some nanoseconds more in each run. Run it as root on an idle machine:
//!
//! ```text
//! cargo run -p transom-forwarder --example cost
//! ```

#[path = "../tests/support/mod.rs"]
mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use support::{BOTTLENECK, Net, Offloads, network, policy, run};
use transom_forwarder::tc::{Cost, Options, Tc, count_cost};
use transom_forwarder::{Deployment, Refusal};

const FLOWS: usize = 4;
const BYTES: usize = 1 << 30;
const TURNS: usize = 5;

fn main() -> Result<(), Refusal> {
    for offloads in [Offloads::On, Offloads::Off] {
        let Some(net) = network(offloads) else { return Ok(()) };
        let words = ["qdisc", "replace", "dev", BOTTLENECK, "root", "pfifo", "limit", "100000"];
        run(&net.router, "tc", &words);
        println!("offloads {offloads:?}");
        let attach = |passive| {
            let options = Options { passive, ..Options::new(BOTTLENECK, policy()) };
            net.router.run(|| Tc::attach(options)).expect("entering the namespace")
        };
        // By turns, so that what else goes on is the same for all. One that only looks costs what the programs do; the other has smaller windows
        // besides.
        let (mut without, mut looking, mut with) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TURNS {
            without.push(throughput(&net));
            let tc = attach(true)?;
            looking.push(throughput(&net));
            drop(tc);
            let _tc = attach(false)?;
            with.push(throughput(&net));
        }
        let (without, looking, with) = (median(without), median(looking), median(with));
        println!(
            "  throughput: {without:.2} Gbit/s without, {looking:.2} with windows left alone, {with:.2} with control; medians of {TURNS}"
        );
        let mut tc = attach(false)?;
        let _counting = count_cost()?;
        throughput(&net);
        let counters = tc.status(0)?.counters;
        println!("  {} acknowledgements, {} rewritten", counters.acks, counters.rewritten);
        for Cost { program, nanoseconds, runs } in tc.cost()? {
            println!("  {program}: {} ns in each of {runs} runs", nanoseconds / runs.max(1));
        }
    }
    Ok(())
}

/// Gigabits in a second.
fn throughput(net: &Net) -> f64 {
    let listener =
        net.receiver.run(|| TcpListener::bind("10.2.0.2:0").expect("listening")).expect("entering");
    let at = listener.local_addr().expect("an address");
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..FLOWS {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("accepting");
                let mut buffer = vec![0; 256 * 1024];
                while stream.read(&mut buffer).expect("receiving") > 0 {}
            });
            scope.spawn(|| {
                let mut stream = net
                    .sender
                    .run(|| TcpStream::connect(at).expect("connecting"))
                    .expect("entering");
                let buffer = vec![0; 256 * 1024];
                for _ in 0..BYTES / FLOWS / buffer.len() {
                    stream.write_all(&buffer).expect("sending");
                }
            });
        }
    });
    BYTES as f64 * 8.0 / start.elapsed().as_secs_f64() / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
