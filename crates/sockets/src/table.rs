//! Descriptors and the sockets behind them.
//!
//! A descriptor is the lowest free number from 3 on, as in a program whose standard streams are open.

use crate::errno::{Errno, Result};
use crate::socket::{Role, Socket};
use libc::{EBADF, EMFILE};
use std::collections::{BTreeSet, HashMap};
use transom_stack::{ConnectionId, ListenerId};

const FIRST_DESCRIPTOR: usize = 3;
const MAX_DESCRIPTORS: usize = 1 << 20;

/// The sockets by descriptor.
#[derive(Debug, Default)]
pub struct Table {
    sockets: Vec<Option<Socket>>,
    /// Places in `sockets` that are empty.
    free: BTreeSet<usize>,
    /// The descriptors of connections and of listeners.
    streams: HashMap<ConnectionId, i32>,
    listeners: HashMap<ListenerId, i32>,
}

impl Table {
    pub(crate) fn insert(&mut self, socket: Socket) -> Result<i32> {
        let index = match self.free.first() {
            Some(&index) => index,
            None if self.sockets.len() < MAX_DESCRIPTORS => self.sockets.len(),
            None => return Err(Errno(EMFILE)),
        };
        let fd = i32::try_from(index + FIRST_DESCRIPTOR).map_err(|_| Errno(EMFILE))?;
        self.enter(socket.role, fd);
        self.free.remove(&index);
        match self.sockets.get_mut(index) {
            Some(place) => *place = Some(socket),
            None => self.sockets.push(Some(socket)),
        }
        Ok(fd)
    }

    fn index(fd: i32) -> Option<usize> {
        usize::try_from(fd).ok()?.checked_sub(FIRST_DESCRIPTOR)
    }

    pub(crate) fn get(&self, fd: i32) -> Result<&Socket> {
        Self::index(fd).and_then(|index| self.sockets.get(index)?.as_ref()).ok_or(Errno(EBADF))
    }

    pub(crate) fn get_mut(&mut self, fd: i32) -> Result<&mut Socket> {
        Self::index(fd).and_then(|index| self.sockets.get_mut(index)?.as_mut()).ok_or(Errno(EBADF))
    }

    /// Changes a socket's part in a connection.
    pub(crate) fn set_role(&mut self, fd: i32, role: Role) -> Result<()> {
        let socket = self.get_mut(fd)?;
        let before = std::mem::replace(&mut socket.role, role);
        self.leave(before);
        self.enter(role, fd);
        Ok(())
    }

    pub(crate) fn remove(&mut self, fd: i32) -> Result<Socket> {
        let index = Self::index(fd).ok_or(Errno(EBADF))?;
        let socket = self.sockets.get_mut(index).and_then(Option::take).ok_or(Errno(EBADF))?;
        self.free.insert(index);
        self.leave(socket.role);
        Ok(socket)
    }

    fn enter(&mut self, role: Role, fd: i32) {
        match role {
            Role::Fresh => {}
            Role::Listener { id, .. } => drop(self.listeners.insert(id, fd)),
            Role::Stream(stream) => drop(self.streams.insert(stream.id, fd)),
        }
    }

    fn leave(&mut self, role: Role) {
        match role {
            Role::Fresh => {}
            Role::Listener { id, .. } => drop(self.listeners.remove(&id)),
            Role::Stream(stream) => drop(self.streams.remove(&stream.id)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Socket> {
        self.sockets.iter().flatten()
    }

    /// The socket that has a connection.
    pub fn stream_of(&self, id: ConnectionId) -> Option<i32> {
        self.streams.get(&id).copied()
    }

    /// The socket that listens.
    pub fn listener_of(&self, id: ListenerId) -> Option<i32> {
        self.listeners.get(&id).copied()
    }
}
