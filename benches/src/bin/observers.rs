//! What it costs to watch connections in real time, from inside and from outside, and how many wake-ups are missed: figures 4 and 5 of icTCP.
//!
//! Two hosts of this program over a path of 1 ms each way exchange at most 400 Mbit/s over 1 to 1000 connections, written two segments at a time in
//! turn, so that there is an acknowledgement for each two, unless several arrive together. The path delivers what is due every 0.2 ms. The
//! connections are watched by nobody; by an extension in each, as sockets have them, guarded; by a thread of the program for each ([`Observer`]); or
//! by another process over a Unix socket, in the binary form, with a connection to the socket for each. An observer is woken for every
//! acknowledgement or every round trip, reads the window, and asks for twice its size as the upper limit, so that nothing is held back.
//!
//! It measures the bytes that arrive in a second, and the CPU time of all threads of both processes for each byte, beside those without observers in
//! the same turn; and the wake-ups that came together with a later one, of all there were. A socket takes 256 peers at a time, so for 1000
//! connections nobody watches from another process.
//!
//! `cargo run --profile dist -p transom-benches --bin observers`; it takes about nine minutes. With `--keep FILE` the values are put into the file, for
//! the pages of papers ([`stored_results`]).

use anyhow::{Context, bail, ensure};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use transom_benches::environment::Environment;
use transom_benches::harness::median;
use transom_benches::placement::Placement;
use transom_benches::stored_results::{self, KeptCase, KeptGroup};
use transom_device::memory::{MemoryConfig, MemoryDevice, pair};
use transom_device::{Device, RxPacket, TxPacket};
use transom_net::{Observer, Stack, TcpStream, Totals};
use transom_remote::ExtensionSocket;
use transom_remote::protocol::VIEW;
use transom_remote::protocol::binary::{Kind, frame};
use transom_tcp::extension::{Extension, Limits, Occasion, Value, View, Wake};

/// Bytes written at a time: two full segments with timestamps.
const PAIR: usize = 2 * 1448;
/// Pairs in each tick of a millisecond: 400 Mbit/s.
const PAIRS: usize = 17;
const TICK: Duration = Duration::from_millis(1);
const DELAY: Duration = Duration::from_millis(1);
const WARM_UP: Duration = Duration::from_millis(1500);
const SAMPLE: Duration = Duration::from_secs(4);
const TURNS: usize = 3;
/// The case without an observer.
const NOBODY: &str = "nobody";
/// A thread that watches needs little.
const STACK: usize = 128 * 1024;

fn process_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Nobody,
    Extension(Wake),
    Thread(Wake),
    Process(Wake),
}

/// What a sample found.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    nanoseconds_per_kilobyte: f64,
    megabits_per_second: f64,
    happened: u64,
    missed: u64,
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => measure().map(drop),
        [flag, file] if flag == "--keep" => {
            stored_results::keep_groups(&measure()?, Path::new(file))
        }
        [flag, path, count, wake] if flag == "--peer" => {
            watch_all(Path::new(path), count.parse()?, wake)
        }
        _ => bail!("usage: observers [--keep FILE]"),
    }
}

