//! Detection by duplicate SACKs (RFC 3708): when the peer reports that everything which was sent again had arrived before, nothing was
//! lost.

use super::{Cause, Detector};
use crate::ack_context::AckContext;
use crate::pos::Pos;

/// Bytes sent again since the reduction, and how many of them are reported as duplicates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dsack {
    retransmitted: u64,
    reported: u64,
}

impl Detector for Dsack {
    fn on_reduction(&mut self, _cause: Cause, _nxt: Pos) {
        *self = Dsack::default();
    }

    fn on_retransmission(&mut self, bytes: u64, _stamp: Option<u32>) {
        self.retransmitted = self.retransmitted.saturating_add(bytes);
    }

    fn on_ack(&mut self, ack: &AckContext) -> bool {
        self.reported = self.reported.saturating_add(ack.duplicated);
        ack.duplicated > 0 && self.retransmitted > 0 && self.reported >= self.retransmitted
    }
}
