//! The events of a connection, as one type for whoever listens.
//!
//! A connection notes what a call does, in a few bytes. After the call its owner has that
//! [published](crate::connection::Connection::publish): each [`Event`] goes to one [`Publisher`], with the connection as it is then. A log, the comments of a
//! capture and others are publishers; two of them in a pair are one. Nobody is the publisher `()`, which costs a comparison.
//!
//! Layers are not among them: on an [occasion](crate::extension::Occasion) a layer is woken while the call runs, because its limits apply to that call. Nor
//! is the owner: a [signal](crate::connection::Signal) says what can be done now, and not how often it happened.

use crate::connection::{Connection, ConnectionError, State};
use crate::extension::{DepartureReason, LayerId, Ruling, Variable};
use crate::named::named;
use crate::pos::Pos;
use crate::state::LimitReason;
use core::ops::Range;
use transom_wire::Flags;

/// Something that happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An acknowledgement: this many bytes are newly acknowledged, cumulatively or selectively; none by a duplicate.
    Acknowledged {
        /// The bytes.
        bytes: u64,
    },
    /// The retransmission timer expired.
    TimedOut,
    /// Bytes are newly believed lost.
    Lost {
        /// How many.
        bytes: u64,
    },
    /// Fast recovery began.
    Recovery,
    /// A reduction of the window was taken back.
    Undone,
    /// New data of the peer arrived.
    Arrived {
        /// How many bytes.
        bytes: u64,
    },
    /// The state of RFC 9293 changed.
    State {
        /// From this one.
        from: State,
        /// Why the connection ended, if it did, and not in order.
        error: Option<ConnectionError>,
    },
    /// A segment was settled, and leaves.
    Sent(Sent),
    /// Something else than before limits the sender.
    Limited {
        /// Why.
        because: LimitReason,
    },
    /// A layer came or went.
    Layer {
        /// Which it is, if it ever was attached.
        layer: Option<LayerId>,
        /// Its name.
        name: &'a str,
        /// The change.
        change: LayerChange,
    },
    /// The layers together ask for something else than before.
    Request {
        /// Of this variable.
        variable: Variable,
        /// What they ask, and what is used.
        ruling: Ruling,
    },
}

/// A segment that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// The sequence space that it carries, with SYN and FIN.
    pub range: Range<Pos>,
    /// Its flags.
    pub flags: Flags,
    /// It was sent before.
    pub again: bool,
    /// Its purpose, if it is a probe.
    pub probe: Option<Probe>,
}

/// The purpose of a probe: it finds out this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Probe {
    /// Whether the end of the flight was lost (RFC 8985 section 7).
    Loss,
    /// Whether the path takes larger packets (RFC 4821).
    PathMtu,
    /// Whether the peer's window is still closed (RFC 9293 section 3.8.6.1).
    Window,
    /// Whether the peer is still there (RFC 9293 section 3.8.4).
    KeepAlive,
}

named! {
    Probe:
    Loss = "loss",
    PathMtu = "path-mtu",
    Window = "window",
    KeepAlive = "keep-alive",
}

/// A change of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerChange {
    /// It was attached.
    Attached,
    /// It was detached on request.
    Detached,
    /// It was removed without a request.
    Departed(DepartureReason),
}

/// Takes events. It knows which connection it is about, and when.
pub trait Publisher {
    /// Whether anybody listens. If not, the notes are dropped.
    fn is_on(&self) -> bool {
        true
    }

    /// This happened to `connection`, which is now as the call has left it.
    fn publish(&mut self, connection: &Connection, event: Event<'_>);
}

/// Nobody listens.
impl Publisher for () {
    #[inline]
    fn is_on(&self) -> bool {
        false
    }

    #[inline]
    fn publish(&mut self, _: &Connection, _: Event<'_>) {}
}

/// Both listen, the first first.
impl<A: Publisher, B: Publisher> Publisher for (A, B) {
    #[inline(always)]
    fn is_on(&self) -> bool {
        self.0.is_on() || self.1.is_on()
    }

    #[inline(always)]
    fn publish(&mut self, connection: &Connection, event: Event<'_>) {
        if self.0.is_on() {
            self.0.publish(connection, event.clone());
        }
        if self.1.is_on() {
            self.1.publish(connection, event);
        }
    }
}
