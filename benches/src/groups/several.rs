//! Several connections of one host: bulk transfer on 1, 16 and 256 of them at once, and a byte's round trip beside bulk transfer.
//!
//! Each connection has a thread at either end, as a simple program has. The rate is that of all connections together, after a second in which buffers fill. With
//! both ends on one CPU the CPU is always busy, so the inverse of the rate is the time of the processor for a bit, of both ends.
//!
//! A byte is copied three times on its way between two programs, of which one uses Transom, and twice if both use the kernel. *Kernel, one copy more* is the
//! kernel with a copy in the measured program. A TCP in the program reaches that if it costs as little as the kernel's.
//!
//! *Beside bulk*: one connection sends as fast as it can, and another one of the same host sends a byte and waits for it to come back. The 50th, 99th and
//! 99.9th percentile of the round-trip time come from the same sample.

use super::Settings;
use super::bulk::{LEAST_READ, StopOnDrop};
use super::round_trip::{echo, stream_trip};
use crate::harness::{Case, Group, Unit, named};
use crate::network::{PATIENCE, TransomPath, Veth, patient};
use crate::transfer::gigabits;
use anyhow::{Context, bail, ensure};
use hdrhistogram::Histogram;
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};
use transom_device::tun::TunOffload;
use transom_net::Profile;

pub(super) const PORT: u16 = 5001;
pub(super) const COUNTS: [usize; 3] = [1, 16, 256];
/// Round trips before the clock starts.
const WARM_UP: u32 = 20;
/// Bulk transfer is measured after this time. Until then hundreds of connections fill the kernel's buffers and ours with memory that was never used.
const FILLING: Duration = Duration::from_secs(1);
/// Threads that only read and write need no more.
const STACK: usize = 128 * 1024;

/// A stream of the measured end.
trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A stream whose bytes are copied once more.
struct CopiedAgain<S> {
    stream: S,
    /// As long as the longest write and read so far.
    memory: Vec<u8>,
}

impl<S> CopiedAgain<S> {
    fn room(&mut self, bytes: usize) -> &mut [u8] {
        if self.memory.len() < bytes {
            self.memory.resize(bytes, 0);
        }
        &mut self.memory[..bytes]
    }
}

impl<S: Read> Read for CopiedAgain<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.room(into.len());
        let read = self.stream.read(&mut self.memory[..into.len()])?;
        into[..read].copy_from_slice(&self.memory[..read]);
        Ok(read)
    }
}

impl<S: Write> Write for CopiedAgain<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.stream.write(&self.memory[..bytes.len()])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Which end sends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Send,
    Receive,
}

/// A path on which connections can be opened: from the measured end to a listener of the kernel's.
struct Path {
    connect: Box<dyn Fn() -> anyhow::Result<Box<dyn Stream>>>,
    listener: TcpListener,
}

impl Path {
    /// The kernel's TCP at both ends; `again`: the measured end copies each byte once more.
    fn kernel(again: bool) -> anyhow::Result<Self> {
        let veth = Veth::new()?;
        let listener = veth.kernel.listen(PORT)?;
        let connect = move || {
            let stream = veth.other.connect(veth.kernel.at(PORT))?;
            stream.set_nodelay(true)?;
            Ok(if again {
                Box::new(CopiedAgain { stream, memory: Vec::new() }) as Box<dyn Stream>
            } else {
                Box::new(stream)
            })
        };
        Ok(Path { connect: Box::new(connect), listener })
    }

    fn transom(shards: usize, offload: TunOffload) -> anyhow::Result<Self> {
        let path = TransomPath::with_shards(shards, offload, Profile::classic(), Duration::ZERO)?;
        let listener = path.kernel.listen(PORT)?;
        let connect = move || {
            let stream = path.connect(path.kernel.at(PORT))?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        };
        Ok(Path { connect: Box::new(connect), listener })
    }

