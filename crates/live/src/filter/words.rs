//! The words of a filter.

/// The words of a text, with one to look ahead.
pub(super) struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    pub(super) fn of(text: &'a str) -> Words<'a> {
        Words { rest: text }
    }

    /// The next word, which stays.
    pub(super) fn peek(&self) -> Option<&'a str> {
        Some(split(self.rest)?.0)
    }

    /// The next word.
    #[allow(clippy::should_implement_trait)]
    pub(super) fn next(&mut self) -> Option<&'a str> {
        let (word, rest) = split(self.rest)?;
        self.rest = rest;
        Some(word)
    }

    /// Takes the next word if it is one of these.
    pub(super) fn take(&mut self, words: &[&str]) -> bool {
        let found = self.peek().is_some_and(|word| words.contains(&word));
        if found {
            self.next();
        }
        found
    }
}

/// The first word and the rest. Brackets and signs are words of their own, without spaces around them.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let first = text.chars().next()?;
    let is_sign = |c: char| matches!(c, '(' | ')' | '=' | '!' | '<' | '>' | '&' | '|');
    if first == '(' || first == ')' {
        return text.split_at_checked(1);
    }
    let end = if is_sign(first) {
        let double = ["==", "!=", "<=", ">=", "&&", "||"].iter().any(|sign| text.starts_with(sign));
        if double { 2 } else { 1 }
    } else {
        text.find(|c: char| c.is_whitespace() || is_sign(c)).unwrap_or(text.len())
    };
    text.split_at_checked(end)
}

/// An address without the brackets that IPv6 addresses can have.
pub(super) fn unbracketed(text: &str) -> &str {
    text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text)
}
