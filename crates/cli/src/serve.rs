//! `transom serve`: a directory over HTTP/1.1.
//!
//! One thread for each shard of a Transom host answers its connections, and does the host's work as well ([`events`]). Connections of the kernel get a
//! thread each ([`connection`]). Their number is bounded.
//!
//! The kernel resolves a request's path beneath the directory ([`files`]), so neither dots nor symbolic links lead out of it. A request that is not GET
//! or HEAD, or is malformed, gets the status that RFC 9110 names for it.

mod connection;
mod date;
mod events;
mod files;
mod heads;
mod idle;
mod listing;
mod media_type;
mod pace;
mod range;
mod request;
mod response;
mod sending;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use transom_device::serving::Slots;

use crate::network::{Cleanup, NetworkArgs};
use crate::output::{self, note};
use crate::socket::{Listener, accept};
use crate::stop::Stop;
use crate::units::{BitRate, Bytes};
use files::Root;
use idle::Idle;
use request::{Request, Status};
use response::Response;

/// Serve a directory over HTTP/1.1.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  transom serve . --run curl -s http://10.9.0.2/       a client in a network of its own
  transom serve . --run wrk -d 5 http://10.9.0.2/big   any other program too
  transom serve /srv/www                               at http://10.9.0.2/ from here, as root
  transom serve . --lab --run sh                       a shell from which Transom can be reached
  transom serve . --device udp:listen:4000             at http://10.9.0.1/ for other Transoms
  transom serve . --device packet:eth0 --addr 192.0.2.77/24   a station of its own on eth0

The server understands GET and HEAD, ranges, entity tags and persistent connections.
For a directory it sends index.html, or else a list of the entries. It serves nothing outside
the directory and follows no symbolic link that leads out.
Exit status: that of the --run program if there is one; 0 after SIGINT or SIGTERM.")]
pub(crate) struct Args {
    /// The directory to serve.
    directory: PathBuf,

    /// The port to listen on.
    #[arg(short, long, default_value_t = 80)]
    port: u16,

    /// Connections at the same time. For a new one, the one that has been idle longest ends, or else one whose client takes nothing. While all are busy, more have to wait.
    #[arg(long, value_name = "NUMBER", default_value_t = 1024,
          value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,

    /// How long a connection may be idle before it is closed.
    #[arg(long, value_name = "TIME", default_value = "30s",
          value_parser = crate::units::parse_duration)]
    idle_timeout: Duration,

    /// Print a line for each request.
    #[arg(short, long)]
    verbose: bool,

    /// Print the lines of --verbose, and a summary at the end, as JSON.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    network: NetworkArgs,
}

/// The interval between two looks for a free place while all are taken.
const LOOK_FOR_PLACES: Duration = Duration::from_millis(10);

/// State that the threads of a server share.
pub(crate) struct Server {
    root: Root,
    idle_timeout: Duration,
    log: Log,
    totals: Totals,
    places: Slots,
    idle: Idle,
    cleanup: Arc<Cleanup>,
}

/// The totals of a server.
#[derive(Default)]
struct Totals {
    connections: AtomicU64,
    requests: AtomicU64,
    errors: AtomicU64,
    /// Of bodies.
    bytes: AtomicU64,
}

/// How requests are logged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Log {
    Nothing,
    Text,
    Json,
}

