//! `transom broker`: lends ports of this machine's own addresses to processes.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use transom_broker::Policy;
use transom_broker::client::{self, BrokerError};
use transom_broker::protocol::DEFAULT_PATH;

use crate::output;

#[cfg(feature = "bpf")]
mod run;
mod shown;

/// Lend TCP ports of this machine's own addresses to programs that run Transom's TCP
///
/// Packets for such a port go to its program, and everything else stays with the kernel. Programs of ordinary users ask for a device and
/// for ports; the policy says who may have which. The broker itself never looks at a packet: programs in the kernel do, and go on without it.
#[derive(clap::Subcommand, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom broker check broker.toml
      what a policy file allows, or what is wrong with it
  transom broker run --uplink eth0 --allow user:alice,ports:8000-8999
      lends ports of eth0's addresses to alice
  transom broker run --policy /etc/transom/broker.toml
      what the systemd unit does
  transom broker list
      the leases
  transom broker show tcpk0
      everything about one device: packets, and drops with the reason
  transom broker watch
      the same as list, every second
  transom broker stop
      ends all leases, and removes everything from the kernel, also what a killed broker has left

A policy file is, for example:
  uplinks = [\"eth0\"]
  [[allow]]
  user = \"alice\"
  ports = \"8000-8999\"")]
pub(crate) enum Command {
    Run(RunArgs),
    /// End all leases and the broker; nothing of it is left
    ///
    /// Also without a broker that runs: then what a killed one has left is removed, in this network namespace.
    Stop {
        #[command(flatten)]
        place: Place,
        /// The directory of pins, below a BPF file system
        #[arg(long, default_value = "/sys/fs/bpf/transom")]
        pins: PathBuf,
    },
    /// List the leases
    List {
        #[command(flatten)]
        place: Place,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show everything about one device, or about the broker
    Show {
        /// The device's name
        device: Option<String>,
        #[command(flatten)]
        place: Place,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the leases every second
    Watch {
        #[command(flatten)]
        place: Place,
        /// Print JSON, one line each time
        #[arg(long)]
        json: bool,
    },
    /// Say what a policy file allows, or what is wrong with it
    Check {
        /// The policy file
        policy: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The socket of the broker.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Place {
    /// The broker's socket [default: $TRANSOM_BROKER, else /run/transom/broker.sock]
    #[arg(long)]
    socket: Option<PathBuf>,
}

impl Place {
    fn path(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(client::default_path)
    }
}

/// Lend ports until interrupted; leases go on meanwhile, and the next broker takes them over
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct RunArgs {
    /// The policy file
    #[arg(long)]
    policy: Option<PathBuf>,
    /// An interface whose addresses are lent; may be given more than once
    #[arg(long, value_name = "INTERFACE")]
    uplink: Vec<String>,
    /// Add a rule, such as user:alice,ports:8000-8999+443,devices:2,rate:100000; may be given more than once. Other words: group:NAME,
    /// everybody, ephemeral:no, address:NETWORK, peer:NETWORK
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Answer Prometheus at this address
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<std::net::SocketAddr>,
    /// Write the audit log to this file [default: standard error]
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// The broker's socket
    #[arg(long, default_value = DEFAULT_PATH)]
    socket: PathBuf,
    /// The directory of pins, below a BPF file system
    #[arg(long, default_value = "/sys/fs/bpf/transom")]
    pins: PathBuf,
}

impl RunArgs {
    /// The policy of the file and the arguments together.
    fn policy(&self) -> anyhow::Result<Policy> {
        let mut policy = match &self.policy {
            Some(path) => Policy::read(path)?,
            None => Policy::default(),
        };
        policy.uplinks.extend(self.uplink.iter().cloned());
        for rule in &self.allow {
            policy.rules.push(rule.parse()?);
        }
        if self.metrics.is_some() {
            policy.metrics = self.metrics;
        }
        if self.audit.is_some() {
            policy.audit = self.audit.clone();
        }
        if policy.uplinks.is_empty() {
            bail!("no interface is named: give --uplink, or `uplinks` in the policy file");
        }
        if policy.rules.is_empty() {
            bail!("no rule allows any port: give --allow, or [[allow]] in the policy file");
        }
        Ok(policy)
    }
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => lend(&args),
        Command::Stop { place, pins } => stop(&place.path(), &pins),
        Command::List { place, json } => {
            let status = client::list(place.path())?;
            output::shown(json, &status, || shown::list(&status))
        }
        Command::Show { device, place, json } => show(device.as_deref(), &place, json),
        Command::Watch { place, json } => {
            output::watch(json, || Ok(client::list(place.path())?), shown::list)
        }
        Command::Check { policy, json } => {
            let policy = Policy::read(&policy)?;
            output::shown(json, &shown::policy_json(&policy), || shown::policy(&policy))
        }
    }
}

fn stop(socket: &Path, pins: &Path) -> anyhow::Result<ExitCode> {
    match client::stop(socket) {
        Ok(()) => output::note("the broker and all leases have ended"),
        Err(error @ BrokerError::NotRunning { .. }) => {
            if !sweep(socket, pins)? {
                return Err(error.into());
            }
            output::note("no broker was running; what an earlier one had left is gone");
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(feature = "bpf")]
fn sweep(socket: &Path, pins: &Path) -> anyhow::Result<bool> {
    Ok(transom_broker::daemon::sweep(socket, pins)?)
}

#[cfg(not(feature = "bpf"))]
fn sweep(_: &Path, _: &Path) -> anyhow::Result<bool> {
    Ok(false)
}

#[cfg(feature = "bpf")]
fn lend(args: &RunArgs) -> anyhow::Result<ExitCode> {
    run::lend(args, args.policy()?)
}

#[cfg(not(feature = "bpf"))]
fn lend(args: &RunArgs) -> anyhow::Result<ExitCode> {
    // Mistakes in the policy are reported first.
    let _ = (args.policy()?, &args.socket, &args.pins);
    Err(crate::features::Feature::BPF.missing())
}

fn show(device: Option<&str>, place: &Place, json: bool) -> anyhow::Result<ExitCode> {
    let status = client::list(place.path())?;
    let Some(device) = device else {
        return output::shown(json, &status, || shown::broker(&status));
    };
    let Some(lease) = status.leases.iter().find(|lease| lease.device == device) else {
        let there = output::listed(status.leases.iter().map(|lease| &lease.device), "none");
        bail!("no device {device} is lent (there are: {there})");
    };
    output::shown(json, lease, || shown::lease(lease))
}
