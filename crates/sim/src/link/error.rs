//! Why a text is not a link's configuration.

use crate::units::UnitError;
use transom_router::window::ControlConfigError;

/// Why a text is not a link configuration, or one of its values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkConfigError {
    /// An item is not of the form `name=value`.
    #[error("`{0}` is not a link option: write NAME=VALUE, such as delay=20ms")]
    NotAnOption(String),
    /// There is no option of this name.
    #[error(
        "there is no link option `{0}`: the options are rate, rate-trace, policer, queue, window, delay, delay-spread, jitter, jitter-order, loss, \
         duplicate, bleach, corrupt, reorder, mtu"
    )]
    UnknownOption(String),
    /// An option was given more than once.
    #[error("the link option `{0}` is given twice")]
    Twice(String),
    /// The rate is constant and follows a trace.
    #[error("a link has either a `rate` or a `rate-trace`")]
    TwoRates,
    /// The file of the rate trace has not been read.
    #[error("the rate trace {0} has not been read")]
    UnreadTrace(String),
    /// An option's value is wrong.
    #[error("link option `{option}`: {error}")]
    Value {
        /// The option.
        option: String,
        /// The defect of its value.
        error: Box<LinkConfigError>,
    },
    /// A number is wrong.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// A value has another form.
    #[error("`{text}` is not a {what}: write {forms}")]
    Form {
        /// The thing to be read, such as "loss model".
        what: &'static str,
        /// The text.
        text: String,
        /// The accepted forms.
        forms: &'static str,
    },
    /// The form is right but the values make no sense together.
    #[error("`{text}` is not valid: {why}")]
    Nonsense {
        /// The text.
        text: String,
        /// The defect.
        why: &'static str,
    },
    /// It is no queue.
    #[error(transparent)]
    Queue(#[from] transom_router::queue::ConfigError),
    /// It is no window policy, or the policy does not fit the link.
    #[error(transparent)]
    Window(Box<ControlConfigError>),
}

impl From<ControlConfigError> for LinkConfigError {
    fn from(error: ControlConfigError) -> Self {
        LinkConfigError::Window(Box::new(error))
    }
}
