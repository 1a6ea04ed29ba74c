//! A bound on every sample.
//!
//! A stack that is broken can leave its peer waiting, and a wait that nothing bounds would hang the run. When a sample
//! takes far longer than it should, the process says which and ends; the kernel then removes its namespaces.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Ends the process when it is not told in time that things go on.
#[derive(Clone, Debug)]
pub struct Watchdog {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    watched: Mutex<Option<(String, Instant)>>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<(String, Instant)>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watchdog {
    /// Starts a watchdog that calls `bite` with the name of what took too long.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(mut bite: impl FnMut(&str) + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { watched: Mutex::new(None), changed: Condvar::new() });
        let watched = Arc::clone(&shared);
        std::thread::Builder::new().name("watchdog".into()).spawn(move || {
            let mut guard = watched.lock();
            loop {
                let left = match &*guard {
                    None => Duration::from_secs(3600),
                    Some((name, deadline)) => {
                        let left = deadline.saturating_duration_since(Instant::now());
                        if left.is_zero() {
                            bite(name);
                            *guard = None;
                            continue;
                        }
                        left
                    }
                };
                let waited = watched.changed.wait_timeout(guard, left);
                guard = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        })?;
        Ok(Watchdog { shared })
    }

    /// Watches `work`, which must not take longer than `limit`.
    pub fn watch<T>(&self, name: &str, limit: Duration, work: impl FnOnce() -> T) -> T {
        *self.shared.lock() = Some((name.into(), Instant::now() + limit));
        self.shared.changed.notify_all();
        let result = work();
        *self.shared.lock() = None;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn it_bites_what_takes_too_long_and_nothing_else() {
        let (bitten, bites) = mpsc::channel();
        let dog = Watchdog::start(move |name: &str| bitten.send(name.to_owned()).unwrap()).unwrap();
        assert_eq!(dog.watch("quick", Duration::from_secs(60), || 7), 7);
        // The slow one waits for the bite itself, so nothing depends on how fast the machine is.
        let name = dog.watch("slow", Duration::from_millis(1), || {
            bites.recv_timeout(Duration::from_secs(60)).unwrap()
        });
        assert_eq!(name, "slow");
        assert!(bites.try_recv().is_err());
    }
}
