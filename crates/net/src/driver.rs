//! An event loop of the application's that does the host's work between its own.
//!
//! A program that serves many sockets from one thread has a loop around `epoll_wait`. With a descriptor for each connection, the background thread
//! would do the host's work, and each packet would cost two wake-ups and some system calls. With a [`Driver`] the thread leads all the time. The
//! device is one more descriptor in its loop, and events of its sockets are a list.

use crate::eagerness::Patience;
use crate::engine::Inner;
use crate::listener::TcpListener;
use crate::roles::Leader;
use crate::runtime::Runtime;
use crate::stack::Stack;
use crate::stream::TcpStream;
use crate::waiting::{LOOK_WITHOUT_DESCRIPTOR, RETRY_FAILED};
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use transom_stack::listener::ListenerId;
use transom_stack::stack::ConnectionId;
use transom_tcp::connection::Event;
use transom_tcp::time::Instant;

/// So many batches of packets are taken before the caller has its turn.
const BATCHES: usize = 4;
/// Nor are more taken after so many bytes: they are in the processor's cache still when the caller passes them on, and whoever reads them then does so
/// beside this thread.
const BYTES: usize = 256 * 1024;

/// The new readiness of a watched socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    changes: Vec<SocketReadiness>,
}

impl Watched {
    /// Notes an event of a connection. Whether a driver wants to know.
    pub(crate) fn note(&mut self, id: ConnectionId, event: Event) -> bool {
        let Some(&token) = self.streams.get(&id) else { return false };
        let (readable, writable) = match event {
            Event::Readable => (true, false),
            Event::Connected | Event::Writable => (false, true),
            Event::Closed | Event::TimeWait | Event::Trouble => (true, true),
            Event::Urgent => return false,
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

    /// Tells all of them, to find out for themselves.
    pub(crate) fn note_all(&mut self) {
        let tokens = self.streams.values().chain(self.listeners.values());
        let changes =
            tokens.map(|&token| SocketReadiness { token, readable: true, writable: true });
        self.changes.extend(changes);
    }

    pub(crate) fn forget(&mut self, id: ConnectionId) {
        self.streams.remove(&id);
    }

    pub(crate) fn forget_listener(&mut self, id: ListenerId) {
        self.listeners.remove(&id);
    }
}

/// Does a host's work in the thread that has it, for as long as it exists. See [`Stack::driver`].
///
/// The loop of such a thread waits for the [descriptors](Driver::descriptors) beside its own, as long as [`Driver::rest`] says, then calls
/// [`Driver::wake`] and [`Driver::work`]. Other threads may use the host's sockets as usual. While this thread does something else, they wait for it.
#[derive(Debug)]
pub struct Driver {
    runtimes: Vec<Arc<Runtime>>,
    /// More may lie at a device.
    more: bool,
}

impl Stack {
    /// Lets the calling thread lead from its own event loop.
    ///
    /// # Errors
    /// [`io::ErrorKind::ResourceBusy`] if another thread leads, because it waits for a socket or has a driver.
    pub fn driver(&self) -> io::Result<Driver> {
        let mut driver = Driver { runtimes: Vec::new(), more: true };
        for shared in self.shards() {
            let runtime = &shared.runtime;
            let mut inner = runtime.lock();
            if inner.roles.leader == Leader::Application {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            if inner.roles.leader == Leader::Background {
                runtime.wake_background().signal(); // it finds itself replaced
            }
            inner.roles.leader = Leader::Application;
            inner.roles.leader_channel = None;
            inner.roles.driver_awake = true;
            runtime.background.next_epoch();
            driver.runtimes.push(Arc::clone(runtime));
        }
        Ok(driver)
    }
}

impl Driver {
    /// The descriptors to wait for, edge-triggered: each is readable when there is something to do.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.runtimes.iter().flat_map(|runtime| {
            let device = runtime.device_fd().map(AsFd::as_fd);
            [Some(runtime.wake_leader().as_fd()), device].into_iter().flatten()
        })
    }

    /// Has what happens to a stream of this host reported under a number, until its last handle is dropped. Events of before are not reported: try
    /// first.
    pub fn watch(&self, stream: &TcpStream, token: u64) {
        let (runtime, id) = stream.place();
        runtime.lock().watched.streams.insert(id, token);
    }

    /// The same for a listener: it is reported when there is a connection to accept.
    pub fn watch_listener(&self, listener: &TcpListener, token: u64) {
        for (runtime, id) in listener.places() {
            runtime.lock().watched.listeners.insert(id, token);
        }
    }

    /// The thread is awake. It may use sockets of the host before it calls [`Driver::work`]; without this, that would wake it once more.
    pub fn wake(&self) {
        for runtime in &self.runtimes {
            runtime.lock().roles.driver_awake = true;
        }
    }

    /// Does what there is to do, and appends what happened to the sockets.
    ///
    /// With `look` it also asks the devices: after one of the descriptors was readable, and whenever packets may have come meanwhile.
    pub fn work(&mut self, look: bool, changes: &mut Vec<SocketReadiness>) {
        let look = std::mem::take(&mut self.more) || look;
        for runtime in &self.runtimes {
            let mut inner = runtime.lock();
            inner.roles.driver_awake = true;
            if look {
                let mut bytes = BYTES;
                for _ in 0..BATCHES {
                    inner.roles.leader_notified = false;
                    inner.work_within(Patience::default(), &mut bytes);
                    inner.send(runtime.now());
                    if bytes == 0 || inner.drained || inner.has_failed() {
                        break;
                    }
                }
                self.more |= !inner.drained && !inner.has_failed();
            } else {
                let now = runtime.now();
                inner.host.on_timeout(now);
                inner.send(now);
            }
            changes.append(&mut inner.watched.changes);
        }
    }

    /// For how long the thread may sleep now: `None` is for ever.
    pub fn rest(&mut self) -> Option<Duration> {
        let mut least = Instant::FAR_FUTURE;
        let mut now = Instant::ZERO;
        for runtime in &self.runtimes {
            let mut inner = runtime.lock();
            now = runtime.now();
            if self.more || !inner.watched.changes.is_empty() {
                return Some(Duration::ZERO);
            }
            let wake = inner.next_wake(None);
            inner.roles.driver_awake = false;
            inner.roles.leader_notified = false;
            inner.roles.leader_wakes_at = wake;
            let look = match runtime.device_fd() {
                None => LOOK_WITHOUT_DESCRIPTOR,
                Some(_) if inner.has_failed() => RETRY_FAILED,
                Some(_) => transom_tcp::time::Duration::MAX,
            };
            least = least.min(wake).min(now + look);
        }
        // Without a descriptor, or with a device that failed, it is not told of packets.
        self.more = self.runtimes.iter().any(|runtime| !runtime.tells_of_packets());
        (least != Instant::FAR_FUTURE).then(|| least.since(now).into())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        for runtime in &self.runtimes {
            let mut inner = runtime.lock();
            inner.watched = Watched::default();
            inner.roles.driver_awake = false;
            inner.roles.leader = Leader::Nobody;
            runtime.background.next_epoch();
            runtime.call_background(&mut inner);
        }
    }
}

impl Runtime {
    /// Whether a descriptor says that packets are there.
    fn tells_of_packets(&self) -> bool {
        self.device_fd().is_some() && !self.lock().has_failed()
    }

    /// Passes the lead on to whoever waits, or else to the background thread.
    fn call_background(&self, inner: &mut Inner) {
        inner.roles.background_parked = true;
        self.leave(inner);
    }
}
