//! Event logs in other formats, both ways: lines of JSON, qlog, pcapng, and, with the feature `columns`, Parquet and Arrow.
//!
//! Every format carries each record whole, with the keys of docs/event-log.md, and the time of the clock's origin. docs/formats.md has the
//! layouts. None carries records that this version cannot read, nor the number of places of a ring.
//!
//! ```
//! use transom_trace::{Format, Log};
//!
//! let log = Log { origin: 1_700_000_000_000_000_000, ..Log::default() };
//! let bytes = log.write(Format::Qlog)?;
//! assert_eq!(Log::read(Format::Qlog, &bytes)?, log);
//! # Ok::<(), transom_trace::ConvertError>(())
//! ```

mod annotate;
#[cfg(feature = "columns")]
mod columns;
mod json;
mod packets;
mod qlog;

pub use annotate::{Annotated, annotate};

use std::path::Path;

use transom_stack::log::Record;
use transom_stack::log::file::{self, Entry, Header};

/// The formats of an event log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The log's own.
    Tlog,
    /// A line of JSON for each record.
    Lines,
    /// qlog, as a sequence of JSON texts (RFC 7464).
    Qlog,
    /// A capture of packets made up from the records, which are comments on them.
    Pcapng,
    /// A Parquet file.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
}

/// A log in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The time of the clock's origin, in nanoseconds since 1970; zero if it is not known.
    pub origin: u64,
    /// Records with their numbers, in order.
    pub records: Vec<(u64, Record)>,
    /// Records that this version could not read. No other format has them.
    pub unknown: u64,
}

/// Why a log cannot be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// The ending of a name says no format.
    #[error(
        "{0}: the name must end in .tlog, .jsonl, .ndjson, .qlog, .sqlog, .pcapng, .parquet or .arrow"
    )]
    Ending(String),
    /// The bytes are no event log.
    #[error(transparent)]
    File(#[from] file::FileError),
    /// The bytes are no capture.
    #[error(transparent)]
    Capture(#[from] crate::file::FileError),
    /// A record cannot be read.
    #[error("record {number}: {what}")]
    Record {
        /// Its place in the file, from one.
        number: usize,
        /// What is wrong.
        what: String,
    },
    /// The file is none of its format.
    #[error("{0}")]
    Form(String),
    /// The build lacks a format.
    #[error("this build has no Parquet and Arrow files; build with `--features parquet`")]
    NoColumns,
    /// Making or reading the bytes failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// By the ending of a file's name.
impl TryFrom<&Path> for Format {
    type Error = ConvertError;

    fn try_from(path: &Path) -> Result<Format, ConvertError> {
        let ending = path.extension().and_then(|ending| ending.to_str());
        Ok(match ending.map(str::to_ascii_lowercase).as_deref() {
            Some("tlog") => Format::Tlog,
            Some("jsonl" | "ndjson") => Format::Lines,
            Some("qlog" | "sqlog") => Format::Qlog,
            Some("pcapng") => Format::Pcapng,
            Some("parquet") => Format::Parquet,
            Some("arrow") => Format::Arrow,
            _ => return Err(ConvertError::Ending(path.display().to_string())),
        })
    }
}

impl Format {
    /// The parts of a log that other readers of the format do not find in it, in a sentence; empty if there are none.
    pub fn loses(self) -> &'static str {
        match self {
            Format::Tlog | Format::Lines | Format::Parquet | Format::Arrow => "",
            Format::Qlog => {
                "The events are Transom's own set: tools for QUIC show them in a list, without their charts."
            }
            Format::Pcapng => {
                "The packets are made up from the records: their data is zero, and windows end at 65535. Packets that made no record are missing."
            }
        }
    }
}

impl Log {
    /// Reads a log.
    ///
    /// # Errors
    /// If the bytes are none of this format, or a record in them makes no sense.
    pub fn read(format: Format, bytes: &[u8]) -> Result<Log, ConvertError> {
        let mut log = match format {
            Format::Tlog => {
                let (header, entries) = file::read(bytes)?;
                Log::of(header, &entries)
            }
            Format::Lines => json::read(bytes)?,
            Format::Qlog => qlog::read(bytes)?,
            Format::Pcapng => packets::read(bytes)?,
            #[cfg(feature = "columns")]
            Format::Parquet => columns::read_parquet(bytes)?,
            #[cfg(feature = "columns")]
            Format::Arrow => columns::read_arrow(bytes)?,
            #[cfg(not(feature = "columns"))]
            Format::Parquet | Format::Arrow => return Err(ConvertError::NoColumns),
        };
        log.records.sort_by_key(|(number, _)| *number);
        Ok(log)
    }

    /// Takes the entries of a log file.
    fn of(header: Header, entries: &[Entry]) -> Log {
        let mut log = Log { origin: header.origin, ..Log::default() };
        for Entry { sequence, record, .. } in entries {
            log.take(record.as_ref().ok().map(|record| (*sequence, record.clone())));
        }
        log
    }

    /// Takes what was read: a record, or one of a kind that is not known here.
    fn take(&mut self, record: Option<(u64, Record)>) {
        self.unknown += u64::from(record.is_none());
        self.records.extend(record);
    }

    /// Writes the log. The same log gives the same bytes.
    ///
    /// # Errors
    /// If this build lacks the format, or making the bytes fails.
    pub fn write(&self, format: Format) -> Result<Vec<u8>, ConvertError> {
        match format {
            Format::Tlog => Ok(self.tlog()),
            Format::Lines => Ok(json::write(self)),
            Format::Qlog => Ok(qlog::write(self)),
            Format::Pcapng => packets::write(self),
            #[cfg(feature = "columns")]
            Format::Parquet => columns::write_parquet(self),
            #[cfg(feature = "columns")]
            Format::Arrow => columns::write_arrow(self),
            #[cfg(not(feature = "columns"))]
            Format::Parquet | Format::Arrow => Err(ConvertError::NoColumns),
        }
    }

    fn tlog(&self) -> Vec<u8> {
        let mut bytes = Header { origin: self.origin, places: 0 }.encode().to_vec();
        for (number, record) in &self.records {
            // A file keeps the lower half of the number.
            bytes.extend(record.encode(*number as u32));
        }
        bytes
    }
}

#[cfg(test)]
mod tests;
