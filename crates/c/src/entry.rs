//! A descriptor of the process that stands for a socket of a stack.
//!
//! The kernel gives the number, so that it is nobody else's. At first nothing is behind it that a call of the C library could use (`O_PATH`): one
//! that was given the wrong descriptor fails with `EBADF`. Made pollable, it is the end of a pair of sockets that shows the socket's readiness.

use crate::registry;
use crate::stack::{DrivenStack, OpenStack};
use libc::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use transom_net::ShownReadiness;
use transom_sockets::{Result, SocketCalls};

/// The state of a descriptor.
#[derive(Debug)]
enum DescriptorState {
    /// The number is reserved (`O_PATH`). It shows no readiness.
    Reserved(OwnedFd),
    /// The number is an end of a pair of sockets, which shows the socket's readiness.
    Pollable(ShownReadiness),
    /// The number is given back.
    Released,
}

/// A number that the kernel has given for a socket.
#[derive(Debug)]
pub(crate) struct Descriptor {
    number: i32,
    state: Mutex<DescriptorState>,
}

/// The open file that every number refers to at first (`O_PATH`).
static PATH_DESCRIPTOR: OnceLock<OwnedFd> = OnceLock::new();

fn path_descriptor() -> io::Result<&'static OwnedFd> {
    if let Some(descriptor) = PATH_DESCRIPTOR.get() {
        return Ok(descriptor);
    }
    let descriptor = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    Ok(PATH_DESCRIPTOR.get_or_init(|| descriptor))
}

impl Descriptor {
    /// A new number.
    pub(crate) fn new() -> io::Result<Self> {
        let fd = rustix::io::fcntl_dupfd_cloexec(path_descriptor()?, 0)?;
        Ok(Descriptor { number: fd.as_raw_fd(), state: Mutex::new(DescriptorState::Reserved(fd)) })
    }

    pub(crate) fn number(&self) -> i32 {
        self.number
    }

    fn state(&self) -> MutexGuard<'_, DescriptorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the number one that poll(2) and its like can wait for. Returns `false` if it was one already.
    pub(crate) fn make_pollable(&self) -> io::Result<bool> {
        let mut state = self.state();
        let DescriptorState::Reserved(number) = &mut *state else { return Ok(false) };
        let readiness = ShownReadiness::new()?;
        rustix::io::dup3(readiness.fd(), number, rustix::io::DupFlags::CLOEXEC)?;
        if let DescriptorState::Reserved(number) =
            std::mem::replace(&mut *state, DescriptorState::Released)
        {
            *state = DescriptorState::Pollable(readiness.at(number));
        }
        Ok(true)
    }

    /// Shows the socket's readiness, in poll's flags.
    pub(crate) fn show_readiness(&self, ready: i16) {
        if let DescriptorState::Pollable(readiness) = &mut *self.state() {
            let readable = ready & (POLLIN | POLLHUP | POLLERR | POLLRDHUP) != 0;
            let writable = ready & (POLLOUT | POLLHUP | POLLERR) != 0;
            // The descriptor is only a signal; if the kernel refuses it there is nobody to tell.
            let _ = readiness.show(readable, writable);
        }
    }

    /// Gives the number back.
    pub(crate) fn release_number(&self) {
        *self.state() = DescriptorState::Released;
    }

    /// Drops the number without a close: the program has closed it with close(2), and something else may have it now.
    pub(crate) fn forget_number(&self) {
        match std::mem::replace(&mut *self.state(), DescriptorState::Released) {
            DescriptorState::Reserved(number) => std::mem::forget(number),
            DescriptorState::Pollable(readiness) => std::mem::forget(readiness.into_fd()),
            DescriptorState::Released => {}
        }
    }
}

/// A socket that has a descriptor. It is closed when nobody has this any more: neither the table of descriptors nor a call.
pub(crate) struct Entry {
    pub(crate) stack: Arc<OpenStack>,
    /// Its number in the stack.
    pub(crate) key: i32,
    pub(crate) descriptor: Arc<Descriptor>,
    /// The process that it belongs to; a child of fork(2) has another generation.
    generation: u32,
    closed: AtomicBool,
}

impl Entry {
    pub(crate) fn new(stack: Arc<OpenStack>, key: i32, descriptor: Descriptor) -> Self {
        Entry {
            stack,
            key,
            descriptor: Arc::new(descriptor),
            generation: registry::generation(),
            closed: AtomicBool::new(false),
        }
    }

    /// Whether the socket is this process' own, and not one of its parent's.
    pub(crate) fn is_ours(&self) -> bool {
        self.generation == registry::generation()
    }

    pub(crate) fn driven(&self) -> DrivenStack<'_> {
        DrivenStack(&self.stack)
    }

    /// Makes a call on the socket by its number in the stack. Then notifies the waiters of its new readiness.
    pub(crate) fn call<T>(
        &self,
        call: impl FnOnce(&mut DrivenStack<'_>, i32) -> Result<T>,
    ) -> Result<T> {
        let result = call(&mut self.driven(), self.key);
        self.stack.notify_change(self.key);
        result
    }

    /// Closes the socket, with the time that it may take, for the last who has it.
    pub(crate) fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::Relaxed) || !self.is_ours() {
            return Ok(());
        }
        self.stack.unwatch(self.key);
        self.driven().close(self.key)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !*self.closed.get_mut() && self.is_ours() {
            self.stack.unwatch(self.key);
            let _ = self.driven().close_at_once(self.key);
        }
    }
}
