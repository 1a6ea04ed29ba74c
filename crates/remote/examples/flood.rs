//! The share of a host's throughput that peers take when they flood it with commands.
//!
//! One connection sends as fast as it can to another host in this process. Another process has so many peers attached to the connection, each of
//! which sends `look`, or limits, in the binary form as fast as they are taken, and reads the answers. It measures the bytes that arrive in a second,
//! and the CPU time of the host's process for each kilobyte. Each turn also measures both without peers. Where others use the machine as well, CPU
//! time says more.
//!
//! `cargo run --profile dist -p transom-remote --example flood`; it takes about a minute.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use transom_device::memory::{MemoryConfig, pair};
use transom_net::{Stack, TcpStream};
use transom_remote::ExtensionSocket;
use transom_remote::protocol::binary::{Kind, frame};

const WARM_UP: Duration = Duration::from_millis(500);
const SAMPLE: Duration = Duration::from_secs(2);
const TURNS: usize = 5;
/// A connection takes sixteen layers.
const PEERS: [usize; 4] = [0, 1, 4, 16];

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, path, what] = arguments.as_slice()
        && flag == "--peer"
    {
        return flood(path, what);
    }
    println!("| flood | peers | MB/s | beside none | CPU ns per kB | beside none |");
    println!("|---|--:|--:|--:|--:|--:|");
    for what in ["look", "limits"] {
        let mut found = PEERS.map(|_| Vec::new());
        for _ in 0..TURNS {
            for (found, peers) in found.iter_mut().zip(PEERS) {
                found.push(sample(peers, what)?);
            }
        }
        let none = found[0].clone();
        for (found, peers) in found.iter().zip(PEERS) {
            let told = |of: fn(&Sample) -> f64| {
                let beside = found.iter().zip(&none).map(|(one, none)| of(one) / of(none));
                (median(found.iter().map(of)), median(beside))
            };
            let (speed, slower) = told(|one| one.speed);
            let (cost, dearer) = told(|one| one.cost);
            println!(
                "| {what} | {peers} | {:.0} | {slower:.2} | {cost:.0} | {dearer:.2} |",
                speed / 1e6
            );
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Bytes per second.
    speed: f64,
    /// Nanoseconds of CPU time per kilobyte.
    cost: f64,
}

fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

fn sample(peers: usize, what: &str) -> Result<Sample> {
    let (a, b) = pair(&MemoryConfig::with_offload())?;
    let host =
        |number: u8, device| Stack::builder().address([10, 0, 0, number].into(), 24).start(device);
    let (a, b) = (host(1, a)?, host(2, b)?);
    let listener = b.listen("10.0.0.2:80")?;
    let sender = a.connect(listener.local_addr()?)?;
    let (receiver, _) = listener.accept()?;
    let path = std::env::temp_dir().join(format!("transom-flood-{}", std::process::id()));
    let socket = ExtensionSocket::listen(&path)?;
    socket.offer(&sender)?.keep();
    let mut children: Vec<Child> = Vec::new();
    for _ in 0..peers {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--peer").arg(&path).arg(what).stdout(Stdio::piped());
        children.push(command.spawn()?);
    }
    let arrived = AtomicU64::new(0);
    let found = thread::scope(|scope| -> Result<Sample> {
        scope.spawn(|| read(&receiver, &arrived));
        let sending = scope.spawn(|| {
            let piece = vec![1; 256 * 1024];
            // Until it is shut.
            while (&sender).write_all(&piece).is_ok() {}
        });
        let mut lines: Vec<_> = children
            .iter_mut()
            .filter_map(|child| child.stdout.take())
            .map(BufReader::new)
            .collect();
        for line in &mut lines {
            line.read_line(&mut String::new())?;
        }
        thread::sleep(WARM_UP);
        let (before, cpu, began) = (arrived.load(Ordering::Relaxed), cpu_time(), Instant::now());
        thread::sleep(SAMPLE);
        let bytes = arrived.load(Ordering::Relaxed) - before;
        let speed = bytes as f64 / began.elapsed().as_secs_f64();
        let cost = (cpu_time() - cpu).as_nanos() as f64 / (bytes as f64 / 1e3);
        receiver.set_linger(Some(Duration::ZERO))?;
        sender.set_linger(Some(Duration::ZERO))?;
        sender.with_connection(|connection, now| connection.abort(now))?;
        let _ = sending.join();
        Ok(Sample { speed, cost })
    })?;
    drop(socket);
    for mut child in children {
        // It ends with its socket.
        child.wait()?;
    }
    Ok(found)
}

fn read(mut receiver: &TcpStream, arrived: &AtomicU64) {
    let mut into = vec![0; 256 * 1024];
    while let Ok(length @ 1..) = receiver.read(&mut into) {
        arrived.fetch_add(length as u64, Ordering::Relaxed);
    }
}

/// A peer that sends as fast as it can, until the end.
fn flood(path: &str, what: &str) -> Result<()> {
    let stream = UnixStream::connect(path)?;
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    (&stream).write_all(b"{\"attach\":{\"name\":\"flood\",\"form\":\"binary\"}}\n")?;
    lines.read_line(&mut line)?;
    println!("attached");
    let one = match what {
        "look" => frame(Kind::StateRequest, &[]),
        // A window that limits nothing.
        _ => frame(Kind::Limits, &[0, 0, 1 << 40]),
    };
    let many = one.repeat(64);
    let reading = thread::spawn(move || {
        let mut into = vec![0; 65_536];
        while let Ok(1..) = lines.read(&mut into) {}
    });
    while (&stream).write_all(&many).is_ok() {}
    let _ = stream.shutdown(Shutdown::Both);
    let _ = reading.join();
    Ok(())
}
