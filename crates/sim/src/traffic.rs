//! The traffic of a network: applications, and the ledger of their flows.
//!
//! An [`Application`] lives on one host. It is called when something happens to its connections, or at a time it asked for,
//! and acts through its [`Io`]. It sends zeros, as many as it likes: a simulation is about how much arrives when. Whose
//! connections they are is behind [`Sockets`]: a simulated host's, or those of another TCP that the network meets at a
//! gateway.

mod bonds;
mod bulk;
mod datagrams;
mod ledger;
mod limited;
mod pings;
mod requests;
mod schedule;
mod sent;
mod sink;
mod sockets;
mod transfers;

use crate::random::Rng;
use std::net::{SocketAddr, SocketAddrV4};
use transom_stack::ConnectionId;
use transom_tcp::Signal;
use transom_tcp::time::Instant;

pub use bonds::Bond;
pub use bulk::{Amount, Bulk};
pub use datagrams::{DatagramSink, OnOff};
pub use ledger::{Flow, FlowId, Ledger};
pub use limited::Limited;
pub use pings::{Echo, Pings};
pub use requests::{Exchange, Pattern, requests};
pub use schedule::Schedule;
pub use sent::{SendCounters, Sent};
pub use sink::Sink;
pub use sockets::{ReadResult, Sockets};
pub use transfers::Transfers;

/// The bytes of the headers before a datagram's payload: IPv4 and UDP.
pub const DATAGRAM_HEADERS: usize = 20 + 8;

/// A program on a simulated host.
pub trait Application: Send {
    /// The time it was started for, or one that it asked for with [`Io::call_at`].
    fn on_timer(&mut self, io: &mut Io<'_>);

    /// Something happened to one of its connections.
    fn on_signal(&mut self, io: &mut Io<'_>, id: ConnectionId, signal: Signal) {
        let _ = (io, id, signal);
    }

    /// A connection has been accepted at a port at which it listens.
    fn on_accept(&mut self, io: &mut Io<'_>, id: ConnectionId) {
        let _ = (io, id);
    }

    /// A datagram of `payload` bytes has come to a port that it is bound to.
    fn on_datagram(&mut self, io: &mut Io<'_>, payload: usize) {
        let _ = (io, payload);
    }

    /// All that it has in common with applications on other hosts; `None` if that may be anything. A network runs on several cores only if all
    /// of its applications tell.
    fn bonds(&self) -> Option<Vec<Bond>> {
        None
    }
}

/// The interface of an application to its host.
pub struct Io<'a> {
    now: Instant,
    sockets: &'a mut dyn Sockets,
    ledger: &'a mut Ledger,
    application: usize,
}

impl std::fmt::Debug for Io<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io").field("now", &self.now).finish_non_exhaustive()
    }
}

impl<'a> Io<'a> {
    /// The interface of application number `application` of a host at `now`.
    pub fn new(
        now: Instant,
        sockets: &'a mut dyn Sockets,
        ledger: &'a mut Ledger,
        application: usize,
    ) -> Self {
        Io { now, sockets, ledger, application }
    }
}

impl Io<'_> {
    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Random numbers: the host's own.
    pub fn rng(&mut self) -> &mut Rng {
        self.sockets.rng(self.application)
    }

    /// The ledger of flows.
    fn ledger(&mut self) -> &mut Ledger {
        self.ledger
    }

    /// Asks to be called at `at`.
    pub fn call_at(&mut self, at: Instant) {
        self.sockets.call_at(at, self.application);
    }

    /// Connects. Events report the outcome; an attempt that cannot even begin gives `None`.
    pub fn connect(&mut self, remote: SocketAddr) -> Option<ConnectionId> {
        self.sockets.connect(self.now, self.application, remote)
    }

    /// Listens at a port. False if another application already does.
    pub fn listen(&mut self, port: u16) -> bool {
        self.sockets.listen(self.application, port)
    }

    /// This end's address and port.
    pub(crate) fn local_address(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.sockets.local_address(id)
    }

    /// The other end's address and port.
    pub(crate) fn remote_address(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.sockets.remote_address(id)
    }

    /// Writes up to `count` zeros and returns how many there was room for.
    pub fn write(&mut self, id: ConnectionId, count: u64) -> u64 {
        self.sockets.write(self.now, id, count)
    }

    /// Takes everything that has arrived.
    pub fn read(&mut self, id: ConnectionId) -> ReadResult {
        self.sockets.read(self.now, id)
    }

    /// Ends the writing side.
    pub fn shutdown(&mut self, id: ConnectionId) {
        self.sockets.shutdown(self.now, id);
    }

    /// Lets go of a connection; it ends in order by itself.
    pub fn close(&mut self, id: ConnectionId) {
        self.sockets.close(self.now, self.ledger, id);
    }

    /// Writes down that a transfer of `flow` begins on this connection. It ends when the flow's [`Sink`] has all of it.
    pub(crate) fn transfer_begins(&mut self, flow: FlowId, id: ConnectionId) {
        let now = self.now;
        if let Some(local) = self.sockets.local_address(id) {
            self.ledger.begin(flow, local, now);
        }
        if let Some(remote) = self.sockets.remote_address(id) {
            self.sends_to(flow, remote);
        }
        self.register_sender(flow, id);
        self.ledger.flow(flow).started.get_or_insert(now);
    }

    /// Writes down that this connection sends what the flow's receiver is waiting for: what it counts is the flow's.
    pub(crate) fn register_sender(&mut self, flow: FlowId, id: ConnectionId) {
        self.sockets.follow(self.ledger, id, flow);
        self.ledger.flow(flow).sender = Some((self.sockets.node(), id));
        self.ledger.follows(self.sockets.node());
    }

    /// Notes that packets of this host to `remote`, the receiver's address and port, are the flow's.
    pub fn sends_to(&mut self, flow: FlowId, remote: SocketAddr) {
        self.sockets.sends_to(remote, flow);
    }

    /// Notes that packets of this host from `port` are the flow's.
    pub(crate) fn sends_from(&mut self, flow: FlowId, port: u16) {
        self.sockets.sends_from(port, flow);
    }

    /// Takes a port for datagrams; [`Application::on_datagram`] is called for each that comes. False if it is taken.
    pub fn bind(&mut self, port: u16) -> bool {
        self.sockets.bind(self.application, port)
    }

    /// Sends a datagram of `payload` zeros.
    pub fn send_datagram(&mut self, port: u16, remote: SocketAddrV4, payload: u16) {
        self.sockets.send_datagram(port, remote, payload);
    }
}
