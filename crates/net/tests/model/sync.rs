//! What threads share and wait with: those of shuttle, with time that passes.

pub use shuttle::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak, atomic};
// Written once, before any other thread can see it.
pub use std::sync::OnceLock;

use crate::clock;
use std::sync::LockResult;
use std::time::Duration;

/// A condition variable whose timeouts can pass.
#[derive(Debug, Default)]
pub struct Condvar(Arc<shuttle::sync::Condvar>);

impl Condvar {
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.0.wait(guard)
    }

    /// The time has passed when a thread of its own says so, which may be at any moment. Others that wait wake up for no reason then, as they may.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        span: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        let over = Arc::new(atomic::AtomicBool::new(false));
        let (passed, condvar) = (Arc::clone(&over), Arc::clone(&self.0));
        let timer = shuttle::thread::spawn(move || {
            clock::pass(span);
            while !passed.load(atomic::Ordering::SeqCst) {
                condvar.notify_all();
                shuttle::thread::yield_now();
            }
        });
        let guard = self.0.wait(guard);
        over.store(true, atomic::Ordering::SeqCst);
        drop(timer);
        guard.map(|guard| (guard, ())).map_err(|error| PoisonError::new((error.into_inner(), ())))
    }
}

pub mod thread {
    pub use shuttle::thread::{JoinHandle, Thread, current, park, yield_now};

    use std::cell::Cell;
    use std::io;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::time::Duration;

    shuttle::thread_local! {
        static DYING: Cell<bool> = Cell::new(false);
    }

    /// Panics, without a word: it is what the scenario wants.
    pub fn die() -> ! {
        DYING.with(|dying| dying.set(true));
        resume_unwind(Box::new("as the scenario wants it"))
    }

    /// Whether this thread is. All threads of shuttle are one of the standard library's.
    pub fn panicking() -> bool {
        DYING.with(Cell::get)
    }

    /// The time passes at once, or a call comes: both wake the thread up.
    pub fn park_timeout(_: Duration) {
        yield_now();
    }

    /// Threads whose panics are their own.
    #[derive(Default)]
    pub struct Builder(shuttle::thread::Builder);

    impl Builder {
        pub fn new() -> Self {
            Self::default()
        }

        pub fn name(self, name: String) -> Self {
            Builder(self.0.name(name))
        }

        pub fn spawn(self, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
            self.0.spawn(move || {
                let _ = catch_unwind(AssertUnwindSafe(work));
            })
        }
    }
}
