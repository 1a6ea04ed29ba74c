//! A problem in its printed form: the message, the position, the line, a caret under it, and a
//! hint.

use super::error::Diagnostic;
use std::fmt::{self, Write};

/// The line and column of a byte of `text`.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}

pub(super) fn diagnostic(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    text: &str,
    diagnostic: &Diagnostic,
) -> fmt::Result {
    let Diagnostic { message, hint, with, line, column, span } = diagnostic;
    writeln!(f, "error: {message}")?;
    let Some(span) = span else { return writeln!(f, " --> {name}") };
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    writeln!(f, "{margin}--> {name}:{line}:{column}")?;
    writeln!(f, "{margin} |")?;
    let quoted = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    writeln!(f, "{number} | {}", quoted.trim_end())?;
    write!(f, "{margin} | ")?;
    let mut characters = quoted.chars();
    for character in characters.by_ref().take(column - 1) {
        // A tab is as wide above as below.
        f.write_char(if character == '\t' { '\t' } else { ' ' })?;
    }
    // A part that continues in the next line is marked to the end of this one.
    let marked = text.get(span.clone()).unwrap_or_default();
    let marked = marked.lines().next().unwrap_or_default().trim_end().chars().count();
    let left = characters.as_str().trim_end().chars().count();
    writeln!(f, "{}", "^".repeat(marked.min(left).max(1)))?;
    if let Some(with) = with {
        writeln!(f, "{margin} = with {with}")?;
    }
    if let Some(hint) = hint {
        writeln!(f, "{margin} = hint: {hint}")?;
    }
    Ok(())
}
