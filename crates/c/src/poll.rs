//! `poll` over sockets of this library, descriptors of the kernel's, or both.
//!
//! The library knows the readiness of its own sockets, and asks the kernel about other descriptors. A call that has to wait waits in the kernel,
//! for the other descriptors and for an eventfd. The stacks signal that eventfd.

use crate::entry::Entry;
use crate::registry;
use crate::stack::OpenStack;
use crate::watch::Poller;
use libc::{EINTR, POLLERR, POLLHUP, POLLNVAL, pollfd};
use rustix::fd::AsFd;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use transom_device::EventFd;
use transom_sockets::{Errno, Result};

/// Calls the kernel's `ppoll` with descriptors and a timeout; `None` waits for ever.
pub(crate) type PollKernel<'a> =
    &'a mut dyn FnMut(&mut [pollfd], Option<Duration>) -> Result<usize>;

/// The descriptors of one call: the indices in the caller's list of this library's sockets, and of all others.
struct PolledSockets {
    own: Vec<(usize, Arc<Entry>)>,
    kernel_indices: Vec<usize>,
}

impl PolledSockets {
    fn of(fds: &[pollfd]) -> Self {
        let mut sockets = PolledSockets { own: Vec::new(), kernel_indices: Vec::new() };
        for (index, pollfd) in fds.iter().enumerate() {
            match registry::entry(pollfd.fd) {
                Some(entry) if entry.is_ours() => sockets.own.push((index, entry)),
                _ => sockets.kernel_indices.push(index),
            }
        }
        sockets
    }

    /// The stacks that have a part, each once, with their sockets.
    fn stacks(&self) -> Vec<(&Arc<OpenStack>, HashSet<i32>)> {
        let mut stacks: Vec<(&Arc<OpenStack>, HashSet<i32>)> = Vec::new();
        for (_, entry) in &self.own {
            match stacks.iter_mut().find(|(stack, _)| Arc::ptr_eq(stack, &entry.stack)) {
                Some((_, keys)) => drop(keys.insert(entry.key)),
                None => stacks.push((&entry.stack, HashSet::from([entry.key]))),
            }
        }
        stacks
    }

    /// Fills in the events of this library's sockets, and counts the sockets with any. With `read_devices` the devices are read first.
    fn fill_own(&self, fds: &mut [pollfd], read_devices: bool) -> usize {
        for (stack, _) in self.stacks() {
            let mut fill = |host: &mut _, now| {
                let mut any = false;
                for (index, entry) in &self.own {
                    let Some(pollfd) = fds.get_mut(*index) else { continue };
                    if Arc::ptr_eq(stack, &entry.stack) {
                        let ready = stack.tables.readiness(host, now, entry.key);
                        pollfd.revents = ready & (pollfd.events | POLLERR | POLLHUP | POLLNVAL);
                        any |= pollfd.revents != 0;
                    }
                }
                any.then_some(())
            };
            if !read_devices {
                stack.raw.with(|host, now| fill(host, now));
            } else if stack.raw.attempt(&mut fill).is_err() {
                // Every call ends at once.
                for (index, _) in &self.own {
                    fds.get_mut(*index).into_iter().for_each(|pollfd| pollfd.revents = POLLERR);
                }
            }
        }
        let ready = |index: &usize| fds.get(*index).is_some_and(|pollfd| pollfd.revents != 0);
        self.own.iter().filter(|(index, _)| ready(index)).count()
    }

    /// Asks the kernel about the other descriptors and `event_fd`. Also returns whether `event_fd` was signalled.
    fn ask_kernel(
        &self,
        fds: &mut [pollfd],
        event_fd: Option<&EventFd>,
        timeout: Option<Duration>,
        kernel: PollKernel<'_>,
    ) -> Result<(usize, bool)> {
        use rustix::fd::AsRawFd;
        let mut asked: Vec<pollfd> =
            self.kernel_indices.iter().filter_map(|&index| fds.get(index).copied()).collect();
        let event_fd = event_fd.map(|event_fd| event_fd.as_fd().as_raw_fd());
        asked.extend(event_fd.map(|fd| pollfd { fd, events: 1, revents: 0 }));
        kernel(&mut asked, timeout)?;
        let signalled =
            event_fd.is_some() && asked.pop().is_some_and(|event_fd| event_fd.revents != 0);
        for (answer, &index) in asked.iter().zip(&self.kernel_indices) {
            fds.get_mut(index).into_iter().for_each(|asked| asked.revents = answer.revents);
        }
        Ok((asked.iter().filter(|answer| answer.revents != 0).count(), signalled))
    }
}

/// `poll(2)`: fills in `revents` and gives how many have any. No `timeout` means to wait for ever.
pub(crate) fn poll(
    fds: &mut [pollfd],
    timeout: Option<Duration>,
    kernel: PollKernel<'_>,
) -> Result<usize> {
    let sockets = PolledSockets::of(fds);
    let no_wait = Some(Duration::ZERO);
    if sockets.own.is_empty() {
        return Ok(sockets.ask_kernel(fds, None, timeout, kernel)?.0);
    }
    let mut ready = sockets.fill_own(fds, true);
    if ready > 0 || timeout == Some(Duration::ZERO) {
        return Ok(ready + sockets.ask_kernel(fds, None, no_wait, kernel)?.0);
    }
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let event_fd = Arc::new(EventFd::new()?);
    let stacks = sockets.stacks();
    let pollers: Vec<_> = stacks
        .into_iter()
        .map(|(stack, keys)| (stack, Arc::new(Poller { event_fd: Arc::clone(&event_fd), keys })))
        .collect();
    pollers.iter().for_each(|(stack, poller)| stack.add_poller(poller));
    let outcome = loop {
        ready = sockets.fill_own(fds, false);
        let left = match (ready, deadline) {
            (1.., _) => no_wait,
            (0, None) => None,
            (0, Some(at)) => Some(at.saturating_duration_since(Instant::now())),
        };
        let waits = ready == 0;
        match sockets.ask_kernel(fds, waits.then_some(&*event_fd), left, kernel) {
            Err(Errno(EINTR)) if !waits => {}
            Err(error) => break Err(error),
            Ok((others, signalled)) if ready + others > 0 || !waits => {
                if signalled {
                    ready = sockets.fill_own(fds, false);
                }
                break Ok(ready + others);
            }
            Ok((_, true)) => event_fd.reset(),
            Ok((_, false)) => {
                if deadline.is_some_and(|at| at <= Instant::now()) {
                    break Ok(sockets.fill_own(fds, false));
                }
            }
        }
    };
    pollers.iter().for_each(|(stack, poller)| stack.remove_poller(poller));
    outcome
}
