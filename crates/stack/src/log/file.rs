//! Logs in files: a header and records, either all of them in sequence or in a ring of a given number of places.
//!
//! Nothing here opens a file; it makes and reads the bytes.

use super::{Encoded, RECORD_LEN, Record, RecordError};
use alloc::vec::Vec;

/// Bytes of the header.
pub const HEADER_LEN: usize = 64;

/// How a file begins.
pub const MAGIC: [u8; 8] = *b"TRANSLOG";
const VERSION: u16 = 1;

/// The header at the beginning of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The time of the clock's origin, in nanoseconds since 1970-01-01 00:00 UTC; zero if it is not known.
    pub origin: u64,
    /// How many places there are, of which record n has the one with the number n modulo this; zero for a file in which
    /// records simply follow each other.
    pub places: u64,
}

/// Why bytes are no log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// They do not begin as one.
    #[error("this is not an event log of Transom")]
    Magic,
    /// It is of a version that this program does not know.
    #[error("an event log of version {0}; this program knows version {VERSION}")]
    Version(u16),
    /// Its records have another length than this version's.
    #[error(
        "the log says that its records have {0} bytes, where version {VERSION} has {RECORD_LEN}"
    )]
    RecordLen(u16),
}

/// A record out of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number since the file's first record; the record itself has the lower half.
    pub sequence: u64,
    /// Records that are missing in front of it: they were overwritten before they were written down.
    pub missed: u64,
    /// Its contents, or why they cannot be read.
    pub record: Result<Record, RecordError>,
}

impl Header {
    /// The header in bytes.
    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&(RECORD_LEN as u16).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.origin.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.places.to_le_bytes());
        bytes
    }

    /// Reads a header. It may be none, or of another version.
    fn decode(bytes: &[u8]) -> Result<Header, FileError> {
        let header: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or(FileError::Magic)?;
        if header[..8] != MAGIC {
            return Err(FileError::Magic);
        }
        let version = u16::from_le_bytes([header[8], header[9]]);
        if version != VERSION {
            return Err(FileError::Version(version));
        }
        let len = u16::from_le_bytes([header[10], header[11]]);
        if usize::from(len) != RECORD_LEN {
            return Err(FileError::RecordLen(len));
        }
        let number = |at: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&header[at..at + 8]);
            u64::from_le_bytes(number)
        };
        Ok(Header { origin: number(16), places: number(24) })
    }
}

/// The lower half of a record's number.
fn number(record: &Encoded) -> u32 {
    u32::from_le_bytes([record[20], record[21], record[22], record[23]])
}

/// Reads a file, the oldest record first. An incomplete record at the end, from an interrupted writer, is skipped.
///
/// # Errors
/// If the bytes are no log.
pub fn read(bytes: &[u8]) -> Result<(Header, Vec<Entry>), FileError> {
    let header = Header::decode(bytes)?;
    let (records, _) = bytes.get(HEADER_LEN..).unwrap_or_default().as_chunks::<RECORD_LEN>();
    // A place nobody has written to is zero, and no record is of kind zero.
    let mut records: Vec<&Encoded> = records.iter().filter(|record| record[16] != 0).collect();
    let Some(first) = records.first().map(|record| number(record)) else {
        return Ok((header, Vec::new()));
    };
    // Numbers wrap, and no file holds half of them; so where each stands relative to one of them orders them.
    let distance = |record: &Encoded| number(record).wrapping_sub(first) as i32;
    records.sort_by_key(|record| distance(record));
    let oldest = records.first().map_or(0, |record| distance(record));
    let start = u64::from(first.wrapping_add_signed(oldest));
    let mut expected = start;
    let entries = records.into_iter().map(|record| {
        let sequence = start + u64::from(distance(record).abs_diff(oldest));
        let missed = sequence.saturating_sub(expected);
        expected = sequence + 1;
        Entry { sequence, missed, record: Record::decode(record).map(|(record, _)| record) }
    });
    Ok((header, entries.collect()))
}
