//! From samples to curves.

use transom_sim::measure::per_second;
use transom_tcp::time::Instant;

use super::seen::seconds;

/// A rate is averaged over at least this fraction of the shown time. Between two samples a TCP sends nothing or at the link's rate, so
/// only an average over several samples is useful. Windows and queues are shown sample by sample.
const PARTS: usize = 400;

/// A count of bytes as a rate in Mbit/s: a point at the end of each span, and the number of samples in one.
pub(super) fn rate(samples: &[(Instant, u64)]) -> (Vec<(f64, f64)>, usize) {
    let span = samples.len().div_ceil(PARTS).max(1);
    let ends: Vec<&(Instant, u64)> = samples.iter().step_by(span).collect();
    let pairs = ends.iter().zip(ends.iter().skip(1));
    let rate = pairs.map(|((before, one), (at, next))| {
        (seconds(*at), per_second(next.saturating_sub(*one), at.since(*before)) / 1e6)
    });
    (rate.collect(), span)
}

/// The moments at which a count has grown, each at the height that `at` gives.
pub(super) fn growth(counts: &[(f64, u64)], height: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
    let pairs = counts.iter().zip(counts.iter().skip(1)).enumerate();
    let grown = pairs.filter(|(_, ((_, before), (_, after)))| after > before);
    grown.map(|(number, (_, (at, _)))| (*at, height(number + 1))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_by_hand() {
        let at = |second: u64| Instant::from_secs(second);
        // 125 kB in one second are a megabit per second.
        let (points, span) =
            rate(&[(at(0), 0), (at(1), 125_000), (at(2), 125_000), (at(4), 625_000)]);
        assert_eq!(span, 1);
        assert_eq!(points, [(1.0, 1.0), (2.0, 0.0), (4.0, 2.0)]);
        // A thousand samples are averaged three by three.
        let many: Vec<_> = (0..1000).map(|n| (at(n), n * 125_000)).collect();
        let (points, span) = rate(&many);
        assert_eq!((span, points.len()), (3, 333));
        assert!(points.iter().all(|(_, rate)| (rate - 1.0).abs() < 1e-9));
    }

    #[test]
    fn growth_is_seen_where_it_happens() {
        let counts = [(0.0, 0), (1.0, 0), (2.0, 3), (3.0, 3), (4.0, 4)];
        assert_eq!(growth(&counts, |n| n as f64 * 10.0), [(2.0, 20.0), (4.0, 40.0)]);
    }
}