    /// Both ends of a new connection.
    fn open(&self) -> anyhow::Result<(Box<dyn Stream>, TcpStream)> {
        let stream = (self.connect)()?;
        let (peer, _) = self.listener.accept()?;
        patient(&peer)?;
        peer.set_nodelay(true)?;
        Ok((stream, peer))
    }
}

/// Starts a thread that sends until `stop` is set, and one that counts what arrives until the stream ends.
fn flow<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut sender: impl Write + Send + 'scope,
    mut receiver: impl Read + Send + 'scope,
    peer_sends: bool,
    settings: Settings,
    stop: &'scope AtomicBool,
    total: &'scope AtomicU64,
) -> anyhow::Result<()> {
    let place = move |is_peer: bool| if is_peer { settings.place_peer() } else { Ok(()) };
    let thread = || std::thread::Builder::new().stack_size(STACK);
    thread().spawn_scoped(scope, move || -> anyhow::Result<()> {
        let _stop = StopOnDrop(stop);
        place(peer_sends)?;
        let bytes = vec![7; settings.chunk];
        while !stop.load(Ordering::Relaxed) {
            sender.write_all(&bytes).context("sending")?;
        }
        Ok(())
    })?;
    thread().spawn_scoped(scope, move || -> anyhow::Result<()> {
        let _stop = StopOnDrop(stop);
        place(!peer_sends)?;
        let mut into = vec![0; LEAST_READ];
        loop {
            match receiver.read(&mut into).context("receiving")? {
                0 => return Ok(()),
                read => total.fetch_add(read as u64, Ordering::Relaxed),
            };
        }
    })?;
    Ok(())
}

/// Sleeps for `span`; fails if a thread has given up meanwhile.
pub(super) fn watch(span: Duration, stop: &AtomicBool) -> anyhow::Result<()> {
    std::thread::sleep(span);
    ensure!(!stop.load(Ordering::Relaxed), "a connection has failed");
    Ok(())
}

/// Carries data on all connections, and calls `measure` when the buffers are full. It gets the count of bytes that have arrived, and the flag that a thread sets
/// when it gives up.
pub(super) fn busy<S: Read + Write + Send + 'static>(
    ends: Vec<(S, TcpStream)>,
    direction: Direction,
    settings: Settings,
    measure: impl FnOnce(&AtomicU64, &AtomicBool) -> anyhow::Result<f64>,
) -> anyhow::Result<f64> {
    let (stop, total) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for (stream, peer) in ends {
            match direction {
                Direction::Send => flow(scope, stream, peer, false, settings, &stop, &total)?,
                Direction::Receive => flow(scope, peer, stream, true, settings, &stop, &total)?,
            }
        }
        watch(FILLING, &stop)?;
        measure(&total, &stop)
    })
}

fn bulk(
    path: &Path,
    direction: Direction,
    count: usize,
    span: Duration,
    settings: Settings,
) -> anyhow::Result<f64> {
    // All of them before any data: a SYN that is lost beside bulk transfer comes again after a second.
    let ends = (0..count).map(|_| path.open()).collect::<anyhow::Result<Vec<_>>>()?;
    busy(ends, direction, settings, |total, stop| {
        let (begin, before) = (Instant::now(), total.load(Ordering::Relaxed));
        watch(span, stop)?;
        Ok(gigabits(total.load(Ordering::Relaxed) - before, begin.elapsed()))
    })
}

const KERNEL: &str = "kernel";
const COPIED: &str = "kernel, one copy more";
const TRANSOM: &str = "Transom";
const SHARDS: &str = "Transom, two shards";
const PLAIN: &str = "Transom, no offload";

