//! The cost of mode tc: nanoseconds for each packet, and the throughput of a bulk transfer with and without it.
//!
//! Kernel TCP in two network namespaces, with a router between them, whose queue is a `pfifo` that does not slow anything down. There the processor
//! is the bottleneck, and additional work shows. The kernel counts the programs' time itself (`BPF_ENABLE_STATS`), which costs some nanoseconds more
//! in each run. Then the queue is a `tbf` of 1 Gbit/s, and of a higher rate if the machine is twice as fast. There the link is the bottleneck, as in
//! real use. Run it as root on an idle machine, for a minute or two:
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
use transom_bpf::count_cost;
use transom_device::namespace::Namespace;
use transom_forwarder::tc::{Options, Tc};
use transom_forwarder::{Deployment, Refusal};
use transom_testkit::packets;
use transom_wire::tcp::{Flags, Options as TcpOptions};
use transom_wire::{Seq, TcpHeader};

const FLOWS: usize = 4;
const BYTES: usize = 1 << 30;
const TURNS: usize = 5;
/// Rates of links in Gbit/s, the highest first: of those above one, the first that is no more than half of what the machine does.
const HIGHER: [f64; 3] = [10.0, 5.0, 2.5];
/// The queue of a shaped link, in bytes: 8 ms at 1 Gbit/s.
const SHAPED_LIMIT: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    alone()?;
    let mut rows = Vec::new();
    for offloads in [Offloads::On, Offloads::Off] {
        let Some(net) = network(offloads) else { return Ok(()) };
        let words = ["qdisc", "replace", "dev", BOTTLENECK, "root", "pfifo", "limit", "100000"];
        run(&net.router, "tc", &words);
        println!("offloads {offloads:?}");
        // Data that is cut into packets takes longer.
        let bytes = if offloads == Offloads::On { BYTES } else { BYTES / 2 };
        let row = Row::measured(&net, offloads, None, bytes)?;
        let most = row.without;
        rows.push(row);
        {
            let mut tc = attach(&net, false, None)?;
            let _counting = count_cost()?;
            throughput(&net, bytes);
            let counters = tc.status(0)?.counters;
            println!("  {} acknowledgements, {} rewritten", counters.acks, counters.rewritten);
            for (program, time, runs) in tc.cost()? {
                let each = time.as_nanos() as u64 / runs.max(1);
                println!("  {program}: {each} ns in each of {runs} runs");
            }
        }
        let higher = HIGHER.into_iter().find(|rate| 2.0 * rate <= most);
        for rate in [1.0].into_iter().chain(higher) {
            let (limit, mbit) = (SHAPED_LIMIT.to_string(), format!("{}mbit", rate * 1000.0));
            run(
                &net.router,
                "tc",
                &[
                    "qdisc", "replace", "dev", BOTTLENECK, "root", "tbf", "rate", &mbit, "burst",
                    "256kb", "limit", &limit,
                ],
            );
            // About a second each.
            let bytes = (rate * 1e9 / 8.0) as usize;
            rows.push(Row::measured(&net, offloads, Some(rate), bytes)?);
        }
    }
    println!(
        "\nGbit/s of {FLOWS} flows, medians of {TURNS} by turns; the ratio is that of with control to without.\n"
    );
    println!("| link | offloads | without | windows left alone | with control | ratio |");
    println!("|---|---|---|---|---|---|");
    rows.iter().for_each(Row::print);
    Ok(())
}

/// Throughput through one link, in Gbit/s.
struct Row {
    /// `None` for one that slows nothing down: the processor is the bottleneck.
    rate: Option<f64>,
    offloads: Offloads,
    without: f64,
    /// With programs that change nothing, which costs what they do.
    looking: f64,
    /// With control, which has smaller windows besides.
    with: f64,
}

impl Row {
    /// By turns, so that other load is the same for all.
    fn measured(
        net: &Net,
        offloads: Offloads,
        rate: Option<f64>,
        bytes: usize,
    ) -> Result<Row, Refusal> {
        let (mut without, mut looking, mut with) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TURNS {
            without.push(throughput(net, bytes));
            let tc = attach(net, true, rate)?;
            looking.push(throughput(net, bytes));
            drop(tc);
            let _tc = attach(net, false, rate)?;
            with.push(throughput(net, bytes));
        }
        let (without, looking, with) = (median(without), median(looking), median(with));
        Ok(Row { rate, offloads, without, looking, with })
    }

    fn print(&self) {
        let Row { rate, offloads, without, looking, with } = self;
        let link = rate.map_or("not shaped".into(), |rate| format!("{rate} Gbit/s"));
        let ratio = with / without;
        println!(
            "| {link} | {offloads:?} | {without:.2} | {looking:.2} | {with:.2} | {ratio:.3} |"
        );
    }
}

/// Mode tc at the bottleneck, for its queue: half of what a shaped one holds is the upper threshold.
fn attach(net: &Net, passive: bool, rate: Option<f64>) -> Result<Tc, Refusal> {
    let mut options = Options { passive, ..Options::new(BOTTLENECK, policy()) };
    if rate.is_some() {
        let (upper, lower) = (SHAPED_LIMIT / 2, SHAPED_LIMIT / 4);
        let text = format!("target-window(upper={upper}B, lower={lower}B, rule=section-3.2)");
        options.control.policy = text.parse().expect("a policy");
    }
    net.router.run(|| Tc::attach(options)).expect("entering the namespace")
}

/// One acknowledgement again and again, beside few flows and many. The kernel's loop runs on the same packet, so its window is changed only the
/// first time. This is the time without the writing.
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
fn throughput(net: &Net, bytes: usize) -> f64 {
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
                for _ in 0..bytes / FLOWS / buffer.len() {
                    stream.write_all(&buffer).expect("sending");
                }
            });
        }
    });
    bytes as f64 * 8.0 / start.elapsed().as_secs_f64() / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
