//! Captures and event logs: connections of anybody's TCP out of packets, and logs in other formats.
//!
//! | to do | see |
//! |---|---|
//! | read a pcap or pcapng file, block by block | `file::Blocks` |
//! | find the TCP segment in a frame | `segment::Segment` |
//! | follow the connections of a capture | [`Capture`] |
//! | write an event log in another format, or read it | [`convert::Log`] |
//!
//! Everything in a capture is hostile: lengths, sequence numbers and times may be anything. The answer is a value, or a count of what
//! was left out, never a panic. Memory grows with the file, and no length in it makes it grow faster.
//!
//! ```
//! use transom_trace::Capture;
//!
//! // A pcap file without a packet: magic, version 2.4, Ethernet.
//! let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
//! file.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0]);
//! let capture = Capture::read(&file[..])?;
//! assert!(capture.connections.is_empty());
//! assert!(Capture::read(&b"hello"[..]).is_err());
//! # Ok::<(), transom_trace::FileError>(())
//! ```
#![forbid(unsafe_code)]

mod capture;
mod connection;
mod convert;
mod direction;
mod file;
mod link;
mod numbers;
mod ranges;
mod segment;

pub use capture::Capture;
pub use connection::Connection;
pub use convert::{Annotated, ConvertError, Format, Log, annotate};
pub use direction::{Acked, Counts, Kind, Sacked, Sent, Way};
pub use file::FileError;

#[cfg(test)]
mod tests;
