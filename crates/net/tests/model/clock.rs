//! Time that passes when somebody looks, or sleeps for a while.

use crate::sync::atomic::{AtomicU64, Ordering};
use transom_tcp::time::Instant;

/// So much passes between two looks, in nanoseconds: less than a leader stays awake for.
const STEP: u64 = 20_000;

shuttle::lazy_static! {
    static ref NOW: AtomicU64 = AtomicU64::new(1_000_000_000);
}

#[derive(Clone, Copy, Debug)]
pub struct Clock;

impl Clock {
    /// Initializes the time before there is a second thread. All threads of shuttle run in one thread of the standard library. If one of them
    /// initialized the time while another one unwinds, shuttle would take the initialization for poisoned.
    pub fn start() -> Self {
        NOW.load(Ordering::SeqCst);
        Clock
    }

    pub fn now(&self) -> Instant {
        Instant::from_nanos(NOW.fetch_add(STEP, Ordering::SeqCst))
    }
}

/// So much time has passed.
pub fn pass(span: std::time::Duration) {
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX / 4);
    NOW.fetch_add(nanos, Ordering::SeqCst);
}
