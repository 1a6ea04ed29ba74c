//! Reno: the congestion avoidance and the halving of RFC 5681.
//!
//! Growth counts acknowledged *bytes* (RFC 5681 section 3.1, RFC 3465), so that neither acknowledgement division speeds the flow up
//! nor an acknowledgement covering a 64 KB super-segment slows it down.

use super::built_in::BuiltIn;
use super::controller::Kind;
use super::{CongestionControl, Window};
use crate::ack_context::AckContext;

/// The controller of RFC 5681.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reno;

impl BuiltIn for Reno {
    const NAME: &'static str = "reno";
    const SOURCE: &'static str = "RFC 5681";
    const SUMMARY: &'static str = "one segment more each round trip, half the window after a loss";

    fn kind(&self) -> Kind {
        Kind::Reno(*self)
    }
}

impl CongestionControl for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn counts_acknowledged_bytes(&self) -> bool {
        true
    }

    // [MUST-19] congestion avoidance
    fn on_ack(&mut self, window: &mut Window, acked: u64, _ack: &AckContext) {
        window.additive_increase(acked, window.cwnd);
    }
}
