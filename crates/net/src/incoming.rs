//! Connections that peers ask for, before they are answered: what a listener that holds SYNs gives.
//!
//! An [`IncomingConnection`] is a SYN without an answer. It is admitted, and becomes an [`AdmittedConnection`] whose handshake goes on, and then a
//! [`TcpStream`]. Or it is refused. Each of these can be dropped: then the peer is reset, so that nothing outlives its owner.

use crate::engine::{Channel, Inner};
use crate::error::would_block;
use crate::listener::{Part, Socket, TcpListener};
use crate::runtime::Runtime;
use crate::stream::TcpStream;
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use transom_stack::{AdmitError, Incoming, IncomingId, Refusal};

/// A connection that a peer asks for, and that is not answered yet: by [`TcpListener::wait_incoming`].
///
/// Dropping it refuses it by a reset.
#[derive(Debug)]
#[must_use = "dropping it refuses the connection"]
pub struct IncomingConnection {
    held: Box<Held>,
}

/// A connection whose SYN was admitted, and whose handshake goes on.
///
/// Dropping it resets the peer.
#[derive(Debug)]
#[must_use = "dropping it resets the connection"]
pub struct AdmittedConnection {
    held: Box<Held>,
}

/// A name in a host, and what has to happen when it is dropped.
#[derive(Debug)]
struct Held {
    socket: Arc<Socket>,
    /// The number of the part that has it.
    part: usize,
    id: IncomingId,
    incoming: Incoming,
    state: HeldState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeldState {
    Undecided,
    Admitted,
    Over,
}

impl TcpListener {
    /// Waits for a connection that a peer asks for, of a listener that [holds SYNs](transom_stack::ListenConfig::hold_syns).
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if the listener is non-blocking and there is none. [`io::ErrorKind::InvalidInput`] if it does not hold SYNs. The
    /// device's, if it has failed.
    pub fn wait_incoming(&self) -> io::Result<IncomingConnection> {
        self.ask_incoming(self.socket().waits())
    }

    /// Gives a connection that a peer asks for, if there is one. The listener's descriptor is readable then, and a
    /// [driver](crate::Driver::watch_listener) reports it.
    ///
    /// # Errors
    /// As [`TcpListener::wait_incoming`].
    pub fn try_incoming(&self) -> io::Result<IncomingConnection> {
        self.ask_incoming(false)
    }

    fn ask_incoming(&self, waits: bool) -> io::Result<IncomingConnection> {
        let socket = self.socket();
        if !socket.holds() {
            let why = "the listener answers SYNs at once: its connections are accepted";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let (part, found) = match socket.parts() {
            ([part], _) => (part, if waits { part.wait_incoming() } else { part.incoming_now() }),
            (parts, Some(acceptor)) => {
                socket.ask_parts(parts, acceptor, waits, Part::incoming_now)?
            }
            (_, None) => return Err(would_block()),
        };
        let (id, incoming) = found.unwrap_or_else(|| Err(would_block()))?;
        let part = socket.parts().0.iter().position(|other| std::ptr::eq(other, part));
        let (socket, part) = (Arc::clone(socket), part.unwrap_or_default());
        let state = HeldState::Undecided;
        Ok(IncomingConnection { held: Box::new(Held { socket, part, id, incoming, state }) })
    }
}

/// A held SYN.
type Found = (IncomingId, Incoming);

impl Part {
    fn wait_incoming(&self) -> Option<io::Result<Found>> {
        let channel = Channel::Incoming(self.id);
        self.shared.runtime.wait(channel, None, |inner, _| self.take_incoming(inner))
    }

    /// Takes one that is there, or at the device.
    fn incoming_now(&self) -> Option<io::Result<Found>> {
        self.shared.runtime.try_now(|inner, _| self.take_incoming(inner))
    }

    fn take_incoming(&self, inner: &mut Inner) -> Option<io::Result<Found>> {
        let id = inner.host.next_incoming(self.id);
        inner.update_listener_readiness(self.id);
        match (id.and_then(|id| Some((id, inner.host.incoming(id)?))), inner.failure()) {
            (Some(found), _) => Some(Ok(found)),
            (None, Some(error)) => Some(Err(error)),
            (None, None) => None,
        }
    }
}

impl Held {
    fn part(&self) -> io::Result<&Part> {
        self.socket.parts().0.get(self.part).ok_or_else(|| Errno::NOTCONN.into())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Ok(part) = self.part() else { return };
        part.shared.runtime.with(|inner, now| {
            inner.watched.forget_incoming(self.id);
            inner.roles.forget_tasks(Channel::Admitted(self.id));
            match self.state {
                HeldState::Undecided => {
                    inner.host.refuse(now, self.id, Refusal::Reset);
                }
                HeldState::Admitted => {
                    inner.host.give_up_admitted(now, self.id, &self.incoming);
                }
                HeldState::Over => {}
            }
        });
    }
}

impl IncomingConnection {
    /// The SYN: the place that the peer wants to reach, and its own; options such as the MSS; the time to live, the code point.
    pub fn syn(&self) -> &Incoming {
        &self.held.incoming
    }

