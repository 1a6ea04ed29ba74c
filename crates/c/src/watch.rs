//! Notifications of sockets' events: pollable descriptors, calls of `poll`, and the stack's own descriptor.
//!
//! Notifications are sent with the host's lock held. So nothing here waits. Nothing here keeps a stack or a socket alive either, because closing one
//! takes that lock.

use crate::entry::Descriptor;
use crate::stack::{OpenStack, SocketTables};
use libc::{POLLERR, POLLHUP, POLLNVAL};
use rustix::fd::AsFd;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use transom_device::EventFd;
use transom_net::HostWatcher;
use transom_stack::{ConnectionId, ListenerId, Stack as Host};
use transom_tcp::time::Instant;

/// A call of `poll` that waits for some sockets.
#[derive(Debug)]
pub(crate) struct Poller {
    pub(crate) event_fd: Arc<EventFd>,
    pub(crate) keys: HashSet<i32>,
}

/// The receivers of notifications, by the sockets' numbers in the stack.
#[derive(Debug)]
pub(crate) struct Watch {
    pollable: HashMap<i32, Arc<Descriptor>>,
    pollers: Vec<Arc<Poller>>,
    /// The stack's own descriptor.
    event_fd: EventFd,
    signalled: bool,
    /// Sockets that the stack's descriptor is for: their descriptors, and what is waited for.
    interest: HashMap<i32, (i32, i16)>,
    /// Of these, those that may be ready.
    candidates: BTreeSet<i32>,
}

impl Watch {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Watch {
            pollable: HashMap::new(),
            pollers: Vec::new(),
            event_fd: EventFd::new()?,
            signalled: false,
            interest: HashMap::new(),
            candidates: BTreeSet::new(),
        })
    }

    fn is_watched(&self, key: i32) -> bool {
        self.pollable.contains_key(&key)
            || self.interest.contains_key(&key)
            || self.pollers.iter().any(|poller| poller.keys.contains(&key))
    }

    /// Notifies all receivers that `key` is `ready`, in poll's flags.
    fn notify(&mut self, key: i32, ready: i16) {
        if let Some(descriptor) = self.pollable.get(&key) {
            descriptor.show_readiness(ready);
        }
        if ready == 0 {
            return;
        }
        let pollers = self.pollers.iter().filter(|poller| poller.keys.contains(&key));
        pollers.for_each(|poller| poller.event_fd.signal());
        if self.interest.get(&key).is_some_and(|(_, events)| ready & reported_events(*events) != 0)
        {
            self.candidates.insert(key);
            self.signal();
        }
    }

    fn signal(&mut self) {
        if !std::mem::replace(&mut self.signalled, true) {
            self.event_fd.signal();
        }
    }
}

/// The events that are reported when `events` are asked for: errors always are.
fn reported_events(events: i16) -> i16 {
    events | POLLERR | POLLHUP | POLLNVAL
}

/// Forwards a host's events to the receivers.
struct EventForwarder(Arc<SocketTables>);

impl HostWatcher for EventForwarder {
    fn connection(&self, host: &mut Host, now: Instant, id: ConnectionId) {
        let key = self.0.table().stream_of(id);
        key.into_iter().for_each(|key| self.0.notify(host, now, key));
    }

    fn listener(&self, host: &mut Host, now: Instant, id: ListenerId) {
        let key = self.0.table().listener_of(id);
        key.into_iter().for_each(|key| self.0.notify(host, now, key));
    }

    fn failed(&self) {
        let mut watch = self.0.watch();
        let keys: HashSet<i32> =
            watch.pollable.keys().chain(watch.interest.keys()).copied().collect();
        keys.into_iter().for_each(|key| watch.notify(key, i16::MAX));
        watch.pollers.iter().for_each(|poller| poller.event_fd.signal());
    }
}

impl SocketTables {
    /// Notifies the receivers of a socket's readiness.
    fn notify(&self, host: &mut Host, now: Instant, key: i32) {
        let mut watch = self.watch();
        if watch.is_watched(key) {
            let ready = self.readiness(host, now, key);
            watch.notify(key, ready);
        }
    }
}

impl OpenStack {
    /// Has the host report its events from now on.
    fn install_watcher(&self) {
        if !self.tables.watched.swap(true, Ordering::AcqRel) {
            self.raw.watch(Arc::new(EventForwarder(Arc::clone(&self.tables))));
        }
    }

    /// Notifies the receivers after a call that may have changed a socket.
    pub(crate) fn notify_change(&self, key: i32) {
        if self.tables.watched.load(Ordering::Acquire) {
            self.raw.with(|host, now| self.tables.notify(host, now, key));
        }
    }

    /// Has a descriptor show its socket's readiness.
    pub(crate) fn make_pollable(&self, key: i32, descriptor: &Arc<Descriptor>) -> io::Result<()> {
        self.install_watcher();
        if descriptor.make_pollable()? {
            self.tables.watch().pollable.insert(key, Arc::clone(descriptor));
            self.notify_change(key);
        }
        Ok(())
    }

    /// Has the stack's descriptor tell of a socket; without events not any more.
    pub(crate) fn set_interest(&self, key: i32, fd: i32, events: i16) {
        self.install_watcher();
        let mut watch = self.tables.watch();
        if events == 0 {
            watch.interest.remove(&key);
            watch.candidates.remove(&key);
            return;
        }
        watch.interest.insert(key, (fd, events));
        drop(watch);
        self.notify_change(key);
    }

    /// The number of the stack's own descriptor.
    pub(crate) fn event_fd(&self) -> i32 {
        use rustix::fd::AsRawFd;
        self.install_watcher();
        self.tables.watch().event_fd.as_fd().as_raw_fd()
    }

    /// The sockets that are ready for what is waited for, at most so many: descriptors and flags. If there are more, the stack's descriptor stays
    /// readable, and so it does until nobody of them is ready.
    pub(crate) fn ready(&self, room: usize) -> Vec<(i32, i16)> {
        self.raw.with(|host, now| {
            let mut watch = self.tables.watch();
            let mut found = Vec::new();
            let mut candidates = std::mem::take(&mut watch.candidates).into_iter();
            let mut still_candidates = BTreeSet::new();
            while found.len() < room
                && let Some(key) = candidates.next()
            {
                let Some(&(fd, events)) = watch.interest.get(&key) else { continue };
                let ready = self.tables.readiness(host, now, key);
                let ready = ready & reported_events(events);
                if ready != 0 {
                    found.push((fd, ready));
                    still_candidates.insert(key);
                }
            }
            still_candidates.extend(candidates);
            watch.candidates = still_candidates;
            if watch.candidates.is_empty() {
                watch.signalled = false;
                watch.event_fd.reset();
            } else {
                watch.signal();
            }
            found
        })
    }

    /// A call of `poll` is to be told of some sockets.
    pub(crate) fn add_poller(&self, poller: &Arc<Poller>) {
        self.install_watcher();
        self.tables.watch().pollers.push(Arc::clone(poller));
    }

    pub(crate) fn remove_poller(&self, poller: &Arc<Poller>) {
        self.tables.watch().pollers.retain(|other| !Arc::ptr_eq(other, poller));
    }

    /// Removes a socket from all receivers: it is closed.
    pub(crate) fn unwatch(&self, key: i32) {
        let mut watch = self.tables.watch();
        watch.pollable.remove(&key);
        watch.interest.remove(&key);
        watch.candidates.remove(&key);
    }
}
