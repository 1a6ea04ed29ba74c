//! `transom cm`: a Congestion Manager for the connections of several processes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use transom_remote::cm::{Client, CmServer, Macroflow};

use crate::interrupt::StoppedBy;
use crate::output;
use crate::units::Bytes;

/// Let connections of several processes to the same destination share evenly
///
/// One process, the Congestion Manager (RFC 3124), attaches to the connections that other processes offer with --extension-socket. It groups them
/// by destination and limits the window of each to its share. It can only make a connection slower than TCP alone would be. When it ends, all
/// connections go on as plain TCP.
#[derive(clap::Subcommand, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom cm run /run/user/1000/transom/
      manages every process that puts its extension socket into that directory
  transom send disk.img 10.9.0.1:9000 --extension-socket /run/user/1000/transom/one
      such a process
  transom cm run one.ext two.ext --socket cm.sock
      manages two processes, and takes programs that send UDP
  transom cm list --socket cm.sock
      the macroflows: who shares what

docs/remote-extensions.md describes both sockets.")]
pub(crate) enum Command {
    /// Manage connections until interrupted
    Run {
        /// An extension socket, or a directory of them; it need not exist yet
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Take programs whose flows are not TCP's at this Unix socket
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
        /// Say nothing about flows that come and go
        #[arg(short, long)]
        quiet: bool,
    },
    /// Show the macroflows and their flows
    List {
        /// The socket of `transom cm run --socket`
        #[arg(long, value_name = "PATH")]
        socket: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run { paths, socket, quiet } => manage(paths, socket.as_deref(), quiet),
        Command::List { socket, json } => {
            let all = Client::list(&socket)
                .with_context(|| format!("no answer from {}", socket.display()))?;
            // As a value its names are sorted.
            output::shown(json, &serde_json::to_value(&all)?, || shown(&all))
        }
    }
}

fn manage(paths: Vec<PathBuf>, socket: Option<&Path>, quiet: bool) -> anyhow::Result<ExitCode> {
    if paths.is_empty() && socket.is_none() {
        bail!("there is nothing to manage: name extension sockets, or give --socket");
    }
    let tell = move |event: std::fmt::Arguments<'_>| {
        if !quiet {
            output::note(event);
        }
    };
    let server = CmServer::new(paths, socket, tell).context("cannot listen for programs")?;
    let stopper = server.stopper();
    let stopped_by = StoppedBy::signal(move || stopper.signal())?;
    server.run()?;
    Ok(stopped_by.status())
}

fn shown(all: &[Macroflow]) -> String {
    if all.is_empty() {
        return "no flow is managed".into();
    }
    let mut text = String::new();
    for Macroflow { name, window, outstanding, rtt, flows, .. } in all {
        let rtt = rtt
            .map_or_else(|| "unknown".into(), |rtt| format!("{:.1?}", Duration::from_nanos(rtt)));
        let (window, outstanding) = (Bytes(*window), Bytes(*outstanding));
        let _ = writeln!(
            text,
            "{name}: {} flows, window {window}, outstanding {outstanding}, round trip {rtt}",
            flows.len()
        );
        for flow in flows {
            let share =
                flow.share.map_or_else(|| "none yet".into(), |share| Bytes(share).to_string());
            let _ = writeln!(text, "  {} of process {}, share {share}", flow.kind, flow.process);
        }
    }
    text.trim_end().to_owned()
}