/// Measures, prints a table, and gives the groups that can be kept.
fn measure() -> anyhow::Result<Vec<KeptGroup>> {
    let environment = Environment::detect();
    let group = |name: &str, unit: &str| KeptGroup {
        group: format!("observers, {name}"),
        cpu: Placement::Free.describe(environment.cpus),
        unit: unit.into(),
        machine: format!("{environment}; {TURNS} samples of {} s", SAMPLE.as_secs()),
        cases: Vec::new(),
    };
    let mut throughput = group("throughput", "Mbit/s");
    let mut time = group("processor time", "ns per kilobyte");
    let mut missed_ones = group("missed wake-ups", "%");
    println!(
        "| connections | watched by | Mbit/s | beside nobody | CPU ns per kilobyte | beside nobody | wake-ups | missed |"
    );
    println!("|--:|---|--:|--:|--:|--:|--:|--:|");
    for count in [1, 16, 96, 1000] {
        let found = turns(count)?;
        let cost: fn(&Found) -> f64 = |found| found.nanoseconds_per_kilobyte;
        let speed: fn(&Found) -> f64 = |found| found.megabits_per_second;
        let Some((_, _, nobody)) = found.first() else { continue };
        let plural = if count == 1 { "connection" } else { "connections" };
        for (name, who, turns) in &found {
            let name = *name;
            let beside = |of: fn(&Found) -> f64| {
                median(turns.iter().zip(nobody).map(|(one, nobody)| of(one) / of(nobody)))
                    .unwrap_or_default()
            };
            let (slower, dearer) = (beside(speed), beside(cost));
            let (happened, missed) =
                turns.iter().fold((0, 0), |sum, one| (sum.0 + one.happened, sum.1 + one.missed));
            let share = percent(missed, happened);
            let told = match who {
                Who::Nobody => "| ".to_owned(),
                _ => format!("{happened} | {share:.2} %"),
            };
            let of = |name| format!("{count} {plural}, {name}");
            let kept = |value: fn(&Found) -> f64, ratio| KeptCase {
                name: of(name),
                median: median(turns.iter().map(value)).unwrap_or_default(),
                min: turns.iter().map(value).reduce(f64::min),
                max: turns.iter().map(value).reduce(f64::max),
                ratios: match who {
                    Who::Nobody => Vec::new(),
                    _ => vec![(of(NOBODY), ratio)],
                },
            };
            let (fast, dear) = (kept(speed, slower), kept(cost, dearer));
            println!(
                "| {count} | {name} | {:.1} | {slower:.3} | {:.0} | {dearer:.3} | {told} |",
                fast.median, dear.median
            );
            throughput.cases.push(fast);
            time.cases.push(dear);
            if *who != Who::Nobody {
                // Of all wake-ups of all turns, as the table has it.
                let one = kept(|found| percent(found.missed, found.happened), 0.0);
                missed_ones.cases.push(KeptCase { median: share, ratios: Vec::new(), ..one });
            }
        }
    }
    Ok(vec![throughput, time, missed_ones])
}

/// Those who can watch so many connections, and what was found in each turn.
fn turns(count: usize) -> anyhow::Result<Vec<(&'static str, Who, Vec<Found>)>> {
    let mut cases = vec![
        (NOBODY, Who::Nobody, Vec::new()),
        ("an extension, per ack", Who::Extension(Wake::ACK), Vec::new()),
        ("an extension, per round", Who::Extension(Wake::ROUND), Vec::new()),
        ("a thread each, per ack", Who::Thread(Wake::ACK), Vec::new()),
        ("a thread each, per round", Who::Thread(Wake::ROUND), Vec::new()),
    ];
    if count <= 256 {
        cases.push(("another process, per ack", Who::Process(Wake::ACK), Vec::new()));
        cases.push(("another process, per round", Who::Process(Wake::ROUND), Vec::new()));
    }
    for turn in 0..TURNS {
        // There and back, so that none is always the first.
        let mut order: Vec<usize> = (0..cases.len()).collect();
        if turn % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let (name, who, found) = &mut cases[index];
            let one =
                sample(count, *who).with_context(|| format!("{count} connections, {name}"))?;
            found.push(one);
        }
    }
    Ok(cases)
}

/// A share in per cent; nothing of nothing.
fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

/// Moves packets between two ends of cables, each a while after it was sent.
fn relay(mut ends: [MemoryDevice; 2], over: &AtomicBool) {
    let mut ways: [VecDeque<(Instant, RxPacket)>; 2] = Default::default();
    while !over.load(Ordering::Relaxed) {
        let now = Instant::now();
        for from in 0..2 {
            while let Ok(packet) = ends[from].recv() {
                ways[from].push_back((now + DELAY, packet));
            }
            while ways[from].front().is_some_and(|(due, _)| *due <= now) {
                let Some((_, packet)) = ways[from].pop_front() else { break };
                // Packets that do not fit any more are lost, as in any queue.
                let _ = ends[1 - from].send(&TxPacket::whole(packet.bytes()));
                ends[from].recycle(packet.buffer);
            }
        }
        thread::sleep(Duration::from_micros(200));
    }
}

