//! An event loop of the application's leads: what a [`Driver`](crate::Driver) does with the runtimes of a host.
//!
//! The thread leads all the time. While it is awake, it looks by itself before it sleeps; while it sleeps, others wake it by the leader's eventfd.

use crate::eagerness::Patience;
use crate::engine::Inner;
use crate::roles::Leader;
use crate::runtime::Runtime;
use crate::sync::Arc;
use crate::waiting::{Awake, LOOK_WITHOUT_DESCRIPTOR, RETRY_FAILED};
use std::io;
use transom_tcp::time::{Duration, Instant};

/// So many batches of packets are taken before the caller has its turn.
const BATCHES: usize = 4;
/// Nor are more taken after so many bytes: they are in the processor's cache still when the caller passes them on, and whoever reads them then does so
/// beside this thread.
const BYTES: usize = 256 * 1024;
/// After so many bytes at once, more of them are on their way.
const BULK: usize = 32 * 1024;

/// The lead of all shards of a host, or of several hosts.
#[derive(Debug)]
pub(crate) struct Driving {
    runtimes: Vec<Arc<Runtime>>,
    /// More may lie at a device.
    more: bool,
    /// A lot came lately: the next packet is close, and to sleep until it comes would cost its sender a wake-up.
    bulk: bool,
    /// Whether to stay awake for it, of each runtime.
    awake: Vec<Awake>,
}

impl Driving {
    /// Takes the lead of the background thread, or of nobody.
    ///
    /// # Errors
    /// [`io::ErrorKind::ResourceBusy`] if another thread leads.
    pub(crate) fn take<'a>(runtimes: impl Iterator<Item = &'a Arc<Runtime>>) -> io::Result<Self> {
        // What it has taken is given back when it fails.
        let mut driving =
            Driving { runtimes: Vec::new(), more: true, bulk: false, awake: Vec::new() };
        for runtime in runtimes {
            let mut inner = runtime.lock();
            if inner.roles.leader == Leader::Application {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            if inner.roles.leader == Leader::Background {
                runtime.wake_background().signal(); // it finds itself replaced
            }
            inner.roles.leader = Leader::Application;
            inner.roles.leader_channel = None;
            inner.roles.driver_awake = true;
            runtime.background.next_epoch();
            driving.runtimes.push(Arc::clone(runtime));
            driving.awake.push(Awake::No);
        }
        Ok(driving)
    }

    pub(crate) fn runtimes(&self) -> &[Arc<Runtime>] {
        &self.runtimes
    }

    /// The thread is awake.
    pub(crate) fn wake(&self) {
        for runtime in &self.runtimes {
            runtime.lock().roles.driver_awake = true;
        }
    }

    /// Does what there is to do, with `look` also at the devices. `each` is called for each host, under its lock.
    pub(crate) fn work(&mut self, look: bool, mut each: impl FnMut(&mut Inner)) {
        let look = std::mem::take(&mut self.more) || look;
        for (runtime, awake) in self.runtimes.iter().zip(&mut self.awake) {
            let mut inner = runtime.lock();
            inner.roles.driver_awake = true;
            if look {
                let mut bytes = BYTES;
                let mut arrived = false;
                for _ in 0..BATCHES {
                    inner.roles.leader_notified = false;
                    arrived |= inner.work_within(Patience::default(), &mut bytes);
                    inner.send();
                    if bytes == 0 || inner.drained || inner.has_failed() {
                        break;
                    }
                }
                awake.learn(&mut inner, arrived, runtime.now());
                self.bulk = if arrived { BYTES - bytes >= BULK } else { self.bulk };
                self.more |= !inner.drained && !inner.has_failed();
            } else {
                inner.run_timers(runtime.now());
                inner.send();
            }
            each(&mut inner);
        }
    }

    /// For how long the thread may sleep now: `None` is for ever.
    pub(crate) fn rest(&mut self) -> Option<Duration> {
        // Not a time: each host has a clock of its own.
        let mut least = Duration::MAX;
        for (runtime, awake) in self.runtimes.iter().zip(&mut self.awake) {
            let mut inner = runtime.lock();
            let now = runtime.now();
            if self.more || inner.has_driver_news() {
                return Some(Duration::ZERO);
            }
            if self.bulk && runtime.telling_fd(&inner).is_some() {
                if awake.goes_on(&mut inner, now) {
                    self.more = true;
                    return Some(Duration::ZERO);
                }
                self.bulk = false;
            }
            let wake = inner.next_wake(None);
            inner.roles.driver_awake = false;
            inner.roles.leader_notified = false;
            inner.roles.leader_wakes_at = wake;
            let look = match runtime.device_fd() {
                None => LOOK_WITHOUT_DESCRIPTOR,
                Some(_) if inner.has_failed() => RETRY_FAILED,
                Some(_) => Duration::MAX,
            };
            if wake != Instant::FAR_FUTURE {
                least = least.min(wake.since(now));
            }
            least = least.min(look);
        }
        // Without a descriptor, or with a device that failed, it is not told of packets.
        self.more =
            self.runtimes.iter().any(|runtime| runtime.telling_fd(&runtime.lock()).is_none());
        (least != Duration::MAX).then_some(least)
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        for runtime in &self.runtimes {
            let mut inner = runtime.lock();
            inner.forget_driver();
            inner.roles.driver_awake = false;
            inner.roles.leader = Leader::Nobody;
            runtime.background.next_epoch();
            // The lead goes to whoever waits, or else to the background thread.
            inner.roles.background_parked = true;
            runtime.leave(&mut inner);
        }
    }
}
