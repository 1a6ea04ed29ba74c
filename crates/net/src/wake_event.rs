//! The sleep of a leader: until the device has packets, another thread signals, or time has passed.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use transom_device::EventFd;
use transom_tcp::time::Duration;

/// The descriptor that shows when the device has packets.
pub(crate) type DeviceFd = OwnedFd;

/// Wakes a sleeping leader.
#[derive(Debug)]
pub(crate) struct WakeEvent(EventFd);

impl WakeEvent {
    pub(crate) fn new() -> io::Result<WakeEvent> {
        Ok(WakeEvent(EventFd::new()?))
    }

    /// Wakes the thread that sleeps with it, or the next one that does.
    pub(crate) fn signal(&self) {
        self.0.signal();
    }

    /// Takes note of the signals so far.
    pub(crate) fn reset(&self) {
        self.0.reset();
    }

    /// Sleeps until a signal, or `device` has something, or `span` has passed. Returns whether a Unix signal interrupted the sleep.
    pub(crate) fn sleep(&self, device: Option<&DeviceFd>, span: Option<Duration>) -> bool {
        let timeout = span.map(timespec);
        let event = PollFd::new(&self.0, PollFlags::IN);
        let (outcome, signalled) = match device {
            Some(device) => {
                let mut fds = [event, PollFd::new(device, PollFlags::IN)];
                let outcome = poll(&mut fds, timeout.as_ref());
                (outcome, fds[0].revents().contains(PollFlags::IN))
            }
            None => {
                let mut fds = [event];
                let outcome = poll(&mut fds, timeout.as_ref());
                (outcome, fds[0].revents().contains(PollFlags::IN))
            }
        };
        if signalled {
            self.0.reset();
        }
        outcome == Err(Errno::INTR)
    }
}

/// The same with several events and their devices.
pub(crate) fn sleep_for_any(pairs: &[(&WakeEvent, Option<&DeviceFd>)], span: Option<Duration>) {
    if let [(event, device)] = pairs {
        event.sleep(*device, span);
        return;
    }
    let events = pairs.iter().map(|(event, _)| PollFd::new(&event.0, PollFlags::IN));
    let devices = pairs.iter().filter_map(|(_, device)| *device);
    let mut fds: Vec<_> =
        events.chain(devices.map(|device| PollFd::new(device, PollFlags::IN))).collect();
    let _ = poll(&mut fds, span.map(timespec).as_ref());
    for ((event, _), fd) in pairs.iter().zip(&fds) {
        if fd.revents().contains(PollFlags::IN) {
            event.0.reset();
        }
    }
}

fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(span.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (span.as_nanos() % 1_000_000_000) as _,
    }
}

impl AsFd for WakeEvent {
    /// Readable after a signal.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
