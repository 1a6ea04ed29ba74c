//! Extensions that a profile names, attached to each of its connections when the handshake is complete.

use super::Extension;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

type Make = dyn Fn() -> Box<dyn Extension> + Send + Sync;

/// An extension with its parameters; every connection gets its own copy. Two with the same text are equal.
#[derive(Clone)]
pub struct ExtensionChoice {
    text: String,
    make: Arc<Make>,
    unconstrained: bool,
}

impl ExtensionChoice {
    /// A choice with the text `text` (name and parameters) whose extensions `make` makes.
    pub fn new(
        text: impl Into<String>,
        make: impl Fn() -> Box<dyn Extension> + Send + Sync + 'static,
    ) -> Self {
        ExtensionChoice { text: text.into(), make: Arc::new(make), unconstrained: false }
    }

    /// The same on connections for which the safe ranges are not kept to, whatever else is attached to them. It is there to show what the ranges
    /// are needed for (figure 3 of icTCP), and for nothing else. It has an effect in a simulation only
    /// ([`PathInfo::simulated`](crate::connection::PathInfo::simulated)). On all other connections the ranges stay.
    pub fn unconstrained(self) -> Self {
        ExtensionChoice { unconstrained: true, ..self }
    }

    /// Whether it takes the safe ranges away.
    pub(crate) fn is_unconstrained(&self) -> bool {
        self.unconstrained
    }

    /// One for a connection.
    pub fn extension(&self) -> Box<dyn Extension> {
        (self.make)()
    }

    /// The same, with each extension wrapped. `wrap` gets the function that makes one, so that it can guard that too.
    pub fn wrapped(
        self,
        wrap: impl Fn(&dyn Fn() -> Box<dyn Extension>) -> Box<dyn Extension> + Send + Sync + 'static,
    ) -> Self {
        let make = self.make.clone();
        ExtensionChoice { make: Arc::new(move || wrap(&*make)), ..self }
    }
}

impl PartialEq for ExtensionChoice {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.unconstrained == other.unconstrained
    }
}

impl Eq for ExtensionChoice {}

impl fmt::Display for ExtensionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ExtensionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExtensionChoice({})", self.text)
    }
}
