//! The host's lock, and the threads to wake when it is free.
//!
//! A woken thread wants the lock at once. If it is woken while the lock is held, it has to sleep
//! again. So wakers are kept until the guard is dropped. So are packets for other shards, whose locks
//! are taken then: no thread holds two.

use crate::engine::{ForwardedPacket, Inner};
use crate::runtime::Runtime;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{
    Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak, thread,
};
use std::ops::{Deref, DerefMut};
use std::task;
use transom_tcp::time::Duration;

/// A condition variable to notify, and how many of its threads; or a task.
#[derive(Debug)]
pub(crate) enum Waker {
    One(Arc<Condvar>),
    All(Arc<Condvar>),
    Task(task::Waker),
    /// A task that is not to be woken. Its waker is a program's too, and is dropped where the lock is free.
    Forgotten(task::Waker),
}

/// A host behind its lock.
pub(crate) struct Lock {
    inner: Mutex<Inner>,
    /// Threads that wait for it.
    contenders: AtomicUsize,
    /// All shards of the host, in their order.
    shards: OnceLock<Vec<Weak<Runtime>>>,
}

/// The lock, held.
pub(crate) struct Held<'a> {
    /// There until the lock is given up.
    guard: Option<MutexGuard<'a, Inner>>,
    lock: &'a Lock,
}

impl Lock {
    pub(crate) fn new(inner: Inner) -> Self {
        Lock { inner: Mutex::new(inner), contenders: AtomicUsize::new(0), shards: OnceLock::new() }
    }

    pub(crate) fn take(&self) -> Held<'_> {
        // A thread that panicked inside left the host as consistent as any call does.
        let guard = match self.inner.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.contenders.fetch_add(1, Ordering::Relaxed);
                let guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
                self.contenders.fetch_sub(1, Ordering::Relaxed);
                guard
            }
        };
        Held { guard: Some(guard), lock: self }
    }

    /// Says which shards there are. Only the first call counts.
    pub(crate) fn join(&self, shards: Vec<Weak<Runtime>>) {
        let _ = self.shards.set(shards);
    }

    /// Takes a packet to the shard it is for. One that is stopping does not want it.
    #[cold]
    fn hand_over(&self, forwarded: ForwardedPacket) {
        let to = usize::try_from(forwarded.to).unwrap_or(usize::MAX);
        let shard = self.shards.get().and_then(|shards| shards.get(to)?.upgrade());
        if let Some(shard) = shard {
            shard.with(|inner, now| inner.on_forwarded(now, forwarded));
        }
    }

    /// How many threads wait for the lock.
    pub(crate) fn contenders(&self) -> &AtomicUsize {
        &self.contenders
    }
}

impl<'a> Held<'a> {
    /// Lets a waiting thread have the lock, and wakes the threads that were notified.
    pub(crate) fn let_in(self) -> Held<'a> {
        let wanted = self.lock.contenders.load(Ordering::Relaxed) > 0;
        if !wanted && self.roles.wakers.is_empty() && self.roles.forwarded.is_empty() {
            return self;
        }
        let lock = self.lock;
        drop(self);
        // The mutex is not fair: who lets go and asks again at once is usually served first.
        thread::yield_now();
        lock.take()
    }

    /// Sleeps until `condvar` is notified, or until `limit` has passed, without the lock.
    pub(crate) fn sleep(mut self, condvar: &Condvar, limit: Option<Duration>) -> Held<'a> {
        let wakers = std::mem::take(&mut self.roles.wakers);
        let Some(guard) = self.guard.take() else { return self.lock.take() };
        // The lock is free only once this thread sleeps, and after that it cannot ring; better early than never.
        wakers.into_iter().for_each(Waker::wake);
        let guard = match limit {
            None => condvar.wait(guard).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                let result = condvar.wait_timeout(guard, limit.into());
                result.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        self.guard = Some(guard);
        self
    }
}

impl Waker {
    /// Whether this calls what a program has passed in: never with the lock held.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self, Waker::Task(_) | Waker::Forgotten(_))
    }

    fn wake(self) {
        match self {
            Waker::One(condvar) => condvar.notify_one(),
            Waker::All(condvar) => condvar.notify_all(),
            Waker::Task(waker) => waker.wake(),
            Waker::Forgotten(waker) => drop(waker),
        }
    }
}

impl Deref for Held<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        self.guard.as_ref().expect("only sleeping and dropping take the guard away")
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        self.guard.as_mut().expect("only sleeping and dropping take the guard away")
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let Some(mut guard) = self.guard.take() else { return };
        let wakers = std::mem::take(&mut guard.roles.wakers);
        let forwarded = std::mem::take(&mut guard.roles.forwarded);
        drop(guard);
        wakers.into_iter().for_each(Waker::wake);
        if !thread::panicking() {
            forwarded.into_iter().for_each(|forwarded| self.lock.hand_over(forwarded));
        }
    }
}
