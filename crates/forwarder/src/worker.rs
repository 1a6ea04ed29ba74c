//! The thread that works for a deployment as long as this lives, and how it waits.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use transom_tcp::time::Duration;

use crate::Refusal;

/// A thread that is stopped and joined when this value is dropped.
#[derive(Debug)]
pub(crate) struct Worker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Refusal>>>,
}

/// Asks whether the thread should end.
#[derive(Debug)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn is_stop_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Worker {
    /// Begins, in the network namespace of the calling thread.
    pub(crate) fn start(
        name: &str,
        work: impl FnOnce(Stop) -> Result<(), Refusal> + Send + 'static,
    ) -> Result<Self, Refusal> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Stop(Arc::clone(&stop));
        let thread = thread::Builder::new()
            .name(name.into())
            .spawn(|| work(asked))
            .map_err(Refusal::io("cannot start a thread"))?;
        Ok(Worker { stop, thread: Some(thread) })
    }

    /// The result of the thread, if it has ended by itself.
    pub(crate) fn maintain(&mut self) -> Result<(), Refusal> {
        match self.thread.take_if(|thread| thread.is_finished()) {
            None => Ok(()),
            Some(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        }
    }
}

/// Waits until one of two descriptors has something to be read, at most so long.
pub(crate) fn wait_for_either(ends: [BorrowedFd<'_>; 2], patience: Duration) -> io::Result<()> {
    let mut descriptors = ends.map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN));
    let nanos = patience.as_nanos();
    let timeout =
        Timespec { tv_sec: (nanos / 1_000_000_000) as _, tv_nsec: (nanos % 1_000_000_000) as _ };
    match poll(&mut descriptors, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The next start removes what it could not remove.
            let _ = thread.join();
        }
    }
}
