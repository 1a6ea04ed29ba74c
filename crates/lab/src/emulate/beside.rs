//! A thread beside a run, which ends with it.

use std::convert::Infallible;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};

use transom_tcp::time::Duration;

/// A thread that is told to end when this is dropped, and waited for.
pub(super) struct Beside<T> {
    /// While it is there, the thread goes on.
    goes_on: Option<Sender<Infallible>>,
    thread: Option<JoinHandle<T>>,
}

/// The thread's own view of whether it is to end.
pub(super) struct Rest(Receiver<Infallible>);

impl<T: Send + 'static> Beside<T> {
    pub(super) fn start(
        name: &str,
        work: impl FnOnce(Rest) -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (goes_on, ended) = channel();
        let thread = thread::Builder::new().name(name.into());
        let thread = thread.spawn(move || work(Rest(ended)))?;
        Ok(Beside { goes_on: Some(goes_on), thread: Some(thread) })
    }
}

impl<T> Beside<T> {
    /// Ends it. Gives what it made, or its panic.
    pub(super) fn end(mut self) -> Option<T> {
        let ended = self.wait()?;
        Some(ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    fn wait(&mut self) -> Option<thread::Result<T>> {
        self.goes_on = None;
        Some(self.thread.take()?.join())
    }
}

impl<T> Drop for Beside<T> {
    fn drop(&mut self) {
        // A panic was printed.
        let _ = self.wait();
    }
}

impl Rest {
    /// Sleeps so long, or until the thread is to end; then it returns false.
    pub(super) fn sleep(&self, patience: Duration) -> bool {
        matches!(self.0.recv_timeout(patience.into()), Err(RecvTimeoutError::Timeout))
    }
}
