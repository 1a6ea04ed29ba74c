//! Programs for `exec`: a client of our own, alone or under a supervisor, each as a process.

use crate::network::{KERNEL, OTHER, kernel_socket, patient};
use crate::roles;
use anyhow::Context;
use rustix::net::SocketFlags;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use transom_device::intercept;
use transom_device::interface::IpPrefix;
use transom_device::tun::{Tun, TunOffload};
use transom_exec::{Destinations, Inner, Ledger, Setup, supervise};
use transom_net::{Profile, Stack};

/// The role of a process that carries out an [`Errand`].
pub(crate) const CLIENT: &str = "client";
/// The role of a process that supervises another one.
pub(crate) const SUPERVISOR: &str = "supervisor";
/// Bytes per read and write of a client.
const CHUNK: usize = 128 * 1024;

/// What a client does with a server of the bench's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// Sends, and waits for the word that all has arrived: Gbit/s.
    Up,
    /// Receives: Gbit/s.
    Down,
    /// Connects, reads the end and closes, over and over: microseconds for one.
    Connect,
    /// Sends a byte and waits for it to come back, over and over: microseconds for one.
    Trip,
}

impl Errand {
    const ALL: [(&'static str, Errand); 4] = [
        ("up", Errand::Up),
        ("down", Errand::Down),
        ("connect", Errand::Connect),
        ("trip", Errand::Trip),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, errand)| *errand == self).map_or("", |(name, _)| name)
    }

    /// The byte that says so to the server, where one is needed.
    pub(crate) fn letter(self) -> u8 {
        self.name().as_bytes().first().copied().unwrap_or(0)
    }
}

/// A program and its arguments, run with the kernel's TCP or under a supervisor.
#[derive(Clone, Debug)]
pub enum Program {
    /// This program as a client.
    Client(Errand, SocketAddr, Duration),
    /// Another one.
    Other(Vec<String>),
}

impl Program {
    fn words(&self) -> String {
        match self {
            Program::Client(errand, at, span) => {
                format!("{CLIENT}\n{} {at} {}", errand.name(), span.as_secs_f64())
            }
            Program::Other(words) => words.join("\n"),
        }
    }

    /// How it is run by itself.
    ///
    /// # Errors
    /// When the system does not say where this program is.
    pub fn alone(&self) -> io::Result<Command> {
        command(&self.words())
    }

    /// How it is run with its connections by Transom, at [`OTHER`]. Closing the standard input of the command ends it.
    ///
    /// # Errors
    /// As above.
    pub fn supervised(&self) -> io::Result<Command> {
        roles::command(SUPERVISOR, &self.words())
    }
}

/// The command for some words, the first of which may be [`CLIENT`].
fn command(words: &str) -> io::Result<Command> {
    let mut command = match words.split_once('\n') {
        Some((CLIENT, errand)) => roles::command(CLIENT, errand)?,
        _ => {
            let mut words = words.split('\n');
            let mut command = Command::new(words.next().unwrap_or_default());
            command.args(words);
            command
        }
    };
    command.stdin(Stdio::null());
    Ok(command)
}

/// The supervisor's role.
pub(crate) fn run_supervisor(words: &str) -> anyhow::Result<()> {
    let address = format!("{}/24", IpAddr::from(KERNEL));
    let builder = Tun::builder().offload(TunOffload::Segmentation).address(address.parse()?);
    let stack = Stack::builder()
        .profile(Profile::default())
        .address(IpAddr::from(OTHER), 24)
        .start(builder.open().context("opening a TUN device")?)?;
    let (mut child, notifier) = intercept::spawn(&mut command(words)?)?;
    let own: IpPrefix = format!("{}/24", IpAddr::from(OTHER)).parse()?;
    let destinations = Destinations::default();
    // As root: no other process has to make the network, or to lend it.
    let nobody = || Err("nobody lends a network".into());
    let inner = Inner::open(&[own], &destinations, ("/proc/self/exe", ""), nobody)?;
    let setup = Setup {
        stack: Some(stack),
        addresses: vec![OTHER.into()],
        profile: Profile::default(),
        destinations,
        background: false,
        watcher: None,
        opened: None,
        unanswered: None,
    };
    supervise(notifier, Ledger::new()?, inner, setup)?;
    let status = child.wait()?;
    anyhow::ensure!(status.success(), "the program failed: {status}");
    Ok(())
}

/// The client's role: prints its figure.
pub(crate) fn run_client(what: &str) -> anyhow::Result<()> {
    let mut words = what.split(' ');
    let name = words.next().unwrap_or_default();
    let errand = Errand::ALL.iter().find(|(other, _)| *other == name).context("no errand")?.1;
    let at: SocketAddr = words.next().context("no address")?.parse()?;
    let span = Duration::from_secs_f64(words.next().context("no time")?.parse()?);
    let figure = match errand {
        Errand::Up => up(at, span),
        Errand::Down => down(at, span),
        Errand::Connect => connect(at, span),
        Errand::Trip => trip(at, span),
    };
    println!("{}", figure?);
    Ok(())
}

fn open(at: SocketAddr, errand: Errand) -> anyhow::Result<TcpStream> {
    let mut stream = kernel_socket(SocketFlags::CLOEXEC)?;
    patient(&stream)?;
    rustix::net::connect(&stream, &at)?;
    stream.set_nodelay(true)?;
    stream.write_all(&[errand.letter()])?;
    Ok(stream)
}

fn gigabits(bytes: u64, time: Duration) -> f64 {
    bytes as f64 * 8.0 / time.as_secs_f64() / 1e9
}

fn up(at: SocketAddr, span: Duration) -> anyhow::Result<f64> {
    let mut stream = open(at, Errand::Up)?;
    let data = vec![7; CHUNK];
    let (begin, mut sent) = (Instant::now(), 0u64);
    while begin.elapsed() < span {
        stream.write_all(&data)?;
        sent += CHUNK as u64;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut total = [0; 8];
    stream.read_exact(&mut total)?;
    let time = begin.elapsed();
    anyhow::ensure!(u64::from_be_bytes(total) == sent, "{sent} bytes were sent");
    Ok(gigabits(sent, time))
}

fn down(at: SocketAddr, span: Duration) -> anyhow::Result<f64> {
    let mut stream = open(at, Errand::Down)?;
    let mut data = vec![0; CHUNK];
    let warm = Instant::now();
    while warm.elapsed() < span / 10 {
        anyhow::ensure!(stream.read(&mut data)? > 0, "an end");
    }
    let (begin, mut got) = (Instant::now(), 0);
    while begin.elapsed() < span {
        let n = stream.read(&mut data)?;
        anyhow::ensure!(n > 0, "an end");
        got += n as u64;
    }
    Ok(gigabits(got, begin.elapsed()))
}

fn connect(at: SocketAddr, span: Duration) -> anyhow::Result<f64> {
    let (begin, mut count) = (Instant::now(), 0u32);
    while begin.elapsed() < span {
        let mut stream = TcpStream::connect(at)?;
        anyhow::ensure!(stream.read(&mut [0])? == 0, "data from a server that has none");
        count += 1;
    }
    Ok(begin.elapsed().as_secs_f64() * 1e6 / f64::from(count))
}

fn trip(at: SocketAddr, span: Duration) -> anyhow::Result<f64> {
    let mut stream = open(at, Errand::Trip)?;
    let (begin, mut count) = (Instant::now(), 0u32);
    while begin.elapsed() < span {
        stream.write_all(&[1])?;
        stream.read_exact(&mut [0])?;
        count += 1;
    }
    Ok(begin.elapsed().as_secs_f64() * 1e6 / f64::from(count))
}