    /// Whether the peer still waits: it has not taken its SYN back, and the listener's
    /// [limit](transom_stack::ListenConfig::hold_syns) has not passed.
    pub fn is_waiting(&self) -> bool {
        let Ok(part) = self.held.part() else { return false };
        part.shared.runtime.lock().host.incoming(self.held.id).is_some()
    }

    /// Answers the peer, and returns at once: the handshake goes on by itself. The connection is given back when that fails.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionAborted`] if the peer does not wait any more; [`io::ErrorKind::WouldBlock`] if the listener's queue, or the host, is
    /// full.
    pub fn admit(mut self) -> Result<AdmittedConnection, (io::Error, Self)> {
        let id = self.held.id;
        let admit = |part: &Part| {
            let admitted = part.shared.runtime.with(|inner, now| inner.host.admit(now, id));
            admitted.map_err(admit_error)
        };
        match self.held.part().and_then(admit) {
            Ok(()) => {
                self.held.state = HeldState::Admitted;
                Ok(AdmittedConnection { held: self.held })
            }
            Err(error) => Err((error, self)),
        }
    }

    /// Answers the peer, and waits until the handshake is complete.
    ///
    /// # Errors
    /// As [`IncomingConnection::admit`] and [`AdmittedConnection::accept`].
    pub fn accept(self) -> io::Result<TcpStream> {
        self.admit().map_err(|(error, _)| error)?.accept(None)
    }

    /// Refuses the connection.
    pub fn refuse(mut self, refusal: Refusal) {
        self.held.state = HeldState::Over;
        if let Ok(part) = self.held.part() {
            let id = self.held.id;
            part.shared.runtime.with(|inner, now| inner.host.refuse(now, id, refusal));
        }
    }

    /// The runtime and the name.
    pub(crate) fn place(&self) -> (&Runtime, IncomingId) {
        (&self.held.socket.parts().0[self.held.part].shared.runtime, self.held.id)
    }
}

impl AdmittedConnection {
    /// The SYN, as [`IncomingConnection::syn`].
    pub fn syn(&self) -> &Incoming {
        &self.held.incoming
    }

    /// The stream, if the handshake is complete. Does not wait.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if it is not complete; [`io::ErrorKind::ConnectionAborted`] if it will never be.
    pub fn try_accept(&mut self) -> io::Result<TcpStream> {
        let part = self.held.part()?;
        let outcome = part.shared.runtime.with(|inner, _| self.attempt(inner));
        self.conclude(outcome)
    }

    /// Waits until the handshake is complete, or until `timeout`.
    ///
    /// # Errors
    /// [`io::ErrorKind::ConnectionAborted`] if the peer does not complete it; [`io::ErrorKind::TimedOut`]. The peer is reset then.
    pub fn accept(mut self, timeout: Option<Duration>) -> io::Result<TcpStream> {
        let runtime = &self.held.part()?.shared.runtime;
        let deadline = timeout.map(|timeout| runtime.now() + timeout.into());
        let channel = Channel::Admitted(self.held.id);
        let outcome = runtime.wait(channel, deadline, |inner, _| self.attempt(inner));
        match outcome {
            None => Err(io::ErrorKind::TimedOut.into()),
            outcome => self.conclude(outcome),
        }
    }

    fn attempt(&self, inner: &mut Inner) -> Option<io::Result<transom_stack::ConnectionId>> {
        let accepted = inner.host.accept_admitted(self.held.id, &self.held.incoming);
        match (accepted.map_err(admit_error).transpose(), inner.failure()) {
            (None, Some(error)) => Some(Err(error)),
            (outcome, _) => outcome,
        }
    }

    fn conclude(
        &mut self,
        outcome: Option<io::Result<transom_stack::ConnectionId>>,
    ) -> io::Result<TcpStream> {
        let connection = outcome.unwrap_or_else(|| Err(would_block()))?;
        self.held.state = HeldState::Over;
        Ok(self.held.socket.stream(self.held.part()?, connection))
    }
}

fn admit_error(error: AdmitError) -> io::Error {
    let errno = match error {
        AdmitError::Gone => Errno::CONNABORTED,
        AdmitError::Full => Errno::AGAIN,
        _ => Errno::IO,
    };
    io::Error::new(io::Error::from(errno).kind(), error)
}
