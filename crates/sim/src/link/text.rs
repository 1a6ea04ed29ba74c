//! The small syntax of link options: `name(first, second)` and lists that respect parentheses.

use crate::units::UnitError;
use transom_router::quantity;

/// Why a text is not the link option it was meant to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
    let (name, inside) = quantity::call(text)?;
    Some((name, list(inside?)))
}

pub(super) use transom_router::quantity::list;

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
