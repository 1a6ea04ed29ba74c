//! Spans, events and metrics, for the tools that a program has anyway.
//!
//! A thread reads the host's event log a hundred times a second, as the writer of a log file does. It tells `tracing` and `metrics` what it finds
//! there. So the features cost nothing where packets are handled, a slow subscriber delays no packet, and a subscriber may use the host's sockets. The
//! price: an event is told up to a hundredth of a second late. Its field `at_us` has the time at which it happened.
//!
//! `metrics` is a facade: the program chooses the exporter, such as Prometheus or OpenTelemetry. With another library the program would have
//! to serve Transom's registry beside its own.

#[cfg(feature = "metrics")]
mod meter;
#[cfg(feature = "tracing")]
mod spans;

use crate::log::LogPosition;
use crate::stack::{Stack, WeakStack};
use std::io;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use transom_stack::ConnectionId;
use transom_stack::log::Record;

/// Between two readings of the log.
const LOOK: Duration = Duration::from_millis(10);
/// Readings between two looks at the host's own counters.
const LOOKS_PER_COUNT: u32 = 100;

/// Tells `tracing` and `metrics` of a host's connections until it is dropped. It does not keep the host alive.
#[derive(Debug)]
pub struct Telemetry {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Stack {
    /// Tells of this handle's connections from now on, by the features that this crate was built with.
    ///
    /// **`tracing`**: a span `connection` for each connection's life, with the fields `shard`, `connection`, `local` and `remote`. In it are events for
    /// changes of state, losses, recovery, timeouts, and extensions that come or go. The target is `transom`. The subscriber is the one that this thread has
    /// at this moment.
    ///
    /// **`metrics`**: counters, gauges and a histogram that begin with `transom_`; docs/live.md lists them. The recorder is the program's global one.
    ///
    /// Records of the event log that were overwritten before they were read are missing, and counted. A larger
    /// [log](crate::Limits::log_records) loses fewer. A host without a log has no telemetry but the host's counters.
    ///
    /// # Errors
    /// The operating system's, for a thread that it does not give.
    pub fn telemetry(&self) -> io::Result<Telemetry> {
        let mut reader = Reader::new(self);
        let (stop, stopped) = sync_channel(0);
        #[cfg(feature = "tracing")]
        let subscriber = tracing::dispatcher::get_default(Clone::clone);
        let work = move || {
            loop {
                let more = stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout);
                // The rest is told at the end too.
                if !reader.read() || !more {
                    return;
                }
            }
        };
        #[cfg(feature = "tracing")]
        let work = move || tracing::dispatcher::with_default(&subscriber, work);
        let thread = std::thread::Builder::new().name("transom-telemetry".into()).spawn(work)?;
        Ok(Telemetry { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A subscriber that panicked has said so already.
            let _ = thread.join();
        }
    }
}

/// Where the reading of each shard's log has come to.
struct Reader {
    stack: WeakStack,
    next: Vec<LogPosition>,
    #[cfg(feature = "tracing")]
    spans: spans::Spans,
    #[cfg(feature = "metrics")]
    meter: meter::Meter,
    until_count: u32,
}

impl Reader {
    fn new(stack: &Stack) -> Reader {
        let next = (0..stack.shard_count()).filter_map(|shard| stack.shard(shard));
        Reader {
            stack: stack.downgrade(),
            // Of what was before, there is nothing to tell.
            next: next.map(|shard| shard.log_end()).collect(),
            #[cfg(feature = "tracing")]
            spans: spans::Spans::default(),
            #[cfg(feature = "metrics")]
            meter: meter::Meter::new(),
            until_count: 0,
        }
    }

    /// Tells what is new. Returns false when the host is gone.
    fn read(&mut self) -> bool {
        let Some(stack) = self.stack.upgrade() else { return false };
        for (number, next) in self.next.iter_mut().enumerate() {
            let Some(shard) = stack.shard(number) else { continue };
            let reading = shard.read_log(next);
            *next = reading.next;
            if reading.missed > 0 {
                #[cfg(feature = "metrics")]
                self.meter.missed(reading.missed);
                #[cfg(feature = "tracing")]
                self.spans.missed(number, reading.missed, |connection| exists(&shard, connection));
            }
            for bytes in &reading.records {
                // The host has just written it.
                let Ok((record, _)) = Record::decode(bytes) else { continue };
                #[cfg(feature = "metrics")]
                self.meter.take(number, &record);
                #[cfg(feature = "tracing")]
                self.spans.take(number, &record);
            }
        }
        #[cfg(feature = "metrics")]
        self.meter.end_of_reading();
        self.until_count = match self.until_count.checked_sub(1) {
            Some(left) => left,
            None => {
                #[cfg(feature = "metrics")]
                self.meter.count(&stack);
                LOOKS_PER_COUNT
            }
        };
        true
    }
}

#[cfg_attr(not(feature = "tracing"), allow(dead_code))]
fn exists(shard: &Stack, connection: u64) -> bool {
    let id = ConnectionId::from_u64(connection);
    shard.first().runtime.lock().host.connection(id).is_some()
}

#[cfg(all(test, feature = "tracing"))]
mod tests;
