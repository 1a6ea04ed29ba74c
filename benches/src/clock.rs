//! The clock of the cases that have no runtime to keep one for them.

use transom_tcp::time::Instant;

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
