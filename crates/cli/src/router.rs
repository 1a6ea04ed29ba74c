//! `transom router`: advertised-window control on this machine's network.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, bail};
#[cfg(feature = "bpf")]
use transom_forwarder::tc::{self, Options, Tc};
use transom_forwarder::{
    Deployment, FlowStatus, Nfqueue, PolicyFile, Shared, Status, StatusSocket, User, ask,
    check_nfqueue_privileges, check_user_privileges, default_path,
};

use crate::{interrupt, output};

/// Keep a router's queue short by rewriting the windows in passing acknowledgements
///
/// The command works at the interface whose queue is the bottleneck. The senders are on this side of it, the receivers on the other.
/// The end hosts need no change. If the router has not seen the handshake of a flow, its packets pass unchanged.
#[derive(clap::Subcommand, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom router check policy.toml
      check a policy file and show its values
  transom router run --mode tc --policy policy.toml --device eth1
      in the kernel, at the interface eth1
  transom router run --mode nfqueue --policy policy.toml --device eth1 --metrics 127.0.0.1:9469
      on packets that the kernel forwards, with metrics for Prometheus
  transom router run --mode user --policy policy.toml --device eth1 --from eth0
      between two interfaces without forwarding by the kernel
  transom router status --device eth1 --watch
      what it does

A policy file is, for a queue of 75 kB:
  policy = \"target-window(upper=40kB, lower=20kB)\"
Mode user needs the link's rate there, too:
  rate = \"10Mbit/s\"")]
pub(crate) enum Command {
    Run(RunArgs),
    Status(StatusArgs),
    /// Check a policy file and show its values
    Check {
        /// The policy file
        policy: PathBuf,
    },
}

/// Control the windows until interrupted
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RunArgs {
    /// The place where windows are rewritten: in the kernel (tc; feature `bpf`), in this program on packets that the kernel queues to it
    /// (nfqueue), or in this program, which forwards frames between two interfaces (user)
    #[arg(long, value_enum)]
    mode: Mode,
    /// The policy file
    #[arg(long)]
    policy: PathBuf,
    /// The interface whose queue is the bottleneck
    #[arg(long)]
    device: String,
    /// Mode user: the interface on the senders' side
    #[arg(long, required_if_eq("mode", "user"))]
    from: Option<String>,
    /// Mode tc: change nothing, only observe and count
    #[arg(long)]
    passive: bool,
    /// Answer Prometheus at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// The socket for `transom router status` [default: /run/transom/router-DEVICE.sock]
    #[arg(long)]
    socket: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Tc,
    Nfqueue,
    User,
}

