//! A descriptor by which threads wake each other.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd (eventfd(2)): readable from a call of [`signal`](Self::signal) to one of [`reset`](Self::reset).
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// Makes one that is not signalled.
    ///
    /// # Errors
    /// The system's: there are too many descriptors.
    pub fn new() -> io::Result<EventFd> {
        Ok(EventFd(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes it readable.
    pub fn signal(&self) {
        // It can only fail by overflowing, and then it is readable all the more.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Makes it unreadable until the next signal.
    pub fn reset(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
