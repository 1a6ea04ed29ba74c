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
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use support::{BOTTLENECK, Net, Offloads, network, policy, run};
use transom_device::namespace::Namespace;
use transom_forwarder::tc::{Cost, Options, Tc, count_cost};
use transom_forwarder::{Deployment, Refusal};
use transom_testkit::packets;
use transom_wire::TcpHeader;
use transom_wire::seq::Seq;
use transom_wire::tcp::{Flags, Options as TcpOptions};

const FLOWS: usize = 4;
const BYTES: usize = 1 << 30;
const TURNS: usize = 5;

fn main() -> Result<(), Refusal> {
    alone()?;
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

/// One acknowledgement again and again, beside few flows and many. The kernel's loop runs on the same packet, so that its window is changed the
/// first time and is as it should be from then on: this is the time without the writing.
fn alone() -> Result<(), Refusal> {
    let net = Namespace::new().expect("a network namespace");
    run(&net, "tc", &["qdisc", "add", "dev", "lo", "root", "pfifo", "limit", "10"]);
    let mut options = Options::new("lo", policy());
    options.control.flows = 1 << 17;
    let mut tc = net.run(|| Tc::attach(options)).expect("entering the namespace")?;
    let receiver: SocketAddr = "198.51.100.2:80".parse().expect("an address");
    let header = |flags, seq: u32, ack: u32, scales: bool| TcpHeader {
        seq: Seq::new(seq),
        ack: Seq::new(ack),
        flags,
        window: 65_535,
        options: TcpOptions {
            mss: scales.then_some(1460),
            window_scale: scales.then_some(10),
            ..TcpOptions::default()
        },
        ..TcpHeader::default()
    };
    let frame = |packet: Vec<u8>| [&[0; 12][..], &[8, 0], &packet].concat();
    let mut known = 0;
    for flows in [1, 1_000, 100_000u32] {
        let mut last = Vec::new();
        for number in known..flows {
            let address = Ipv4Addr::from_bits(0x0a00_0000 + number / 60_000);
            let sender = SocketAddr::new(address.into(), 1024 + (number % 60_000) as u16);
            let syn = packets::tcp(sender, receiver, &header(Flags::SYN, 1, 0, true), &[]);
            let answer =
                packets::tcp(receiver, sender, &header(Flags::SYN | Flags::ACK, 5, 2, true), &[]);
            let ack = packets::tcp(receiver, sender, &header(Flags::ACK, 6, 2, false), &[]);
            tc.try_out(true, &frame(syn), 1)?;
            tc.try_out(false, &frame(answer), 1)?;
            last = frame(ack);
            tc.try_out(false, &last, 1)?;
        }
        known = flows;
        // The time is that of one run, the mean of all.
        let times: Vec<_> = (0..TURNS)
            .map(|_| tc.try_out(false, &last, 1_000_000).map(|(_, time)| time.as_nanos() as f64))
            .collect::<Result<_, _>>()?;
        println!(
            "{flows} flows: {} ns for an acknowledgement whose window stays, median of {TURNS}",
            median(times)
        );
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
