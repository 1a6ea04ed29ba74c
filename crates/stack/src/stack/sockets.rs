//! The application's calls on connections, by name.

use super::transmit::IpFields;
use super::{ConnectionId, Owner, Stack};
use core::net::SocketAddr;
use transom_tcp::time::Instant;
use transom_tcp::{Connection, ReadError, State, WriteError};

/// A call on a connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// There is no such connection (any more).
    #[error("no such connection")]
    NotFound,
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Writing failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// An option cannot have this value, for this reason.
    #[error("{0}")]
    BadOption(&'static str),
}

impl Stack {
    /// A connection, to read its state.
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        Some(&self.slots.get(self.slot_index(id)?)?.connection)
    }

    /// Calls `change` on a connection and sees to the consequences.
    pub fn with_connection<T>(
        &mut self,
        id: ConnectionId,
        now: Instant,
        change: impl FnOnce(&mut Connection) -> T,
    ) -> Result<T, SocketError> {
        let index = self.slot_index(id).ok_or(SocketError::NotFound)?;
        let result = self.recorded(index, now, change).ok_or(SocketError::NotFound)?;
        self.touched(index, now);
        Ok(result)
    }

    /// Some of the connections: of the places from `from` on, at most `places`. Returns the place to go on from; nothing after the last. A connection
    /// keeps its place, so that a caller who goes on later misses none that was there all the time.
    pub fn connections_from(
        &self,
        from: u32,
        places: u32,
    ) -> (impl Iterator<Item = (ConnectionId, &Connection)>, Option<u32>) {
        let end = from.saturating_add(places).min(self.slots.capacity());
        let some = (from..end).filter_map(move |index| {
            let slot = self.slots.get(index)?;
            Some((self.id_of(index)?, &slot.connection))
        });
        (some, (end < self.slots.capacity()).then_some(end))
    }

    /// Our address and port.
    pub fn local_address(&self, id: ConnectionId) -> Option<SocketAddr> {
        Some(self.slots.get(self.slot_index(id)?)?.key.local())
    }

    /// The peer's address and port.
    pub fn remote_address(&self, id: ConnectionId) -> Option<SocketAddr> {
        Some(self.slots.get(self.slot_index(id)?)?.key.remote())
    }

    /// Reads; see [`Connection::read`].
    pub fn read(
        &mut self,
        id: ConnectionId,
        now: Instant,
        out: &mut [u8],
    ) -> Result<usize, SocketError> {
        Ok(self.with_connection(id, now, |connection| connection.read(now, out))??)
    }

    /// Writes; see [`Connection::write`].
    pub fn write(
        &mut self,
        id: ConnectionId,
        now: Instant,
        bytes: &[u8],
    ) -> Result<usize, SocketError> {
        Ok(self.with_connection(id, now, |connection| connection.write(now, bytes))??)
    }

    /// Ends the writing side; see [`Connection::shutdown_write`].
    pub fn shutdown_write(&mut self, id: ConnectionId, now: Instant) -> Result<(), SocketError> {
        self.with_connection(id, now, |connection| connection.shutdown_write(now))
    }

    /// Releases a connection: it ends in order by itself, without further events. Until it has ended, its name still gives its
    /// state; after that the name is invalid, and it never means another connection.
    pub fn close(&mut self, id: ConnectionId, now: Instant) {
        self.release(id, now, |connection| connection.close(now));
    }

    /// Lets go of a connection and resets it. Its name means nothing any more once the reset has left.
    pub fn abort(&mut self, id: ConnectionId, now: Instant) {
        self.release(id, now, |connection| connection.abort(now));
    }

    fn release(&mut self, id: ConnectionId, now: Instant, end: impl FnOnce(&mut Connection)) {
        let Some(index) = self.slot_index(id) else { return };
        let Some(slot) = self.slots.get_mut(index) else { return };
        if slot.owner == Owner::Nobody {
            return;
        }
        slot.owner = Owner::Nobody;
        self.recorded(index, now, end);
        self.touched(index, now);
    }

    /// Sets the differentiated services code point of a connection's packets, 0 to 63 [MUST-48] [SHLD-21]. It reaches the IP
    /// header unchanged [SHLD-22]. The first packets carry the profile's. Packets of
    /// different code points may overtake each other, so a program should seldom change it [SHLD-23].
    pub(crate) fn set_dscp(&mut self, id: ConnectionId, dscp: u8) -> Result<(), SocketError> {
        self.change_ip_fields(id, |fields| IpFields { dscp, ..fields })
    }

    /// Sets the hop limit (time to live) of a connection's packets [MUST-49].
    pub(crate) fn set_hop_limit(&mut self, id: ConnectionId, hops: u8) -> Result<(), SocketError> {
        self.change_ip_fields(id, |fields| IpFields { hop_limit: hops, ..fields })
    }

    fn change_ip_fields(
        &mut self,
        id: ConnectionId,
        change: impl FnOnce(IpFields) -> IpFields,
    ) -> Result<(), SocketError> {
        let index = self.slot_index(id).ok_or(SocketError::NotFound)?;
        let slot = self.slots.get_mut(index).ok_or(SocketError::NotFound)?;
        slot.set_ip_fields(change(slot.ip_fields));
        Ok(())
    }

    /// The differentiated services code point of a connection's packets.
    pub fn dscp(&self, id: ConnectionId) -> Option<u8> {
        Some(self.slots.get(self.slot_index(id)?)?.ip_fields.dscp)
    }

    /// The hop limit of a connection's packets.
    pub fn hop_limit(&self, id: ConnectionId) -> Option<u8> {
        Some(self.slots.get(self.slot_index(id)?)?.ip_fields.hop_limit)
    }

    /// Whether any connection has data, or a FIN, that its peer has not acknowledged. It checks every connection.
    pub fn has_undelivered(&self) -> bool {
        self.slots.values().any(|slot| {
            let connection = &slot.connection;
            let closing =
                matches!(connection.state(), State::FinWait1 | State::Closing | State::LastAck);
            connection.state() != State::Closed && (closing || connection.unacknowledged() > 0)
        })
    }

    /// Checks every connection's invariants, for tests.
    pub fn check(&self) -> Result<(), &'static str> {
        self.slots.values().try_for_each(|slot| slot.connection.check())
    }
}
