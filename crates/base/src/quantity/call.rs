//! A name with something in parentheses: `red(min=5 packets, max=15 packets)`.

use alloc::vec::Vec;

/// Splits `name(inside)` into the trimmed name and what is inside. A `name` alone has nothing there, not even parentheses.
/// `None` if the parentheses are not closed at the end.
pub fn call(text: &str) -> Option<(&str, Option<&str>)> {
    let text = text.trim();
    let Some((name, rest)) = text.split_once('(') else { return Some((text, None)) };
    Some((name.trim(), Some(rest.strip_suffix(')')?)))
}

/// Splits at the commas that are not inside parentheses, and trims the items. Nothing has no items.
pub fn list(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut depth = 0i32;
    text.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth <= 0
    })
    .map(str::trim)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls() {
        assert_eq!(call(" red ( a=1 , b ) "), Some(("red", Some(" a=1 , b "))));
        assert_eq!((call("red"), call("red()")), (Some(("red", None)), Some(("red", Some("")))));
        assert_eq!((call("red(a"), call("red(a) b")), (None, None));
    }

    #[test]
    fn lists_respect_parentheses() {
        assert_eq!(list(" a=1 , b(c, d), e"), ["a=1", "b(c, d)", "e"]);
        assert_eq!((list(" "), list("a,")), (Vec::new(), Vec::from(["a", ""])));
    }
}