/// Serves until something says stop.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let root = Root::open(&args.directory)
        .with_context(|| format!("cannot serve {}", args.directory.display()))?;
    let network = args.network.open()?;
    let stop = Stop::on_interrupt()?;
    let listeners = network.listen(args.port)?;
    let log = match (args.verbose, args.json) {
        (false, _) => Log::Nothing,
        (true, false) => Log::Text,
        (true, true) => Log::Json,
    };
    let server = Arc::new(Server {
        root,
        idle_timeout: args.idle_timeout,
        log,
        totals: Totals::default(),
        places: Slots::new(args.max_connections as usize),
        idle: Idle::default(),
        cleanup: Arc::clone(&network.cleanup),
    });
    let started = Instant::now();
    for listener in &listeners {
        note(format_args!(
            "serving {} at {}",
            args.directory.display(),
            url(listener.local_addr()?)
        ));
    }
    match events::Events::of_each_shard(&network.host, listeners, &server)? {
        Ok(loops) => {
            loops.into_iter().try_for_each(|events| stop.on_failure_of(move || events.run()))?;
        }
        Err(listeners) => {
            for listener in listeners {
                let server = Arc::clone(&server);
                stop.on_failure_of(move || accept_all(&server, &listener))?;
            }
        }
    }
    note(format_args!("({}; interrupt to stop)", network.description));
    stop.start_program(&network)?;
    let outcome = stop.wait(&network);
    // Answers under way to a program that has ended are of no use to anybody, but a capture shows how connections end.
    // A signal has ended it all already.
    if network.cleanup.is_capturing() && !matches!(outcome, Ok(None)) {
        let _ = network.finish();
    }
    server.summarize(started.elapsed(), args.json)?;
    Ok(network.status(outcome?))
}

fn url(at: SocketAddr) -> String {
    match at.port() {
        80 if at.is_ipv6() => format!("http://[{}]/", at.ip()),
        80 => format!("http://{}/", at.ip()),
        _ => format!("http://{at}/"),
    }
}

/// Accepts connections, and finds each a place; ends only with an error.
fn accept_all(server: &Arc<Server>, listener: &Listener) -> anyhow::Error {
    loop {
        let (socket, peer) = match accept(listener) {
            Ok(accepted) => accepted,
            Err(error) => return error,
        };
        let place = loop {
            if let Some(place) = server.places.try_take() {
                break place;
            }
            server.idle.end_oldest(Instant::now());
            thread::sleep(LOOK_FOR_PLACES);
        };
        server.totals.connections.fetch_add(1, Ordering::Relaxed);
        let socket = server.cleanup.watch_socket(socket);
        let worker = Arc::clone(server);
        let work = move || {
            let _place = place;
            connection::serve(&worker, &socket, peer);
        };
        if let Err(error) = thread::Builder::new().name("connection".into()).spawn(work) {
            // The connection is closed, which its client will notice; there may be threads again later.
            note(format_args!("transom: cannot start a thread for {peer}: {error}"));
        }
    }
}

impl Server {
    /// The response to a request, counted and logged.
    fn respond(&self, request: Result<Request, Status>, peer: SocketAddr) -> Response {
        let response = match request {
            Ok(request) => response::respond(&self.root, request),
            Err(status) => Response::error(status, true),
        };
        self.totals.requests.fetch_add(1, Ordering::Relaxed);
        if response.status.code() >= 400 {
            self.totals.errors.fetch_add(1, Ordering::Relaxed);
        }
        self.log(peer, &response);
        response
    }

    fn count_bytes(&self, count: usize) {
        self.totals.bytes.fetch_add(count as u64, Ordering::Relaxed);
    }

    fn log(&self, peer: SocketAddr, response: &Response) {
        let (method, target) = (&response.method, &response.target);
        let (status, length) = (response.status.code(), response.length);
        let line = match self.log {
            Log::Nothing => return,
            Log::Text => format!("{peer} \"{method} {target}\" {status} {length}"),
            Log::Json => serde_json::json!({
                "peer": peer.to_string(),
                "method": method,
                "target": target,
                "status": status,
                "length": length,
            })
            .to_string(),
        };
        // A log that nobody reads is no reason to stop serving.
        let _ = output::line(line);
    }

    fn summarize(&self, span: Duration, json: bool) -> anyhow::Result<()> {
        let Totals { connections, requests, errors, bytes } = &self.totals;
        let [connections, requests, errors, bytes] =
            [connections, requests, errors, bytes].map(|total| total.load(Ordering::Relaxed));
        if json {
            return output::json(&serde_json::json!({
                "connections": connections,
                "requests": requests,
                "errors": errors,
                "bytes": bytes,
                "seconds": span.as_secs_f64(),
            }));
        }
        note(format_args!(
            "{requests} requests ({errors} refused) on {connections} connections, {} in {:.1} s ({})",
            Bytes(bytes),
            span.as_secs_f64(),
            BitRate::of(bytes, span)
        ));
        Ok(())
    }
}
