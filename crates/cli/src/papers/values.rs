//! Values in units that suit them.

use transom_lab::scenario::Unit;

/// A value in bits per second, nanoseconds, bytes, or without a unit, as people write it.
pub(super) fn shown(unit: Unit, value: f64) -> String {
    let steps: &[(f64, &str)] = match unit {
        Unit::Rate => &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
        Unit::Time => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
        Unit::Size => &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
        Unit::Number => &[],
    };
    let step = steps.iter().find(|(size, _)| value.abs() >= *size).or(steps.last());
    match step {
        Some((size, name)) => format!("{} {name}", number(value / size)),
        None => number(value),
    }
}

/// A number with four digits that count, at least as far as its point.
pub(super) fn number(value: f64) -> String {
    let is_small = value.is_finite() && value != 0.0 && value.abs().log10().floor() < -4.0;
    if is_small { format!("{value:.2e}") } else { transom_report::short(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_unit_that_suits_them() {
        assert_eq!(shown(Unit::Rate, 101.25e6), "101.2 Mbit/s");
        assert_eq!(shown(Unit::Time, 600e9), "600 s");
        assert_eq!(shown(Unit::Time, 2.5e6), "2.5 ms");
        assert_eq!(shown(Unit::Size, 49e9), "49 GB");
        assert_eq!(shown(Unit::Number, 0.98765), "0.9877");
        assert_eq!(shown(Unit::Number, 28000.0), "28000");
        assert_eq!(shown(Unit::Number, 0.0), "0");
        assert_eq!(number(0.000001234), "1.23e-6");
        assert_eq!(number(f64::NAN), "–");
    }
}