/// Show the status of a running router
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct StatusArgs {
    /// The interface it works at
    #[arg(long, required_unless_present = "socket")]
    device: Option<String>,
    /// The socket at which it answers
    #[arg(long)]
    socket: Option<PathBuf>,
    /// Show this many flows at most
    #[arg(long, default_value_t = 10)]
    flows: usize,
    /// Show it again every second
    #[arg(long)]
    watch: bool,
    /// Print JSON, one line each time
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => control(&args),
        Command::Status(args) => status(&args),
        Command::Check { policy } => {
            let PolicyFile { control, rate, queue } = PolicyFile::read(&policy)?;
            let idle = control.idle.as_millis() / 1000;
            output::line(format_args!(
                "{}\n{} flows, forgotten after {idle} s of silence",
                control.policy, control.flows
            ))?;
            if let Some(rate) = rate {
                output::line(format_args!("{rate} bit/s, {queue}"))?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn control(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let policy = PolicyFile::read(&args.policy)?;
    if args.passive && args.mode != Mode::Tc {
        bail!("--passive is for mode tc");
    }
    match args.mode {
        #[cfg(feature = "bpf")]
        Mode::Tc => tc::check_privileges()?,
        #[cfg(not(feature = "bpf"))]
        Mode::Tc => return Err(crate::features::Feature::BPF.missing()),
        Mode::Nfqueue => check_nfqueue_privileges()?,
        Mode::User => check_user_privileges()?,
    }
    let path = args.socket.clone().unwrap_or_else(|| default_path(&args.device));
    // The name comes first: whoever has it is the only one at the interface.
    let socket = StatusSocket::bind(&path)?;
    // A signal from here on ends what is made below in the right order.
    let told = interrupt::told()?;
    let deployment: Box<dyn Deployment> = match args.mode {
        #[cfg(feature = "bpf")]
        Mode::Tc => {
            let mut options = Options::new(&args.device, policy.control);
            options.passive = args.passive;
            Box::new(Tc::attach(options)?)
        }
        #[cfg(not(feature = "bpf"))]
        Mode::Tc => return Err(crate::features::Feature::BPF.missing()),
        Mode::Nfqueue => Box::new(Nfqueue::start(&args.device, &policy.control)?),
        Mode::User => {
            let from = args.from.as_deref().context("mode user needs --from")?;
            Box::new(User::start(from, &args.device, &policy)?)
        }
    };
    // The name goes last.
    let shared = socket.serve(deployment)?;
    let ended = serve(args, &shared, &told);
    shared.end();
    ended
}

fn serve(args: &RunArgs, shared: &Shared, told: &Receiver<u8>) -> anyhow::Result<ExitCode> {
    if let Some(at) = args.metrics {
        let at = shared.serve_metrics(at)?;
        output::note(format_args!("metrics at http://{at}/metrics"));
    }
    output::note(format_args!("windows are controlled at {}", args.device));
    loop {
        match told.recv_timeout(Duration::from_secs(1)) {
            Ok(status) => return Ok(ExitCode::from(status)),
            Err(RecvTimeoutError::Timeout) => shared.maintain()?,
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the thread that waits for signals has ended")
            }
        }
    }
}

fn status(args: &StatusArgs) -> anyhow::Result<ExitCode> {
    let path = match (&args.socket, &args.device) {
        (Some(path), _) => path.clone(),
        (None, Some(device)) => default_path(device),
        (None, None) => bail!("give --device or --socket to choose the router"),
    };
    let look = || Ok(ask(&path, args.flows)?);
    if args.watch {
        return output::watch(args.json, look, shown);
    }
    let status: Status = look()?;
    output::shown(args.json, &status, || shown(&status))
}

/// A status for people.
fn shown(status: &Status) -> String {
    let Status { mode, device, policy, target, queue, counters: c, tracked, capacity, flows } =
        status;
    let mut text = format!("mode {mode} at {device}, policy {policy}");
    let mut row = |name: &str, rest: String| {
        let _ = write!(text, "\n{name:<9}{rest}");
    };
    if let Some(target) = target {
        row("target", format!("{target} B"));
    }
    let wait = format!("{} packets and {} B wait", queue.packets, queue.bytes);
    row(
        "queue",
        format!(
            "{}: {wait}; {} dropped, {} marked, {} sent",
            queue.kind, queue.drops, queue.marks, queue.sent_packets
        ),
    );
    for part in &queue.parts {
        row(
            "",
            format!(
                "{}: {} packets of {} flows wait; {} dropped, {} marked, {} sent; {:.1} ms on average, {:.1} at most",
                part.name,
                part.packets,
                part.flows,
                part.drops,
                part.marks,
                part.sent_packets,
                part.mean_delay_us as f64 / 1e3,
                part.longest_delay_us as f64 / 1e3
            ),
        );
    }
    row("forward", format!("{} packets, {} B", c.arrivals, c.arrived_bytes));
    let untouched = format!(
        "{} covered by an option, {} of unknown flows, {} implausible",
        c.covered, c.unknown, c.implausible
    );
    row("acks", format!("{}: {} rewritten, {} held; {untouched}", c.acks, c.rewritten, c.held));
    row(
        "flows",
        format!(
            "{tracked} of {capacity}; {} came, for {} there was no room",
            c.confirmed, c.table_full
        ),
    );
    if c.unreadable + c.failed > 0 {
        row(
            "odd",
            format!(
                "{} truncated, fragments or source-routed, {} not changed",
                c.unreadable, c.failed
            ),
        );
    }
    if c.lost > 0 {
        row("lost", format!("{} frames that an interface did not take", c.lost));
    }
    for flow in flows {
        let idle = Duration::from_millis(flow.idle_ms);
        let window = match flow.desired {
            FlowStatus::UNLIMITED => "window as it comes".into(),
            desired => format!("window {desired} B"),
        };
        let line =
            format!("{window}, MSS {}, scale {}, heard of {idle:?} ago", flow.mss, flow.scale);
        row("", format!("{} -> {}: {line}", flow.sender, flow.receiver));
    }
    text
}

#[cfg(test)]
mod tests {
    use transom_forwarder::Counters;

    use super::*;

    #[test]
    fn a_status_is_shown() {
        let flow = FlowStatus {
            sender: "10.1.0.2:5000".parse().unwrap(),
            receiver: "[2001:db8::1]:80".parse().unwrap(),
            desired: 4096,
            written: None,
            advertised: None,
            mss: 1460,
            scale: 7,
            idle_ms: 12,
        };
        let counters = Counters {
            acks: 9,
            rewritten: 8,
            held: 3,
            covered: 6,
            unreadable: 5,
            failed: 2,
            lost: 4,
            ..Counters::default()
        };
        let status = Status {
            mode: "tc".into(),
            device: "eth1".into(),
            target: Some(5000),
            counters,
            flows: vec![FlowStatus { desired: FlowStatus::UNLIMITED, ..flow.clone() }, flow],
            ..Status::default()
        };
        let text = shown(&status);
        for part in [
            "mode tc at eth1",
            "5000 B",
            "9: 8 rewritten, 3 held; 6 covered by an option, 0 of unknown flows",
            "5 truncated, fragments or source-routed, 2 not changed",
            "4 frames that an interface did not take",
            "10.1.0.2:5000 -> [2001:db8::1]:80",
            "12ms ago",
            "window as it comes, MSS",
            "window 4096 B, MSS",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
    }
}
