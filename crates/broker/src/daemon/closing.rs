//! Closes descriptors that others have passed.
//!
//! A close can wait: a TCP socket with unsent data for as long as SO_LINGER says, a file for its file system. So the broker's only thread never
//! closes a received descriptor. Each user has a queue, so no user waits for another's.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most threads that close at the same time, each for one user.
const MAX_THREADS: usize = 64;
/// The broker does not serve a user with so many descriptors in the queue.
const MAX_QUEUED: usize = 512;
/// How long an answer waits until the request's descriptors are closed. Then the port is mostly free again when the answer comes.
const MAX_CLOSE_WAIT: Duration = Duration::from_millis(20);

/// Descriptors that wait to be closed.
#[derive(Debug, Default)]
struct CloseQueues {
    queues: BTreeMap<u32, VecDeque<OwnedFd>>,
    /// The users for whom a thread closes, and the time at which it began with the present descriptor.
    busy: BTreeMap<u32, Instant>,
}

/// Takes descriptors, and closes them in threads that end when there is nothing to do.
#[derive(Clone, Debug, Default)]
pub(super) struct Closer(Arc<(Mutex<CloseQueues>, Condvar)>);

impl Closer {
    fn lock(&self) -> MutexGuard<'_, CloseQueues> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether many descriptors of a user wait.
    pub(super) fn has_backlog(&self, user: u32) -> bool {
        self.lock().queues.get(&user).is_some_and(|queue| queue.len() >= MAX_QUEUED)
    }

    /// Waits a moment for the end of a user's closes; not at all when one of them takes long.
    pub(super) fn wait_for_closes(&self, user: u32) {
        let start = Instant::now();
        let mut state = self.lock();
        while let Some(since) = state.busy.get(&user)
            && since.elapsed() < MAX_CLOSE_WAIT
            && let Some(left) = MAX_CLOSE_WAIT.checked_sub(start.elapsed())
        {
            let woken = self.0.1.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn close(&self, user: u32, descriptor: OwnedFd) {
        let mut state = self.lock();
        state.queues.entry(user).or_default().push_back(descriptor);
        if state.busy.len() >= MAX_THREADS || state.busy.contains_key(&user) {
            return;
        }
        state.busy.insert(user, Instant::now());
        let closer = self.clone();
        let thread = std::thread::Builder::new().name("close".into());
        if thread.spawn(move || closer.close_queued(user)).is_err() {
            // They wait until the next one comes.
            state.busy.remove(&user);
        }
    }

    fn close_queued(&self, mut user: u32) {
        loop {
            let mut state = self.lock();
            let next = state.queues.get_mut(&user).and_then(VecDeque::pop_front);
            match next {
                Some(descriptor) => {
                    state.busy.insert(user, Instant::now());
                    drop(state);
                    // Of a TCP socket the close does not wait then. Other files have no such option.
                    let _ = rustix::net::sockopt::set_socket_linger(&descriptor, None);
                    drop(descriptor);
                }
                None => {
                    state.queues.remove(&user);
                    state.busy.remove(&user);
                    self.0.1.notify_all();
                    let other = state.queues.keys().find(|user| !state.busy.contains_key(user));
                    let Some(other) = other.copied() else { return };
                    state.busy.insert(other, Instant::now());
                    user = other;
                }
            }
        }
    }
}

/// A descriptor from somebody else, or a connection in which descriptors may wait. It is closed in another thread.
#[derive(Debug)]
pub(super) struct ReceivedFd {
    /// There until the value is dropped.
    descriptor: Option<OwnedFd>,
    user: u32,
    closer: Closer,
}

impl ReceivedFd {
    pub(super) fn new(descriptor: OwnedFd, user: u32, closer: &Closer) -> Self {
        ReceivedFd { descriptor: Some(descriptor), user, closer: closer.clone() }
    }
}

impl AsFd for ReceivedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // It is there until the drop. The other one is no socket: calls with it fail.
        self.descriptor.as_ref().map_or(rustix::fs::CWD, AsFd::as_fd)
    }
}

impl Drop for ReceivedFd {
    fn drop(&mut self) {
        if let Some(descriptor) = self.descriptor.take() {
            self.closer.close(self.user, descriptor);
        }
    }
}
