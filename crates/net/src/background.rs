//! The background thread: it leads while no application thread does.
//!
//! A program that alternates between its own work and its sockets leaves thousands of times per second. The background thread
//! must not be woken each time, nor disturb a leader. So it checks once a millisecond, without the lock, whether a thread has
//! come or left since. If none has, and nobody leads, it takes over. When another thread leads for long, it parks until it is
//! called.
//!
//! It is called at once in two cases. A program may wait on a descriptor, which only this thread can serve. Or many threads
//! wait at the same time: then passing the lead from one to the next would cost a wake-up for each.

use crate::lock::Held;
use crate::roles::Leader;
use crate::runtime::Runtime;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::thread::{self, JoinHandle, Thread};
use crate::sync::{Arc, Mutex, OnceLock, PoisonError};
use crate::waiting::{Awake, Lead};
use std::io;

/// The interval between its checks.
const CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(1);
/// After this many checks during which another thread led without a break, it parks.
const CHECKS_UNTIL_PARK: u32 = 20;

/// How the background thread is called, and when it is not needed.
#[derive(Debug, Default)]
pub(crate) struct Background {
    thread: OnceLock<Thread>,
    handle: Mutex<Option<JoinHandle<()>>>,
    /// Changes with each change of leader, so that one that was replaced notices. Written with the lock held.
    epoch: AtomicU64,
    called: AtomicBool,
    stop: AtomicBool,
    /// A device that panicked has taken the thread along.
    dead: AtomicBool,
}

impl Background {
    /// Starts the thread.
    pub(crate) fn start(runtime: &Arc<Runtime>) -> io::Result<()> {
        let handle = Arc::clone(runtime);
        let thread =
            thread::Builder::new().name("transom".into()).spawn(move || handle.run_background())?;
        let background = &runtime.background;
        // Nobody else starts it, so it is not there already.
        let _ = background.thread.set(thread.thread().clone());
        *background.handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Wakes the thread, to lead if nobody does.
    pub(crate) fn call(&self) {
        self.called.store(true, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Announces a new leader, or none. Returns the number of the new epoch.
    pub(crate) fn next_epoch(&self) -> u64 {
        self.epoch.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The number of the present epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether it can lead.
    pub(crate) fn is_alive(&self) -> bool {
        !self.dead.load(Ordering::Acquire)
    }

    /// The thread is ending by a panic.
    pub(crate) fn died(&self) {
        self.dead.store(true, Ordering::Release);
    }

    fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }
}

impl Runtime {
    fn run_background(&self) {
        let background = &self.background;
        // How long, in dozes, somebody else has led without a break.
        let mut quiet = 0u32;
        let mut last_epoch = background.epoch();
        while !background.is_stopping() {
            let called = background.called.swap(false, Ordering::AcqRel);
            let epoch = background.epoch();
            let changed = std::mem::replace(&mut last_epoch, epoch) != epoch;
            if changed && !called {
                quiet = 0;
                thread::park_timeout(CHECK_INTERVAL);
                continue;
            }
            let mut inner = self.lock();
            if inner.roles.leader == Leader::Nobody {
                last_epoch = self.lead_in_background(inner);
                quiet = 0;
                continue;
            }
            quiet += 1;
            inner.roles.background_parked = quiet > CHECKS_UNTIL_PARK;
            if inner.roles.background_parked {
                drop(inner);
                quiet = 0;
                thread::park();
            } else {
                drop(inner);
                thread::park_timeout(CHECK_INTERVAL);
            }
        }
    }

    /// Leads until replaced. Returns the epoch it was, so that the change is seen as one.
    fn lead_in_background(&self, mut inner: Held<'_>) -> u64 {
        inner.roles.background_parked = false;
        let mut lead = Lead::take(self, inner, Leader::Background);
        let mut awake = Awake::No;
        while !lead.is_replaced() && !self.background.is_stopping() {
            let inner = lead.inner();
            let patience = self.patience(inner, &awake, None);
            let arrived = inner.work(patience);
            inner.send();
            let now = self.now();
            awake.learn(inner, arrived, now);
            if arrived && self.is_crowded(inner) {
                awake = Awake::polling(now, self.busy_poll());
            }
            if arrived || awake.goes_on(inner, now) {
                lead.rest(Held::let_in);
            } else {
                lead.rest(|inner| self.sleep(inner, None, self.wake_background()).0);
            }
        }
        let epoch = lead.epoch();
        drop(lead.give_back());
        epoch
    }

    /// Ends the background thread, and with it the device.
    pub(crate) fn stop(&self) {
        self.background.stop.store(true, Ordering::Release);
        self.background.call();
        self.wake_background().signal();
        let handle = self.background.handle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(handle) = handle
            && handle.thread().id() != thread::current().id()
        {
            // It ends at once; if it panicked, that has been said already.
            let _ = handle.join();
        }
    }
}
