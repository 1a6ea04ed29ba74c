//! The client of an iperf3 server, so that there need not be a `transom bench` at the other end.
//!
//! A control connection carries states of one byte, and JSON with a length of four bytes before it. The client identifies
//! itself by a cookie on each of its connections. The server asks for parameters and for the data connections, and announces
//! the start of the test. The client announces the end; then both exchange their counts. (iperf3's documentation does not
//! describe this protocol; iperf 3.0 to 3.17 use it on the wire.)

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::Args;
use super::protocol::{Purpose, Receipt};
use super::report::{Report, Sender};
use crate::hash::read_some;
use crate::socket::{Socket, connect};

/// Read or written at a time: iperf3's own default.
const PIECE: usize = 128 * 1024;
/// A cookie: 36 characters and a zero byte.
const COOKIE_LEN: usize = 37;
/// The longest JSON that is read.
const MAX_JSON: u32 = 1 << 20;
/// A server that is silent on the control connection for so long is given up.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(20);

/// The states that concern a client of TCP tests.
mod state {
    pub(super) const TEST_START: i8 = 1;
    pub(super) const TEST_RUNNING: i8 = 2;
    pub(super) const TEST_END: i8 = 4;
    pub(super) const PARAM_EXCHANGE: i8 = 9;
    pub(super) const CREATE_STREAMS: i8 = 10;
    pub(super) const SERVER_TERMINATE: i8 = 11;
    pub(super) const EXCHANGE_RESULTS: i8 = 13;
    pub(super) const DISPLAY_RESULTS: i8 = 14;
    pub(super) const IPERF_DONE: i8 = 16;
    pub(super) const ACCESS_DENIED: i8 = -1;
    pub(super) const SERVER_ERROR: i8 = -2;
}

/// A data connection and the thread that uses it.
struct Stream {
    socket: Arc<Socket>,
    done: Arc<AtomicU64>,
    thread: JoinHandle<io::Result<()>>,
}

/// Measures with an iperf3 server.
pub(super) fn run(args: &Args, host: &str, addresses: &[SocketAddr]) -> anyhow::Result<ExitCode> {
    let network = args.network.open()?;
    network.cleanup.on_interrupt()?;
    let (socket, _program) =
        connect(&network, addresses).with_context(|| format!("cannot connect to {host}"))?;
    let mut control = Control { socket };
    control.socket.set_read_timeout(Some(CONTROL_TIMEOUT))?;
    let cookie = cookie()?;
    control.send(&cookie)?;
    control.expect(state::PARAM_EXCHANGE)?;
    let mut parameters = json!({
        "tcp": true,
        "omit": 0,
        "time": args.bytes.map_or_else(|| args.time.as_secs().max(1), |_| 0),
        "num": args.bytes.unwrap_or(0),
        "blockcount": 0,
        "parallel": args.parallel,
        "len": PIECE,
        "pacing_timer": 1000,
        "client_version": "3.12",
    });
    if args.reverse {
        // Its presence is what counts for the server, whatever its value.
        parameters["reverse"] = true.into();
    }
    control.send_json(&parameters)?;
    control.expect(state::CREATE_STREAMS)?;
    let mut sockets = Vec::new();
    for _ in 0..args.parallel {
        let socket = network.host.connect(addresses).context("cannot connect once more")?;
        (&socket).write_all(&cookie)?;
        sockets.push(network.cleanup.watch_socket(socket));
    }
    control.expect(state::TEST_START)?;
    control.expect(state::TEST_RUNNING)?;

    let purpose = if args.reverse { Purpose::Download } else { Purpose::Upload };
    let mut report = Report::new(purpose, host, network.host.side(), args.parallel);
    let stop = Arc::new(AtomicBool::new(false));
    let started = Instant::now();
    let streams = sockets.into_iter().map(|socket| start(socket, args.reverse, &stop));
    let streams = streams.collect::<anyhow::Result<Vec<Stream>>>()?;
    watch(args, &streams, &mut report, started)?;
    stop.store(true, Ordering::Relaxed);
    let span = started.elapsed();
    let sender = state_of(&streams);
    control.send_state(state::TEST_END)?;
    control.expect(state::EXCHANGE_RESULTS)?;

    let counts: Vec<u64> = streams.iter().map(|s| s.done.load(Ordering::Relaxed)).collect();
    control.send_json(&results(&counts, span))?;
    let theirs = control.read_json()?;
    control.expect(state::DISPLAY_RESULTS)?;
    control.send_state(state::IPERF_DONE)?;
    let received = (!args.reverse).then(|| receipt(&theirs)).transpose()?;
    let mut total = 0;
    for Stream { socket, done, thread } in streams {
        // Data that is still on its way does not matter; a thread that waits for it is woken.
        socket.abort();
        let outcome = thread.join().map_err(|_| anyhow!("a data connection's thread failed"))?;
        outcome.context("on a data connection")?;
        // Only now is what was being written when the test ended counted, too.
        total += done.load(Ordering::Relaxed);
    }
    if let Some(Receipt { bytes, .. }) = received {
        // A last write may have been cut off half-way, and then it counts for nothing here.
        let most = total + u64::from(args.parallel) * PIECE as u64;
        ensure!(bytes <= most, "the server has received {bytes} of {total} bytes sent");
    }
    let no_latency = Histogram::new(1).context("no histogram")?;
    // Bytes that the server has not received when the test ends do not count.
    let counted = received.map_or_else(|| counts.iter().sum(), |received| received.bytes);
    report.add(counted, received, &no_latency);
    report.finish(span, sender);
    let status = network.finish();
    report.print(args.json)?;
    Ok(status)
}

