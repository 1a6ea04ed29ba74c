//! Bulk transfer between two ends in one thread: the protocol code alone.
//!
//! smoltcp's own benchmark neither writes into the buffer it sends nor reads what it receives; a program would. Both
//! kinds are measured for both stacks as far as their interfaces go: Transom copies on write, and can be read in
//! place. The rate is by CPU time.

use super::Settings;
use crate::clock::thread_time;
use crate::harness::{Bound, Case, Group, Unit};
use crate::pair::{MTU, fixed_buffers};
use crate::smol::loopback::LoopbackPair;
use crate::transfer::{Bytes, STALL, Transfer, gigabits};
use anyhow::{anyhow, ensure};
use std::time::{Duration, Instant};

/// Bytes of each socket buffer, for both stacks: what smoltcp's benchmark uses.
const BUFFER: usize = 65_536;
const SMOLTCP: &str = "smoltcp, its loopback benchmark";
const SMOLTCP_COPYING: &str = "smoltcp, bytes copied in and out";

/// Builds the group.
///
/// # Errors
/// When one of the connections cannot be made.
pub fn build(settings: Settings) -> anyhow::Result<Group> {
    let chunk = settings.chunk;
    let mut smoltcp = LoopbackPair::connect(MTU, BUFFER)?;
    let mut smoltcp_copying = LoopbackPair::connect(MTU, BUFFER)?;
    let mut copying = Transfer::new(fixed_buffers(BUFFER), chunk)?;
    let mut in_place = Transfer::new(fixed_buffers(BUFFER), chunk)?;
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
