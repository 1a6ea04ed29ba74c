//! Faults of old systems, on purpose: what a paper measured with them does not happen without.

use transom_tcp::{AckRule, Pos};

/// Linux 2.0 ignored acknowledgements of data beyond the peer's present window, although it was within when it was sent. RFC 9293 section 3.8.6.2 asks
/// senders to be robust against a window that shrinks. Such a connection stalls for ever.
#[derive(Clone, Copy, Debug)]
pub(super) struct MishandlesShrinking;

impl AckRule for MishandlesShrinking {
    fn name(&self) -> &'static str {
        "mishandles-shrinking"
    }

    fn believes(&self, ack: Pos, edge: Pos) -> bool {
        ack <= edge
    }
}
