//! The marks of an axis.

/// Round positions that divide the range from `low` to `high` into about `wanted` parts: multiples of 1, 2 or 5 times a power
/// of ten. Each comes with its text.
pub fn ticks(low: f64, high: f64, wanted: usize) -> Vec<(f64, String)> {
    let span = high - low;
    if !span.is_finite() || span <= 0.0 {
        return Vec::new();
    }
    let rough = span / wanted.max(1) as f64;
    let power = rough.log10().floor() as i32;
    let base = 10f64.powi(power);
    let (step, power) = match rough / base {
        f if f <= 1.0 => (base, power),
        f if f <= 2.0 => (2.0 * base, power),
        f if f <= 5.0 => (5.0 * base, power),
        _ => (10.0 * base, power + 1),
    };
    let digits = usize::try_from(-power).unwrap_or(0);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    // A range so far from zero that its steps are lost in rounding has no end of them.
    let count = last.saturating_sub(first).clamp(-1, 1000);
    (first..=first.saturating_add(count))
        .map(|n| {
            let value = n as f64 * step;
            (value, format!("{value:.digits$}"))
        })
        .collect()
}

/// The powers of ten from `low` to `high`, both above zero; where these are fewer than two, their doubles and fivefolds too.
pub(crate) fn logarithmic_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    if !(low > 0.0 && high > low && high.is_finite()) {
        return Vec::new();
    }
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let within = |factors: &[f64]| -> Vec<f64> {
        let all = (first..=last)
            .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)));
        all.filter(|value| (low * 0.999..=high * 1.001).contains(value)).collect()
    };
    let mut places = within(&[1.0]);
    if places.len() < 3 {
        places = within(&[1.0, 2.0, 5.0]);
    }
    places.into_iter().map(|value| (value, super::short(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ticks: Vec<(f64, String)>) -> Vec<String> {
        ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn places_are_round() {
        assert_eq!(texts(ticks(0.0, 25.0, 5)), ["0", "5", "10", "15", "20", "25"]);
        assert_eq!(texts(ticks(0.0, 0.7, 4)), ["0.0", "0.2", "0.4", "0.6"]);
        assert_eq!(texts(ticks(-3.0, 4.0, 4)), ["-2", "0", "2", "4"]);
        assert!(ticks(1.0, 1.0, 4).is_empty() && ticks(0.0, f64::NAN, 4).is_empty());
        assert!(ticks(1e300, 1.1e300, 4).len() < 10);
        assert!(ticks(1e17, 1e17 + 16.0, 4).len() < 1100);
    }

    #[test]
    fn powers_of_ten_or_finer() {
        assert_eq!(texts(logarithmic_ticks(1.0, 1000.0)), ["1", "10", "100", "1000"]);
        assert_eq!(texts(logarithmic_ticks(10.0, 60.0)), ["10", "20", "50"]);
        assert!(logarithmic_ticks(0.0, 10.0).is_empty());
    }
}
