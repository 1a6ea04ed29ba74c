//! HTTP: `transom serve` over TUN beside nginx with the kernel's TCP over veth. wrk asks, with the kernel's TCP, on kept connections.
//!
//! Small files have 1 KB, for 64 connections at once; large ones 10 MB, for eight. nginx has two workers and `sendfile`. `transom serve` has one thread, or one for each of two shards. `transom serve` is the command that lies beside this
//! program, of the same profile.

use super::Settings;
use super::exec::{Running, Server, answers, configuration, installed};
use crate::harness::{Bound, Case, Group, Unit};
use crate::network::{KernelEnd, Veth, alone};
use anyhow::{Context, ensure};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;
use tempfile::TempDir;

const NGINX: &str = "nginx, the kernel over veth";
const TRANSOM: &str = "transom serve, over TUN";
const SHARDS: &str = "transom serve --shards 2, over TUN";
const PORT: u16 = 80;

/// What wrk asks for.
#[derive(Clone, Copy)]
struct Load {
    file: &'static str,
    connections: u32,
}

const SMALL: Load = Load { file: "small", connections: 64 };
const LARGE: Load = Load { file: "large", connections: 8 };

/// What wrk found.
struct Found {
    per_second: f64,
    /// In microseconds.
    p99: f64,
}

fn wrk(host: &KernelEnd, at: SocketAddr, load: Load, span: Duration) -> anyhow::Result<Found> {
    let Load { file, connections } = load;
    let (seconds, connections) = (span.as_secs().max(1).to_string(), connections.to_string());
    let mut wrk = Command::new("wrk");
    wrk.args(["--latency", "-t", "2", "-c", &connections, "-d", &seconds]);
    wrk.arg(format!("http://{at}/{file}"));
    let output = host.run(|| wrk.output())??;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && !text.contains("Non-2xx"), "wrk: {text}");
    let after = |word: &str| text.lines().find_map(|line| line.trim().strip_prefix(word));
    let per_second = after("Requests/sec:").context("wrk says nothing")?.trim().parse()?;
    Ok(Found {
        per_second,
        p99: microseconds(after("99%").context("wrk says no latency")?.trim())?,
    })
}

/// wrk's way to write a time.
fn microseconds(text: &str) -> anyhow::Result<f64> {
    let (number, factor) = if let Some(number) = text.strip_suffix("us") {
        (number, 1.0)
    } else if let Some(number) = text.strip_suffix("ms") {
        (number, 1e3)
    } else {
        (text.strip_suffix('s').context("a time without a unit")?, 1e6)
    };
    Ok(number.parse::<f64>()? * factor)
}

/// Where wrk runs, where it asks, and what has to stay meanwhile.
struct Site {
    asker: KernelEnd,
    at: SocketAddr,
    directory: TempDir,
    start: Box<Start>,
}

/// Starts a server, which ends when what is returned goes.
type Start = dyn Fn(&Site) -> anyhow::Result<Box<dyn std::any::Any>>;

fn files() -> anyhow::Result<TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let permissions = std::fs::Permissions::from_mode(0o755);
    let directory = tempfile::Builder::new().permissions(permissions).tempdir()?;
    std::fs::write(directory.path().join(SMALL.file), vec![7; 1 << 10])?;
    std::fs::write(directory.path().join(LARGE.file), vec![7; 10 << 20])?;
    Ok(directory)
}

fn nginx() -> anyhow::Result<Site> {
    let Veth { kernel, other } = Veth::new()?;
    let directory = files()?;
    let words = configuration(directory.path(), PORT, "sendfile on; tcp_nopush on;")?;
    let at = other.at(PORT);
    let start = move |site: &Site| {
        let mut words = words.iter();
        let mut command = Command::new(words.next().context("no program")?);
        command.args(words);
        let pid = site.directory.path().join(format!("pid{PORT}"));
        Ok(Box::new(Server::start(&other, &mut command, &pid)?) as Box<dyn std::any::Any>)
    };
    Ok(Site { asker: kernel, at, directory, start: Box::new(start) })
}

/// The command beside this program.
fn program() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("transom");
    ensure!(path.exists(), "{} is not there: build the package transom-cli too", path.display());
    Ok(path)
}

fn transom(shards: &'static str) -> anyhow::Result<Site> {
    let program = program()?;
    let start = move |site: &Site| {
        let mut command = Command::new(&program);
        command.args(["serve", "--addr", "192.0.2.2/24", "--peer-addr", "192.0.2.1/24"]);
        command.args(["--shards", shards]);
        command.arg(site.directory.path());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = site.asker.run(|| command.spawn())??;
        Ok(Box::new(Running(child)) as Box<dyn std::any::Any>)
    };
    let at = SocketAddr::from((crate::network::OTHER, PORT));
    Ok(Site { asker: alone()?, at, directory: files()?, start: Box::new(start) })
}

fn case(name: &'static str, site: Site, load: Load, value: fn(Found) -> f64) -> Case {
    let site = Rc::new(site);
    Case::new(name, move |span| {
        let _server = (site.start)(&site)?;
        answers(&site.asker, site.at)?;
        wrk(&site.asker, site.at, load, span).map(value)
    })
}

fn build(load: Load, unit: Unit, bound: Bound, value: fn(Found) -> f64) -> anyhow::Result<Group> {
    installed(&["nginx", "wrk"])?;
    let cases = vec![
        case(NGINX, nginx()?, load, value),
        case(TRANSOM, transom("1")?, load, value).figure(NGINX, bound),
        case(SHARDS, transom("2")?, load, value).figure(NGINX, bound),
    ];
    Ok(Group::new(unit, cases))
}

/// Builds the group of small files: requests per second.
///
/// # Errors
/// When nginx, wrk or the command `transom` is not there, or a path cannot be made.
pub fn build_small(_settings: Settings) -> anyhow::Result<Group> {
    build(SMALL, Unit::PerSecond, Bound::AtLeast(1.0), |found| found.per_second)
}

/// The same: 99th percentile of the time for an answer.
///
/// # Errors
/// As there.
pub fn build_small_p99(_settings: Settings) -> anyhow::Result<Group> {
    build(SMALL, Unit::Microseconds, Bound::AtMost(1.0), |found| found.p99)
}

/// Builds the group of large files: Gb/s.
///
/// # Errors
/// As there.
pub fn build_large(_settings: Settings) -> anyhow::Result<Group> {
    let gigabits = |found: Found| found.per_second * f64::from(10u32 << 20) * 8.0 / 1e9;
    build(LARGE, Unit::GigabitsPerSecond, Bound::AtLeast(1.2), gigabits)
}
