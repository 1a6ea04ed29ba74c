//! The host's event log for programs with sockets: read it from time to time, or write it to a file continuously.
//!
//! A thread writes the file. It asks for new records a hundred times a second. It holds the host's lock while it copies them, at most the whole ring.
//! Records that are overwritten between two reads are missing in the file, and the file says so.

use crate::stack::Stack;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use transom_stack::log::file::{HEADER_LEN, Header};
use transom_stack::log::{Encoded, Line, RECORD_LEN, Record, renumbered, time_of};
use transom_tcp::time::Instant;

/// How often the writer looks for new records.
const LOOK: Duration = Duration::from_millis(10);

/// A place in a host's event log: how many records of each shard lie before it. The default is the log's beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPosition(pub Vec<u64>);

impl LogPosition {
    /// How many records lie before it.
    fn records(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Records out of a host's log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogReading {
    /// Records that were overwritten before they were read.
    pub missed: u64,
    /// Where to go on.
    pub next: LogPosition,
    /// The records, the oldest first. [`Record::decode`](transom_stack::log::Record::decode) reads them. Each has the number that it has in its shard.
    pub records: Vec<Encoded>,
}

/// How a log is written to a file (docs/event-log.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// All records, as they are.
    Binary,
    /// The last records, this many, in a ring: the file does not grow.
    Ring(u32),
    /// All records, as lines of JSON.
    JsonLines,
}

/// A log that is being written to a file. Dropping it completes the file.
#[derive(Debug)]
pub struct LogWriter {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<io::Result<Written>>>,
}

/// The result of writing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Records.
    pub records: u64,
    /// Those that were overwritten before they could be.
    pub missed: u64,
}

impl Stack {
    /// The host's event log from a place on: the records of all shards, in the order of their times.
    pub fn read_log(&self, from: &LogPosition) -> LogReading {
        let shards = self.shards();
        // A shard that is read first may write such records after it was read. They are for the next reading, so that their order is right.
        let until = match shards.len() {
            1 => Instant::FAR_FUTURE,
            _ => self.first().runtime.now(),
        };
        let (mut missed, mut next, mut records) = (0, Vec::new(), Vec::new());
        for (number, shard) in shards.iter().enumerate() {
            let from = from.0.get(number).copied().unwrap_or(0);
            let mut inner = shard.runtime.lock();
            let reading = inner.host.log(from);
            let before = records.len();
            records.extend(reading.records().take_while(|record| time_of(record) <= until));
            missed += reading.missed;
            let left = reading.records().count() - (records.len() - before);
            next.push(reading.next - left as u64);
        }
        if shards.len() > 1 {
            records.sort_by_key(time_of);
        }
        LogReading { missed, next: LogPosition(next), records }
    }

    /// The end of the event log: what comes from here on has not happened yet.
    pub fn log_end(&self) -> LogPosition {
        let ends = self.shards().iter().map(|shard| shard.runtime.lock().host.log(u64::MAX).next);
        LogPosition(ends.collect())
    }

    /// Writes the event log to `file`, from the oldest record that is still there, until the writer is finished or dropped. It keeps the host alive.
    ///
    /// # Errors
    /// The operating system's for the file's beginning, and for a thread that it does not give.
    pub fn log_to(&self, file: File, format: LogFormat) -> io::Result<LogWriter> {
        let since_origin = Duration::from_nanos(self.first().runtime.now().as_nanos());
        let origin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let origin = u64::try_from(origin.saturating_sub(since_origin).as_nanos()).unwrap_or(0);
        // Records that were overwritten before the writer began do not count as missed.
        let oldest = self.shards().iter().map(|shard| shard.runtime.lock().host.log(0).missed);
        let oldest = LogPosition(oldest.collect());
        let mut output = Output::begin(file, format, origin, oldest)?;
        let stack = self.clone();
        let (stop, stopped) = sync_channel(0);
        let work = move || loop {
            let more = stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout);
            output.take(stack.read_log(&output.next))?;
            if !more {
                output.finish()?;
                return Ok(output.written);
            }
        };
        let thread = std::thread::Builder::new().name("transom-log".into()).spawn(work)?;
        Ok(LogWriter { stop: Some(stop), thread: Some(thread) })
    }
}

impl LogWriter {
    /// Writes the remaining records and completes the file.
    ///
    /// # Errors
    /// The first that writing met; nothing was written after it.
    pub fn finish(mut self) -> io::Result<Written> {
        self.join().unwrap_or(Ok(Written::default()))
    }

    fn join(&mut self) -> Option<io::Result<Written>> {
        self.stop = None;
        let thread = self.thread.take()?;
        Some(thread.join().unwrap_or_else(|_| Err(io::Error::other("the log's writer panicked"))))
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        // Call `finish` to learn of errors.
        let _ = self.join();
    }
}

struct Output {
    file: BufWriter<File>,
    format: LogFormat,
    next: LogPosition,
    written: Written,
}

impl Output {
    fn begin(file: File, format: LogFormat, origin: u64, next: LogPosition) -> io::Result<Self> {
        let mut file = BufWriter::new(file);
        let places = match format {
            LogFormat::Binary => Some(0),
            LogFormat::Ring(0) => return Err(io::ErrorKind::InvalidInput.into()),
            LogFormat::Ring(places) => Some(places.into()),
            LogFormat::JsonLines => None,
        };
        if let Some(places) = places {
            file.write_all(&Header { origin, places }.encode())?;
            file.flush()?;
        }
        Ok(Output { file, format, next, written: Written::default() })
    }

    fn take(&mut self, reading: LogReading) -> io::Result<()> {
        let LogReading { missed, next, records } = reading;
        if missed > 0 && self.format == LogFormat::JsonLines {
            writeln!(self.file, "{{\"event\":\"missed\",\"records\":{missed}}}")?;
        }
        let first = next.records() - records.len() as u64;
        for (number, bytes) in (first..).zip(&records) {
            let bytes = &renumbered(bytes, number);
            match self.format {
                LogFormat::Binary => self.file.write_all(bytes)?,
                LogFormat::Ring(places) => {
                    let place = number % u64::from(places);
                    let at = HEADER_LEN as u64 + place * RECORD_LEN as u64;
                    self.file.get_ref().write_all_at(bytes, at)?;
                }
                LogFormat::JsonLines => {
                    // The host has just written it.
                    if let Ok((record, _)) = Record::decode(bytes) {
                        writeln!(self.file, "{}", Line { record: &record, sequence: number })?;
                    }
                }
            }
        }
        self.next = next;
        self.written.records += records.len() as u64;
        self.written.missed += missed;
        self.file.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
