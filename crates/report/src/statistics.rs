//! Statistics over several runs of the same experiment with different seeds.

/// Of the values of some measure: where they are and how sure one is of their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) count: usize,
    pub(crate) mean: f64,
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
    /// Half the width of the mean's 95 % confidence interval; none of a single value.
    pub(crate) half_width: Option<f64>,
}

impl Summary {
    /// Of these values; `None` if there are none, or if one is not a number.
    ///
    /// The confidence interval is that of Student's t: mean ± t(0.975, n − 1) · s/√n, with s the sample's standard deviation. It
    /// assumes independent, roughly normal values, as different seeds should give.
    pub(crate) fn of(values: &[f64]) -> Option<Summary> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        if !sorted.iter().all(|value| value.is_finite()) {
            return None;
        }
        let count = sorted.len();
        let mean = sorted.iter().sum::<f64>() / count as f64;
        let middle = |index: usize| sorted.get(index).copied().unwrap_or(mean);
        let median = (middle((count - 1) / 2) + middle(count / 2)) / 2.0;
        let half_width = (count > 1).then(|| {
            let squares: f64 = sorted.iter().map(|value| (value - mean) * (value - mean)).sum();
            let deviation = (squares / (count - 1) as f64).sqrt();
            student_t(count - 1) * deviation / (count as f64).sqrt()
        });
        Some(Summary { count, mean, min, median, max, half_width })
    }
}

/// The 0.975 quantile of Student's t for 1 to 30 degrees of freedom.
const QUANTILES: [f64; 30] = [
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010,
    2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687,
    2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
];

/// The 0.975 quantile of Student's t. Beyond the table it is the expansion around the normal distribution's (Abramowitz and Stegun,
/// "Handbook of Mathematical Functions", 26.7.5).
fn student_t(freedom: usize) -> f64 {
    if let Some(quantile) = freedom.checked_sub(1).and_then(|index| QUANTILES.get(index)) {
        return *quantile;
    }
    let (z, n) = (1.959_964f64, freedom.max(1) as f64);
    let power = |exponent: i32| z.powi(exponent);
    let first = (power(3) + z) / 4.0;
    let second = (5.0 * power(5) + 16.0 * power(3) + 3.0 * z) / 96.0;
    let third = (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * z) / 384.0;
    z + first / n + second / (n * n) + third / (n * n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_by_hand() {
        // Mean 5, squares 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32, s² = 32/7, t(7) = 2.3646.
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((summary.count, summary.mean, summary.median), (8, 5.0, 4.5));
        assert_eq!((summary.min, summary.max), (2.0, 9.0));
        let expected = 2.3646 * (32.0f64 / 7.0).sqrt() / 8.0f64.sqrt();
        assert!((summary.half_width.unwrap() - expected).abs() < 1e-12);
        let single = Summary::of(&[3.0]).unwrap();
        assert_eq!((single.mean, single.median, single.half_width), (3.0, 3.0, None));
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[7.0, 7.0]).unwrap().half_width, Some(0.0));
    }

    #[test]
    fn quantiles_as_published() {
        // From tables of the t distribution, two-sided 95 %.
        for (freedom, expected) in
            [(1, 12.706), (10, 2.228), (30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980)]
        {
            assert!(
                (student_t(freedom) - expected).abs() < 6e-4,
                "{freedom}: {}",
                student_t(freedom)
            );
        }
        // The expansion goes on where the table ends.
        assert!(student_t(31) < student_t(30) && student_t(30) - student_t(31) < 0.004);
    }
}
