//! Connections per second.
//!
//! A connection is: connect, and the server closes as soon as it has accepted; the client reads the end of the stream and
//! closes too. So each one is opened and closed in order, at both ends, and the client cannot run ahead of the server. The
//! server closes first and has the TIME-WAIT states. A client that comes back with the same port within a minute is let in
//! by its newer timestamp (RFC 6191), at either server.
//!
//! *One in flight* is a client that opens the next connection when it has closed the last, blocking. *Sixteen in flight*
//! is one thread with sixteen non-blocking sockets.

use super::Settings;
use crate::harness::{Bound, Case, Group, Unit};
use crate::network::{KernelEnd, PATIENCE, TransomPath, Veth, kernel_socket, patient};
use crate::placement::Placement;
use crate::smol::tun::{Help, SmolPath};
use anyhow::{Context, bail, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use smoltcp::socket::tcp::State;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use transom_device::tun::TunOffload;
use transom_net::Profile;

const PORT: u16 = 80;
/// How many connections a client that does not wait has under way.
const IN_FLIGHT: usize = 16;
/// A waiting Transom thread looks for at least this long before it sleeps.
const BUSY_POLL: Duration = Duration::from_millis(100);

const KERNEL_1: &str = "kernel over veth, 1 in flight";
const KERNEL_16: &str = "kernel over veth, 16 in flight";

/// Counts connections for the length of a sample.
struct Tally {
    start: Instant,
    span: Duration,
    count: u64,
}

impl Tally {
    fn start(span: Duration) -> Self {
        Tally { start: Instant::now(), span, count: 0 }
    }

    fn over(&self) -> bool {
        self.start.elapsed() >= self.span
    }

    fn rate(&self) -> f64 {
        self.count as f64 / self.start.elapsed().as_secs_f64()
    }
}

/// Reads the end of the stream, which must be all there is.
fn read_end(mut stream: impl Read) -> io::Result<()> {
    match stream.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "data from a server that has none")),
    }
}

/// The kernel as a client, one connection after the other.
fn kernel_one_by_one(remote: SocketAddr, span: Duration) -> anyhow::Result<f64> {
    let mut tally = Tally::start(span);
    while !tally.over() {
        let stream = kernel_socket(SocketFlags::CLOEXEC)?;
        patient(&stream)?;
        rustix::net::connect(&stream, &remote).context("connecting")?;
        read_end(&stream).context("waiting for the server's close")?;
        tally.count += 1;
    }
    Ok(tally.rate())
}

/// Starts connecting; the socket becomes readable when the server has closed.
fn connect_nonblocking(remote: SocketAddr) -> io::Result<TcpStream> {
    let socket = kernel_socket(SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    match rustix::net::connect(&socket, &remote) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno.into()),
    }
}

/// The kernel as a client with many connections under way.
fn kernel_in_flight(remote: SocketAddr, span: Duration) -> anyhow::Result<f64> {
    let mut streams = Vec::new();
    for _ in 0..IN_FLIGHT {
        streams.push(connect_nonblocking(remote).context("connecting")?);
    }
    let patience = Timespec::try_from(PATIENCE).context("a timeout out of range")?;
    let mut tally = Tally::start(span);
    let mut readable = [false; IN_FLIGHT];
    while !tally.over() {
        let mut fds: Vec<PollFd<'_>> =
            streams.iter().map(|stream| PollFd::new(stream, PollFlags::IN)).collect();
        let count = poll(&mut fds, Some(&patience)).context("waiting for connections")?;
        ensure!(count > 0, "no connection made progress");
        for (ready, fd) in readable.iter_mut().zip(&fds) {
            *ready = !fd.revents().is_empty();
        }
        for (stream, ready) in streams.iter_mut().zip(readable) {
            if ready {
                read_end(&*stream).context("waiting for the server's close")?;
                *stream = connect_nonblocking(remote).context("connecting")?;
                tally.count += 1;
            }
        }
    }
    Ok(tally.rate())
}