fn sample(count: usize, who: Who) -> anyhow::Result<Found> {
    let config = MemoryConfig::default().with_queue_packets(4096);
    let ((near, near_end), (far, far_end)) = (pair(&config)?, pair(&config)?);
    let over = Arc::new(AtomicBool::new(false));
    let relay = {
        let over = Arc::clone(&over);
        thread::spawn(move || relay([near_end, far_end], &over))
    };
    let host =
        |number: u8, device| Stack::builder().address([10, 0, 0, number].into(), 24).start(device);
    let (a, b) = (host(1, near)?, host(2, far)?);
    let listener = b.listen("10.0.0.2:0")?;
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        let stream = a.connect(listener.local_addr()?)?;
        let peer = listener.accept()?.0;
        peer.set_nonblocking(true)?;
        stream.set_nonblocking(true)?;
        streams.push((stream, peer));
    }
    let result = watched(&mut streams, who);
    // They are not to say goodbye to each other for long.
    for (stream, peer) in &streams {
        stream.set_linger(Some(Duration::ZERO))?;
        peer.set_linger(Some(Duration::ZERO))?;
    }
    drop(streams);
    over.store(true, Ordering::Relaxed);
    let _ = relay.join();
    result
}

/// Sends for a while with somebody who watches, and measures.
fn watched(streams: &mut [(TcpStream, TcpStream)], who: Who) -> anyhow::Result<Found> {
    let mut watchers = Vec::new();
    let mut process = None;
    let woken = Arc::new(AtomicU64::new(0));
    match who {
        Who::Nobody => {}
        Who::Extension(wake) => {
            for (stream, _) in streams.iter() {
                stream.attach(Box::new(Inside { wake, woken: Arc::clone(&woken) }))?;
            }
        }
        Who::Thread(wake) => {
            for (stream, _) in streams.iter() {
                let observer = Arc::new(stream.observer(wake)?);
                watchers.push(Arc::clone(&observer));
                let watch = move || watch(&observer, wake);
                thread::Builder::new().stack_size(STACK).spawn(watch)?;
            }
        }
        Who::Process(wake) => process = Some(Process::start(streams, wake)?),
    }
    transfer(streams, WARM_UP)?;
    let totals = |watchers: &[Arc<Observer>]| -> Vec<Totals> {
        watchers.iter().map(|observer| observer.totals()).collect()
    };
    let (before, theirs, started) = (totals(&watchers), ask(&mut process)?, process_time());
    let before_woken = woken.load(Ordering::Relaxed);
    let bytes = transfer(streams, SAMPLE)?;
    let mut time = process_time() - started;
    let (after, theirs_after) = (totals(&watchers), ask(&mut process)?);
    time += theirs_after.time.saturating_sub(theirs.time);
    ensure!(bytes > 0, "nothing arrived");
    let mut found = Found {
        nanoseconds_per_kilobyte: time.as_nanos() as f64 / (bytes as f64 / 1000.0),
        megabits_per_second: bytes as f64 * 8.0 / SAMPLE.as_micros() as f64,
        happened: theirs_after.happened - theirs.happened + woken.load(Ordering::Relaxed)
            - before_woken,
        missed: theirs_after.missed - theirs.missed,
    };
    if let Who::Thread(wake) = who {
        for (before, after) in before.iter().zip(&after) {
            found.happened += after.happened.of(wake) - before.happened.of(wake);
            found.missed += after.missed.of(wake) - before.missed.of(wake);
        }
    }
    watchers.iter().for_each(|observer| observer.detach());
    Ok(found)
}

/// Writes and reads for so long; the bytes that arrived.
fn transfer(streams: &mut [(TcpStream, TcpStream)], span: Duration) -> anyhow::Result<u64> {
    let (data, mut into) = (vec![1; PAIR], vec![0; 65_536]);
    let (mut next, mut arrived, began) = (0, 0u64, Instant::now());
    let mut due = began;
    for tick in 0u32.. {
        if began.elapsed() >= span {
            break;
        }
        for _ in 0..PAIRS {
            next = (next + 1) % streams.len();
            match streams[next].0.write(&data) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        // A look at a thousand connections for every few bytes would be most of what is measured.
        if tick % 4 == 0 {
            for (_, peer) in streams.iter_mut() {
                while let Ok(read @ 1..) = peer.read(&mut into) {
                    arrived += read as u64;
                }
            }
        }
        due += TICK;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(arrived)
}

/// An extension that does what the others do.
#[derive(Debug)]
struct Inside {
    wake: Wake,
    woken: Arc<AtomicU64>,
}

impl Extension for Inside {
    fn name(&self) -> &str {
        "inside"
    }

    fn wake_on(&self) -> Wake {
        self.wake
    }

    fn on_wake(&mut self, _occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        self.woken.fetch_add(1, Ordering::Relaxed);
        limits.at_most(Value::Cwnd(view.cwnd() * 2));
    }
}

/// A thread that watches a connection.
fn watch(observer: &Observer, wake: Wake) {
    while let Ok(Some(notice)) = observer.wait(wake, None) {
        let window = notice.snapshot.info.cwnd;
        if observer.limits(|limits| limits.at_most(Value::Cwnd(window * 2))).is_err() {
            break;
        }
    }
}

/// What those who watch have to tell of themselves.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    happened: u64,
    missed: u64,
    time: Duration,
}

/// The other process.
struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _socket: ExtensionSocket,
    _directory: tempfile::TempDir,
}

