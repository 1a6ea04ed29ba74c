//! The protocol between the client and the server of a measurement.
//!
//! A connection begins with a hello of fixed size from the client. The rest depends on its purpose:
//!
//! - upload: the client sends until it ends its direction; the server answers with a [`Receipt`];
//! - download: the server sends as many bytes, or for as long, as the hello says, and ends its direction;
//! - exchange: requests and responses of the size the hello says, until the client ends its direction;
//! - connect: the server sends one byte and closes.
//!
//! Numbers are big-endian.

use std::io::{self, Read};
use std::time::Duration;

/// The longest message of an exchange, in bytes.
pub(super) const MAX_MESSAGE: u32 = 1 << 20;

const MAGIC: [u8; 8] = *b"TRANSOM1";

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Upload = 1,
    Download,
    Exchange,
    Connect,
}

impl Purpose {
    const ALL: [Purpose; 4] =
        [Purpose::Upload, Purpose::Download, Purpose::Exchange, Purpose::Connect];
}

/// The beginning of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) purpose: Purpose,
    /// Bytes of a message in an exchange.
    pub(super) message: u32,
    /// How much the server is to send; zero for as long as `time`.
    pub(super) bytes: u64,
    /// How long the server is to send.
    pub(super) time: Duration,
}

impl Hello {
    /// Its size, in bytes.
    pub(super) const LEN: usize = 32;

    /// Encodes it for sending.
    pub(super) fn encode(&self) -> [u8; Self::LEN] {
        // A part of a millisecond is a whole one: the time asked for is the least.
        let millis = self.time.as_nanos().div_ceil(1_000_000);
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&(self.purpose as u32).to_be_bytes());
        out[12..16].copy_from_slice(&self.message.to_be_bytes());
        out[16..24].copy_from_slice(&self.bytes.to_be_bytes());
        out[24..].copy_from_slice(&millis.to_be_bytes());
        out
    }

    /// Reads one.
    pub(super) fn read(reader: &mut impl Read) -> io::Result<Self> {
        let mut bytes = [0; Self::LEN];
        reader.read_exact(&mut bytes)?;
        let [magic, numbers] = [&bytes[..8], &bytes[8..]];
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "not a benchmark's client");
        if magic != MAGIC {
            return Err(wrong());
        }
        let (words, quads) = numbers.split_at(8);
        let word = |at: usize| words.get(at..).and_then(|b| b.first_chunk()).copied();
        let quad = |at: usize| quads.get(at..).and_then(|b| b.first_chunk()).copied();
        let number = word(0).map(u32::from_be_bytes);
        let known = Purpose::ALL.into_iter().find(|one| Some(*one as u32) == number);
        let purpose = known.ok_or_else(wrong)?;
        let message = word(4).map_or(0, u32::from_be_bytes);
        if purpose == Purpose::Exchange && !(1..=MAX_MESSAGE).contains(&message) {
            return Err(wrong());
        }
        Ok(Hello {
            purpose,
            message,
            bytes: quad(0).map_or(0, u64::from_be_bytes),
            time: Duration::from_millis(quad(8).map_or(0, u64::from_be_bytes)),
        })
    }
}

/// The bytes that the server has received of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Receipt {
    /// Bytes.
    pub(super) bytes: u64,
    /// From the hello to the end.
    pub(super) time: Duration,
}

impl Receipt {
    /// Encodes it for sending.
    pub(super) fn encode(&self) -> [u8; 16] {
        let nanos = u64::try_from(self.time.as_nanos()).unwrap_or(u64::MAX);
        let mut out = [0; 16];
        out[..8].copy_from_slice(&self.bytes.to_be_bytes());
        out[8..].copy_from_slice(&nanos.to_be_bytes());
        out
    }

    /// Reads one.
    pub(super) fn read(reader: &mut impl Read) -> io::Result<Self> {
        let mut numbers = [[0; 8]; 2];
        for number in &mut numbers {
            reader.read_exact(number)?;
        }
        let [bytes, nanos] = numbers.map(u64::from_be_bytes);
        Ok(Receipt { bytes, time: Duration::from_nanos(nanos) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_survive_the_journey() {
        for purpose in Purpose::ALL {
            let hello = Hello {
                purpose,
                message: 7,
                bytes: 0x0102_0304_0506_0708,
                time: Duration::from_millis(1500),
            };
            assert_eq!(Hello::read(&mut &hello.encode()[..]).unwrap(), hello);
        }
        let short = Duration::from_micros(1);
        let hello = Hello { purpose: Purpose::Download, message: 7, bytes: 0, time: short };
        assert_eq!(Hello::read(&mut &hello.encode()[..]).unwrap().time.as_millis(), 1);
        let receipt = Receipt { bytes: u64::MAX, time: Duration::from_nanos(1) };
        assert_eq!(Receipt::read(&mut &receipt.encode()[..]).unwrap(), receipt);
    }

    #[test]
    fn strangers_are_recognized() {
        let hello = Hello {
            purpose: Purpose::Exchange,
            message: 1,
            bytes: 0,
            time: Duration::from_secs(1),
        };
        let good = hello.encode();
        for (at, value) in [(0, b'X'), (11, 9), (12, 1), (15, 0)] {
            let mut bad = good;
            bad[at] = value;
            let error = Hello::read(&mut &bad[..]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "byte {at}");
        }
        let short = Hello::read(&mut &good[..31]).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
    }
}
