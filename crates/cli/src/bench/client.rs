//! The client of a measurement: one thread for each connection, and one that samples them.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use hdrhistogram::Histogram;

use super::Args;
use super::protocol::{Hello, Purpose, Receipt};
use super::report::{Report, Sender};
use crate::hash::{PIECE, for_each_piece, read_some};
use crate::socket::{Host, Socket, connect};
use crate::thread::lock;

/// Latencies above this are recorded as this, in nanoseconds.
const LONGEST_LATENCY: u64 = 60_000_000_000;

/// State that the connections' threads share with the reporting thread.
struct Shared {
    host: Host,
    addresses: Vec<SocketAddr>,
    hello: Hello,
    /// How long to measure.
    time: Duration,
    start: Start,
    /// Bytes, round trips or connections so far.
    done: AtomicU64,
    /// The connections, for sampling.
    sockets: Mutex<Vec<Arc<Socket>>>,
}

/// All threads start together and count from the same moment. A thread that the system runs late must not measure a
/// shorter time.
struct Start {
    barrier: Barrier,
    at: OnceLock<Instant>,
}

impl Start {
    fn new(threads: usize) -> Self {
        Start { barrier: Barrier::new(threads), at: OnceLock::new() }
    }

    /// Waits for everybody and tells when the first of them went on.
    fn wait(&self) -> Instant {
        self.barrier.wait();
        *self.at.get_or_init(Instant::now)
    }
}

/// The measurements of one thread.
struct Outcome {
    done: u64,
    received: Option<Receipt>,
    latency: Histogram<u64>,
}

/// Measures and reports.
pub(super) fn run(
    args: &Args,
    host: &str,
    addresses: &[SocketAddr],
    purpose: Purpose,
) -> anyhow::Result<ExitCode> {
    let network = args.network.open()?;
    network.cleanup.on_interrupt()?;
    // The first connection shows that the server is there, and is used like the others.
    let (first, _program) =
        connect(&network, addresses).with_context(|| format!("cannot connect to {host}"))?;
    let hello = Hello { purpose, message: args.message, bytes: 0, time: args.time };
    let shared = Arc::new(Shared {
        host: network.host.clone(),
        addresses: addresses.to_vec(),
        hello,
        time: args.time,
        start: Start::new(args.parallel as usize + 1),
        done: AtomicU64::new(0),
        sockets: Mutex::new(Vec::new()),
    });
    let mut sockets = vec![first];
    if purpose != Purpose::Connect {
        for _ in 1..args.parallel {
            let socket = network.host.connect(addresses).context("cannot connect once more")?;
            sockets.push(network.cleanup.watch_socket(socket));
        }
        *lock(&shared.sockets) = sockets.clone();
    }

    let (finished, outcomes) = mpsc::channel();
    let mut sockets = sockets.into_iter();
    for nth in 0..args.parallel {
        let socket = sockets.next();
        let hello = Hello { bytes: share(args.bytes, args.parallel, nth), ..hello };
        let (shared, finished) = (Arc::clone(&shared), finished.clone());
        crate::thread::spawn("measure", move || {
            // Nobody waits for it any more if the others have failed.
            let _ = finished.send(measure(&shared, socket, hello));
        })?;
    }
    drop(finished);

    let started = shared.start.wait();
    let report = watch(&shared, args, host, network.host.side(), started, &outcomes)?;
    lock(&shared.sockets).clear();
    let status = network.finish();
    report.print(args.json)?;
    Ok(status)
}

/// The `nth` of `parts` nearly equal parts of `bytes`.
fn share(bytes: Option<u64>, parts: u32, nth: u32) -> u64 {
    bytes.map_or(0, |bytes| {
        let (parts, nth) = (u64::from(parts), u64::from(nth));
        // Zero would mean "no limit": a part has one byte at least.
        (bytes / parts + u64::from(nth < bytes % parts)).max(1)
    })
}

/// Prints what happens in each interval until all threads are done.
fn watch(
    shared: &Shared,
    args: &Args,
    host: &str,
    side: &'static str,
    started: Instant,
    outcomes: &mpsc::Receiver<anyhow::Result<Outcome>>,
) -> anyhow::Result<Report> {
    let mut report = Report::new(shared.hello.purpose, host, side, args.parallel);
    let mut waiting = args.parallel;
    let mut next = args.interval;
    while waiting > 0 {
        match outcomes.recv_timeout(next.saturating_sub(started.elapsed())) {
            Ok(outcome) => {
                let Outcome { done, received, latency } = outcome?;
                report.add(done, received, &latency);
                waiting -= 1;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                let done = shared.done.load(Ordering::Relaxed);
                report.sample(started.elapsed(), done, sender(shared), args.json)?;
                next += args.interval;
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(anyhow!("a measuring thread has ended without a result"));
            }
        }
    }
    report.finish(started.elapsed(), sender(shared));
    Ok(report)
}

fn sender(shared: &Shared) -> Option<Sender> {
    Sender::of(&*lock(&shared.sockets))
}

fn measure(shared: &Shared, socket: Option<Arc<Socket>>, hello: Hello) -> anyhow::Result<Outcome> {
    let mut latency = Histogram::new_with_max(LONGEST_LATENCY, 3).context("no histogram")?;
    let ready = match &socket {
        // The connection that showed the server is there does not count.
        Some(first) if hello.purpose == Purpose::Connect => ask(first, &hello),
        _ => Ok(()),
    };
    // The others wait for this thread, also after an error.
    let started = shared.start.wait();
    ready?;
    if let Some(socket) = socket.as_deref().filter(|_| hello.purpose != Purpose::Connect) {
        // Not before: the server's time begins with it.
        (&*socket).write_all(&hello.encode()).context("cannot begin")?;
    }
    let deadline = (hello.bytes == 0).then(|| started + shared.time);
    let over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let (done, received) = match (hello.purpose, &socket) {
        (Purpose::Connect, _) => (connections(shared, &hello, over, &mut latency)?, None),
        (Purpose::Upload, Some(socket)) => {
            let (done, receipt) = upload(shared, socket, hello.bytes, over)?;
            (done, Some(receipt))
        }
        (Purpose::Download, Some(socket)) => (download(shared, socket, hello.bytes)?, None),
        (Purpose::Exchange, Some(socket)) => {
            (exchanges(shared, socket, hello.message, over, &mut latency)?, None)
        }
        (_, None) => return Err(anyhow!("a connection is missing")),
    };
    Ok(Outcome { done, received, latency })
}