/// Reports the intervals until the time has passed or the bytes have been sent.
fn watch(
    args: &Args,
    streams: &[Stream],
    report: &mut Report,
    started: Instant,
) -> anyhow::Result<()> {
    let mut next = args.interval;
    loop {
        let elapsed = started.elapsed();
        let done: u64 = streams.iter().map(|s| s.done.load(Ordering::Relaxed)).sum();
        let over = match args.bytes {
            Some(bytes) => done >= bytes,
            None => elapsed >= args.time,
        };
        if over {
            return Ok(());
        }
        ensure!(
            !streams.iter().all(|stream| stream.thread.is_finished()),
            "the server has ended the data connections"
        );
        if elapsed >= next {
            report.sample(elapsed, done, state_of(streams), args.json)?;
            next += args.interval;
        }
        // Short enough for a test that is over after so many bytes.
        thread::sleep(Duration::from_millis(2));
    }
}

fn state_of(streams: &[Stream]) -> Option<Sender> {
    Sender::of(streams.iter().map(|stream| &stream.socket))
}

fn start(socket: Arc<Socket>, reverse: bool, stop: &Arc<AtomicBool>) -> anyhow::Result<Stream> {
    let handle = Arc::clone(&socket);
    let (done, stop) = (Arc::new(AtomicU64::new(0)), Arc::clone(stop));
    let count = Arc::clone(&done);
    let work = move || {
        let outcome = transfer(&handle, reverse, &stop, &count);
        // After the end, connections end anyhow.
        if stop.load(Ordering::Relaxed) { Ok(()) } else { outcome }
    };
    let thread = crate::thread::spawn("transfer", work)?;
    Ok(Stream { socket, done, thread })
}

