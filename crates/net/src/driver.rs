//! An event loop of the application's that does the host's work between its own.
//!
//! A program that serves many sockets from one thread has a loop around `epoll_wait`. With a descriptor for each connection, the background thread
//! would do the host's work, and each packet would cost two wake-ups and some system calls. With a [`Driver`] the thread leads all the time. The
//! device is one more descriptor in its loop, and events of its sockets are a list.

use crate::driving::{Driving, Source};
use crate::incoming::IncomingConnection;
use crate::listener::TcpListener;
use crate::stack::Stack;
use crate::stream::TcpStream;
use crate::sync::Arc;
use crate::wake_event::sleep_for_any;
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::HashMap;
use std::io;
use std::time::Duration;
use transom_stack::{ConnectionId, IncomingId, ListenerId};
use transom_tcp::Signal;

/// The new readiness of a watched socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SocketReadiness {
    /// The number that the socket was given with [`Driver::watch`].
    pub token: u64,
    /// Data, a connection, the end or an error may be there.
    pub readable: bool,
    /// There may be room for data, or the connection may be established or over.
    pub writable: bool,
}

/// The sockets of a shard that a driver watches.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    streams: HashMap<ConnectionId, u64>,
    listeners: HashMap<ListenerId, u64>,
    incoming: HashMap<IncomingId, u64>,
    changes: Vec<SocketReadiness>,
}

impl Watched {
    /// Notes a signal of a connection. Whether a driver wants to know.
    pub(crate) fn note(&mut self, id: ConnectionId, signal: Signal) -> bool {
        let Some(&token) = self.streams.get(&id) else { return false };
        let (readable, writable) = match signal {
            Signal::Readable => (true, false),
            Signal::Answered | Signal::Connected | Signal::Writable => (false, true),
            Signal::Closed | Signal::TimeWait | Signal::Trouble => (true, true),
            Signal::Urgent => return false,
        };
        self.changes.push(SocketReadiness { token, readable, writable });
        true
    }

    /// The same for a listener that has a connection.
    pub(crate) fn note_listener(&mut self, id: ListenerId) -> bool {
        let Some(&token) = self.listeners.get(&id) else { return false };
        self.changes.push(SocketReadiness { token, readable: true, writable: false });
        true
    }

    /// The same for a held SYN whose fate is known.
    pub(crate) fn note_incoming(&mut self, id: IncomingId) -> bool {
        let Some(&token) = self.incoming.get(&id) else { return false };
        self.changes.push(SocketReadiness { token, readable: true, writable: false });
        true
    }

    /// Tells all of them, to find out for themselves.
    pub(crate) fn note_all(&mut self) {
        let tokens = self.streams.values().chain(self.listeners.values());
        let tokens = tokens.chain(self.incoming.values());
        let changes =
            tokens.map(|&token| SocketReadiness { token, readable: true, writable: true });
        self.changes.extend(changes);
    }

    pub(crate) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    pub(crate) fn forget(&mut self, id: ConnectionId) {
        self.streams.remove(&id);
    }

    pub(crate) fn forget_incoming(&mut self, id: IncomingId) {
        self.incoming.remove(&id);
    }

    pub(crate) fn forget_listener(&mut self, id: ListenerId) {
        self.listeners.remove(&id);
    }
}

/// Does a host's work in the thread that has it, for as long as it exists. See [`Stack::driver`].
///
/// The loop of such a thread waits for the [descriptors](Driver::descriptors) beside its own, as long as [`Driver::rest`] says. Then it calls
/// [`Driver::note`] for each of them that is readable, and [`Driver::work`]. Other threads may use the host's sockets as usual. While this thread does
/// something else, they wait for it.
#[derive(Debug)]
pub struct Driver {
    driving: Driving,
}

impl Stack {
    /// Lets the calling thread lead from its own event loop.
    ///
    /// # Errors
    /// [`io::ErrorKind::ResourceBusy`] if another thread leads, because it waits for a socket or has a driver.
    pub fn driver(&self) -> io::Result<Driver> {
        Driver::over([self])
    }
}

