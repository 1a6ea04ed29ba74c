//! The two transfers, with a live progress line and the samples for the report.

use super::network::{Network, state_of};
use super::observe::Timeline;
use crate::hash;
use crate::socket::Socket;
use crate::thread::lock;
use anyhow::{Context, Result, anyhow};
use std::fs::File;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;
use transom_report::{ByteTraces, Outcome, Trace};

/// How often the sender is sampled.
const SAMPLE_EVERY: Duration = Duration::from_millis(5);

/// Copies `from` to `to`, counting.
fn copy(from: impl Read, mut to: impl Write, count: &AtomicU64) -> std::io::Result<()> {
    hash::for_each_piece(from, |piece| {
        to.write_all(piece)?;
        count.fetch_add(piece.len() as u64, Ordering::Relaxed);
        std::io::Result::Ok(())
    })?;
    to.flush()
}

/// A transfer under way.
struct Transfer<'a> {
    title: String,
    congestion: String,
    timeline: &'a Timeline,
    quiet: bool,
    copy_path: &'a Path,
    /// The copy of the received data.
    copy: File,
    /// How long the source is, in bytes.
    len: u64,
    started: f64,
    arrived: AtomicU64,
    done: AtomicBool,
}

impl<'a> Transfer<'a> {
    fn start(
        (title, congestion): (String, &str),
        timeline: &'a Timeline,
        source: &Path,
        copy_path: &'a Path,
        quiet: bool,
    ) -> Result<Self> {
        let len = std::fs::metadata(source)?.len();
        let copy = transom_device::own_file::output(copy_path)
            .with_context(|| format!("cannot write {}", copy_path.display()))?;
        let started = timeline.seconds();
        let (arrived, done) = (AtomicU64::new(0), AtomicBool::new(false));
        let congestion = congestion.to_owned();
        Ok(Transfer {
            title,
            congestion,
            timeline,
            quiet,
            copy_path,
            copy,
            len,
            started,
            arrived,
            done,
        })
    }

    /// Keeps everything that comes.
    fn receive(&self, from: impl Read) -> std::io::Result<()> {
        copy(from, &self.copy, &self.arrived)
    }

    /// Stops `watcher` at the end of the transfer. Returns its trace and the time of the end.
    fn end(&self, watcher: ScopedJoinHandle<'_, Trace>) -> Result<(Trace, f64)> {
        let ended = self.timeline.seconds();
        self.done.store(true, Ordering::Release);
        let trace = watcher.join().map_err(|_| anyhow!("the sampler failed"))?;
        Ok((trace, ended))
    }

    /// Samples the sender and shows progress until the transfer ends.
    fn watch(&self, sender: &Socket) -> Trace {
        let &Transfer { timeline, ref title, len, ref arrived, ref done, quiet, .. } = self;
        let template = "{prefix} {bar:24} {percent:>3} % {binary_bytes:>10}/{binary_total_bytes} {msg} ETA {eta}";
        let bar = crate::progress::bar(Some(len), quiet, template);
        bar.set_prefix(format!("{title:<24}"));
        let mut trace = Trace::default();
        let (mut shown_at, mut shown_bytes) = (timeline.seconds(), 0u64);
        while !done.load(Ordering::Acquire) {
            if let Some(sample) = state_of(sender) {
                trace.add(timeline.seconds(), &sample);
            }
            let now = timeline.seconds();
            if now - shown_at > 0.2 {
                let bytes = arrived.load(Ordering::Relaxed);
                bar.set_position(bytes);
                let rate = (bytes - shown_bytes) as f64 * 8.0 / (now - shown_at) / 1e6;
                if let Some(sample) = &trace.last {
                    bar.set_message(format!(
                    "{rate:>7.1} Mbit/s  cwnd {:>6.1} KiB  RTT {:>6.2} ms  retransmitted {:>4} ",
                    sample.cwnd as f64 / 1024.0,
                    sample.srtt.map_or(0.0, |rtt| rtt.as_secs_f64() * 1e3),
                    sample.counters.retransmitted_segments
                ));
                }
                (shown_at, shown_bytes) = (now, bytes);
            }
            std::thread::sleep(SAMPLE_EVERY);
        }
        if let Some(sample) = state_of(sender) {
            trace.add(timeline.seconds(), &sample);
        }
        bar.set_position(arrived.load(Ordering::Relaxed));
        bar.finish_and_clear();
        trace
    }

