//! The clocks of the cases that have no runtime to keep one for them.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use transom_tcp::time::Instant;

/// How much CPU time the calling thread has had.
///
/// Work that is all in one thread and never waits is measured in CPU time: what else runs on the CPU meanwhile does not
/// count then, except for the caches it takes.
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Never negative: the clock starts with the thread.
    Duration::try_from(time).unwrap_or_default()
}

/// How much CPU time all threads of the process have had.
pub fn process_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Real time since the clock was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Clock { origin: std::time::Instant::now() }
    }

    /// The time in the stack's terms.
    pub fn now(&self) -> Instant {
        let nanos = self.origin.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}
