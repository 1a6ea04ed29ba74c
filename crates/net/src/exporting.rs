//! Descriptors for programs that wait with poll or epoll.

use crate::readiness::Readiness;
use crate::runtime::Runtime;
use rustix::fd::OwnedFd;
use std::collections::hash_map::Entry;
use std::io;
use transom_stack::{ConnectionId, ListenerId};

impl Runtime {
    /// A descriptor that shows a connection's readiness.
    pub(crate) fn export(&self, id: ConnectionId) -> io::Result<OwnedFd> {
        let mut inner = self.lock();
        if let Entry::Vacant(vacant) = inner.readiness.entry(id) {
            vacant.insert(Readiness::new()?);
        }
        inner.update_readiness(id);
        let fd = inner.readiness.get(&id).map(|readiness| readiness.fd().try_clone_to_owned());
        self.leave(&mut inner);
        fd.unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into()))
    }

    /// The same for a listener.
    pub(crate) fn export_listener(&self, id: ListenerId) -> io::Result<OwnedFd> {
        let mut inner = self.lock();
        if let Entry::Vacant(vacant) = inner.listener_readiness.entry(id) {
            vacant.insert(Readiness::new()?);
        }
        inner.update_listener_readiness(id);
        let fd =
            inner.listener_readiness.get(&id).map(|readiness| readiness.fd().try_clone_to_owned());
        self.leave(&mut inner);
        fd.unwrap_or_else(|| Err(io::ErrorKind::NotConnected.into()))
    }
}