fn transfer(
    mut socket: &Socket,
    reverse: bool,
    stop: &AtomicBool,
    done: &AtomicU64,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    while !stop.load(Ordering::Relaxed) {
        let length =
            if reverse { read_some(&mut socket, &mut piece)? } else { socket.write(&piece)? };
        if length == 0 {
            break;
        }
        done.fetch_add(length as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// The client's results, as it reports them at the end.
fn results(counts: &[u64], span: Duration) -> Value {
    // The first stream is number 1 and the second number 3, by an oddity that the server relies on.
    let ids = std::iter::once(1).chain(3u32..);
    let streams: Vec<Value> = counts
        .iter()
        .zip(ids)
        .map(|(bytes, id)| {
            json!({
                "id": id, "bytes": bytes, "retransmits": -1, "jitter": 0, "errors": 0, "packets": 0,
                "start_time": 0, "end_time": span.as_secs_f64(),
            })
        })
        .collect();
    json!({
        "cpu_util_total": 0, "cpu_util_user": 0, "cpu_util_system": 0,
        "sender_has_retransmits": -1, "streams": streams,
    })
}

/// The bytes that the server has received, from its results.
fn receipt(results: &Value) -> anyhow::Result<Receipt> {
    let streams = results["streams"].as_array().context("the server's results have no streams")?;
    let mut sum = Receipt { bytes: 0, time: Duration::ZERO };
    for stream in streams {
        let bytes = stream["bytes"].as_u64().context("a stream's result has no bytes")?;
        sum.bytes = sum.bytes.saturating_add(bytes);
        let seconds = stream["end_time"].as_f64().unwrap_or(0.0);
        let seconds = seconds - stream["start_time"].as_f64().unwrap_or(0.0);
        let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        sum.time = sum.time.max(time);
    }
    Ok(sum)
}

fn cookie() -> anyhow::Result<[u8; COOKIE_LEN]> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut cookie = [0; COOKIE_LEN];
    let random = &mut cookie[..COOKIE_LEN - 1];
    // The kernel gives so few bytes whole or not at all.
    rustix::rand::getrandom(&mut *random, rustix::rand::GetRandomFlags::empty())
        .context("no random numbers")?;
    for byte in random {
        *byte = LETTERS[usize::from(*byte) % LETTERS.len()];
    }
    Ok(cookie)
}

/// The control connection.
struct Control {
    socket: Arc<Socket>,
}

impl Control {
    fn send(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        (&*self.socket).write_all(bytes).context("the control connection is gone")
    }

    fn send_state(&mut self, state: i8) -> anyhow::Result<()> {
        self.send(&state.to_be_bytes())
    }

    fn expect(&mut self, wanted: i8) -> anyhow::Result<()> {
        let mut byte = [0];
        (&*self.socket).read_exact(&mut byte).context("the server does not answer")?;
        match i8::from_be_bytes(byte) {
            state if state == wanted => Ok(()),
            state::ACCESS_DENIED => bail!("the server is busy with another client"),
            state::SERVER_TERMINATE => bail!("the server has been terminated"),
            state::SERVER_ERROR => bail!("the server reports an error"),
            state => bail!("the server is in state {state}, not {wanted}: is it an iperf3 server?"),
        }
    }

    fn send_json(&mut self, value: &Value) -> anyhow::Result<()> {
        let text = value.to_string();
        let length = u32::try_from(text.len())?;
        self.send(&length.to_be_bytes())?;
        self.send(text.as_bytes())
    }

    fn read_json(&mut self) -> anyhow::Result<Value> {
        let mut length = [0; 4];
        (&*self.socket).read_exact(&mut length).context("the server sends no results")?;
        let length = u32::from_be_bytes(length);
        ensure!(length <= MAX_JSON, "the server's results are too long: {length} bytes");
        let mut text = vec![0; length as usize];
        (&*self.socket).read_exact(&mut text).context("the server's results are incomplete")?;
        serde_json::from_slice(&text).context("the server's results are not JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_numbered_as_the_server_does() {
        let value = results(&[5, 6, 7], Duration::from_secs(1));
        let ids: Vec<_> = (0..3).map(|n| value["streams"][n]["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, [1, 3, 4]);
    }

    #[test]
    fn results_are_added_up() {
        let value = json!({ "streams": [
            { "id": 1, "bytes": 10, "start_time": 0.5, "end_time": 2.5 },
            { "id": 3, "bytes": 20, "start_time": 0, "end_time": 1 },
        ] });
        let sum = receipt(&value).unwrap();
        assert_eq!(sum, Receipt { bytes: 30, time: Duration::from_secs(2) });
        assert!(receipt(&json!({})).is_err());
        assert!(receipt(&json!({ "streams": [{ "bytes": -1 }] })).is_err());
    }

    #[test]
    fn cookies_are_strings_of_letters() {
        let cookie = cookie().unwrap();
        assert_eq!(cookie[36], 0);
        assert!(cookie[..36].iter().all(u8::is_ascii_alphanumeric));
    }
}
