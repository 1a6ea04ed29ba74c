//! The calls of an application to its host.

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
    /// By how much the reader has come on in the stream.
    pub(crate) fn progress(&self) -> u64 {
        self.bytes + self.skipped
    }
}

/// Which packets of a host are a flow's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sends {
    /// Those to the receiver's address and port.
    To(SocketAddr),
    /// Those from the sender's port.
    From(u16),
}

/// The interface of an application to its host: the host's connections, ports and timers.
///
/// Nothing blocks. The driver of the applications reports events.
/// [`Connected`](transom_tcp::Signal::Connected) means that an attempt has succeeded,
/// [`Closed`](transom_tcp::Signal::Closed) that a connection has ended or an attempt has
/// failed. Until the application closes a connection,
/// [`Readable`](transom_tcp::Signal::Readable) and
/// [`Writable`](transom_tcp::Signal::Writable) come whenever there is more than at the
/// last call, the end of the stream included.
pub trait Io {
    /// The present.
    fn now(&self) -> Instant;

    /// The host's name in the network.
    fn node(&self) -> NodeId;

    /// The random numbers that the application uses.
    fn rng(&mut self) -> &mut Rng;

    /// The ledger of flows.
    fn ledger(&mut self) -> &mut Ledger;

    /// Asks to be called at `at`.
    fn call_at(&mut self, at: Instant);

    /// Connects. Events report the outcome; an attempt that cannot even begin gives `None`.
    fn connect(&mut self, remote: SocketAddr) -> Option<ConnectionId>;

    /// Listens at a port. False if another application already does.
    fn listen(&mut self, port: u16) -> bool;

    /// This end's address and port.
    fn local_address(&self, id: ConnectionId) -> Option<SocketAddr>;

    /// The other end's address and port.
    fn remote_address(&self, id: ConnectionId) -> Option<SocketAddr>;

    /// Writes up to `count` zeros and returns how many there was room for.
    fn write(&mut self, id: ConnectionId, count: u64) -> u64;

    /// Takes everything that has arrived.
    fn read(&mut self, id: ConnectionId) -> ReadResult;

    /// Ends the writing side.
    fn shutdown(&mut self, id: ConnectionId);

    /// Lets go of a connection; it ends in order by itself.
    fn close(&mut self, id: ConnectionId);

    /// A connection sends for a flow: what it counts is the flow's.
    fn follow(&mut self, id: ConnectionId, flow: FlowId);

    /// Notes which packets of this host are the flow's.
    fn sends(&mut self, flow: FlowId, which: Sends);

    /// Takes a port for datagrams; [`Application::on_datagram`](super::Application::on_datagram) is called for each that comes. False if
    /// another application has it.
    fn bind(&mut self, port: u16) -> bool;

    /// Sends a datagram of `payload` zeros.
    fn send_datagram(&mut self, port: u16, remote: SocketAddrV4, payload: u16);

    /// Writes down that a transfer of `flow` begins on this connection. It ends when the flow's [`sink`](super::sink()) has all of it.
    fn transfer_begins(&mut self, flow: FlowId, id: ConnectionId) {
        let now = self.now();
        if let Some(local) = self.local_address(id) {
            self.ledger().begin(flow, local, now);
        }
        if let Some(remote) = self.remote_address(id) {
            self.sends(flow, Sends::To(remote));
        }
        self.register_sender(flow, id);
        self.ledger().flow(flow).started.get_or_insert(now);
    }

    /// Writes down that this connection sends what the flow's receiver is waiting for: what it counts is the flow's.
    fn register_sender(&mut self, flow: FlowId, id: ConnectionId) {
        self.follow(id, flow);
        let node = self.node();
        self.ledger().flow(flow).sender = Some((node, id));
        self.ledger().follows(node);
    }
}
