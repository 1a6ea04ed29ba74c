//! `transom bench`: throughput, latency and connection rate between two ends, either of which is Transom's TCP or
//! the kernel's.
//!
//! The client states the purpose of each connection at its start ([`protocol`]). So one server serves all
//! measurements, several clients and several connections. The figures are those of an application: bytes count when
//! they are accepted for sending at one end and read at the other. Latency is from before the write to after the
//! read.

mod client;
mod iperf3;
mod protocol;
mod report;
mod server;

use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;

use crate::network::NetworkArgs;
use crate::units::{parse_bytes, parse_duration};
use protocol::Purpose;

/// The port of benchmark servers, unless another one is named.
const PORT: u16 = 5201;

/// Measure throughput, latency or connections per second.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  transom bench --server --run transom bench --side kernel 10.9.0.2           kernel to Transom
  transom bench --server --run transom bench --side kernel 10.9.0.2 --reverse    Transom to kernel
  transom bench 10.9.0.1 --rr --run transom bench --server --side kernel      round trips
  transom bench 10.9.0.1 --cps --parallel 8 --time 5 --json                   connections per second
  transom bench --iperf3 10.9.0.1 --run iperf3 --server --one-off             to an iperf3 server
  transom bench --server --side kernel                                        the kernel's TCP

The client and the server are both this command; --side says whose TCP each one uses.
Exit status: 0 when the measurement is complete, 1 otherwise.")]
pub(crate) struct Args {
    /// The server to measure with, as HOST or HOST:PORT [default port: 5201].
    #[arg(required_unless_present = "server", conflicts_with = "server")]
    host: Option<String>,

    /// Run the server, until interrupted or until the --run program ends.
    #[arg(short, long, conflicts_with_all = ["reverse", "rr", "cps", "bytes", "time", "parallel"])]
    server: bool,

    /// The server's port.
    #[arg(short, long, default_value_t = PORT, requires = "server")]
    port: u16,

    /// Let the server send.
    #[arg(short, long)]
    reverse: bool,

    /// Measure round trips: one request and one response at a time on each connection.
    #[arg(long, conflicts_with_all = ["reverse", "bytes"])]
    rr: bool,

    /// Measure connections: open one, exchange one byte, close it, again and again.
    #[arg(long, conflicts_with_all = ["reverse", "bytes", "rr"])]
    cps: bool,

    /// The server is iperf3 (upload or, with --reverse, download).
    #[arg(long, conflicts_with_all = ["rr", "cps", "server"])]
    iperf3: bool,

    /// How long to measure.
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    time: Duration,

    /// Transfer this many bytes in total instead, however long it takes.
    #[arg(short, long, value_name = "SIZE", value_parser = parse_bytes, conflicts_with = "time")]
    bytes: Option<u64>,

    /// Connections at the same time.
    #[arg(short = 'P', long, value_name = "NUMBER", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    parallel: u32,

    /// Bytes of a request, and of a response, for --rr.
    #[arg(long, value_name = "SIZE", default_value = "1", value_parser = message_size)]
    message: u32,

    /// Time between two lines of results.
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    interval: Duration,

    /// Print the results as one JSON object at the end.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    network: NetworkArgs,
}

fn message_size(text: &str) -> Result<u32, String> {
    let size = u32::try_from(parse_bytes(text)?).unwrap_or(u32::MAX);
    let valid = (1..=protocol::MAX_MESSAGE).contains(&size);
    valid.then_some(size).ok_or_else(|| format!("from 1 byte to {} bytes", protocol::MAX_MESSAGE))
}

/// Measures, or lets measure.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Some(host) = &args.host else { return server::run(&args) };
    let addresses = resolve(host)?;
    if args.iperf3 {
        return iperf3::run(&args, host, &addresses);
    }
    let purpose = match (args.rr, args.cps, args.reverse) {
        (true, ..) => Purpose::Exchange,
        (_, true, _) => Purpose::Connect,
        (.., true) => Purpose::Download,
        _ => Purpose::Upload,
    };
    client::run(&args, host, &addresses, purpose)
}

/// The addresses of HOST or HOST:PORT.
fn resolve(host: &str) -> anyhow::Result<Vec<SocketAddr>> {
    let with_port = match host.to_socket_addrs() {
        Ok(addresses) => Ok(addresses),
        Err(_) => (host.trim_matches(['[', ']']), PORT).to_socket_addrs(),
    };
    let addresses: Vec<_> = with_port.with_context(|| format!("`{host}`"))?.collect();
    anyhow::ensure!(!addresses.is_empty(), "`{host}` has no address");
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_may_be_left_out() {
        for (host, address) in [
            ("192.0.2.1", "192.0.2.1:5201"),
            ("192.0.2.1:7", "192.0.2.1:7"),
            ("fd00::1", "[fd00::1]:5201"),
            ("[fd00::1]", "[fd00::1]:5201"),
            ("[fd00::1]:7", "[fd00::1]:7"),
        ] {
            assert_eq!(resolve(host).unwrap(), [address.parse().unwrap()], "{host}");
        }
    }
}
