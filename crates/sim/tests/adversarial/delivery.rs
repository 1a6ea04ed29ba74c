//! Writing and reading where what is delivered is no stream: pieces with their places, and data units. And holes in any of them.
//!
//! A unit says in its first bytes which part of the direction's stream the rest of it is, so that units can be checked in any order.

use super::exchange::{End, byte};
use std::collections::BTreeMap;
use transom_sim::Rng;
use transom_stack::{ConnectionId, Stack};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Adu, Delivery, Hole, Piece, ReadError, WriteError};

/// What a unit says about itself.
const HEADER: u64 = 8;
/// The largest unit by default.
const MOST: u64 = 16 * 1024 - HEADER;

/// The bytes of a stream that a reader has had, wherever they stood.
#[derive(Default)]
pub(super) struct Had {
    /// From where to where.
    ranges: BTreeMap<u64, u64>,
    bytes: u64,
    /// Bytes of the stream on the wire that the reader was told will never come.
    pub(super) skipped: u64,
    last: Option<u64>,
}

impl Had {
    /// So many bytes at `offset` have come.
    fn take(&mut self, offset: u64, bytes: &[u8], direction: u64) {
        for (at, &got) in (offset..).zip(bytes) {
            assert_eq!(got, byte(direction, at), "a wrong byte at {at}");
        }
        assert!(self.is_new(offset, bytes.len() as u64), "bytes at {offset} came twice");
        self.bytes += bytes.len() as u64;
    }

    /// So many bytes at `offset` will never come, nor have they.
    fn skip(&mut self, offset: u64, len: u64) {
        assert!(self.is_new(offset, len), "the hole at {offset} was filled");
        self.skipped += len;
    }

    /// Whether nothing was known of these bytes; now it is.
    fn is_new(&mut self, offset: u64, len: u64) -> bool {
        let before = self.ranges.range(..offset + len).next_back();
        let new = before.is_none_or(|(_, &end)| end <= offset);
        if len > 0 {
            self.ranges.insert(offset, offset + len);
        }
        new
    }
}

impl End {
    /// Writes the next unit of the stream. False if there is no room.
    pub(super) fn write_unit(
        &mut self,
        host: &mut Stack,
        id: ConnectionId,
        now: Instant,
        rng: &mut Rng,
    ) -> bool {
        let len = (self.to_write - self.written).min(rng.between(1, self.most.min(MOST)));
        let mut unit = self.written.to_be_bytes().to_vec();
        unit.extend((self.written..self.written + len).map(|at| byte(self.side as u64, at)));
        match host.with_connection(id, now, |connection| connection.send_adu(now, &unit)).unwrap() {
            Ok(()) => {
                self.written += len;
                true
            }
            Err(WriteError::WouldBlock) => false,
            Err(error) => panic!("{:?} cannot send a unit: {error}", self.side),
        }
    }

    /// Reads until there is nothing more, or it has had enough for now.
    pub(super) fn read_pieces(
        &mut self,
        host: &mut Stack,
        id: ConnectionId,
        now: Instant,
        peer_writes: u64,
        rng: &mut Rng,
        mut buffer: Vec<u8>,
    ) {
        let size = buffer.len();
        while self.read_once(host, id, now, peer_writes, &mut buffer) {
            // A unit has taken its place.
            buffer.resize(size, 0);
            if rng.below(10) == 0 {
                self.paused_until = now + Duration::from_millis(1);
                return;
            }
        }
    }

    /// Reads once. False if there is nothing more now.
    fn read_once(
        &mut self,
        host: &mut Stack,
        id: ConnectionId,
        now: Instant,
        peer_writes: u64,
        buffer: &mut Vec<u8>,
    ) -> bool {
        let direction = self.side.other() as u64;
        let delivery = host.connection(id).unwrap().delivery();
        let outcome = host.with_connection(id, now, |connection| match delivery {
            Delivery::Units => connection.recv_adu(now, buffer).map(|adu| match adu {
                Adu::Unit { offset } => {
                    let (start, bytes) = buffer.split_first_chunk::<8>().unwrap();
                    self.had.take(u64::from_be_bytes(*start), bytes, direction);
                    assert!(bytes.len() as u64 <= MOST);
                    if self.in_order {
                        assert!(self.had.last.is_none_or(|last| last < offset));
                    }
                    self.had.last = Some(offset);
                    None
                }
                Adu::Hole(Hole { len, .. }) => {
                    assert!(self.may_skip, "nothing is given up");
                    self.had.skipped += len;
                    None
                }
                Adu::End { total } => Some(total),
            }),
            _ => connection.read_unordered(now, buffer).map(|piece| match piece {
                Piece::Data { offset, len, total } => {
                    assert!(total.is_none_or(|total| total == peer_writes));
                    self.had.take(offset, &buffer[..len], direction);
                    None
                }
                Piece::Hole(Hole { offset, len }) => {
                    assert!(self.may_skip, "nothing is given up");
                    self.had.skip(offset, len);
                    None
                }
                Piece::End { total } => Some(total),
            }),
        });
        self.read = self.had.bytes;
        match outcome.unwrap() {
            Ok(None) => true,
            Ok(Some(total)) => {
                self.eof = true;
                let faults = host.connection(id).unwrap().info(now).unit_faults;
                assert_eq!(faults.total(), faults.incomplete, "{faults:?}");
                if delivery == Delivery::Pieces {
                    let all = self.read + self.had.skipped;
                    assert_eq!(all, peer_writes, "{:?} lost a part of the stream", self.side);
                    assert_eq!((total, faults.total()), (peer_writes, 0));
                } else if self.had.skipped == 0 {
                    assert_eq!(self.read, peer_writes, "{:?} lost a unit", self.side);
                    assert_eq!(faults.total(), 0, "{faults:?}");
                } else {
                    assert!(self.read <= peer_writes);
                }
                false
            }
            Err(ReadError::WouldBlock) => false,
            Err(error) => panic!("{:?} cannot read: {error}", self.side),
        }
    }
}
