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
use transom_stack::log::{Encoded, Line, RECORD_LEN, Record};

/// How often the writer looks for new records.
const LOOK: Duration = Duration::from_millis(10);

/// Records out of a host's log.
#[derive(Clone, Debug)]
pub struct LogReading {
    /// Records that were overwritten before they were read.
    pub missed: u64,
    /// The number of the next record there will be: where to go on.
    pub next: u64,
    /// The records, the oldest first. [`Record::decode`](transom_stack::log::Record::decode) reads them.
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
pub struct Written {
    /// Records.
    pub records: u64,
    /// Those that were overwritten before they could be.
    pub missed: u64,
}

impl Stack {
    /// The host's event log from record number `from` on. Each shard has a log of its own, and this is the first one's: see [`Stack::shard`].
    pub fn read_log(&self, from: u64) -> LogReading {
        let mut inner = self.first().runtime.lock();
        let reading = inner.host.log().read(from);
        let records = reading.records().copied().collect();
        LogReading { missed: reading.missed, next: reading.next, records }
    }

    /// Writes the event log to `file`, from the oldest record that is still there, until the writer is finished or dropped. It keeps the host alive.
    ///
    /// # Errors
    /// The operating system's for the file's beginning, and for a thread that it does not give; [`io::ErrorKind::InvalidInput`] for a host of several
    /// shards, each of which has a log of its own: see [`Stack::shard`].
    pub fn log_to(&self, file: File, format: LogFormat) -> io::Result<LogWriter> {
        if self.shard_count() > 1 {
            let why = "each shard has a log of its own: write them with Stack::shard";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let since_origin = Duration::from_nanos(self.first().runtime.now().as_nanos());
        let origin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let origin = u64::try_from(origin.saturating_sub(since_origin).as_nanos()).unwrap_or(0);
        // Records that were overwritten before the writer began do not count as missed.
        let oldest = self.first().runtime.lock().host.log().read(0).missed;
        let mut output = Output::begin(file, format, origin, oldest)?;
        let stack = self.clone();
        let (stop, stopped) = sync_channel(0);
        let work = move || loop {
            let more = stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout);
            output.take(&stack.read_log(output.next))?;
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
    next: u64,
    written: Written,
}

impl Output {
    fn begin(file: File, format: LogFormat, origin: u64, next: u64) -> io::Result<Self> {
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

    fn take(&mut self, reading: &LogReading) -> io::Result<()> {
        let LogReading { missed, next, records } = reading;
        if *missed > 0 && self.format == LogFormat::JsonLines {
            writeln!(self.file, "{{\"event\":\"missed\",\"records\":{missed}}}")?;
        }
        let first = next - records.len() as u64;
        for (number, bytes) in (first..).zip(records) {
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
        self.next = *next;
        self.written.records += records.len() as u64;
        self.written.missed += missed;
        self.file.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
