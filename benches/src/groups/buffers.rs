//! The memory that bulk transfer on many connections touches: bytes of buffers that the host holds for each byte in flight.
//!
//! A buffer that holds more than what is in flight, and the next write, costs the processor's caches and saves nothing. The host's account has the blocks of
//! send buffers as a whole. It is read a hundred times a second, and so is what each connection has in flight; the figure is the one sum over the other.

use super::Settings;
use super::several::{COUNTS, Direction, PORT, busy, watch};
use crate::harness::{Case, Group, Unit, named};
use crate::network::{TransomPath, patient};
use anyhow::ensure;
use std::rc::Rc;
use std::time::{Duration, Instant};
use transom_device::tun::TunOffload;
use transom_net::Profile;

const EVERY: Duration = Duration::from_millis(10);

fn sample(
    path: &TransomPath,
    count: usize,
    span: Duration,
    settings: Settings,
) -> anyhow::Result<f64> {
    let listener = path.kernel.listen(PORT)?;
    let (mut ends, mut seen) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for _ in 0..count {
        let stream = path.connect(path.kernel.at(PORT))?;
        let (peer, _) = listener.accept()?;
        patient(&peer)?;
        seen.push(stream.try_clone()?);
        ends.push((stream, peer));
    }
    busy(ends, Direction::Send, settings, |_, stop| {
        let (begun, mut held, mut in_flight) = (Instant::now(), 0, 0);
        while begun.elapsed() < span {
            watch(EVERY, stop)?;
            held += path.stack.memory().held as u64;
            for stream in &seen {
                in_flight += stream.info()?.in_flight;
            }
        }
        ensure!(in_flight > 0, "nothing was in flight");
        Ok(held as f64 / in_flight as f64)
    })
}

/// Builds the group.
///
/// # Errors
/// When a path cannot be made.
pub fn build(settings: Settings) -> anyhow::Result<Group> {
    let mut cases = Vec::new();
    for (who, shards) in [("Transom", 1), ("Transom, two shards", 2)] {
        let path = TransomPath::with_shards(
            shards,
            TunOffload::Segmentation,
            Profile::classic(),
            Duration::ZERO,
        )?;
        let path = Rc::new(path);
        for count in COUNTS {
            let path = path.clone();
            cases.push(Case::new(named(format!("{who}, {count}")), move |span| {
                sample(&path, count, span, settings)
            }));
        }
    }
    Ok(Group::new(Unit::BytesPerByte, cases))
}
