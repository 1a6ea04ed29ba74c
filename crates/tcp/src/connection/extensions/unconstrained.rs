//! Whether the safe ranges are kept to. Where they are not, `control::growth` has what depends on it.

use super::super::Connection;

impl Connection {
    /// Whether the safe ranges are not kept to.
    pub(in super::super) fn is_unconstrained(&self) -> bool {
        self.extensions.get().is_some_and(|host| host.shared.combined.is_unconstrained())
    }
}