fn upload(
    shared: &Shared,
    mut socket: &Socket,
    bytes: u64,
    over: impl Fn() -> bool,
) -> anyhow::Result<(u64, Receipt)> {
    let piece = vec![0; PIECE];
    let limit = if bytes == 0 { u64::MAX } else { bytes };
    let mut done = 0;
    while done < limit && !over() {
        let length = usize::try_from(limit - done).unwrap_or(PIECE).min(PIECE);
        let written = socket.write(piece.get(..length).unwrap_or_default()).context("sending")?;
        done += written as u64;
        shared.done.fetch_add(written as u64, Ordering::Relaxed);
    }
    socket.shutdown(Shutdown::Write)?;
    let receipt = Receipt::read(&mut socket).context("the server has sent no receipt")?;
    anyhow::ensure!(
        receipt.bytes == done,
        "{done} bytes were sent, and the server has received {}",
        receipt.bytes
    );
    Ok((done, receipt))
}

fn download(shared: &Shared, socket: &Socket, bytes: u64) -> anyhow::Result<u64> {
    let mut done = 0;
    let received = for_each_piece(socket, |piece| {
        done += piece.len() as u64;
        shared.done.fetch_add(piece.len() as u64, Ordering::Relaxed);
        std::io::Result::Ok(())
    });
    received.context("receiving")?;
    anyhow::ensure!(bytes == 0 || bytes == done, "{done} of {bytes} bytes have arrived");
    Ok(done)
}

fn exchanges(
    shared: &Shared,
    mut socket: &Socket,
    message: u32,
    over: impl Fn() -> bool,
    latency: &mut Histogram<u64>,
) -> anyhow::Result<u64> {
    socket.set_nodelay(true)?;
    let mut buffer = vec![0; message as usize];
    let mut done = 0;
    while !over() {
        let began = Instant::now();
        socket.write_all(&buffer).context("sending a request")?;
        socket.read_exact(&mut buffer).context("receiving a response")?;
        latency.saturating_record(nanos(began.elapsed()));
        done += 1;
        shared.done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(done)
}

fn connections(
    shared: &Shared,
    hello: &Hello,
    over: impl Fn() -> bool,
    latency: &mut Histogram<u64>,
) -> anyhow::Result<u64> {
    let mut done = 0;
    while !over() {
        let began = Instant::now();
        let socket = shared.host.connect(&*shared.addresses).context("connecting")?;
        ask(&socket, hello)?;
        latency.saturating_record(nanos(began.elapsed()));
        done += 1;
        shared.done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(done)
}

/// Sends the hello, then reads the one byte of the answer and the end of the stream. The server closes first and has the
/// TIME-WAIT state, so the port is free here at once.
fn ask(mut socket: &Socket, hello: &Hello) -> anyhow::Result<()> {
    socket.write_all(&hello.encode()).context("sending")?;
    let mut answer = [0; 2];
    let mut length = 0;
    while let Some(free @ [_, ..]) = answer.get_mut(length..) {
        match read_some(&mut socket, free).context("receiving")? {
            0 => break,
            more => length += more,
        }
    }
    anyhow::ensure!(length == 1, "the server answered with {length} bytes instead of one");
    Ok(())
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    #[test]
    fn all_count_from_the_same_moment() {
        let start = Start::new(3);
        let moments = thread::scope(|scope| {
            let others = [(); 2].map(|()| scope.spawn(|| start.wait()));
            let own = start.wait();
            others.map(|other| (other.join().unwrap(), own))
        });
        assert!(moments.iter().all(|(other, own)| other == own), "{moments:?}");
    }

    #[test]
    fn the_server_is_not_told_to_begin_before_the_start() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = Socket::Kernel(TcpStream::connect(address).unwrap());
        let mut server = listener.accept().unwrap().0;
        let time = Duration::ZERO;
        let hello = Hello { purpose: Purpose::Download, message: 1, bytes: 0, time };
        let shared = Shared {
            host: Host::Kernel { nodelay: false },
            addresses: vec![address],
            hello,
            time,
            start: Start::new(2),
            done: AtomicU64::new(0),
            sockets: Mutex::default(),
        };
        thread::scope(|scope| {
            let measuring = scope.spawn(|| measure(&shared, Some(Arc::new(client)), hello));
            server.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
            let early = server.peek(&mut [0]).map_err(|error| error.kind());
            shared.start.wait();
            server.set_read_timeout(None).unwrap();
            assert_eq!(Hello::read(&mut server).unwrap(), hello);
            drop(server);
            assert_eq!(measuring.join().unwrap().unwrap().done, 0);
            assert_eq!(early, Err(io::ErrorKind::WouldBlock));
        });
    }

    #[test]
    fn bytes_are_shared_out() {
        let parts: Vec<u64> = (0..3).map(|nth| share(Some(11), 3, nth)).collect();
        assert_eq!(parts, [4, 4, 3]);
        assert_eq!(share(None, 3, 0), 0);
        assert_eq!(share(Some(1), 3, 2), 1);
    }
}
