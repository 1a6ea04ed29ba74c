//! `transom get`: one resource over HTTP/1.1.
//!
//! Each request has its own connection. The body is written to its destination as it arrives. The response decides
//! how its end is recognized ([`body`]); a body that ends too early is an error.

mod body;
mod response;
mod url;

use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};

use crate::network::{Network, NetworkArgs, Program};
use crate::output::{self, Failure, note};
use crate::progress::{Totals, Transfer, Waiting};
use crate::sink::SinkArgs;
use crate::socket::{Socket, connect};
use body::Body;
use response::Head;
use url::Url;

/// Redirections that are followed before the command assumes a loop.
const MAX_REDIRECTS: usize = 10;
/// The exit status when the server answers with an error.
const REFUSED: u8 = 4;
/// A server that says nothing for so long is given up.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Fetch a file over HTTP/1.1.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  transom get http://10.9.0.1:8000/big.iso -o big.iso    from this machine (needs a TUN interface)
  transom get http://10.9.0.1:8000/ --run python3 -m http.server 8000
  transom get http://10.9.0.1:81/x -o copy --pcap get.pcapng --run busybox httpd -f -p 81
  transom get http://10.9.0.1:8000/x -o x --log get.tlog         then: transom log get.tlog
  transom get --device udp:192.0.2.1:4000 http://10.9.0.1/x -o x    through UDP

The command follows redirections within http. It has no TLS and does not resume downloads.
Exit status: 0 for a complete file; 1 for a failure; 2 for a wrong command line; 4 when the server
answered with an error (a 4xx or 5xx status), whose body is not shown.")]
pub(crate) struct Args {
    /// The URL to fetch; http only.
    url: Url,

    #[command(flatten)]
    sink: SinkArgs,

    #[command(flatten)]
    network: NetworkArgs,
}

/// The result of a fetch.
#[derive(serde::Serialize)]
struct Summary {
    url: String,
    status: u16,
    #[serde(flatten)]
    totals: Totals,
}

/// Fetches the resource.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    args.sink.check()?;
    let network = args.network.open()?;
    network.cleanup.on_interrupt()?;
    let quiet = args.sink.quiet || args.sink.json;
    let mut client = Client { network: &network, program: None, quiet };
    let (url, head, socket, early) = client.follow(args.url)?;

    if head.status >= 400 {
        let message = format!("{url}: {} {}", head.status, head.reason);
        socket.abort();
        return Err(Failure { status: REFUSED, message }.into());
    }
    if !(200..300).contains(&head.status) {
        bail!("{url}: {} {} is not a valid answer to GET", head.status, head.reason);
    }
    let mut sink = args.sink.open()?;
    let mut transfer = Transfer::begin(head.framing.length(), quiet);
    let mut body = Body::new(&*socket, early, head.framing);
    let fetched = loop {
        match body.next() {
            Ok([]) => break sink.finish(),
            Ok(bytes) => {
                if let Err(error) = sink.write(bytes) {
                    break Err(error);
                }
                transfer.add(bytes);
            }
            Err(error) => break Err(error.into()),
        }
    };
    if let Err(error) = fetched {
        socket.abort();
        return Err(error.context(format!("{url}: incomplete after {}", transfer.bytes())));
    }
    let totals = transfer.finish();
    drop(socket);
    let status = network.finish();
    if args.sink.json {
        output::json(&Summary { url: url.to_string(), status: head.status, totals })?;
    } else if !args.sink.quiet {
        note(format_args!("{url}: {totals}"));
    }
    Ok(status)
}

/// Makes requests.
struct Client<'a> {
    network: &'a Network,
    /// The server that --run has started; it lives as long as the client.
    program: Option<Program>,
    /// Whether to print no progress.
    quiet: bool,
}

impl Client<'_> {
    /// Requests `url` and what it redirects to. Gives the last URL, its response's head, the connection and what has
    /// been read of the body.
    fn follow(&mut self, url: Url) -> anyhow::Result<(Url, Head, Arc<Socket>, Vec<u8>)> {
        let mut url = url;
        for _ in 0..=MAX_REDIRECTS {
            let (head, socket, early) = self.request(&url).with_context(|| url.to_string())?;
            let Some(location) = head.location() else { return Ok((url, head, socket, early)) };
            let next = url.join(location).map_err(|error| anyhow!(error));
            url = next.with_context(|| format!("{url} redirects to `{location}`"))?;
        }
        bail!("{url}: more than {MAX_REDIRECTS} redirections")
    }

    fn request(&mut self, url: &Url) -> anyhow::Result<(Head, Arc<Socket>, Vec<u8>)> {
        let waiting = (!self.quiet)
            .then(|| Waiting::begin(format!("connecting to {}", url.authority())))
            .transpose()?;
        let addresses: Vec<SocketAddr> = (url.host(), url.port())
            .to_socket_addrs()
            .context("cannot resolve the name")?
            .collect();
        let socket = if self.program.is_some() {
            let socket = self.network.host.connect(&*addresses).context("cannot connect")?;
            self.network.cleanup.watch_socket(socket)
        } else {
            let (socket, program) = connect(self.network, &addresses).context("cannot connect")?;
            self.program = program;
            socket
        };
        drop(waiting);
        socket.set_read_timeout(Some(READ_TIMEOUT))?;
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: transom/{}\r\nAccept: */*\r\n\
             Connection: close\r\n\r\n",
            url.target(),
            url.authority(),
            env!("CARGO_PKG_VERSION")
        );
        (&*socket).write_all(request.as_bytes()).context("cannot send the request")?;
        let (head, early) = response::read_head(&socket).context("cannot read the response")?;
        Ok((head, socket, early))
    }
}
