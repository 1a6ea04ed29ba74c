//! `transom exec` beside the kernel: the same program as a process, once with the kernel's TCP over loopback, and once supervised, over TUN.
//!
//! The program is this one in another role ([`supervised`](crate::supervised)), and nginx. The peer is the kernel's TCP in both cases: threads of the bench's, and `wrk`. Loopback is the
//! fastest that a program can have without Transom. A supervised connection passes the kernel's TCP in a private network, two stacks of Transom's, two TUN interfaces and the kernel's TCP again.
//! Each sample starts its program anew; only the program's own time counts.

use super::Settings;
use crate::harness::{Bound, Case, Group, Unit};
use crate::network::{KernelEnd, OTHER, alone, patient};
use crate::supervised::{Errand, Program};
use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PORT: u16 = 5001;
const CLOSING_PORT: u16 = 5002;
/// Bytes per read and write of the peer.
const CHUNK: usize = 128 * 1024;
const NATIVE: &str = "the kernel over loopback";
const SUPERVISED: &str = "under transom exec";
/// How long a server may take to start.
const START: Duration = Duration::from_secs(20);

/// Kills and waits.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves one connection of a client's.
fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    patient(&stream)?;
    let mut errand = [0];
    stream.read_exact(&mut errand)?;
    let mut data = vec![7; CHUNK];
    if errand == [Errand::Up.letter()] {
        let mut total = 0u64;
        loop {
            match stream.read(&mut data)? {
                0 => return stream.write_all(&total.to_be_bytes()),
                n => total += n as u64,
            }
        }
    } else if errand == [Errand::Trip.letter()] {
        stream.set_nodelay(true)?;
        while stream.read_exact(&mut errand).is_ok() {
            stream.write_all(&errand)?;
        }
        Ok(())
    } else {
        // Until the client closes.
        loop {
            stream.write_all(&data)?;
        }
    }
}

/// Threads that serve for as long as this process lives.
fn serve_all(listener: TcpListener, settings: Settings, closing: bool) {
    std::thread::spawn(move || {
        let _ = settings.place_peer();
        for stream in listener.incoming().flatten() {
            if !closing {
                std::thread::spawn(move || serve(stream));
            }
        }
    });
}

/// A host of the kernel's, with both servers at loopback and at its TUN interface's address, which comes and goes with the interface.
fn host(settings: Settings) -> anyhow::Result<Arc<KernelEnd>> {
    let end = alone()?;
    for (port, closing) in [(PORT, false), (CLOSING_PORT, true)] {
        serve_all(end.listen_everywhere(port)?, settings, closing);
    }
    Ok(Arc::new(end))
}

/// The figure that a client prints.
fn figure(host: &KernelEnd, mut command: Command) -> anyhow::Result<f64> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = host.run(|| command.spawn())??;
    let mut child = Running(child);
    let (mut out, mut said) = (String::new(), String::new());
    child.0.stdout.take().context("no output")?.read_to_string(&mut out)?;
    child.0.stderr.take().context("no output")?.read_to_string(&mut said)?;
    let status = child.0.wait()?;
    ensure!(status.success(), "{status}: {said}");
    out.trim().parse().with_context(|| format!("no figure: {out}"))
}

fn clients(
    settings: Settings,
    errand: Errand,
    unit: Unit,
    aim: Option<Bound>,
) -> anyhow::Result<Group> {
    let host = host(settings)?;
    let port = if errand == Errand::Connect { CLOSING_PORT } else { PORT };
    let native = {
        let host = Arc::clone(&host);
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Case::new(NATIVE, move |span| figure(&host, Program::Client(errand, at, span).alone()?))
    };
    let supervised = Case::new(SUPERVISED, move |span| {
        figure(&host, Program::Client(errand, host.at(port), span).supervised()?)
    });
    let supervised = match aim {
        Some(aim) => supervised.figure(NATIVE, aim),
        None => supervised.against(NATIVE),
    };
    Ok(Group::new(unit, vec![native, supervised]))
}

/// Builds the group of bulk data to the kernel.
///
/// # Errors
/// When there is no namespace.
pub fn build_up(settings: Settings) -> anyhow::Result<Group> {
    clients(settings, Errand::Up, Unit::GigabitsPerSecond, Some(Bound::AtLeast(0.85)))
}

/// Builds the group of bulk data from the kernel.
///
/// # Errors
/// As [`build_up`].
pub fn build_down(settings: Settings) -> anyhow::Result<Group> {
    clients(settings, Errand::Down, Unit::GigabitsPerSecond, Some(Bound::AtLeast(0.8)))
}

/// Builds the group of connections made one after the other.
///
/// # Errors
/// As [`build_up`].
pub fn build_connect(settings: Settings) -> anyhow::Result<Group> {
    clients(settings, Errand::Connect, Unit::Microseconds, Some(Bound::AtMost(2.5)))
}

