//! The traffic of a network: applications, and the ledger of their flows.
//!
//! An [`Application`] lives on one host. It is called when something happens to its connections, or at a time it asked for,
//! and acts through its [`Io`]. It sends zeros, as many as it likes: a simulation is about how much arrives when. Behind the [`Io`] are
//! the connections of a simulated host, or those of another TCP that the network meets at a gateway.

mod bonds;
mod bulk;
mod datagrams;
mod io;
mod ledger;
mod limited;
mod pings;
mod requests;
mod schedule;
mod sent;
mod sink;
mod transfers;

use transom_stack::ConnectionId;
use transom_tcp::Signal;

pub use bonds::Bond;
pub use bulk::{Amount, bulk};
pub use datagrams::{datagram_sink, on_off};
pub use io::{Io, ReadResult, Sends};
pub use ledger::{Flow, FlowId, Ledger};
pub use limited::limited;
pub use pings::{echo, pings};
pub use requests::{Exchange, Pattern, requests};
pub use schedule::Schedule;
pub use sent::Sent;
pub use sink::sink;
pub use transfers::transfers;

/// The bytes of the headers before a datagram's payload: IPv4 and UDP.
pub const DATAGRAM_HEADERS: usize = 20 + 8;

/// A program on a simulated host.
pub trait Application: Send {
    /// The time it was started for, or one that it asked for with [`Io::call_at`].
    fn on_timer(&mut self, io: &mut dyn Io);

    /// Something happened to one of its connections.
    fn on_signal(&mut self, io: &mut dyn Io, id: ConnectionId, signal: Signal) {
        let _ = (io, id, signal);
    }

    /// A connection has been accepted at a port at which it listens.
    fn on_accept(&mut self, io: &mut dyn Io, id: ConnectionId) {
        let _ = (io, id);
    }

    /// A datagram of `payload` bytes has come to a port that it is bound to.
    fn on_datagram(&mut self, io: &mut dyn Io, payload: usize) {
        let _ = (io, payload);
    }

    /// All that it has in common with applications on other hosts; `None` if that may be anything. A network runs on several cores only if all
    /// of its applications tell.
    fn bonds(&self) -> Option<Vec<Bond>> {
        None
    }
}
