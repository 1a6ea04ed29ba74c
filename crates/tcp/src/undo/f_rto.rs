//! Forward RTO-Recovery (RFC 5682 section 3.1): after a timeout two segments of new data instead of further retransmissions. If what
//! is acknowledged then was never sent again, it had not been lost.

use super::{Cause, Detector};
use crate::ack_context::AckContext;
use crate::pos::Pos;

/// The steps of RFC 5682 section 3.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Step {
    /// Not after a timeout, or everything is decided.
    #[default]
    Done,
    /// The first acknowledgement after the timeout is awaited (step 2).
    First,
    /// It was good: two new segments, and the next acknowledgement decides (step 3).
    Second {
        /// Whether any has left.
        sent: bool,
    },
}

/// The F-RTO detector.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FRto {
    step: Step,
    /// SND.NXT at the timeout.
    recover: Option<Pos>,
}

impl Detector for FRto {
    fn on_reduction(&mut self, cause: Cause, nxt: Pos) {
        // A second timeout for the same data leaves nothing to be learned: it was sent again already.
        let first = self.step == Step::Done;
        let step = if cause == Cause::Timeout && first { Step::First } else { Step::Done };
        *self = FRto { step, recover: Some(nxt) };
    }

    fn on_retransmission(&mut self, _bytes: u64, _stamp: Option<u32>) {}

    fn on_ack(&mut self, ack: &AckContext) -> bool {
        match self.step {
            Step::Done => false,
            Step::First => {
                let good = ack.acked > 0 && self.recover.is_some_and(|recover| ack.una < recover);
                self.step = if good { Step::Second { sent: false } } else { Step::Done };
                false
            }
            Step::Second { .. } => {
                self.step = Step::Done;
                // Not one of the two new segments: those say nothing of what was sent before.
                let original = ack.lowest_original.zip(self.recover);
                original.is_some_and(|(original, recover)| original < recover)
            }
        }
    }

    fn wants_new_data(&self) -> bool {
        matches!(self.step, Step::Second { .. })
    }

    fn on_new_data(&mut self) {
        if let Step::Second { sent } = &mut self.step {
            *sent = true;
        }
    }

    fn no_new_data(&mut self) {
        if self.step == (Step::Second { sent: false }) {
            self.step = Step::Done;
        }
    }
}
