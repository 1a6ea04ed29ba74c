//! What the hosts of a network do: applications, and the ledger of what becomes of their flows.
//!
//! An [`Application`] lives on one host. It is called when something happens to its connections, or at a time it asked for,
//! and acts through its [`Io`]. What it sends are zeros, as many as it likes: a simulation is about how much arrives when.

mod bulk;
mod datagrams;
mod ledger;
mod limited;
mod requests;
mod schedule;
mod sink;
mod transfers;

use crate::network::NodeId;
use crate::network::host::Registry;
use crate::random::Rng;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::Arc;
use transom_stack::listener::{ListenConfig, ListenerId};
use transom_stack::stack::{ConnectionId, Stack};
use transom_tcp::connection::Event;
use transom_tcp::profile::Profile;
use transom_tcp::time::Instant;

pub use bulk::{Amount, Bulk};
pub use datagrams::{DatagramSink, OnOff};
pub use ledger::{Flow, FlowId, Ledger};
pub use limited::Limited;
pub use requests::{Exchange, Pattern, Requests, Responder, requests};
pub use schedule::Schedule;
pub use sink::Sink;
pub use transfers::Transfers;

/// The bytes of the headers before a datagram's payload: IPv4 and UDP.
pub const DATAGRAM_HEADERS: usize = 20 + 8;

/// A program on a simulated host.
pub trait Application: Send {
    /// The time it was started for, or one that it asked for with [`Io::call_at`].
    fn on_timer(&mut self, io: &mut Io<'_>);

    /// Something happened to one of its connections.
    fn on_event(&mut self, io: &mut Io<'_>, id: ConnectionId, event: Event) {
        let _ = (io, id, event);
    }

    /// One of its listeners has accepted a connection.
    fn on_accept(&mut self, io: &mut Io<'_>, listener: ListenerId, id: ConnectionId) {
        let _ = (io, listener, id);
    }

    /// A datagram of `payload` bytes has come to a port that it is bound to.
    fn on_datagram(&mut self, io: &mut Io<'_>, payload: usize) {
        let _ = (io, payload);
    }
}

/// What an application can do.
pub struct Io<'a> {
    pub(crate) now: Instant,
    pub(crate) stack: &'a mut Stack,
    pub(crate) registry: &'a mut Registry,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) application: usize,
}

impl std::fmt::Debug for Io<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io").field("now", &self.now).finish_non_exhaustive()
    }
}

impl Io<'_> {
    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The host's stack, for everything that is not here.
    pub fn stack(&mut self) -> &mut Stack {
        self.stack
    }

    /// The host.
    pub fn node(&self) -> NodeId {
        self.registry.node
    }

    /// The host's own random numbers.
    pub fn rng(&mut self) -> &mut Rng {
        &mut self.registry.rng
    }

    /// Where it is written down what flows do.
    pub fn ledger(&mut self) -> &mut Ledger {
        self.ledger
    }

    /// Asks to be called at `at`.
    pub fn call_at(&mut self, at: Instant) {
        self.registry.call_at(at, self.application);
    }

    /// Connects. What becomes of it comes as events; an attempt that cannot even begin gives `None`.
    pub fn connect(
        &mut self,
        remote: SocketAddr,
        profile: Option<Arc<Profile>>,
    ) -> Option<ConnectionId> {
        let id = self.stack.connect(self.now, None, remote, profile).ok()?;
        self.registry.connections.insert(id, self.application);
        Some(id)
    }

    /// Listens at a port. `None` if somebody else does already.
    pub fn listen(&mut self, port: u16, profile: Option<Arc<Profile>>) -> Option<ListenerId> {
        let config = ListenConfig { profile, ..ListenConfig::default() };
        let id = self.stack.listen(([0, 0, 0, 0], port).into(), config).ok()?;
        self.registry.listeners.insert(id, self.application);
        Some(id)
    }

    /// Writes up to `count` zeros and returns how many there was room for.
    pub fn write(&mut self, id: ConnectionId, count: u64) -> u64 {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let now = self.now;
        let written = self.stack.with_connection(id, now, |one| one.write_zeros(now, count));
        written.ok().and_then(Result::ok).unwrap_or(0) as u64
    }

    /// Takes everything that has arrived and returns how much that was, and whether the stream is over.
    pub fn read(&mut self, id: ConnectionId) -> (u64, bool) {
        let now = self.now;
        let read = self.stack.with_connection(id, now, |one| {
            let readable = one.readable();
            let taken = one.consume(now, readable);
            (taken as u64, one.end_of_stream() || one.error().is_some())
        });
        read.unwrap_or((0, true))
    }

    /// Ends the writing side.
    pub fn shutdown(&mut self, id: ConnectionId) {
        let _ = self.stack.shutdown_write(id, self.now);
    }

    /// Lets go of a connection; it ends in order by itself.
    pub fn close(&mut self, id: ConnectionId) {
        self.registry.connections.remove(&id);
        self.stack.close(id, self.now);
    }

    /// Writes down that a transfer of `flow` begins on this connection. It ends when the flow's [`Sink`] has all of it.
    pub fn transfer_begins(&mut self, flow: FlowId, id: ConnectionId) {
        let now = self.now;
        if let Some(local) = self.stack.local_address(id) {
            self.ledger.begin(flow, local, now);
        }
        let flow = self.ledger.flow(flow);
        flow.sender = Some((self.registry.node, id));
        flow.started.get_or_insert(now);
    }

    /// Takes a port for datagrams; [`Application::on_datagram`] is called for each that comes. False if it is taken.
    pub fn bind(&mut self, port: u16) -> bool {
        self.registry.bind(port, self.application)
    }

    /// Sends a datagram of `payload` zeros.
    pub fn send_datagram(&mut self, port: u16, remote: SocketAddrV4, payload: u16) {
        self.registry.send_datagram(port, remote, payload);
    }
}
