//! A rule about which acknowledgements a sender believes, beside those of RFC 9293: for laboratories that repeat the faults of old systems.
//!
//! This crate has no such rule. A laboratory brings its own, and a profile without one asks nobody.

use crate::pos::Pos;
use core::fmt;

/// Which acknowledgements are believed.
pub trait AckRule: fmt::Debug + Send + Sync {
    /// The name by which it is known: two rules of one name are the same.
    fn name(&self) -> &'static str;

    /// Whether a plausible acknowledgement of everything before `ack` is believed, where the peer's window ends at `edge`. One that is not is ignored.
    fn believes(&self, ack: Pos, edge: Pos) -> bool;
}

impl PartialEq for dyn AckRule {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn AckRule {}
