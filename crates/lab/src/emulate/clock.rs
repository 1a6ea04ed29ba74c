//! The clock of an emulated run: the time in the network, as the system's clock has it.

use transom_tcp::time::{Duration, Instant};

/// A clock that shows zero until the run begins, and then how long it has lasted. Copies show the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    /// The run begins when this much time has passed.
    pub(super) fn starting_in(ahead: Duration) -> Self {
        Clock { origin: std::time::Instant::now() + std::time::Duration::from(ahead) }
    }

    /// The time in the network.
    pub(super) fn now(self) -> Instant {
        Instant::ZERO + std::time::Instant::now().saturating_duration_since(self.origin).into()
    }

    /// How long it is from now until it shows `at`; nothing if that is past.
    pub(super) fn until(self, at: Instant) -> Duration {
        let at = self.origin + std::time::Duration::from(at.since(Instant::ZERO));
        at.saturating_duration_since(std::time::Instant::now()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stands_still_until_the_run_begins() {
        let ahead = Duration::from_secs(3600);
        let clock = Clock::starting_in(ahead);
        assert_eq!(clock.now(), Instant::ZERO);
        let left = clock.until(Instant::from_secs(60));
        assert!(left > ahead && left <= Duration::from_secs(3660), "{left:?}");
        let clock = Clock::starting_in(Duration::ZERO);
        let first = clock.now();
        assert!(clock.now() >= first);
        assert_eq!(clock.until(Instant::ZERO), Duration::ZERO);
    }
}
