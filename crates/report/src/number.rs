//! Numbers as people read them.

/// A number with as many digits after its point as another has in [`short()`]: how exact that other is.
pub(crate) fn short_as(value: f64, other: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let digits = short(other).split_once('.').map_or(0, |(_, digits)| digits.len());
    // A number that is small beside the other does not become zero.
    let text = format!("{value:.*}", digits.max(2));
    if text.parse() == Ok(0.0) && value != 0.0 { short(value) } else { text }
}

/// A number as a person would say it: four significant digits.
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    let digits = if value == 0.0 { 0 } else { 3 - value.abs().log10().floor() as i32 };
    let text = format!("{value:.*}", digits.clamp(0, 6) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_are_as_people_say_them() {
        for (value, text) in [
            (0.0, "0"),
            (0.99841, "0.9984"),
            (18.1776, "18.18"),
            (1234.5, "1234"),
            (2.0, "2"),
            (0.000_012_3, "0.000012"),
            (-3.25, "-3.25"),
        ] {
            assert_eq!(short(value), text);
        }
        assert_eq!(short(f64::NAN), "–");
        for (value, other, text) in [
            (0.0038, 9.647, "0.004"),
            (3.12345, 6.641, "3.123"),
            (53.9, 189.9, "53.90"),
            (0.000_04, 9.6, "0.00004"),
            (0.0, 52.8, "0.00"),
        ] {
            assert_eq!(short_as(value, other), text);
        }
    }
}
