//! How a leader sleeps: until the device has something, another thread rings, or time has passed.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use transom_tcp::time::Duration;

/// What the device is waited for with.
pub(crate) type DeviceFd = OwnedFd;

/// What a sleeping leader is woken with: an eventfd.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Wakes who sleeps with it, or the next who does.
    pub(crate) fn ring(&self) {
        // It can only fail by overflowing, and then it is readable all the more.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Sleeps until it has rung, `device` has something, or `span` has passed. Returns whether a signal has ended the sleep.
    pub(crate) fn sleep(&self, device: Option<&DeviceFd>, span: Option<Duration>) -> bool {
        let timeout = span.map(|span| Timespec {
            tv_sec: i64::try_from(span.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (span.as_nanos() % 1_000_000_000) as _,
        });
        let bell = PollFd::new(&self.0, PollFlags::IN);
        let (outcome, rung) = match device {
            Some(device) => {
                let mut fds = [bell, PollFd::new(device, PollFlags::IN)];
                let outcome = poll(&mut fds, timeout.as_ref());
                (outcome, fds[0].revents().contains(PollFlags::IN))
            }
            None => {
                let mut fds = [bell];
                let outcome = poll(&mut fds, timeout.as_ref());
                (outcome, fds[0].revents().contains(PollFlags::IN))
            }
        };
        if rung {
            let _ = rustix::io::read(&self.0, &mut [0u8; 8]);
        }
        outcome == Err(Errno::INTR)
    }
}

impl AsFd for Bell {
    /// Readable when it has rung.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
