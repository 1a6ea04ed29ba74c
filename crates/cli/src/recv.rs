//! `transom recv`: the other end of `transom send`, or of any program that sends bytes and closes.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::hash::for_each_piece;
use crate::network::{NetworkArgs, Program};
use crate::output::note;
use crate::progress::Transfer;
use crate::send::Summary;
use crate::sink::SinkArgs;
use crate::socket::{self, Listener, Socket};
use crate::thread;

/// How long a connection that a program has made may take to be seen.
const GRACE: Duration = Duration::from_secs(1);

/// Receive bytes from one TCP connection into a file or to standard output.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  transom recv 9000 -o disk.img                    listen on port 9000 of Transom's address
  transom recv 9000 -o copy --run socat -u OPEN:original TCP:10.9.0.2:9000
  transom recv 9000 --run transom send --side kernel src.tar 10.9.0.2:9000 | tar t

The SHA-256 digest of what was received is printed, on standard error if the data go to standard
output.
Exit status: 0 when the sender has ended its stream in order, 1 otherwise.")]
pub(crate) struct Args {
    /// The port to listen on, or ADDRESS:PORT.
    #[arg(value_name = "[ADDRESS:]PORT", value_parser = listen_at)]
    at: SocketAddr,

    #[command(flatten)]
    sink: SinkArgs,

    #[command(flatten)]
    network: NetworkArgs,
}

/// The address to listen at: a port of all addresses, or of one.
fn listen_at(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse::<u16>().map(|port| (Ipv4Addr::UNSPECIFIED, port).into());
    let at = port.or_else(|_| text.parse());
    at.map_err(|_| "write a port, ADDRESS:PORT or [IPv6 ADDRESS]:PORT".into())
}

/// Receives one connection's bytes.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.sink.check()?;
    let network = args.network.open()?;
    network.cleanup.on_interrupt()?;
    let listener = network.host.listen(args.at);
    let listener = listener.with_context(|| format!("cannot listen on {}", args.at))?;
    let mut sink = args.sink.open()?;
    if !args.sink.quiet {
        note(format_args!("listening on {} ({})", listener.local_addr()?, network.description));
    }
    let (socket, peer) = accept(listener, network.start_program()?)?;
    let socket = network.cleanup.watch_socket(socket);

    let mut transfer = Transfer::begin(None, args.sink.quiet || args.sink.json);
    let received = for_each_piece(&*socket, |bytes| {
        sink.write(bytes)?;
        transfer.add(bytes);
        anyhow::Ok(())
    });
    if let Err(error) = received.and_then(|()| sink.finish()) {
        socket.abort();
        let after = transfer.bytes();
        return Err(error.context(format!("receiving from {peer} failed after {after}")));
    }
    let output = args.sink.path();
    let file = output.unwrap_or(Path::new("-")).display().to_string();
    let summary = Summary { file, totals: transfer.finish() };
    // Only now is the sender told that everything is here.
    drop(socket);
    let status = network.finish();
    summary.print("received", args.sink.json, output.is_some())?;
    Ok(status)
}

/// The first connection. A program that was to make it and ends without is not waited for.
fn accept(listener: Listener, program: Option<Program>) -> anyhow::Result<(Socket, SocketAddr)> {
    let (event, events) = mpsc::channel();
    let accepted = event.clone();
    thread::spawn("accept", move || {
        // If nobody listens any more, the program has ended.
        let _ = accepted.send(Event::Accepted(socket::accept(&listener)));
    })?;
    if let Some(mut program) = program {
        thread::spawn("program", move || event.send(Event::Ended(program.wait())))?;
    }
    let first = events.recv().context("the thread that accepts connections has ended")?;
    let last = match first {
        // It may have connected and gone before the other thread came to tell.
        Event::Ended(_) => events.recv_timeout(GRACE).unwrap_or(first),
        Event::Accepted(_) => first,
    };
    match last {
        Event::Accepted(outcome) => outcome,
        Event::Ended(outcome) => {
            outcome?;
            bail!("the program of --run ended without connecting")
        }
    }
}

/// The event that comes first.
enum Event {
    Accepted(anyhow::Result<(Socket, SocketAddr)>),
    Ended(anyhow::Result<ExitCode>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_means_all_addresses() {
        assert_eq!(listen_at("9000"), Ok("0.0.0.0:9000".parse().unwrap()));
        assert_eq!(listen_at("10.0.0.1:7"), Ok("10.0.0.1:7".parse().unwrap()));
        assert_eq!(listen_at("[fd00::1]:7"), Ok("[fd00::1]:7".parse().unwrap()));
        for text in ["", "70000", "host:80", "10.0.0.1"] {
            assert!(listen_at(text).is_err(), "{text}");
        }
    }
}
