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
use std::time::Duration;

use anyhow::{Context, bail};

use crate::hash::{Hasher, PIECE, read_some};
use crate::network::NetworkArgs;
use crate::output;
use crate::progress::Progress;
use crate::socket::{Socket, connect};
use crate::units::{BitRate, Bytes};

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
    /// How many bytes.
    pub(crate) bytes: u64,
    /// How long it took.
    pub(crate) seconds: f64,
    /// And how fast that is.
    pub(crate) bits_per_second: f64,
    /// The digest of all bytes.
    pub(crate) sha256: String,
}

impl Summary {
    pub(crate) fn new(file: &Path, bytes: u64, span: Duration, hasher: Hasher) -> Self {
        Summary {
            file: file.display().to_string(),
            bytes,
            seconds: span.as_secs_f64(),
            bits_per_second: BitRate::of(bytes, span).0,
            sha256: hasher.finish(),
        }
    }

    /// Prints two lines: the result, and the digest in the form of sha256sum.
    pub(crate) fn print(&self, verb: &str, json: bool, to_stdout: bool) -> anyhow::Result<()> {
        if json {
            return output::json(self);
        }
        let rate = BitRate(self.bits_per_second);
        let size = Bytes(self.bytes);
        output::note(format_args!("{verb} {size} in {:.3} s ({rate})", self.seconds));
        let digest = format!("{}  {}", self.sha256, self.file);
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

    let mut progress = Progress::new(total, args.quiet || args.json);
    let mut hasher = Hasher::default();
    let sent = copy(&mut source, &socket, &mut hasher, &mut progress);
    if let Err(error) = sent {
        // Half a file must not look like a whole one.
        socket.abort();
        let after = Bytes(progress.bytes());
        return Err(error.context(format!("{}: sending failed after {after}", args.file.display())));
    }
    wait_for_end(&socket).context("the receiver did not confirm that it has everything")?;
    let summary = Summary::new(&args.file, progress.bytes(), progress.finish(), hasher);
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
    hasher: &mut Hasher,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = read_some(source, &mut piece).context("cannot read the file")?;
        let bytes = piece.get(..length).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        socket.write_all(bytes)?;
        hasher.update(bytes);
        progress.add(length);
    }
    Ok(socket.shutdown(Shutdown::Write)?)
}

/// Reads what the receiver has to say, which is nothing of interest, until it ends its direction.
fn wait_for_end(mut socket: &Socket) -> io::Result<()> {
    let mut sink = [0; 4096];
    while read_some(&mut socket, &mut sink)? > 0 {}
    Ok(())
}
