//! Bulk transfer between two ends in one thread: the protocol code alone.
//!
//! smoltcp's own benchmark neither writes into the buffer it sends nor reads what it receives; a program would. Both
//! kinds are measured for both stacks as far as their interfaces go: Transom copies on write, and can be read in
//! place. The rate is by CPU time.

use super::Settings;
use crate::clock::{Clock, thread_time};
use crate::harness::{Bound, Case, Group, Unit};
use crate::pair::{MTU, Pair, fixed_buffers};
use crate::smol::loopback::LoopbackPair;
use anyhow::{anyhow, ensure};
use std::time::{Duration, Instant};

/// Bytes of each socket buffer, for both stacks: what smoltcp's benchmark uses.
const BUFFER: usize = 65_536;
/// No transfer in memory waits this long for anything.
const STALL: u32 = 1_000_000;

const SMOLTCP: &str = "smoltcp, its loopback benchmark";
const SMOLTCP_COPYING: &str = "smoltcp, bytes copied in and out";

/// What an end does with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bytes {
    /// They are copied from and to the application's memory.
    Copied,
    /// They are left where they are.
    InPlace,
}

/// Builds the group.
///
/// # Errors
/// When one of the connections cannot be made.
pub fn build(settings: Settings) -> anyhow::Result<Group> {
    let chunk = settings.chunk;
    let mut smoltcp = LoopbackPair::connect(MTU, BUFFER)?;
    let mut smoltcp_copying = LoopbackPair::connect(MTU, BUFFER)?;
    let mut copying = Transfer::new(chunk)?;
    let mut in_place = Transfer::new(chunk)?;
    let mut out = vec![1; chunk];
    let cases = vec![
        Case::new(SMOLTCP, move |span| smoltcp_sample(&mut smoltcp, span, None)),
        Case::new(SMOLTCP_COPYING, move |span| {
            smoltcp_sample(&mut smoltcp_copying, span, Some(&mut out))
        })
        .against(SMOLTCP),
        Case::new("Transom", move |span| copying.sample(span, Bytes::Copied))
            .figure(SMOLTCP, Bound::AtLeast(1.2))
            .against(SMOLTCP_COPYING),
        Case::new("Transom, read in place", move |span| in_place.sample(span, Bytes::InPlace))
            .against(SMOLTCP),
    ];
    Ok(Group::new(Unit::GigabitsPerSecond, cases))
}

fn gigabits(bytes: u64, elapsed: Duration) -> f64 {
    bytes as f64 * 8.0 / elapsed.as_secs_f64() / 1e9
}

/// `memory`: what the application copies from and to; without it, it touches nothing.
fn smoltcp_sample(
    pair: &mut LoopbackPair,
    span: Duration,
    mut memory: Option<&mut Vec<u8>>,
) -> anyhow::Result<f64> {
    let (start, started, mut received, mut fruitless) = (Instant::now(), thread_time(), 0u64, 0);
    loop {
        pair.poll();
        let before = received;
        let server = pair.server();
        while server.can_recv() {
            let taken = match &mut memory {
                Some(memory) => server.recv_slice(memory),
                None => server.recv(|bytes| (bytes.len(), bytes.len())),
            };
            received += taken.map_err(|error| anyhow!("receiving: {error}"))? as u64;
        }
        let client = pair.client();
        while client.can_send() {
            match &memory {
                Some(memory) => client.send_slice(memory),
                None => client.send(|bytes| (bytes.len(), bytes.len())),
            }
            .map_err(|error| anyhow!("sending: {error}"))?;
        }
        if start.elapsed() >= span {
            return Ok(gigabits(received, thread_time() - started));
        }
        fruitless = if received == before { fruitless + 1 } else { 0 };
        ensure!(fruitless < STALL, "the transfer stalled");
    }
}

/// A connection between two Transom hosts, and the application's memory at both ends.
struct Transfer {
    pair: Pair,
    clock: Clock,
    out: Vec<u8>,
    into: Vec<u8>,
}

impl Transfer {
    fn new(chunk: usize) -> anyhow::Result<Self> {
        let clock = Clock::start();
        let pair = Pair::connect(fixed_buffers(BUFFER), clock.now())?;
        Ok(Transfer { pair, clock, out: vec![1; chunk], into: vec![0; chunk] })
    }

    fn sample(&mut self, span: Duration, reading: Bytes) -> anyhow::Result<f64> {
        let (start, started, mut received, mut fruitless) =
            (Instant::now(), thread_time(), 0u64, 0);
        loop {
            let now = self.clock.now();
            self.pair.tick(now);
            let before = received;
            // A full buffer says "would block"; anything else shows as a stall.
            let _ = self.pair.client.write(self.pair.at_client, now, &self.out);
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
