//! The runtime's clock: the system's monotonic one, counted from when the runtime started.

use transom_tcp::time::Instant;

/// A monotonic clock with nanosecond resolution.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: std::time::Instant,
}

/// The protocol's origin lies before the start, so that "long ago" can be expressed.
const OFFSET_SECS: u64 = 1_000;

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Clock { started: std::time::Instant::now() }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        let nanos = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Instant::from_nanos(nanos.saturating_add(OFFSET_SECS * 1_000_000_000))
    }
}
