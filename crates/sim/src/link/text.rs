//! The small syntax of link options: `name(first, second)` and lists that respect parentheses.

use crate::units::UnitError;

/// Why a text is not the link option it was meant to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SyntaxError {
    /// A number in it is wrong.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The text has another form.
    #[error("`{text}` is not a {what}: write {forms}")]
    Form {
        /// The thing to be read, such as "loss model".
        what: &'static str,
        /// The text.
        text: String,
        /// The accepted forms.
        forms: &'static str,
    },
    /// It is no queue.
    #[error(transparent)]
    Queue(#[from] transom_router::queue::ConfigError),
    /// It is no window policy.
    #[error(transparent)]
    Window(Box<transom_router::window::ControlConfigError>),
    /// The form is right but the values make no sense together.
    #[error("`{text}` is not valid: {why}")]
    Nonsense {
        /// The text.
        text: String,
        /// The defect.
        why: &'static str,
    },
}

/// Splits `name(a, b)` into `name` and its trimmed arguments.
pub(super) fn call(text: &str) -> Option<(&str, Vec<&str>)> {
    let (name, rest) = text.trim().split_once('(')?;
    let arguments = rest.strip_suffix(')')?;
    Some((name.trim(), list(arguments)))
}

/// Splits at the commas that are not inside parentheses and trims the items.
pub(super) fn list(text: &str) -> Vec<&str> {
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
    fn lists_respect_parentheses() {
        assert_eq!(list("a=1, b=f(2, 3),c"), ["a=1", "b=f(2, 3)", "c"]);
        assert_eq!(call(" f( 2 ,3 )"), Some(("f", vec!["2", "3"])));
        assert_eq!(call("f(2"), None);
        assert_eq!(call("f"), None);
    }
}
