//! Reno: the congestion avoidance and the halving of RFC 5681.
//!
//! Growth counts acknowledged *bytes* (RFC 5681 section 3.1, RFC 3465), so that neither acknowledgement division speeds the flow up
//! nor an acknowledgement covering a 64 KB super-segment slows it down.

use super::controller::{self, Kind};
use super::{Algorithm, CongestionChoice, CongestionControl, Entry, Window};
use crate::ack_context::AckContext;
use core::fmt;

/// The controller of RFC 5681.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reno;

/// How it is chosen by name.
pub(crate) const ENTRY: Entry = Entry {
    name: "reno",
    source: "RFC 5681",
    summary: "one segment more each round trip, half the window after a loss",
    read: |_| Ok(CongestionChoice::reno()),
};

impl Algorithm for Reno {
    fn controller(&self) -> controller::Controller {
        controller::Controller(Kind::Reno(*self))
    }
}

impl fmt::Display for Reno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("reno")
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