/// Transom as a client with many connections under way. The thread is the host's driver, and waits for events as the kernel's client does.
fn transom_in_flight(
    path: &TransomPath,
    remote: SocketAddr,
    span: Duration,
) -> anyhow::Result<f64> {
    let mut driver = path.stack.driver().context("taking the lead")?;
    let connect = |driver: &transom_net::Driver, token: usize| {
        let stream = transom_net::TcpStream::connect_nonblocking(&path.stack, remote)?;
        driver.watch(&stream, token as u64);
        Ok::<_, io::Error>(stream)
    };
    let mut streams = Vec::new();
    for token in 0..IN_FLIGHT {
        streams.push(connect(&driver, token).context("connecting")?);
    }
    let mut tally = Tally::start(span);
    let mut last = tally.start;
    let mut changes = Vec::new();
    while !tally.over() {
        driver.wait(Some(PATIENCE), &mut changes);
        for change in changes.drain(..).filter(|change| change.readable) {
            let token = usize::try_from(change.token).context("a number of a socket")?;
            let Some(stream) = streams.get_mut(token) else { continue };
            match read_end(&*stream) {
                Ok(()) => {
                    *stream = connect(&driver, token).context("connecting")?;
                    tally.count += 1;
                    last = Instant::now();
                }
                // The event was of the connection that had this place before.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected
                    ) => {}
                Err(error) => return Err(error).context("waiting for the server's close"),
            }
        }
        ensure!(last.elapsed() < PATIENCE, "no connection made progress");
    }
    Ok(tally.rate())
}

/// Something that accepts.
trait Server: Send + Sync {
    /// Accepts one connection and closes it.
    fn serve_one(&self) -> io::Result<()>;
}

impl Server for TcpListener {
    fn serve_one(&self) -> io::Result<()> {
        self.accept().map(drop)
    }
}

impl Server for transom_net::TcpListener {
    fn serve_one(&self) -> io::Result<()> {
        self.accept().map(drop)
    }
}

/// Serves in a thread of its own while `client` runs. `last` opens a connection that ends the waiting for one.
fn beside(
    server: &Arc<impl Server + 'static>,
    settings: Settings,
    last: impl FnOnce() -> io::Result<()>,
    client: impl FnOnce() -> anyhow::Result<f64>,
) -> anyhow::Result<f64> {
    let stop = Arc::new(AtomicBool::new(false));
    // Not a scoped thread: where no connection gets through any more, nobody can end its waiting.
    let serving = std::thread::spawn({
        let (server, stop) = (Arc::clone(server), Arc::clone(&stop));
        move || -> io::Result<()> {
            settings.place_peer()?;
            while !stop.load(Ordering::Relaxed) {
                server.serve_one()?;
            }
            Ok(())
        }
    });
    let result = client();
    stop.store(true, Ordering::Relaxed);
    if !serving.is_finished() {
        last().context("the last connection")?;
    }
    serving
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the server panicked")))
        .context("serving")?;
    result
}

/// How a kernel's client connects.
type KernelClient = fn(SocketAddr, Duration) -> anyhow::Result<f64>;

/// Runs a kernel's client inside its namespace.
fn inside(
    kernel: &KernelEnd,
    client: KernelClient,
    remote: SocketAddr,
    span: Duration,
) -> anyhow::Result<f64> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            kernel.enter()?;
            client(remote, span)
        });
        thread.join().unwrap_or_else(|_| bail!("the client panicked"))
    })
}

fn kernel(name: &'static str, client: KernelClient, settings: Settings) -> anyhow::Result<Case> {
    let veth = Veth::new()?;
    let listener = Arc::new(veth.kernel.listen(PORT)?);
    let remote = veth.kernel.at(PORT);
    Ok(Case::new(name, move |span| {
        beside(
            &listener,
            settings,
            || veth.other.connect(remote).map(drop),
            || inside(&veth.other, client, remote, span),
        )
    }))
}

fn path(busy_poll: Duration) -> anyhow::Result<TransomPath> {
    TransomPath::new(TunOffload::Segmentation, Profile::classic(), busy_poll)
}

