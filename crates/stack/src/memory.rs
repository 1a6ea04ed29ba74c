//! How much memory the data of all connections may take (what `tcp_mem` is to Linux).
//!
//! Each connection has bounded buffers, but a host has many connections. A peer that leaves a hole in its stream makes its connection hold megabytes
//! for as long as it likes. So the host adds up all buffered data, and acts in two steps:
//!
//! - Above [`pressure`](MemoryLimits::pressure), receive windows and send buffers grow no further, and data beyond a gap is not accepted. Held data
//!   beyond gaps is dropped (RFC 2018 section 8 allows that), from a few connections with each packet. This continues until less than
//!   [`low`](MemoryLimits::low) is held.
//! - Above [`limit`](MemoryLimits::limit), windows do not open any further, data in order is accepted only up to [`RESERVE`] for each connection, and
//!   writers wait. So every connection makes progress, even if slowly.
//!
//! The sum has the buffered bytes, at least 512 for each early piece, and the blocks of send buffers. Connections, tables and half-open connections
//! have separate bounds.

pub use transom_tcp::RESERVE;
use transom_tcp::{Connection, MemoryState};

/// Thresholds, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryLimits {
    /// Below this, pressure ends.
    pub low: usize,
    /// Above this there is pressure.
    pub pressure: usize,
    /// More is not taken in, beyond a reserve for each connection.
    pub limit: usize,
}

transom_tcp::setters! {
    const MemoryLimits:
    with_low = low: usize,
    with_pressure = pressure: usize,
    with_limit = limit: usize,
}

impl MemoryLimits {
    /// No limits: for simulations of networks.
    pub const NONE: MemoryLimits =
        MemoryLimits { low: usize::MAX, pressure: usize::MAX, limit: usize::MAX };

    /// `limit` bytes at most, with pressure from two thirds of it on, in the proportions of Linux.
    pub const fn of(limit: usize) -> Self {
        MemoryLimits { low: limit / 2, pressure: limit / 3 * 2, limit }
    }

    /// Whether they grow.
    pub(crate) fn are_ordered(&self) -> bool {
        self.low <= self.pressure && self.pressure <= self.limit
    }
}

impl core::iter::Sum for MemoryInfo {
    /// That of several stacks together; the state is that of the most pressed.
    fn sum<I: Iterator<Item = Self>>(infos: I) -> Self {
        infos.fold(MemoryInfo::default(), |a, b| MemoryInfo {
            held: a.held + b.held,
            state: a.state.max(b.state),
            // One pressure is that of all shards.
            pressures: a.pressures.max(b.pressures),
            pruned: a.pruned + b.pruned,
            spare: a.spare + b.spare,
        })
    }
}

impl Default for MemoryLimits {
    /// 384 MiB.
    fn default() -> Self {
        MemoryLimits::of(384 << 20)
    }
}

/// The memory of the host's connections, and the effects of the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryInfo {
    /// Bytes that are buffered.
    pub held: usize,
    /// Whether there is pressure.
    pub state: MemoryState,
    /// Times that pressure began.
    pub pressures: u64,
    /// Bytes beyond gaps that were dropped.
    pub pruned: u64,
    /// Bytes of memory that connections have given back, and that the next data to be sent will lie in. They are not part of what is held: they go when
    /// memory is short.
    pub spare: usize,
}

/// Under pressure, this many connections are checked for data to drop with each packet.
const CHECKED_PER_PACKET: u32 = 8;

/// The account.
#[derive(Debug)]
pub(crate) struct Memory {
    limits: MemoryLimits,
    info: MemoryInfo,
    /// Bytes that other shards of the host hold, as far as is known here.
    elsewhere: usize,
    /// The index of the next connection to check.
    cursor: u32,
}

impl Memory {
    pub(crate) fn new(limits: MemoryLimits) -> Self {
        Memory { limits, info: MemoryInfo::default(), elsewhere: 0, cursor: 0 }
    }

    pub(crate) fn info(&self) -> MemoryInfo {
        self.info
    }

    #[inline]
    pub(crate) fn state(&self) -> MemoryState {
        self.info.state
    }

    /// A connection's memory has changed from `before` to `now` bytes.
    #[inline]
    pub(crate) fn change(&mut self, before: usize, now: usize) {
        self.info.held = self.info.held.saturating_sub(before).saturating_add(now);
        self.look();
    }

    /// Other shards of the host hold so many bytes.
    pub(crate) fn learn_elsewhere(&mut self, bytes: usize) {
        self.elsewhere = bytes;
        self.look();
    }

    #[inline]
    fn look(&mut self) {
        let held = self.info.held.saturating_add(self.elsewhere);
        if held > self.limits.pressure || self.info.state != MemoryState::Normal {
            self.judge(held);
        }
    }

    #[cold]
    fn judge(&mut self, held: usize) {
        let before = self.info.state;
        self.info.state = if held > self.limits.limit {
            MemoryState::Full
        } else if held > self.limits.pressure
            || (before != MemoryState::Normal && held >= self.limits.low)
        {
            MemoryState::Pressure
        } else {
            MemoryState::Normal
        };
        if before == MemoryState::Normal && self.info.state != MemoryState::Normal {
            self.info.pressures += 1;
        }
    }

    /// The indices of connections to check now, of `places` in all.
    pub(crate) fn next_candidates(&mut self, places: u32) -> impl Iterator<Item = u32> + use<> {
        let (from, count) = (self.cursor, CHECKED_PER_PACKET.min(places));
        self.cursor = from.wrapping_add(count).checked_rem(places).unwrap_or(0);
        (0..count).map(move |n| from.wrapping_add(n) % places.max(1))
    }

    /// Drops what a connection holds beyond a gap.
    pub(crate) fn prune(&mut self, connection: &mut Connection) {
        self.info.pruned += connection.prune_out_of_order() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Pressure begins above its threshold and ends below the low one.
    #[test]
    fn pressure_has_two_ends() {
        let mut memory = Memory::new(MemoryLimits { low: 100, pressure: 200, limit: 300 });
        let mut held = 0;
        for (now, expected) in [
            (200, MemoryState::Normal),
            (201, MemoryState::Pressure),
            (300, MemoryState::Pressure),
            (301, MemoryState::Full),
            (250, MemoryState::Pressure),
            (100, MemoryState::Pressure),
            (99, MemoryState::Normal),
            (150, MemoryState::Normal),
            (500, MemoryState::Full),
            (0, MemoryState::Normal),
        ] {
            memory.change(held, now);
            held = now;
            assert_eq!(memory.state(), expected, "{now}");
        }
        assert_eq!(memory.info().pressures, 2);
    }

    #[test]
    fn every_place_is_looked_at_in_turn() {
        for places in [1_u32, 7, 8, 9, 100] {
            let mut memory = Memory::new(MemoryLimits::default());
            let mut seen = vec![0; places as usize];
            for _ in 0..places.div_ceil(CHECKED_PER_PACKET) {
                memory.next_candidates(places).for_each(|place| seen[place as usize] += 1);
            }
            assert!(seen.iter().all(|&times| times > 0), "{places} {seen:?}");
        }
        assert_eq!(Memory::new(MemoryLimits::NONE).next_candidates(0).count(), 0);
    }
}
