//! Single numbers that sum up a run.

use transom_tcp::time::Duration;

/// Jain's fairness index (Jain, Chiu and Hawe, "A Quantitative Measure of Fairness and Discrimination for Resource Allocation in
/// Shared Computer Systems", 1984): (Σx)² / (n·Σx²), from 1/n when one has everything to 1 when all have the same. One when
/// there is nothing to share.
pub fn jain_index(shares: impl IntoIterator<Item = u64>) -> f64 {
    let (mut count, mut sum, mut squares) = (0u64, 0.0, 0.0);
    for share in shares {
        // Additions, multiplications and one division give the same on every machine.
        let share = share as f64;
        count += 1;
        sum += share;
        squares += share * share;
    }
    if squares > 0.0 { sum * sum / (count as f64 * squares) } else { 1.0 }
}

/// Bytes in a span of time as bits per second; zero for no time.
pub fn per_second(bytes: u64, span: Duration) -> f64 {
    if span.is_zero() {
        return 0.0;
    }
    bytes as f64 * 8e9 / span.as_nanos() as f64
}

/// The value that `percent` of a hundred do not exceed, by the nearest rank; `None` of nothing. `sorted` is in ascending order.
pub fn percentile<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}