fn transom_server(
    name: &'static str,
    busy_poll: Duration,
    client: KernelClient,
    settings: Settings,
) -> anyhow::Result<Case> {
    let path = path(busy_poll)?;
    let remote = path.at(PORT);
    let listener = Arc::new(path.stack.listen(remote)?);
    Ok(Case::new(name, move |span| {
        beside(
            &listener,
            settings,
            || path.kernel.connect(remote).map(drop),
            || inside(&path.kernel, client, remote, span),
        )
    }))
}

fn transom_client(name: &'static str, settings: Settings) -> anyhow::Result<Case> {
    let path = path(Duration::ZERO)?;
    let listener = Arc::new(path.kernel.listen(PORT)?);
    let remote = path.kernel.at(PORT);
    Ok(Case::new(name, move |span| {
        beside(
            &listener,
            settings,
            || path.connect(remote).map(drop),
            || transom_in_flight(&path, remote, span),
        )
    }))
}

/// smoltcp as a client with many connections under way. Each socket connects anew as soon as it is closed.
fn smoltcp_in_flight(path: &mut SmolPath, span: Duration) -> anyhow::Result<f64> {
    let mut sockets = Vec::new();
    for _ in 0..IN_FLIGHT {
        let socket = path.add();
        path.start(socket, PORT)?;
        sockets.push(socket);
    }
    let mut tally = Tally::start(span);
    let result = path.run(true, |path| {
        for &socket in &sockets {
            match path.socket(socket).state() {
                State::CloseWait => {
                    path.socket(socket).close();
                    tally.count += 1;
                }
                State::Closed => {
                    if let Err(error) = path.start(socket, PORT) {
                        return Some(Err(error));
                    }
                }
                _ => {}
            }
        }
        tally.over().then_some(Ok(tally.rate()))
    })?;
    for socket in sockets {
        path.remove(socket);
    }
    result
}

fn smoltcp_client(name: &'static str, settings: Settings) -> anyhow::Result<Case> {
    let mut path = SmolPath::new(Help::GivenTheDevice, 1500, 4096)?;
    let kernel = Arc::clone(&path.kernel);
    let listener = Arc::new(kernel.listen(PORT)?);
    Ok(Case::new(name, move |span| {
        beside(
            &listener,
            settings,
            || kernel.connect(kernel.at(PORT)).map(drop),
            || smoltcp_in_flight(&mut path, span),
        )
    }))
}

/// Builds the group.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build(settings: Settings) -> anyhow::Result<Group> {
    let (blocking, spinning) = (Bound::AtLeast(0.65), Bound::AtLeast(0.9));
    let server = |name, busy_poll, client: KernelClient, against| {
        transom_server(name, busy_poll, client, settings)
            .map(|case| case.figure(against, if busy_poll.is_zero() { blocking } else { spinning }))
    };
    let mut cases = vec![
        kernel(KERNEL_1, kernel_one_by_one, settings)?,
        kernel(KERNEL_16, kernel_in_flight, settings)?,
        server("Transom server, 1 in flight", Duration::ZERO, kernel_one_by_one, KERNEL_1)?,
        server("Transom server, 16 in flight", Duration::ZERO, kernel_in_flight, KERNEL_16)?,
        transom_client("Transom client, 16 in flight", settings)?.figure(KERNEL_16, spinning),
        smoltcp_client("smoltcp client, 16 in flight", settings)?.against(KERNEL_16),
    ];
    // A server that spins would have the CPU that its client needs.
    if settings.placement != Placement::One {
        cases.extend([
            server(
                "Transom server, busy poll, 1 in flight",
                BUSY_POLL,
                kernel_one_by_one,
                KERNEL_1,
            )?,
            server(
                "Transom server, busy poll, 16 in flight",
                BUSY_POLL,
                kernel_in_flight,
                KERNEL_16,
            )?,
        ]);
    }
    Ok(Group::new(Unit::PerSecond, cases).note(
        "smoltcp is no server here: it has no accept queue, each of its sockets stays in TIME-WAIT for ten seconds, and \
         every packet looks at all of them.",
    ))
}
