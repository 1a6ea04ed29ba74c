//! When to transfer how much.
//!
//! Web-like traffic is many transfers whose sizes have a heavy tail, with pauses in which the reader thinks. A few large
//! transfers make most of the load (Crovella and Bestavros, "Self-Similarity in World Wide Web Traffic", 1997).

use crate::random::{Draw, Rng};
use transom_tcp::time::{Duration, Instant};

/// The source of transfers.
#[derive(Clone, Debug)]
pub enum Schedule {
    /// These, each at its time after the start, whatever has become of those before: the replay of a trace.
    Trace(Vec<(Duration, u64)>),
    /// One after the other, with a pause after each.
    Web {
        /// Bytes of a transfer.
        size: Draw,
        /// Nanoseconds of a pause.
        think: Draw,
    },
    /// A transfer of so many bytes every so often, whatever has become of those before.
    Periodic {
        /// Between the beginnings of two.
        interval: Duration,
        /// Bytes of each.
        bytes: u64,
    },
}

/// The next transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) at: Instant,
    pub(super) bytes: u64,
}

impl Schedule {
    /// Transfer number `index`, given when the schedule began and when the last transfer began or, where one waits for the
    /// other, ended.
    pub(super) fn next(
        &self,
        index: usize,
        began: Instant,
        last: Instant,
        rng: &mut Rng,
    ) -> Option<Next> {
        match self {
            Schedule::Trace(transfers) => {
                let &(after, bytes) = transfers.get(index)?;
                Some(Next { at: began + after, bytes })
            }
            Schedule::Web { size, think } => {
                let pause = if index == 0 { 0 } else { think.draw(rng) };
                let bytes = size.draw(rng);
                Some(Next { at: last + Duration::from_nanos(pause), bytes })
            }
            Schedule::Periodic { interval, bytes } => {
                let after = interval.as_nanos().saturating_mul(index as u64);
                Some(Next { at: began + Duration::from_nanos(after), bytes: *bytes })
            }
        }
    }

    /// Whether a transfer waits for the end of the one before.
    pub(super) fn waits(&self) -> bool {
        matches!(self, Schedule::Web { .. })
    }
}
