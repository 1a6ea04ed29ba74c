//! The host's lock, and the threads to wake when it is free.
//!
//! A mutex of the standard library is not fair. A busy writer lets go and asks again at once, and is served before a thread that has to be woken. That
//! keeps bulk transfer fast, and would keep others waiting for milliseconds. So a thread that has waited for [`TURN`] is next. All that come later wait
//! behind it.
//!
//! A woken thread wants the lock at once. If it is woken while the lock is held, it has to sleep
//! again. So wakers are kept until the guard is dropped. So are packets for other shards, whose locks
//! are taken then: no thread holds two.

use crate::clock::Clock;
use crate::engine::{ForwardedPacket, Inner};
use crate::notifier::Notifier;
use crate::runtime::Runtime;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak, thread};
use std::ops::{Deref, DerefMut};
use std::task;
use transom_tcp::time::Duration;

/// So long others may go before a thread that waits for the lock, in nanoseconds: about what it takes to be woken on another CPU.
const TURN: u64 = 50_000;

/// One or all of the threads that sleep there; or a task.
#[derive(Debug)]
pub(crate) enum Waker {
    One(Arc<Notifier>),
    All(Arc<Notifier>),
    Task(task::Waker),
    /// A task that is not to be woken. Its waker is a program's too, and is dropped where the lock is free.
    Forgotten(task::Waker),
}

/// A host behind its lock.
pub(crate) struct Lock {
    inner: Mutex<Inner>,
    /// Threads that wait for it.
    contenders: AtomicUsize,
    /// Held by the one of them that is next.
    turn: Mutex<()>,
    /// Since when that one waits, in nanoseconds.
    since: AtomicU64,
    clock: Clock,
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
        Lock {
            inner: Mutex::new(inner),
            contenders: AtomicUsize::new(0),
            turn: Mutex::new(()),
            since: AtomicU64::new(0),
            clock: Clock::start(),
            shards: OnceLock::new(),
        }
    }

    pub(crate) fn take(&self) -> Held<'_> {
        let guard = if self.has_kept_waiting() { None } else { self.try_take() };
        Held { guard: Some(guard.unwrap_or_else(|| self.take_in_turn())), lock: self }
    }

    fn try_take(&self) -> Option<MutexGuard<'_, Inner>> {
        match self.inner.try_lock() {
            Ok(guard) => Some(guard),
            // A thread that panicked inside left the host as consistent as any call does.
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether a thread has waited so long that it is next.
    fn has_kept_waiting(&self) -> bool {
        self.contenders.load(Ordering::Relaxed) > 0
            && self.now().saturating_sub(self.since.load(Ordering::Relaxed)) > TURN
    }

    #[cold]
    fn take_in_turn(&self) -> MutexGuard<'_, Inner> {
        self.contenders.fetch_add(1, Ordering::Relaxed);
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.since.store(self.now(), Ordering::Relaxed);
        let guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        self.contenders.fetch_sub(1, Ordering::Relaxed);
        drop(turn);
        guard
    }

    fn now(&self) -> u64 {
        self.clock.now().as_nanos()
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
    /// Whether a thread waits for the lock.
    pub(crate) fn is_wanted(&self) -> bool {
        self.lock.contenders.load(Ordering::Relaxed) > 0
    }

    /// Lets a waiting thread have the lock, and wakes the threads that were notified.
    pub(crate) fn let_in(self) -> Held<'a> {
        if !self.is_wanted() && self.roles.wakers.is_empty() && self.roles.forwarded.is_empty() {
            return self;
        }
        let lock = self.lock;
        drop(self);
        // The mutex is not fair: who lets go and asks again at once is usually served first.
        thread::yield_now();
        lock.take()
    }

    /// Sleeps until `notifier` says so, or until `limit` has passed, without the lock.
    pub(crate) fn sleep(self, notifier: &Notifier, limit: Option<Duration>) -> Held<'a> {
        let (lock, known) = (self.lock, notifier.known());
        drop(self);
        notifier.sleep(known, limit);
        lock.take()
    }
}

impl Waker {
    /// Whether this calls what a program has passed in: never with the lock held.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self, Waker::Task(_) | Waker::Forgotten(_))
    }

    fn wake(self) {
        match self {
            Waker::One(notifier) => notifier.notify_one(),
            Waker::All(notifier) => notifier.notify_all(),
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
