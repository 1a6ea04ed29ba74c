//! `transom send`: a file's bytes, and nothing else, over one connection.
//!
//! The command waits for the receiver's end of the stream before it reports success. A receiver that closes only
//! after the last byte, as `transom recv` and netcat do, confirms with it that it has everything. A reset means
//! the opposite.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use crate::hash::{PIECE, read_some};
use crate::network::NetworkArgs;
use crate::output;
use crate::progress::{Totals, Transfer};
use crate::socket::{Socket, connect};

/// Send a file's bytes over a TCP connection, as netcat would.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  transom send disk.img 10.9.0.1:9000           to a receiver on this machine, as root
  transom send disk.img 10.9.0.1:9000 --run socat -u TCP-LISTEN:9000 OPEN:copy,creat
  tar c src | transom send - 10.9.0.1:9000      from standard input

The SHA-256 digest of what was sent is printed; compare it with the receiver's.
Exit status: 0 when the receiver has ended the connection in order after the last byte, 1 otherwise.")]
pub(crate) struct Args {
    /// The file to send; - for standard input.
    file: PathBuf,

    /// The receiver, as HOST:PORT; an IPv6 address needs brackets.
    #[arg(value_name = "HOST:PORT")]
    to: String,

    /// Print the result as JSON.
    #[arg(long)]
    json: bool,

    /// Show no progress.
    #[arg(short, long)]
    quiet: bool,

    #[command(flatten)]
    network: NetworkArgs,
}

/// The result of a transfer; printed by both ends.
#[derive(serde::Serialize)]
pub(crate) struct Summary {
    /// The file's name; `-` for a standard stream.
    pub(crate) file: String,
    #[serde(flatten)]
    pub(crate) totals: Totals,
}

impl Summary {
    /// Prints two lines: the result, and the digest in the form of sha256sum.
    pub(crate) fn print(&self, verb: &str, json: bool, to_stdout: bool) -> anyhow::Result<()> {
        if json {
            return output::json(self);
        }
        let Summary { file, totals } = self;
        output::note(format_args!("{verb} {totals}"));
        let digest = format!("{}  {file}", totals.sha256);
        if to_stdout {
            output::line(digest)
        } else {
            output::note(digest);
            Ok(())
        }
    }
}

/// Sends the file.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (mut source, total) = open(&args.file)?;
    let addresses: Vec<_> =
        args.to.to_socket_addrs().with_context(|| format!("`{}`", args.to))?.collect();
    let network = args.network.open()?;
    network.cleanup.on_interrupt()?;
    let (socket, _program) =
        connect(&network, &addresses).with_context(|| format!("cannot connect to {}", args.to))?;

    let mut transfer = Transfer::begin(total, args.quiet || args.json);
    let file = args.file.display().to_string();
    if let Err(error) = copy(&mut source, &socket, &mut transfer) {
        // Half a file must not look like a whole one.
        socket.abort();
        return Err(error.context(format!("{file}: sending failed after {}", transfer.bytes())));
    }
    wait_for_end(&socket).context("the receiver did not confirm that it has everything")?;
    let summary = Summary { file, totals: transfer.finish() };
    drop(socket);
    let status = network.finish();
    summary.print("sent", args.json, true)?;
    Ok(status)
}

/// The bytes to be sent and, for a file, how many there are.
fn open(path: &Path) -> anyhow::Result<(Box<dyn Read>, Option<u64>)> {
    if path == Path::new("-") {
        return Ok((Box::new(io::stdin()), None));
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let metadata = file.metadata().with_context(|| format!("cannot read {}", path.display()))?;
    if metadata.is_dir() {
        bail!("{} is a directory", path.display());
    }
    Ok((Box::new(file), metadata.is_file().then_some(metadata.len())))
}

fn copy(
    source: &mut impl Read,
    mut socket: &Socket,
    transfer: &mut Transfer,
) -> anyhow::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = read_some(source, &mut piece).context("cannot read the file")?;
        let bytes = piece.get(..length).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        socket.write_all(bytes)?;
        transfer.add(bytes);
    }
    Ok(socket.shutdown(Shutdown::Write)?)
}

/// Reads what the receiver has to say, which is nothing of interest, until it ends its direction.
fn wait_for_end(mut socket: &Socket) -> io::Result<()> {
    let mut sink = [0; 4096];
    while read_some(&mut socket, &mut sink)? > 0 {}
    Ok(())
}
