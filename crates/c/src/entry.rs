//! A descriptor of the process that stands for a socket of a stack.
//!
//! The kernel gives the number, so that it is nobody else's. At first nothing is behind it that a call of the C library could use (`O_PATH`): one
//! that was given the wrong descriptor fails with `EBADF`. Made pollable, it is the end of a pair of sockets that shows what holds.

use crate::registry;
use crate::stack::{Driven, OpenStack};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use transom_net::raw::ShownReadiness;
use transom_sockets::SocketCalls;
use transom_sockets::errno::Result;
use transom_sockets::readiness::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP};

/// What is behind a number.
#[derive(Debug)]
enum Shown {
    /// Nothing that shows anything.
    Nothing(OwnedFd),
    /// What holds of the socket.
    Readiness(ShownReadiness),
    /// The number is given back.
    Gone,
}

/// A number that the kernel has given for a socket.
#[derive(Debug)]
pub(crate) struct Descriptor {
    number: i32,
    shown: Mutex<Shown>,
}

/// What every number stands for at first.
static PLACE: OnceLock<OwnedFd> = OnceLock::new();

fn place() -> io::Result<&'static OwnedFd> {
    if let Some(place) = PLACE.get() {
        return Ok(place);
    }
    let place = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    Ok(PLACE.get_or_init(|| place))
}

impl Descriptor {
    /// A new number.
    pub(crate) fn new() -> io::Result<Self> {
        let fd = rustix::io::fcntl_dupfd_cloexec(place()?, 0)?;
        Ok(Descriptor { number: fd.as_raw_fd(), shown: Mutex::new(Shown::Nothing(fd)) })
    }

    pub(crate) fn number(&self) -> i32 {
        self.number
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the number one that poll(2) and its like can wait for. Whether it was not yet.
    pub(crate) fn make_pollable(&self) -> io::Result<bool> {
        let mut shown = self.shown();
        let Shown::Nothing(number) = &mut *shown else { return Ok(false) };
        let readiness = ShownReadiness::new()?;
        rustix::io::dup3(readiness.fd(), number, rustix::io::DupFlags::CLOEXEC)?;
        if let Shown::Nothing(number) = std::mem::replace(&mut *shown, Shown::Gone) {
            *shown = Shown::Readiness(readiness.at(number));
        }
        Ok(true)
    }

    /// Shows what holds, in poll's flags.
    pub(crate) fn show(&self, ready: i16) {
        if let Shown::Readiness(readiness) = &mut *self.shown() {
            let readable = ready & (POLLIN | POLLHUP | POLLERR | POLLRDHUP) != 0;
            let writable = ready & (POLLOUT | POLLHUP | POLLERR) != 0;
            // The descriptor is only a signal; if the kernel refuses it there is nobody to tell.
            let _ = readiness.show(readable, writable);
        }
    }

    /// Gives the number back.
    pub(crate) fn give_back(&self) {
        *self.shown() = Shown::Gone;
    }

    /// The same where something else has the number already: the program has closed it with close(2).
    pub(crate) fn lose(&self) {
        match std::mem::replace(&mut *self.shown(), Shown::Gone) {
            Shown::Nothing(number) => std::mem::forget(number),
            Shown::Readiness(readiness) => std::mem::forget(readiness.into_fd()),
            Shown::Gone => {}
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

    pub(crate) fn driven(&self) -> Driven<'_> {
        Driven(&self.stack)
    }

    /// Closes the socket, with the time that it may take, for the last who has it.
    pub(crate) fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::Relaxed) || !self.is_ours() {
            return Ok(());
        }
        self.stack.forget(self.key);
        self.driven().close(self.key)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !*self.closed.get_mut() && self.is_ours() {
            self.stack.forget(self.key);
            let _ = self.driven().close_at_once(self.key);
        }
    }
}