fn paths() -> anyhow::Result<[(&'static str, Rc<Path>); 4]> {
    Ok([
        (KERNEL, Rc::new(Path::kernel(false)?)),
        (TRANSOM, Rc::new(Path::transom(1, TunOffload::Segmentation)?)),
        (SHARDS, Rc::new(Path::transom(2, TunOffload::Segmentation)?)),
        (PLAIN, Rc::new(Path::transom(1, TunOffload::None)?)),
    ])
}

fn build(direction: Direction, settings: Settings) -> anyhow::Result<Group> {
    let mut cases = Vec::new();
    let copied = [(COPIED, Rc::new(Path::kernel(true)?))];
    for (who, path) in paths()?.into_iter().chain(copied) {
        for count in COUNTS {
            let (path, rest) = (path.clone(), count.to_string());
            let sample = move |span| bulk(&path, direction, count, span, settings);
            let case = Case::new(named(format!("{who}, {rest}")), sample);
            cases.push(if who == KERNEL {
                case
            } else {
                case.against(named(format!("{KERNEL}, {rest}")))
            });
        }
    }
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}

/// Builds the group in which the kernel receives.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build_send(settings: Settings) -> anyhow::Result<Group> {
    build(Direction::Send, settings)
}

/// Builds the group in which the kernel sends.
///
/// # Errors
/// As there.
pub fn build_recv(settings: Settings) -> anyhow::Result<Group> {
    build(Direction::Receive, settings)
}

const PERCENTILES: [(&str, f64); 3] = [("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9)];

/// The percentiles of a sample that are still to be asked for, in the order of [`PERCENTILES`].
type Pending = [Option<f64>; 3];

/// Microseconds for each of [`PERCENTILES`].
fn beside_bulk(
    path: &Path,
    direction: Direction,
    span: Duration,
    settings: Settings,
) -> anyhow::Result<Pending> {
    let (stop, total) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        let (stream, peer) = path.open()?;
        match direction {
            Direction::Send => flow(scope, stream, peer, false, settings, &stop, &total)?,
            Direction::Receive => flow(scope, peer, stream, true, settings, &stop, &total)?,
        }
        let (mut stream, peer) = path.open()?;
        let server = scope.spawn(move || {
            settings.place_peer()?;
            echo(peer)
        });
        watch(span / 4, &stop)?;
        for number in 0..WARM_UP {
            stream_trip(&mut stream, number as u8)?;
        }
        // From a microsecond to the longest wait there is, with three digits.
        let mut times = Histogram::<u64>::new_with_bounds(1, PATIENCE.as_nanos() as u64 * 2, 3)?;
        let begin = Instant::now();
        for number in 0u32.. {
            let start = Instant::now();
            stream_trip(&mut stream, number as u8)?;
            times.record(start.elapsed().as_nanos() as u64)?;
            if begin.elapsed() >= span {
                break;
            }
        }
        ensure!(!stop.load(Ordering::Relaxed), "the bulk transfer has failed");
        drop(stream);
        server.join().unwrap_or_else(|_| bail!("the echo panicked"))?;
        Ok(PERCENTILES.map(|(_, percent)| Some(times.value_at_percentile(percent) as f64 / 1e3)))
    })
}

/// Builds the group of round trips beside bulk transfer.
///
/// # Errors
/// When one of the paths cannot be made.
pub fn build_loaded(settings: Settings) -> anyhow::Result<Group> {
    let mut cases = Vec::new();
    for (who, path) in paths()? {
        for (word, direction) in [("sends", Direction::Send), ("receives", Direction::Receive)] {
            // One sample serves all three; whichever is asked for again begins the next.
            let pending = Rc::new(RefCell::new([None; 3]));
            for (index, (percentile, _)) in PERCENTILES.into_iter().enumerate() {
                let (path, pending) = (path.clone(), pending.clone());
                let rest = format!("{word}, {percentile}");
                let case = Case::new(named(format!("{who}, {rest}")), move |span| {
                    let pending = &mut *pending.borrow_mut();
                    let take =
                        |pending: &mut Pending| pending.get_mut(index).and_then(Option::take);
                    if let Some(value) = take(pending) {
                        return Ok(value);
                    }
                    *pending = beside_bulk(&path, direction, span, settings)?;
                    take(pending).context("no such percentile")
                });
                cases.push(if who == KERNEL {
                    case
                } else {
                    case.against(named(format!("{KERNEL}, {rest}")))
                });
            }
        }
    }
    Ok(Group::new(Unit::Microseconds, cases))
}
