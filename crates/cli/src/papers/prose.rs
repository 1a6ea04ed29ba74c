//! Numbers in the prose of a page.
//!
//! A number that was measured is filled in from the stored values: `{{key}}` is the mean of the page's number with this key, `{{key: all}}` has its
//! range and runs too. Numbers that are typed all the same go stale when an experiment is run again. So each must be found among the values that the
//! page shows, or be listed in the text as one that no stored value has.

/// A number with so many digits that count is hardly there by chance.
const TELLING: usize = 3;

/// Factors between the units in which a value may be said.
const FACTORS: [f64; 7] = [1.0, 100.0, 0.01, 1e3, 1e-3, 1e6, 1e-6];

/// A number as it is written.
#[derive(Clone, Debug, PartialEq)]
struct Written<'a> {
    text: &'a str,
    value: f64,
    /// Half of its last digit.
    half: f64,
    digits: usize,
}

/// The numbers of a text; those that are a part of a word, such as "B1" or "fig5", are none.
fn numbers(text: &str) -> Vec<Written<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() {
            let next_is_digit = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
            let joins = (bytes[at] == b'.' || bytes[at] == b',') && next_is_digit;
            if !(bytes[at].is_ascii_digit() || joins) {
                break;
            }
            at += 1;
        }
        let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphabetic());
        let before = start.checked_sub(1).and_then(|before| bytes.get(before));
        if is_word(before) || before == Some(&b'_') || before == Some(&b'/') {
            continue;
        }
        let written = &text[start..at];
        let plain: String = written.chars().filter(|c| *c != ',').collect();
        let Ok(value) = plain.parse::<f64>() else { continue };
        let decimals = plain.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let half = 0.5 * 10f64.powi(-i32::try_from(decimals).unwrap_or(0));
        let digits = plain.trim_start_matches(['0', '.']).chars().filter(char::is_ascii_digit);
        found.push(Written { text: written, value, half, digits: digits.count() });
    }
    found
}

/// The numbers of `prose` that no number of `shown` rounds to, and that `typed` does not list.
pub(super) fn strange(prose: &str, shown: &str, typed: &[String]) -> Vec<String> {
    let known: Vec<f64> = numbers(shown).into_iter().map(|number| number.value).collect();
    let is_known = |one: &Written<'_>| {
        let near = |value: f64| (value - one.value).abs() <= one.half * 1.02;
        known.iter().any(|value| FACTORS.iter().any(|factor| near(value * factor)))
    };
    let mut strange: Vec<String> = Vec::new();
    for one in numbers(prose) {
        let telling = one.digits >= TELLING || one.text.contains('.');
        let listed = typed.iter().any(|text| text == one.text);
        if telling && !listed && !is_known(&one) && !strange.iter().any(|text| text == one.text) {
            strange.push(one.text.to_owned());
        }
    }
    strange
}

/// The text with its places filled in, and the keys that nothing has.
pub(super) fn filled(
    text: &str,
    value: &dyn Fn(&str, bool) -> Option<String>,
) -> (String, Vec<String>) {
    let (mut rest, mut full, mut unknown) = (text, String::new(), Vec::new());
    while let Some((before, after)) = rest.split_once("{{") {
        full += before;
        let Some((key, behind)) = after.split_once("}}") else {
            full += "{{";
            rest = after;
            continue;
        };
        let (name, all) = match key.split_once(':') {
            Some((name, form)) => (name.trim(), form.trim() == "all"),
            None => (key.trim(), false),
        };
        match value(name, all) {
            Some(value) => full += &value,
            None => {
                unknown.push(name.to_owned());
                full += "not measured";
            }
        }
        rest = behind;
    }
    full += rest;
    (full, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_as_they_are_written() {
        let of = |text| numbers(text).into_iter().map(|one| one.value).collect::<Vec<_>>();
        assert_eq!(of("21,162 packets, 39.9 kbit/s."), [21_162.0, 39.9]);
        assert_eq!(of("ltcp/fig5, RFC6298 and B1; section 3.2"), [3.2]);
        assert_eq!(of("0.82 to 0.90, of 10 seeds"), [0.82, 0.90, 10.0]);
    }

    /// A rounded value, one in percent, and one in another unit are known; a stale one is not.
    #[test]
    fn a_number_that_no_value_rounds_to_is_strange() {
        let shown = "| 0.8244 | 39913 bit/s | 21161.6 |";
        assert!(strange("0.82 or 82.4 %, 39.9 kbit/s, 21,162 packets", shown, &[]).is_empty());
        assert_eq!(strange("0.83 and 40.1", shown, &[]), ["0.83", "40.1"]);
        assert!(strange("0.83", shown, &["0.83".into()]).is_empty());
        assert!(strange("61 transfers, 5 seeds", shown, &[]).is_empty(), "too short to tell");
    }

    #[test]
    fn places_are_filled_in() {
        let value = |key: &str, all: bool| match (key, all) {
            ("mean", false) => Some("5 s".into()),
            ("mean", true) => Some("5 s (3 runs)".into()),
            _ => None,
        };
        let (text, unknown) = filled("{{mean}}, {{mean: all}} and {{other}}.", &value);
        assert_eq!(text, "5 s, 5 s (3 runs) and not measured.");
        assert_eq!(unknown, ["other"]);
    }
}
