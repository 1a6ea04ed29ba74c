//! Thinning of curves that have more points than a chart has pixels.
//!
//! The time axis is divided into equal intervals. Of each, the first, the lowest, the highest and the last point stay. A
//! line through those covers the same pixels as the whole line, as long as an interval is not wider than a pixel (Jugel et
//! al., "M4: A Visualization-Oriented Time Series Data Aggregation", 2014). Nothing is averaged, so a spike stays a spike.

/// The most points of a curve in a page.
pub const MOST_POINTS: usize = 4000;

/// At most `most` of `points` (which is four or more), in the order of time. Points without a finite time are left out, and
/// runs of gaps become one.
pub fn decimate(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let mut points: Vec<_> = points.iter().copied().filter(|(x, _)| x.is_finite()).collect();
    points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    points.dedup_by(|(_, later), (_, earlier)| !later.is_finite() && !earlier.is_finite());
    let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) else {
        return points;
    };
    if points.len() <= most {
        return points;
    }
    let (origin, span) = (*first, last - first);
    let mut thinned = Vec::new();
    // The finest first. A curve that only rises takes two points in each interval, since its first is its lowest; no
    // curve takes more than four.
    for intervals in [most / 2, most / 3, most / 4] {
        thinned = extremes(&points, origin, span, intervals.max(1));
        if thinned.len() <= most {
            break;
        }
    }
    thinned
}

/// The representatives of each of `intervals` equal parts of the `span` seconds after `origin`.
fn extremes(points: &[(f64, f64)], origin: f64, span: f64, intervals: usize) -> Vec<(f64, f64)> {
    let width = span / intervals as f64;
    // A float cast to an integer saturates: a width of zero puts everything into one interval.
    let interval = |x: f64| (((x - origin) / width) as usize).min(intervals - 1);
    points
        .chunk_by(|(a, _), (b, _)| interval(*a) == interval(*b))
        .flat_map(representatives)
        .collect()
}

/// The first, lowest, highest and last of a non-empty run of points, each once and in their order.
fn representatives(run: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let finite = || run.iter().enumerate().filter(|(_, (_, y))| y.is_finite());
    let by_height = |a: &(usize, &(f64, f64)), b: &(usize, &(f64, f64))| a.1.1.total_cmp(&b.1.1);
    let mut chosen = vec![0, run.len() - 1];
    chosen.extend(finite().min_by(by_height).map(|(index, _)| index));
    chosen.extend(finite().max_by(by_height).map(|(index, _)| index));
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().map(|index| run[index]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimate(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        super::decimate(points, MOST_POINTS)
    }

    #[test]
    fn short_curves_are_left_alone() {
        assert_eq!(decimate(&[]), []);
        let points: Vec<_> = (0..MOST_POINTS).map(|i| (i as f64, (i * 7 % 13) as f64)).collect();
        assert_eq!(decimate(&points), points);
    }

    #[test]
    fn spikes_and_both_ends_survive() {
        let mut points: Vec<_> = (0..1_000_000).map(|i| (i as f64 / 1000.0, 5.0)).collect();
        points[123_456].1 = 99.0;
        points[654_321].1 = -99.0;
        let thin = decimate(&points);
        assert!(thin.len() <= MOST_POINTS && thin.len() > MOST_POINTS / 3, "{}", thin.len());
        for kept in [points[0], points[123_456], points[654_321], points[999_999]] {
            assert!(thin.contains(&kept), "{kept:?}");
        }
        assert!(thin.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn every_interval_keeps_its_extremes() {
        // A sawtooth of period 10 with at least ten points in an interval: 0 and 9 are in every one.
        let points: Vec<_> = (0..200_000).map(|i| (f64::from(i), f64::from(i % 10))).collect();
        let thin = decimate(&points);
        assert!(thin.len() <= MOST_POINTS);
        let count = |height: f64| thin.iter().filter(|(_, y)| *y == height).count();
        assert!(count(0.0) >= MOST_POINTS / 4 && count(9.0) >= MOST_POINTS / 4);
    }

    #[test]
    fn the_worst_curve_still_fits_and_a_rising_one_uses_the_room() {
        // Shuffled heights: first, lowest, highest and last differ in almost every interval.
        let noise = |i: u32| f64::from(i.wrapping_mul(2_654_435_761) >> 8);
        let rough: Vec<_> = (0..300_000).map(|i| (f64::from(i), noise(i))).collect();
        let kept = decimate(&rough).len();
        assert!((3900..=MOST_POINTS).contains(&kept), "{kept}");
        let rising: Vec<_> = (0..300_000).map(|i| (f64::from(i), f64::from(i))).collect();
        let kept = decimate(&rising).len();
        assert!((3900..=MOST_POINTS).contains(&kept), "{kept}");
    }

    #[test]
    fn a_burst_at_one_instant_keeps_its_extent() {
        let points: Vec<_> = (0..10_000).map(|i| (1.0, i as f64)).collect();
        assert_eq!(decimate(&points), [(1.0, 0.0), (1.0, 9999.0)]);
    }

    #[test]
    fn bad_numbers_are_left_out_and_gaps_kept() {
        let gap = f64::NAN;
        let thin = decimate(&[(f64::NAN, 1.0), (2.0, 2.0), (1.0, gap), (1.5, gap), (0.0, 0.0)]);
        assert_eq!(thin.len(), 3);
        assert_eq!((thin[0], thin[2]), ((0.0, 0.0), (2.0, 2.0)));
        assert!(thin[1].0 == 1.0 && thin[1].1.is_nan());
    }
}