/// Builds the group of single bytes there and back. There is no aim for it: it shows whether larger batches cost latency.
///
/// # Errors
/// As [`build_up`].
pub fn build_trip(settings: Settings) -> anyhow::Result<Group> {
    clients(settings, Errand::Trip, Unit::Microseconds, None)
}

/// A configuration for nginx with two workers, and with more words of its block `http`.
pub(super) fn configuration(
    directory: &Path,
    port: u16,
    more: &str,
) -> anyhow::Result<Vec<String>> {
    let place = |name: &str| directory.join(format!("{name}{port}")).display().to_string();
    let mut text = format!(
        "daemon off; pid {}; error_log /dev/null; worker_processes 2; user root;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; keepalive_requests 1000000000; {more}\n",
        place("pid")
    );
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        writeln!(text, "{kind}_temp_path {};", place(kind))?;
    }
    write!(text, "server {{ listen {port}; root {}; }} }}", directory.display())?;
    let file = place("nginx.conf");
    std::fs::write(&file, text)?;
    Ok(["nginx", "-e", "stderr", "-c", &file].map(str::to_owned).into())
}

/// A server that runs for one sample.
pub(super) struct Server {
    _process: Running,
    pid: Option<Pid>,
}

impl Server {
    pub(super) fn start(
        host: &KernelEnd,
        command: &mut Command,
        pid: &Path,
    ) -> anyhow::Result<Server> {
        let _ = std::fs::remove_file(pid);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Server { _process: Running(host.run(|| command.spawn())??), pid: None };
        let begin = Instant::now();
        while server.pid.is_none() {
            ensure!(begin.elapsed() < START, "nginx does not start");
            std::thread::sleep(Duration::from_millis(10));
            let text = std::fs::read_to_string(pid).unwrap_or_default();
            server.pid = text.trim().parse().ok().and_then(Pid::from_raw);
        }
        Ok(server)
    }
}

impl Drop for Server {
    /// The master ends its workers.
    fn drop(&mut self) {
        if let Some(pid) = self.pid {
            let _ = kill_process(pid, Signal::TERM);
            let _ = self._process.0.wait();
        }
    }
}

/// What wrk finds, in requests per second.
fn requests(host: &KernelEnd, at: SocketAddr, span: Duration) -> anyhow::Result<f64> {
    let mut wrk = Command::new("wrk");
    let seconds = span.as_secs().max(1).to_string();
    wrk.args(["-t", "2", "-c", "40", "-d", &seconds, &format!("http://{at}/small")]);
    let output = host.run(|| wrk.output())??;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && !text.contains("Non-2xx"), "wrk: {text}");
    let line = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    Ok(line.context("wrk says nothing")?.trim().parse()?)
}

/// Fails if one of these programs is not there.
pub(super) fn installed(programs: &[&str]) -> anyhow::Result<()> {
    for program in programs {
        if Command::new(program).arg("-v").output().is_err() {
            bail!("{program} is not installed");
        }
    }
    Ok(())
}

/// Builds the group of requests to nginx.
///
/// # Errors
/// As [`build_up`], and when nginx or wrk is not there.
pub fn build_nginx(settings: Settings) -> anyhow::Result<Group> {
    installed(&["nginx", "wrk"])?;
    let _ = settings;
    let host = Arc::new(alone()?);
    let directory = Arc::new(TempDir::new()?);
    std::fs::write(directory.path().join("small"), "hello\n")?;
    let case = |name, port: u16, supervised: bool| -> anyhow::Result<Case> {
        let program = Program::Other(configuration(directory.path(), port, "")?);
        let (host, directory) = (Arc::clone(&host), Arc::clone(&directory));
        Ok(Case::new(name, move |span| {
            let pid = directory.path().join(format!("pid{port}"));
            let mut command = if supervised { program.supervised()? } else { program.alone()? };
            let _server = Server::start(&host, &mut command, &pid)?;
            let address = if supervised { OTHER.into() } else { Ipv4Addr::LOCALHOST };
            let at = SocketAddr::from((address, port));
            answers(&host, at)?;
            requests(&host, at, span)
        }))
    };
    let native = case(NATIVE, 8080, false)?;
    let supervised = case(SUPERVISED, 8081, true)?.figure(NATIVE, Bound::AtLeast(0.75));
    Ok(Group::new(Unit::PerSecond, vec![native, supervised]))
}

/// Waits until somebody answers there.
pub(super) fn answers(host: &KernelEnd, at: SocketAddr) -> anyhow::Result<()> {
    let begin = Instant::now();
    while host.run(|| TcpStream::connect_timeout(&at, Duration::from_secs(1)))?.is_err() {
        ensure!(begin.elapsed() < START, "nobody answers at {at}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
