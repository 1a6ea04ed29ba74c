//! The sockets of applications.

use crate::network::NodeId;
use crate::random::Rng;
use crate::traffic::{FlowId, Ledger};
use std::net::{SocketAddr, SocketAddrV4};
use transom_stack::ConnectionId;
use transom_tcp::time::Instant;

/// The result of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadResult {
    /// Bytes that had arrived.
    pub bytes: u64,
    /// Bytes that never will: what was given up, of which the reader has taken note.
    pub skipped: u64,
    /// Whether the stream is over.
    pub over: bool,
}

impl ReadResult {
    /// From a connection that is no more.
    pub const NOTHING_MORE: ReadResult = ReadResult { bytes: 0, skipped: 0, over: true };

    /// By how much the reader has come on in the stream.
    pub(crate) fn progress(&self) -> u64 {
        self.bytes + self.skipped
    }
}

/// A host's connections, ports and timers, as its applications use them through [`Io`](super::Io).
///
/// Nothing blocks. The driver of the applications reports events.
/// [`Connected`](transom_tcp::Signal::Connected) means that an attempt has succeeded,
/// [`Closed`](transom_tcp::Signal::Closed) that a connection has ended or an attempt has
/// failed. Until the application closes a connection,
/// [`Readable`](transom_tcp::Signal::Readable) and
/// [`Writable`](transom_tcp::Signal::Writable) come whenever there is more than at the
/// last call, the end of the stream included.
pub trait Sockets {
    /// The host's name in the network.
    fn node(&self) -> NodeId;

    /// The random numbers that an application uses.
    fn rng(&mut self, application: usize) -> &mut Rng;

    /// Has an application called at `at`.
    fn call_at(&mut self, at: Instant, application: usize);

    /// Begins to connect. `None` if it cannot even begin.
    fn connect(
        &mut self,
        now: Instant,
        application: usize,
        remote: SocketAddr,
    ) -> Option<ConnectionId>;

    /// Listens at a port; false if it is taken.
    fn listen(&mut self, application: usize, port: u16) -> bool;

    /// This end of a connection.
    fn local_address(&self, id: ConnectionId) -> Option<SocketAddr>;

    /// The other end of a connection.
    fn remote_address(&self, id: ConnectionId) -> Option<SocketAddr>;

    /// Writes up to `count` zeros and returns for how many there was room.
    fn write(&mut self, now: Instant, id: ConnectionId, count: u64) -> u64;

    /// Takes everything that has arrived.
    fn read(&mut self, now: Instant, id: ConnectionId) -> ReadResult;

    /// Ends the writing side.
    fn shutdown(&mut self, now: Instant, id: ConnectionId);

    /// Lets go of a connection, which ends in order by itself.
    fn close(&mut self, now: Instant, ledger: &mut Ledger, id: ConnectionId);

    /// A connection sends for a flow: what it counts is the flow's.
    fn follow(&mut self, ledger: &mut Ledger, id: ConnectionId, flow: FlowId);

    /// Packets to this address and port are a flow's.
    fn sends_to(&mut self, remote: SocketAddr, flow: FlowId);

    /// Packets from this port are a flow's.
    fn sends_from(&mut self, port: u16, flow: FlowId);

    /// Takes a port for datagrams; false if another application has it.
    fn bind(&mut self, application: usize, port: u16) -> bool;

    /// Sends a datagram of `payload` zeros.
    fn send_datagram(&mut self, port: u16, remote: SocketAddrV4, payload: u16);
}
