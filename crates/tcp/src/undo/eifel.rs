//! The Eifel detection algorithm (RFC 3522): an acknowledgement that echoes a timestamp from before the first retransmission answers
//! the original.
//!
//! Timestamps tick in milliseconds here, so nothing is found on a path whose round trip takes less.

use super::{Cause, Detector};
use crate::ack_context::AckContext;
use crate::pos::Pos;

/// RFC 3522 section 3.2.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Eifel {
    /// A retransmission is to come, or its stamp was noted and the first acceptable acknowledgement is awaited.
    watching: bool,
    /// RetransmitTS.
    stamp: Option<u32>,
}

impl Detector for Eifel {
    fn on_reduction(&mut self, _cause: Cause, _nxt: Pos) {
        *self = Eifel { watching: true, stamp: None };
    }

    fn on_retransmission(&mut self, _bytes: u64, stamp: Option<u32>) {
        if self.stamp.is_none() {
            self.stamp = stamp;
        }
    }

    fn on_ack(&mut self, ack: &AckContext) -> bool {
        let Some(stamp) = self.stamp.filter(|_| self.watching && ack.acked > 0) else {
            return false;
        };
        // Steps 4 and 5: the first acceptable acknowledgement decides.
        self.watching = false;
        ack.timestamps.is_some_and(|stamps| (stamps.echo.wrapping_sub(stamp) as i32) < 0)
    }
}
