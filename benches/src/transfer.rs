//! Bulk transfer between two Transom hosts of one thread, by CPU time.

use crate::clock::{Clock, thread_time};
use crate::pair::Pair;
use anyhow::ensure;
use std::time::{Duration, Instant};
use transom_tcp::Profile;

/// No transfer in memory waits this long for anything.
pub const STALL: u32 = 1_000_000;

/// What an end does with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// They are copied from and to the application's memory.
    Copied,
    /// They are left where they are.
    InPlace,
}

/// Gb/s.
pub fn gigabits(bytes: u64, elapsed: Duration) -> f64 {
    bytes as f64 * 8.0 / elapsed.as_secs_f64() / 1e9
}

/// A connection between two Transom hosts, and the application's memory at both ends.
#[derive(Debug)]
pub struct Transfer {
    /// The two hosts.
    pub pair: Pair,
    clock: Clock,
    out: Vec<u8>,
    into: Vec<u8>,
}

impl Transfer {
    /// Connects two hosts with this profile, whose applications write and read `chunk` bytes at a time.
    ///
    /// # Errors
    /// When they cannot be connected.
    pub fn new(profile: Profile, chunk: usize) -> anyhow::Result<Self> {
        Transfer::with(profile, Some(65_535), chunk)
    }

    /// The same with super-segments of at most so many bytes, or none.
    ///
    /// # Errors
    /// As there.
    pub fn with(
        profile: Profile,
        segmentation: Option<usize>,
        chunk: usize,
    ) -> anyhow::Result<Self> {
        Transfer::logging(profile, segmentation, None, chunk)
    }

    /// The same between hosts with event logs of so many records, or of the usual number.
    ///
    /// # Errors
    /// As there.
    pub fn logging(
        profile: Profile,
        segmentation: Option<usize>,
        log_records: Option<usize>,
        chunk: usize,
    ) -> anyhow::Result<Self> {
        let clock = Clock::start();
        let pair = Pair::connect_logging(profile, segmentation, log_records, clock.now())?;
        Ok(Transfer { pair, clock, out: vec![1; chunk], into: vec![0; chunk] })
    }

    /// Transfers for about `span`; the rate in Gb/s of CPU time.
    ///
    /// # Errors
    /// When nothing arrives any more.
    pub fn sample(&mut self, span: Duration, reading: Bytes) -> anyhow::Result<f64> {
        self.sample_while(span, reading, |_, _| {})
    }

    /// The same, while something is done between writing and sending each time.
    ///
    /// # Errors
    /// As there.
    pub fn sample_while(
        &mut self,
        span: Duration,
        reading: Bytes,
        mut meanwhile: impl FnMut(&mut Pair, transom_tcp::time::Instant),
    ) -> anyhow::Result<f64> {
        let (start, started, mut received, mut fruitless) =
            (Instant::now(), thread_time(), 0u64, 0);
        loop {
            let now = self.clock.now();
            self.pair.tick(now);
            let before = received;
            // A full buffer says "would block"; anything else shows as a stall.
            let _ = self.pair.client.write(self.pair.at_client, now, &self.out);
            meanwhile(&mut self.pair, now);
            self.pair.exchange(now);
            received += match reading {
                Bytes::Copied => self.read(now),
                Bytes::InPlace => self.consume(now),
            };
            if start.elapsed() >= span {
                return Ok(gigabits(received, thread_time() - started));
            }
            fruitless = if received == before { fruitless + 1 } else { 0 };
            ensure!(fruitless < STALL, "the transfer stalled");
        }
    }

    fn read(&mut self, now: transom_tcp::time::Instant) -> u64 {
        let mut total = 0;
        while let Ok(read @ 1..) = self.pair.server.read(self.pair.at_server, now, &mut self.into) {
            total += read as u64;
        }
        total
    }

    fn consume(&mut self, now: transom_tcp::time::Instant) -> u64 {
        let consumed = self.pair.server.with_connection(self.pair.at_server, now, |connection| {
            let mut total = 0;
            while let available @ 1.. = connection.readable_slice().len() {
                total += connection.consume(now, available) as u64;
            }
            total
        });
        consumed.unwrap_or(0)
    }
}
