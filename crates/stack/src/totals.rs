//! Counts that the shards of a host keep together, so that its limits hold for the whole host.
//!
//! Each shard has a line of its own, which it alone writes. The others read it for each new connection. For memory they read it when their own has changed by
//! 1/64 of what is pressure. So packets of connections touch no memory that another shard writes.
//!
//! Shards that count at the same moment may exceed a limit together. Memory may exceed its limit by one such step for each shard.

use alloc::boxed::Box;
use core::array;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use transom_tcp::time::{Duration, Instant};

/// The numbers of one shard, in cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
struct Line<const N: usize>([AtomicUsize; N]);

/// `N` numbers for each shard.
#[derive(Debug)]
struct Lines<const N: usize>(Box<[Line<N>]>);

impl<const N: usize> Lines<N> {
    fn new(shards: u32) -> Self {
        let line = |_| Line(array::from_fn(|_| AtomicUsize::new(0)));
        Lines((0..shards.max(1)).map(line).collect())
    }

    /// Says the numbers of shard `index`.
    fn set(&self, index: u32, numbers: [usize; N]) {
        let Some(line) = self.0.get(index as usize) else { return };
        for (place, number) in line.0.iter().zip(numbers) {
            if place.load(Relaxed) != number {
                place.store(number, Relaxed);
            }
        }
    }

    /// The numbers of all shards but `index`.
    fn others(&self, index: u32) -> impl Iterator<Item = [usize; N]> {
        let others = (0..).zip(&self.0).filter(move |&(other, _)| other != index);
        others.map(|(_, line)| array::from_fn(|n| line.0[n].load(Relaxed)))
    }
}

/// Adds up numbers place by place.
fn sums<const N: usize>(lines: impl Iterator<Item = [usize; N]>) -> [usize; N] {
    lines.fold([0; N], |sums, line| array::from_fn(|n| sums[n].saturating_add(line[n])))
}

fn millis(at: Instant) -> usize {
    usize::try_from(at.as_nanos() / 1_000_000).unwrap_or(usize::MAX)
}

/// The counts of a host, which its shards share ([`StackConfig::totals`](crate::config::StackConfig::totals)).
#[derive(Debug)]
#[non_exhaustive]
pub struct HostTotals {
    lines: Lines<4>,
    /// The beginning of the present window of ICMP errors, in milliseconds, and the errors in it.
    icmp_began: AtomicUsize,
    icmp_errors: AtomicUsize,
}

/// What one shard counts, or all others together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostCounts {
    pub(crate) connections: usize,
    pub(crate) half_open: usize,
    pub(crate) time_wait: usize,
    /// Bytes.
    pub(crate) memory: usize,
}

impl HostTotals {
    /// For a host of so many shards.
    pub fn new(shards: u32) -> Self {
        let lines = Lines::new(shards);
        HostTotals { lines, icmp_began: AtomicUsize::new(0), icmp_errors: AtomicUsize::new(0) }
    }

    pub(crate) fn tell(&self, shard: u32, counts: HostCounts) {
        let HostCounts { connections, half_open, time_wait, memory } = counts;
        self.lines.set(shard, [connections, half_open, time_wait, memory]);
    }

    pub(crate) fn others(&self, shard: u32) -> HostCounts {
        let [connections, half_open, time_wait, memory] = sums(self.lines.others(shard));
        HostCounts { connections, half_open, time_wait, memory }
    }

    /// For so many shards.
    pub(crate) fn shards(&self) -> usize {
        self.lines.0.len()
    }

    /// Whether one more ICMP error may be sent, `limit` of which are allowed in each `window`. If so, it counts.
    pub(crate) fn allows_icmp_error(&self, now: Instant, window: Duration, limit: u32) -> bool {
        let millis = millis(now);
        let window = (window.as_nanos() / 1_000_000) as usize;
        let began = self.icmp_began.load(Relaxed);
        // Another shard may have begun a window a moment after this time.
        if millis.checked_sub(began).is_some_and(|since| since >= window)
            && self.icmp_began.compare_exchange(began, millis, Relaxed, Relaxed).is_ok()
        {
            self.icmp_errors.store(0, Relaxed);
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = |sent: usize| (sent < limit).then_some(sent + 1);
        self.icmp_errors.fetch_update(Relaxed, Relaxed, more).is_ok()
    }
}

/// The queues of a listener that is in all shards of a host ([`ListenConfig::totals`](crate::listener::ListenConfig::totals)).
#[derive(Debug)]
#[non_exhaustive]
pub struct ListenTotals(Lines<5>);

/// What one shard's part of a listener has, or that of all others together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListenCounts {
    /// Connections that wait to be accepted.
    pub(crate) accept: usize,
    /// Half-open connections and held SYNs.
    pub(crate) half_open: usize,
    /// Connections that opened fast and wait for the end of their handshake.
    pub(crate) fast: usize,
}

impl ListenTotals {
    /// For a host of so many shards.
    pub fn new(shards: u32) -> Self {
        ListenTotals(Lines::new(shards))
    }

    /// Says what a part has: its counts, its resets of fast opens, and until when these count.
    pub(crate) fn tell(
        &self,
        shard: u32,
        counts: ListenCounts,
        (resets, until): (usize, Option<Instant>),
    ) {
        let ListenCounts { accept, half_open, fast } = counts;
        self.0.set(shard, [accept, half_open, fast, resets, until.map_or(0, millis)]);
    }

    pub(crate) fn others(&self, shard: u32) -> ListenCounts {
        let [accept, half_open, fast, ..] = sums(self.0.others(shard));
        ListenCounts { accept, half_open, fast }
    }

    /// The resets of all shards but `shard` that count at `now`. A shard takes back its count only when it is asked something, so each count has an end.
    pub(crate) fn resets_of_others(&self, shard: u32, now: Instant) -> usize {
        let counts = |[.., resets, until]: [usize; 5]| (millis(now) < until).then_some(resets);
        self.0.others(shard).filter_map(counts).fold(0, usize::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shard_reads_the_others_and_not_itself() {
        let totals = HostTotals::new(3);
        let counts = |connections| HostCounts { connections, memory: 10, ..HostCounts::default() };
        for (shard, connections) in [(0, 1), (1, 20), (2, 300), (1, 40)] {
            totals.tell(shard, counts(connections));
        }
        assert_eq!(totals.others(0).connections, 340);
        assert_eq!(totals.others(1), HostCounts { memory: 20, ..counts(301) });
        assert_eq!(HostTotals::new(1).others(0), HostCounts::default());
    }

    /// A shard that hears of no connection for an hour still tells the resets of an hour ago.
    #[test]
    fn resets_of_another_shard_count_until_their_time() {
        let totals = ListenTotals::new(2);
        let counts = ListenCounts { fast: 3, ..ListenCounts::default() };
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        totals.tell(1, counts, (20, Some(at(60_000))));
        assert_eq!(totals.others(0), counts);
        assert_eq!([59_999, 60_000].map(|ms| totals.resets_of_others(0, at(ms))), [20, 0]);
    }

    #[test]
    fn icmp_errors_count_for_all_shards_in_windows() {
        let totals = HostTotals::new(2);
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let second = Duration::from_secs(1);
        let sent = |ms| totals.allows_icmp_error(at(ms), second, 2);
        assert_eq!([sent(5_000), sent(5_001), sent(5_999)], [true, true, false]);
        assert_eq!([sent(6_000), sent(6_500), sent(6_999), sent(7_000)], [true, true, false, true]);
        // A shard whose clock was read earlier begins no new window.
        assert_eq!([sent(6_999), sent(6_999)], [true, false]);
    }
}
