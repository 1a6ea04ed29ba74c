//! The driver of a stack, and a host's sockets at one moment.

use crate::errno::{Errno, Result};
use crate::table::Table;
use libc::{EAGAIN, EINTR};
use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use transom_stack::mapped::Bound;
use transom_stack::{ConnectionId, ListenerId, Stack};
use transom_tcp::time::{Duration, Instant};

/// A host's sockets at one moment: what every call works on.
pub struct Sockets<'a> {
    pub(crate) stack: &'a mut Stack,
    pub(crate) table: &'a mut Table,
    now: Instant,
    /// Does what is due now.
    settle: &'a mut dyn FnMut(&mut Stack),
}

impl std::fmt::Debug for Sockets<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sockets").field("now", &self.now).finish_non_exhaustive()
    }
}

impl<'a> Sockets<'a> {
    /// The sockets of `table`, whose connections are in `stack`. Calls may ask in their midst for `settle`: it sends what the stack has to
    /// send, and lets timers fire that are due. If it does nothing, the driver does so after the call.
    pub fn new(
        stack: &'a mut Stack,
        table: &'a mut Table,
        now: Instant,
        settle: &'a mut dyn FnMut(&mut Stack),
    ) -> Self {
        Sockets { stack, table, now, settle }
    }

    /// The present.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Does what is due now.
    pub(crate) fn settle(&mut self) {
        (self.settle)(self.stack);
    }
}

/// The event that a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Awaited {
    /// Something to read, or the end.
    Readable(ConnectionId),
    /// Room to write, the end of the handshake, or that everything is acknowledged.
    Writable(ConnectionId),
    /// A connection to accept.
    Acceptable(ListenerId),
}

/// The event that a call on one socket waits for, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) awaited: Awaited,
    /// Not at all: there is one attempt.
    pub(crate) nonblocking: bool,
    pub(crate) timeout: Option<Duration>,
}

impl Waiting {
    /// Calls `attempt` until it gives something, or waiting ends.
    pub(crate) fn until<T>(
        self,
        driver: &mut impl Drive,
        attempt: impl FnMut(&mut Sockets<'_>) -> Option<T>,
    ) -> Waited<T> {
        match self.nonblocking {
            true => driver.attempt(attempt),
            false => driver.wait(self.awaited, self.timeout, attempt),
        }
    }
}

/// How waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited<T> {
    /// The event has come.
    Done(T),
    /// The call's own timeout passed, or it was not to wait at all.
    TimedOut,
    /// Something outside has cut the call short.
    Interrupted,
    /// Waiting is of no use any more, for this reason.
    Failed(Errno),
}

impl<T> Waited<T> {
    /// The result, or the error of a call that waited in vain.
    pub(crate) fn into_result(self) -> Result<T> {
        match self {
            Waited::Done(value) => Ok(value),
            Waited::TimedOut => Err(Errno(EAGAIN)),
            Waited::Interrupted => Err(Errno(EINTR)),
            Waited::Failed(error) => Err(error),
        }
    }
}

/// A port that the driver reserves for a socket, such as at the kernel on a shared address.
pub struct Port {
    /// The address and the port.
    pub address: SocketAddr,
    /// Dropping it gives the port back.
    pub reservation: Box<dyn Any + Send>,
}

impl std::fmt::Debug for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Port").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Drives a stack: lets calls work on its sockets, and lets them wait.
pub trait Drive {
    /// Calls `call` with the sockets, and does what follows from it.
    fn with<T>(&mut self, call: impl FnOnce(&mut Sockets<'_>) -> T) -> T;

    /// Calls `attempt` for a call that is not to wait.
    fn attempt<T>(&mut self, mut attempt: impl FnMut(&mut Sockets<'_>) -> Option<T>) -> Waited<T> {
        self.with(|sockets| attempt(sockets)).map_or(Waited::TimedOut, Waited::Done)
    }

    /// Calls `attempt` until it gives something: at once, and after each event that may be what is `awaited`. Each time it does all that can
    /// be done. No `timeout` means to wait for ever.
    fn wait<T>(
        &mut self,
        awaited: Awaited,
        timeout: Option<Duration>,
        attempt: impl FnMut(&mut Sockets<'_>) -> Option<T>,
    ) -> Waited<T>;

    /// Tells other threads that wait for `awaited` to try again. Only a driver with several threads has anything to do.
    fn wake(&mut self, awaited: Awaited) {
        let _ = awaited;
    }

    /// Has a port kept where the host does not say itself which ones are free; 0 is any. `None`: it does say so itself.
    ///
    /// # Errors
    /// Those of whoever keeps it.
    fn reserve(&mut self, bound: &Bound) -> Result<Option<Port>> {
        let _ = bound;
        Ok(None)
    }

    /// The same for a connection to `remote`, from the address that leads there. `bound` is the socket's own address, perhaps unspecified.
    ///
    /// # Errors
    /// Those of whoever keeps it; `ENETUNREACH`.
    fn reserve_towards(
        &mut self,
        remote: IpAddr,
        bound: Option<SocketAddr>,
    ) -> Result<Option<Port>> {
        let _ = (remote, bound);
        Ok(None)
    }
}