impl Driver {
    /// Lets the calling thread lead several hosts from one event loop, with one policy of waiting: a packet at any of their devices keeps it awake for
    /// the next one at each.
    ///
    /// # Errors
    /// As [`Stack::driver`], also if a host is named twice. Then none of them is led.
    pub fn over<'a>(stacks: impl IntoIterator<Item = &'a Stack>) -> io::Result<Driver> {
        let shards = stacks.into_iter().flat_map(Stack::shards);
        Ok(Driver { driving: Driving::take(shards.map(|shared| &shared.runtime))? })
    }

    /// The descriptors to wait for, level-triggered: each is readable while there is something to do. A device need not be emptied by each
    /// [`Driver::work`].
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.driving.sources().filter_map(|(runtime, source)| match source {
            Source::Threads => Some(runtime.wake_leader().as_fd()),
            Source::Device => runtime.device_fds().first().map(AsFd::as_fd),
            Source::Aside => runtime.device_fds().get(1).map(AsFd::as_fd),
        })
    }

    /// Whether one of the [descriptors](Driver::descriptors), counted from 0, belongs to this host.
    #[must_use]
    pub fn is_of(&self, descriptor: usize, stack: &Stack) -> bool {
        let runtime = self.driving.sources().nth(descriptor).map(|(runtime, _)| runtime);
        runtime.is_some_and(|of| stack.shards().iter().any(|shard| Arc::ptr_eq(&shard.runtime, of)))
    }

    /// One of the [descriptors](Driver::descriptors), counted from 0, is readable: the next [`Driver::work`] looks there. Returns whether to go on waiting for it.
    /// One that belongs to a device that has failed may be readable for ever. The driver looks there by itself from then on.
    #[must_use]
    pub fn note(&mut self, descriptor: usize) -> bool {
        self.driving.note(descriptor)
    }

    /// Has what happens to a stream of this host reported under a number, until its last handle is dropped. Events of before are not reported: try
    /// first.
    pub fn watch(&self, stream: &TcpStream, token: u64) {
        let (runtime, id) = stream.place();
        runtime.lock().watched.streams.insert(id, token);
    }

    /// The same for a connection that a peer asks for, until it is accepted or refused: it is reported when it can be
    /// [accepted](crate::AdmittedConnection::try_accept), or when the peer has given up.
    pub fn watch_incoming(&self, incoming: &IncomingConnection, token: u64) {
        let (runtime, id) = incoming.place();
        runtime.lock().watched.incoming.insert(id, token);
    }

    /// The same for a listener: it is reported when there is a connection to accept, or to decide on. One that has come before is reported, too.
    pub fn watch_listener(&self, listener: &TcpListener, token: u64) {
        for (runtime, id) in listener.places() {
            let mut inner = runtime.lock();
            inner.watched.listeners.insert(id, token);
            if inner.waiting_at(id) > 0 {
                inner.watched.note_listener(id);
            }
        }
    }

    /// The thread is awake, and is going to use sockets of the host before it calls [`Driver::work`]. Without this, that would wake it once more. Where
    /// it calls [`Driver::work`] first, this is not needed.
    pub fn wake(&mut self) {
        self.driving.wake();
    }

    /// Does what there is to do, and appends what happened to the sockets.
    ///
    /// With `look` it also asks all devices, whatever was [noted](Driver::note): packets may have come meanwhile.
    pub fn work(&mut self, look: bool, changes: &mut Vec<SocketReadiness>) {
        self.driving.work(look, |inner| changes.append(&mut inner.watched.changes));
    }

    /// Sleeps until there is work, for `limit` at most. Then does the work, and appends what happened to the sockets. It may return for no reason.
    ///
    /// It is for a loop that waits for nothing else.
    ///
    /// A loop with descriptors of its own waits for all of them together, and calls [`Driver::work`].
    pub fn wait(&mut self, limit: Option<Duration>, changes: &mut Vec<SocketReadiness>) {
        let rest = self.rest();
        let busy = rest == Some(Duration::ZERO);
        if !busy {
            let span = rest.into_iter().chain(limit).min();
            let runtimes = self.driving.runtimes();
            let pairs: Vec<_> = runtimes
                .map(|runtime| (runtime.wake_leader(), runtime.telling_fd(&runtime.lock())))
                .collect();
            sleep_for_any(&pairs, span.map(Into::into));
        }
        self.work(!busy, changes);
    }

    /// For how long the thread may sleep now: `None` is for ever. After a lot has arrived, it is not to sleep for a moment, as long as that pays: to be
    /// woken for the next packet would take longer.
    pub fn rest(&mut self) -> Option<Duration> {
        self.driving.rest().map(Duration::from)
    }
}
