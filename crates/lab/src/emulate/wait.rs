//! Waiting for descriptors, and for a time that is as precise as the system's timers.
//!
//! epoll_wait(2) takes its time-out in milliseconds, ppoll(2) in nanoseconds. An epoll descriptor can itself be polled.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use transom_tcp::time::Duration;

/// Events taken at once.
const EVENTS: usize = 64;

/// Descriptors that are waited for together.
pub(super) struct Waiter {
    epoll: OwnedFd,
}

impl Waiter {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Waiter { epoll: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    /// Watches a descriptor, until it is closed, under this number.
    pub(super) fn watch(
        &self,
        descriptor: impl AsFd,
        number: u64,
        flags: epoll::EventFlags,
    ) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, descriptor, epoll::EventData::new_u64(number), flags)?)
    }

    /// Waits at most so long, and adds to `ready` what is.
    pub(super) fn wait(
        &self,
        patience: Duration,
        ready: &mut Vec<(u64, epoll::EventFlags)>,
    ) -> io::Result<()> {
        if !patience.is_zero() {
            let mut descriptors = [PollFd::new(&self.epoll, PollFlags::IN)];
            // Nanoseconds in 64 bits always fit.
            let patience = std::time::Duration::from(patience).try_into().unwrap_or_default();
            match poll(&mut descriptors, Some(&patience)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
        match epoll::wait(&self.epoll, &mut events, Some(&Timespec::default())) {
            Ok((events, _)) => {
                ready.extend(events.iter().map(|event| (event.data.u64(), event.flags)));
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }
}
