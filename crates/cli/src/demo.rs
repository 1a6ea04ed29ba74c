//! `transom demo`: a file from Transom to the kernel's TCP and back, through an emulated bottleneck.
//!
//! The kernel's side has its own network namespace, behind a TUN device. The emulated path is between the device and Transom. Where the machine
//! allows no namespaces, a second Transom in the same process replaces the kernel, and the output says so.

mod algorithms;
mod network;
mod observe;
mod transfer;

use crate::output;
use crate::thread::lock;
use crate::units::{Bytes, parse_bytes};
use algorithms::KernelCongestion;
use anyhow::{Context, Result, bail};
use network::Network;
use observe::Timeline;
use serde_json::json;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use transom_device::own_file::{self, NoRoom};
use transom_lab::scenario::Composition;
use transom_report::{Outcome, ReportData, Transfers};
use transom_sim::link::LinkConfig;
use transom_sim::units::{Limit, Probability, Rate, parse_duration};

/// The files in the output directory.
const GENERATED: &str = "original.bin";
const AT_THE_PEER: &str = "at-the-peer.bin";
const RETURNED: &str = "returned.bin";

/// Send a file to the kernel's TCP and back, and report how it went
///
/// The file goes from Transom to the kernel's TCP and back, through a path whose rate, delay, loss and queue you choose. The command writes a report
/// for a browser and a capture for Wireshark. Both sides use the same congestion control: CUBIC, unless --tcp names another one. Both transfers meet
/// the same losses: those of the packets with the same numbers.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom demo
      64 MiB of generated data there and back, 100 Mbit/s, 10 ms each way
  transom demo --file photo.raw --rate 1Gbit/s --delay 2ms
      a file over a faster, shorter path
  transom demo --size 8MiB --loss 1% --queue 30packets
      a path that loses one packet in a hundred, with a short queue
  transom demo --tcp reno
      both sides with Reno
  transom demo --tcp bbr3 --kernel-congestion bbr
      Transom with BBRv3, the kernel with its BBR
  transom demo --memory --json
      no privileges needed; machine-readable summary")]
pub(crate) struct Args {
    /// Send this file instead of generated data
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Amount of data to generate
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_bytes)]
    size: u64,
    /// Rate of the bottleneck, both ways
    #[arg(long, value_name = "RATE", default_value = "100Mbit/s")]
    rate: Rate,
    /// Propagation delay, each way
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = parse_span)]
    delay: transom_tcp::time::Duration,
    /// Share of packets lost on the way, each way
    #[arg(long, value_name = "SHARE", default_value = "0.01%")]
    loss: Probability,
    /// Length of the bottleneck's queue
    #[arg(long, value_name = "LIMIT", default_value = "256KiB")]
    queue: Limit,
    /// Units of Transom's TCP by name, such as "sack + reno + prr"; `transom units` lists them [default: cubic]
    #[arg(long, value_name = "UNITS")]
    tcp: Option<Composition>,
    /// The kernel's congestion control [default: the same as Transom's if the kernel has it, or cubic]
    #[arg(long, value_name = "NAME", value_enum)]
    kernel_congestion: Option<KernelCongestion>,
    /// Decides which packets are lost
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Directory for the report, the capture and both copies
    #[arg(long, value_name = "DIR", default_value = "transom-demo")]
    out: PathBuf,
    /// Capture file (default: capture.pcapng in the output directory)
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Bytes of each packet that the capture keeps; 0 for all
    #[arg(long, value_name = "BYTES", default_value_t = 128)]
    snap: u32,
    /// Use the in-memory network even if namespaces are possible
    #[arg(long)]
    memory: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    fn link(&self) -> LinkConfig {
        let mut link = LinkConfig::default();
        link.rate = Some(self.rate);
        link.delay = self.delay;
        link.loss = self.loss.into();
        link.queue = self.queue.into();
        link
    }
}

