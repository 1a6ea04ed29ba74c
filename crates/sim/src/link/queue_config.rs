//! Which queue stands before the serialiser.

use super::SyntaxError;
use crate::units::{Limit, serde_as_text};
use std::fmt;
use std::str::FromStr;
use transom_router::queue::Config;

/// A queue discipline with its parameters.
///
/// Written as a limit, which means drop-tail ("100 packets", "64KiB", "unlimited"), or as one of `drop-tail`, `drop-head`, `red`, `codel`,
/// `pie`, `fq-codel`, `dualpi2`, `cake` and `fq` with parameters: "red(50 packets, min=5, max=15, gentle)". See [`Config`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QueueConfig(pub Config);

impl QueueConfig {
    /// The limit, if the discipline is drop-tail.
    pub(crate) fn drop_tail(self) -> Option<Limit> {
        self.0.is_drop_tail().then(|| self.0.limit())
    }
}

impl From<Limit> for QueueConfig {
    fn from(limit: Limit) -> Self {
        QueueConfig(limit.into())
    }
}

impl FromStr for QueueConfig {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        match text.parse::<Limit>() {
            Ok(limit) => return Ok(limit.into()),
            // A number was meant as a limit.
            Err(error) if text.trim().starts_with(|first: char| first.is_ascii_digit()) => {
                return Err(error.into());
            }
            Err(_) => {}
        }
        Ok(QueueConfig(text.parse()?))
    }
}

impl fmt::Display for QueueConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.drop_tail() {
            Some(limit) => limit.fmt(f),
            None => self.0.fmt(f),
        }
    }
}

serde_as_text!(QueueConfig, "a queue such as \"100 packets\" or \"codel\"");
