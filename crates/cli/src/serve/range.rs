//! Byte ranges (RFC 9110, section 14).

/// The part that a Range field selects from a representation of known length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    /// All of it: there is no range, or it must be ignored.
    All,
    /// The bytes from `first` to `last`, both included.
    Part {
        /// The first byte's offset.
        first: u64,
        /// The last byte's.
        last: u64,
    },
    /// Nothing that there is.
    Unsatisfiable,
}

/// Interprets the field's value. Several ranges are answered with the whole, which a server may do (section 14.2),
/// and so is what is not understood.
pub(super) fn select(value: &str, length: u64) -> Selection {
    let Some((unit, set)) = value.split_once('=') else { return Selection::All };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Selection::All;
    }
    let Some((first, last)) = set.trim().split_once('-') else { return Selection::All };
    let number = |text: &str| {
        let text = text.trim();
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // A number that does not fit is certainly beyond the end.
        digits.then(|| text.parse().unwrap_or(u64::MAX))
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first > last => Selection::All,
        (Some(first), last) if last.is_some() || last_is_open(set) => {
            if first >= length {
                Selection::Unsatisfiable
            } else {
                Selection::Part { first, last: last.unwrap_or(u64::MAX).min(length - 1) }
            }
        }
        // The last so many bytes.
        (None, Some(suffix)) if first.trim().is_empty() => {
            if suffix == 0 || length == 0 {
                Selection::Unsatisfiable
            } else {
                Selection::Part { first: length.saturating_sub(suffix), last: length - 1 }
            }
        }
        _ => Selection::All,
    }
}

/// Whether nothing follows the dash.
fn last_is_open(set: &str) -> bool {
    set.trim_end().ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::Selection::{All, Part, Unsatisfiable};
    use super::*;

    #[test]
    fn the_examples_of_the_rfc() {
        // Section 14.1.2, for a representation of 10,000 bytes.
        for (value, selection) in [
            ("bytes=0-499", Part { first: 0, last: 499 }),
            ("bytes=500-999", Part { first: 500, last: 999 }),
            ("bytes=-500", Part { first: 9500, last: 9999 }),
            ("bytes=9500-", Part { first: 9500, last: 9999 }),
        ] {
            assert_eq!(select(value, 10_000), selection, "{value}");
        }
    }

    #[test]
    fn ends_are_cut_and_the_impossible_is_refused() {
        assert_eq!(select("bytes=5-99", 10), Part { first: 5, last: 9 });
        assert_eq!(select("bytes=-99", 10), Part { first: 0, last: 9 });
        assert_eq!(select("Bytes= 9-9 ", 10), Part { first: 9, last: 9 });
        for value in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999-"] {
            assert_eq!(select(value, 10), Unsatisfiable, "{value}");
        }
        assert_eq!(select("bytes=0-", 0), Unsatisfiable);
        assert_eq!(select("bytes=-5", 0), Unsatisfiable);
    }

    #[test]
    fn anything_but_one_byte_range_is_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-4",
            "bytes=a-b",
            "bytes=1-2,5-6",
            "bytes=+1-2",
            "bytes=1-x",
            "bytes=x-1",
            "items=0-5",
            "bytes=1--2",
        ] {
            assert_eq!(select(value, 10), All, "{value}");
        }
    }
}