/// A probability as people write it.
fn percent(probability: Probability) -> String {
    // For display: what the probability prints as is a decimal fraction.
    let share: f64 = probability.to_string().parse().unwrap_or(f64::NAN);
    let text = format!("{:.6}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

fn parse_span(text: &str) -> Result<transom_tcp::time::Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// Runs the demo.
pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let args = &args;
    let profile = algorithms::profile(args.tcp.as_ref())?;
    // Before any thread exists: that is when an ordinary user may still get a user namespace.
    let privileges = network::prepare(args.memory);
    let pcap = args.pcap.clone().unwrap_or_else(|| args.out.join("capture.pcapng"));
    check_outputs(args, &pcap)?;
    fs::create_dir_all(&args.out)
        .with_context(|| format!("cannot create the directory {}", args.out.display()))?;
    let source = match &args.file {
        Some(file) => file.clone(),
        None => generate(&args.out.join(GENERATED), args.size, args.seed)?,
    };
    let len =
        fs::metadata(&source).with_context(|| format!("cannot read {}", source.display()))?.len();
    if len == 0 {
        bail!("{} is empty: there is nothing to send", source.display());
    }
    let timeline = Timeline::start();
    let network = network::build(args, profile, privileges, &pcap, &timeline)?;
    if !args.json {
        output::line(network.describe())?;
        output::line(format_args!(
            "Path: {}, {} ms each way, {} lost, queue of {}",
            args.rate,
            args.delay.as_secs_f64() * 1e3,
            percent(args.loss),
            args.queue
        ))?;
        output::line(network.describe_congestion())?;
    }
    let original = crate::hash::of_file(&source)?;
    let there = args.out.join(AT_THE_PEER);
    let back = args.out.join(RETURNED);
    let quiet = args.json;
    let out = transfer::to_peer(&network, &timeline, &source, &there, quiet)?;
    // The same packets are lost, so that the two can be compared.
    network.monitor.reseed_reversed();
    let home = transfer::from_peer(&network, &timeline, &there, &back, quiet)?;
    let results = [&out, &home];
    let intact = results.iter().all(|outcome| outcome.sha256 == original);

    let page = page(args, &network, len, &original, results);
    let report = args.out.join("report.html");
    output::file(&report, transom_report::render(&page))?;
    let capture = network.finish();
    if args.json {
        print_json(len, &original, results, intact, &report, &pcap, &capture)?;
    } else {
        print_summary(len, &original, results, &report)?;
        if let Ok(packets) = &capture {
            output::line(format_args!("Capture  {} ({packets} packets)", pcap.display()))?;
        }
    }
    if !intact {
        bail!("a copy differs from the original");
    }
    match capture {
        Ok(_) => Ok(ExitCode::SUCCESS),
        Err(error) => bail!("the capture {} is incomplete: {error}", pcap.display()),
    }
}

/// Checks before any work that all files can be written and fit on their disks.
fn check_outputs(args: &Args, pcap: &Path) -> Result<()> {
    let len = match &args.file {
        Some(file) => {
            let found = fs::metadata(file);
            found.with_context(|| format!("cannot read {}", file.display()))?.len()
        }
        None => args.size,
    };
    own_file::check_output_directory(&args.out)?;
    let generated = args.file.is_none().then_some(GENERATED);
    let copies = generated.into_iter().chain([AT_THE_PEER, RETURNED]);
    let copies: Vec<PathBuf> = copies.map(|copy| args.out.join(copy)).collect();
    if let Some(pcap) = &args.pcap {
        own_file::check_output(pcap)?;
    }
    let capture = (pcap, capture_size(len, args.snap));
    let outputs = copies.iter().map(|copy| (copy.as_path(), len)).chain([capture]);
    if let Some(NoRoom { path, needed, free, .. }) = own_file::lacking_room(outputs)? {
        bail!(
            "not enough room on the disk of {}: about {} are needed, and {} are free",
            path.display(),
            Bytes(needed),
            Bytes(free)
        );
    }
    Ok(())
}

/// About how long the capture of `len` bytes there and back is.
fn capture_size(len: u64, snap: u32) -> u64 {
    /// Payload of a full packet, with its headers, and what pcapng adds to a packet.
    const PAYLOAD: u64 = 1448;
    const PACKET: u64 = 1500;
    const BLOCK: u64 = 36;
    let kept = if snap == 0 { PACKET } else { u64::from(snap).min(PACKET) };
    // An acknowledgement for every other packet has 52 bytes.
    let each = kept + BLOCK + (kept.min(52) + BLOCK) / 2;
    (2 * len.div_ceil(PAYLOAD)).saturating_mul(each)
}

/// The contents of the page.
fn page(
    args: &Args,
    network: &Network,
    len: u64,
    original: &str,
    outcomes: [&Outcome; 2],
) -> ReportData {
    // Before the queues are locked: whoever holds the path notes what its queues do.
    let path = network.monitor.report();
    let [there, back] = &network.queues;
    let there = lock(there);
    let back = lock(back);
    let transfers = Transfers {
        lead: format!(
            "{}. {}. The path each way: {}, {} ms of delay, {} lost, a queue of {}.",
            network.describe(),
            network.describe_congestion(),
            args.rate,
            args.delay.as_secs_f64() * 1e3,
            percent(args.loss),
            args.queue
        ),
        bytes: len,
        sha256: original,
        outcomes,
        queues: [&there, &back],
        path: [&path.egress, &path.ingress],
        kernel_sends_back: network.peer_name() == "the kernel",
        command: std::env::args().collect::<Vec<_>>().join(" "),
    };
    ReportData::from(&transfers)
}

/// Writes `len` bytes of data that does not compress.
fn generate(path: &Path, len: u64, seed: u64) -> Result<PathBuf> {
    let mut rng = transom_sim::Streams::new(seed).rng(0, 99);
    let file =
        own_file::output(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut out = std::io::BufWriter::new(file);
    let mut block = [0; 65_536];
    let mut left = len;
    while left > 0 {
        rng.fill(&mut block);
        let n = left.min(block.len() as u64) as usize;
        out.write_all(&block[..n])?;
        left -= n as u64;
    }
    out.flush()?;
    Ok(path.to_path_buf())
}

fn print_summary(len: u64, original: &str, results: [&Outcome; 2], report: &Path) -> Result<()> {
    output::line("")?;
    for outcome in results {
        output::line(format_args!(
            "{:<24} {:>8.2} s {:>9.2} Mbit/s {:>6} retransmitted {:>4} timeouts  RTT {:>7.2} ms  SHA-256 {}",
            outcome.title,
            outcome.seconds,
            outcome.megabits(len),
            outcome.retransmitted,
            outcome.timeouts.map_or("–".into(), |n| n.to_string()),
            outcome.rtt.map_or(0.0, |rtt| rtt.as_secs_f64() * 1e3),
            if outcome.sha256 == original { "ok" } else { "DIFFERS" },
        ))?;
    }
    output::line(format_args!("SHA-256  {original}"))?;
    output::line(format_args!("Report   {}", report.display()))
}

fn print_json(
    len: u64,
    original: &str,
    results: [&Outcome; 2],
    intact: bool,
    report: &Path,
    pcap: &Path,
    capture: &Result<u64, String>,
) -> Result<()> {
    let transfers: Vec<_> = results
        .iter()
        .map(|outcome| {
            json!({
                "name": outcome.title,
                "congestion": outcome.congestion,
                "seconds": outcome.seconds,
                "megabits_per_second": outcome.megabits(len),
                "retransmitted_segments": outcome.retransmitted,
                "timeouts": outcome.timeouts,
                "rtt_ms": outcome.rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
                "sha256": outcome.sha256,
                "intact": outcome.sha256 == original,
            })
        })
        .collect();
    let summary = json!({
        "bytes": len,
        "sha256": original,
        "intact": intact,
        "transfers": transfers,
        "report": report,
        "capture": pcap,
        "capture_error": capture.as_ref().err(),
    });
    output::line(serde_json::to_string_pretty(&summary)?)
}