    fn outcome(self, (trace, ended): (Trace, f64), passed: ByteTraces) -> Result<Outcome> {
        let last = trace.last;
        Ok(Outcome {
            title: self.title,
            congestion: self.congestion,
            started: self.started,
            seconds: ended - self.started,
            sha256: hash::of_file(self.copy_path)?,
            retransmitted: last.map_or(0, |sample| sample.counters.retransmitted_segments),
            timeouts: trace.timeouts(),
            rtt: last.and_then(|sample| sample.srtt),
            trace,
            passed,
        })
    }
}

/// Sends `source` from Transom to the peer, which keeps it in `copy_path`.
pub(crate) fn to_peer(
    network: &Network,
    timeline: &Timeline,
    source: &Path,
    copy_path: &Path,
    quiet: bool,
) -> Result<Outcome> {
    let (listener, address) = network.listen(7001)?;
    let [ours, _] = network.congestion();
    let peer = network.peer_name().trim_start_matches("the ");
    let title = format!("Transom ({ours}) → {peer}");
    let transfer = Transfer::start((title, ours), timeline, source, copy_path, quiet)?;
    let ended = std::thread::scope(|scope| -> Result<_> {
        let receiver = scope.spawn(|| transfer.receive(&listener.accept()?.0));
        let stream = network.stack.connect(address).context("cannot connect to the peer")?;
        let stream = Arc::new(Socket::Transom(stream));
        let sender = Arc::clone(&stream);
        let transfer = &transfer;
        let watcher = scope.spawn(move || transfer.watch(&sender));
        let sent = (|| {
            copy(File::open(source)?, &*stream, &AtomicU64::new(0))?;
            stream.shutdown(Shutdown::Write)?;
            // The peer closes when it has everything: that is the end of the transfer.
            (&*stream).read(&mut [0])
        })();
        let ended = transfer.end(watcher)?;
        sent.context("sending failed")?;
        receiver.join().map_err(|_| anyhow!("the receiver failed"))?.context("the peer failed")?;
        Ok(ended)
    })?;
    let seen = lock(&network.seen).take();
    transfer.outcome(ended, seen.outbound)
}

/// Has the peer send `source` back to Transom, which keeps it in `copy_path`.
pub(crate) fn from_peer(
    network: &Network,
    timeline: &Timeline,
    source: &Path,
    copy_path: &Path,
    quiet: bool,
) -> Result<Outcome> {
    const PORT: u16 = 7002;
    let listener = network.stack.listen(Network::own_address(PORT))?;
    let [_, peers] = network.congestion();
    let peer = network.peer_name().trim_start_matches("the ");
    let title = format!("{peer} ({peers}) → Transom");
    let transfer = Transfer::start((title, peers), timeline, source, copy_path, quiet)?;
    let ended = std::thread::scope(|scope| -> Result<_> {
        let peer = scope.spawn(|| network.connect_from_peer(PORT));
        let (stream, _) = listener.accept().context("the peer did not connect")?;
        let peer = Arc::new(peer.join().map_err(|_| anyhow!("the peer failed"))??);
        let sender = Arc::clone(&peer);
        let transfer = &transfer;
        let watcher = scope.spawn(move || transfer.watch(&sender));
        let sending = scope.spawn(move || {
            copy(File::open(source)?, &*peer, &AtomicU64::new(0))?;
            peer.shutdown(Shutdown::Write)
        });
        let received = transfer.receive(stream);
        let ended = transfer.end(watcher)?;
        received.context("receiving failed")?;
        sending.join().map_err(|_| anyhow!("the peer failed"))?.context("the peer failed")?;
        Ok(ended)
    })?;
    let seen = lock(&network.seen).take();
    transfer.outcome(ended, seen.inbound)
}
