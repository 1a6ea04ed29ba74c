//! Whether, and how, the windows in acknowledgements are rewritten for the sake of a link's queue.

use super::SyntaxError;
use crate::units::serde_as_text;
use std::fmt;
use std::str::FromStr;
use transom_router::window::PolicyConfig;

/// A window policy with its parameters, or none.
///
/// Written as "none" or one of `target-window`, `explicit-window`, `ack-delay` and `fair-share` with parameters:
/// "target-window(upper=35 packets, lower=15 packets)". See [`PolicyConfig`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WindowConfig(pub Option<PolicyConfig>);

impl WindowConfig {
    /// Whether windows are left alone.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl FromStr for WindowConfig {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        match text.trim() {
            "none" => Ok(WindowConfig(None)),
            text => match text.parse() {
                Ok(policy) => Ok(WindowConfig(Some(policy))),
                Err(error) => Err(SyntaxError::Window(Box::new(error))),
            },
        }
    }
}

impl fmt::Display for WindowConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(policy) => policy.fmt(f),
            None => f.write_str("none"),
        }
    }
}

serde_as_text!(
    WindowConfig,
    "a window policy such as \"target-window(upper=35 packets, lower=15 packets)\""
);