impl Process {
    fn start(streams: &[(TcpStream, TcpStream)], wake: Wake) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("socket");
        let socket = ExtensionSocket::listen(&path)?;
        for (stream, _) in streams {
            socket.offer(stream)?.keep();
        }
        let wake = if wake == Wake::ROUND { "round" } else { "ack" };
        let mut child = Command::new(std::env::current_exe()?)
            .arg("--peer")
            .arg(&path)
            .args([&streams.len().to_string(), wake])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().context("a pipe")?;
        let mut output = BufReader::new(child.stdout.take().context("a pipe")?);
        let mut ready = String::new();
        output.read_line(&mut ready)?;
        ensure!(ready == "ready\n", "the other process is not there");
        Ok(Process { child, input, output, _socket: socket, _directory: directory })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ask(process: &mut Option<Process>) -> anyhow::Result<Told> {
    let Some(process) = process else { return Ok(Told::default()) };
    writeln!(process.input)?;
    let mut line = String::new();
    process.output.read_line(&mut line)?;
    let numbers: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let &[happened, missed, nanos] = numbers.as_slice() else { bail!("what is {line:?}?") };
    Ok(Told { happened, missed, time: Duration::from_nanos(nanos) })
}

static TOLD: AtomicU64 = AtomicU64::new(0);
static MISSED: AtomicU64 = AtomicU64::new(0);

/// The other process: watches every connection at the socket, and says on each line of its input what it has seen.
fn watch_all(path: &Path, count: u32, wake: &str) -> anyhow::Result<()> {
    let mut output = std::io::stdout();
    for number in 0..count {
        let mut stream = UnixStream::connect(path)?;
        let mut input = BufReader::new(stream.try_clone()?);
        let mut line = String::new();
        input.read_line(&mut line)?;
        writeln!(
            stream,
            r#"{{"attach":{{"connection":{number},"name":"watch","wake":["{wake}"],"form":"binary"}}}}"#
        )?;
        line.clear();
        input.read_line(&mut line)?;
        ensure!(line.contains("attached"), "{line}");
        thread::Builder::new().stack_size(STACK).spawn(move || watch_one(stream, input))?;
    }
    writeln!(output, "ready")?;
    for _ in std::io::stdin().lines() {
        let (told, missed) = (TOLD.load(Ordering::Relaxed), MISSED.load(Ordering::Relaxed));
        writeln!(output, "{} {missed} {}", told + missed, process_time().as_nanos())?;
    }
    Ok(())
}

/// Frames of an attached peer, until there are no more.
fn watch_one(mut stream: UnixStream, mut input: impl Read) -> Option<()> {
    let cwnd = VIEW.iter().position(|(name, _)| *name == "cwnd")?;
    let mut bytes = Vec::new();
    loop {
        let mut length = [0; 4];
        input.read_exact(&mut length).ok()?;
        bytes.resize(u32::from_le_bytes(length) as usize, 0);
        input.read_exact(&mut bytes).ok()?;
        let (kind, body) = bytes.split_first_chunk::<4>()?;
        if Kind::try_from(u32::from_le_bytes(*kind)) != Ok(Kind::Event) {
            return None;
        }
        let (numbers, _) = body.as_chunks::<8>();
        // The time, what has happened, how much was missed, and the view.
        let missed = u64::from_le_bytes(*numbers.get(2)?);
        TOLD.fetch_add(1, Ordering::Relaxed);
        MISSED.fetch_add(missed, Ordering::Relaxed);
        let window = u64::from_le_bytes(*numbers.get(3 + cwnd)?);
        stream.write_all(&frame(Kind::Limits, &[0, 0, window * 2])).ok()?;
    }
}
