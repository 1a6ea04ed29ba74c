//! Defects of a policy file, shown at their places, as the laboratory shows those of a scenario.

use std::fmt::Write as _;
use std::ops::Range;

/// The keys of a policy file.
const KEYS: [&str; 7] = ["policy", "flows", "idle", "mss", "returns-only", "rate", "queue"];

/// A defect of a policy file.
#[derive(Debug)]
pub(super) struct Defect {
    /// Its bytes in the text, if it has a place.
    pub(super) span: Option<Range<usize>>,
    /// The cause.
    pub(super) message: String,
    /// What helps.
    pub(super) hint: Option<String>,
}

impl Defect {
    /// A defect of the whole file.
    pub(super) fn whole(message: impl std::fmt::Display) -> Self {
        Defect { span: None, message: message.to_string(), hint: None }
    }

    /// A defect of a value.
    pub(super) fn at(span: Range<usize>, message: impl std::fmt::Display) -> Self {
        Defect { span: Some(span), message: message.to_string(), hint: None }
    }

    /// A text that is no TOML, or has keys or kinds of values that a policy file does not have.
    pub(super) fn of_toml(text: &str, error: &toml::de::Error) -> Self {
        let message = error.message();
        let unknown =
            message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
        let Some(key) = unknown else {
            return Defect { span: error.span(), message: message.to_owned(), hint: None };
        };
        let table = text.get(error.span().unwrap_or_default()).unwrap_or_default().starts_with('[');
        let hint = if table || key == "scenario" {
            "a policy file has no tables; `transom lab check` checks scenarios".to_owned()
        } else {
            let nearest = KEYS.iter().min_by_key(|known| strsim::damerau_levenshtein(known, key));
            match nearest.filter(|known| strsim::damerau_levenshtein(known, key) <= 2) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None => format!("there is {}", KEYS.join(", ")),
            }
        };
        let message = format!("a policy file has no key `{key}`");
        Defect { span: error.span(), message, hint: Some(hint) }
    }

    /// The defect with the line that has it: the cause first.
    pub(super) fn shown(&self, name: &str, text: &str) -> String {
        let mut shown = self.message.trim_end().to_owned();
        if let Some(span) = &self.span {
            let before = text.get(..span.start).unwrap_or(text);
            let (line, begins) =
                (before.matches('\n').count() + 1, before.rfind('\n').map_or(0, |at| at + 1));
            let column = before.get(begins..).unwrap_or_default().chars().count() + 1;
            let quoted = text.lines().nth(line - 1).unwrap_or_default().trim_end();
            let margin = " ".repeat(line.to_string().len());
            let marked = text.get(span.clone()).unwrap_or_default();
            let marked = marked.lines().next().unwrap_or_default().chars().count();
            let left = quoted.chars().count().saturating_sub(column - 1);
            let _ = write!(
                shown,
                "\n{margin}--> {name}:{line}:{column}\n{margin} |\n{line} | {quoted}\n{margin} | {}{}",
                " ".repeat(column - 1),
                "^".repeat(marked.min(left).max(1)),
            );
            if let Some(hint) = &self.hint {
                let _ = write!(shown, "\n{margin} = hint: {hint}");
            }
        } else {
            shown = format!("{name}: {shown}");
            if let Some(hint) = &self.hint {
                let _ = write!(shown, " ({hint})");
            }
        }
        shown
    }
}
