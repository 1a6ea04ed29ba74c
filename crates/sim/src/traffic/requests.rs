//! Requests and responses over one connection, one after the other.

use super::{Application, FlowId, Io};
use crate::network::host::Map;
use std::net::SocketAddr;
use std::sync::Arc;
use transom_stack::listener::ListenerId;
use transom_stack::stack::ConnectionId;
use transom_tcp::connection::Event;
use transom_tcp::profile::Profile;
use transom_tcp::time::{Duration, Instant};

/// What is asked and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes of a request.
    pub request: u64,
    /// Bytes of the response.
    pub response: u64,
    /// How long the client waits after a response.
    pub think: Duration,
}

/// The asking end. Each exchange counts as a completed transfer, from the request to the last byte of the response.
#[derive(Debug)]
pub struct Requests {
    flow: FlowId,
    remote: SocketAddr,
    exchange: Exchange,
    profile: Option<Arc<Profile>>,
    stop: Instant,
    connection: Option<ConnectionId>,
    asked: Instant,
    unsent: u64,
    awaited: u64,
}

impl Requests {
    /// Asks `remote` until `stop`.
    pub fn new(flow: FlowId, remote: SocketAddr, exchange: Exchange, stop: Instant) -> Self {
        Requests {
            flow,
            remote,
            exchange,
            profile: None,
            stop,
            connection: None,
            asked: Instant::ZERO,
            unsent: 0,
            awaited: 0,
        }
    }

    /// The same over a connection with a profile of its own.
    pub fn with_profile(self, profile: Arc<Profile>) -> Self {
        Requests { profile: Some(profile), ..self }
    }

    fn ask(&mut self, io: &mut Io<'_>, id: ConnectionId) {
        let now = io.now();
        if now >= self.stop {
            io.ledger().flow(self.flow).finished = Some(now);
            self.connection = None;
            io.close(id);
            return;
        }
        self.asked = io.now();
        self.unsent = self.exchange.request;
        self.awaited = self.exchange.response;
        self.push(io, id);
    }

    fn push(&mut self, io: &mut Io<'_>, id: ConnectionId) {
        self.unsent -= io.write(id, self.unsent);
    }

    fn take(&mut self, io: &mut Io<'_>, id: ConnectionId) {
        let (read, over) = io.read(id);
        let (now, asked) = (io.now(), self.asked);
        let flow = io.ledger().flow(self.flow);
        flow.delivered += read;
        let waiting = self.awaited > 0;
        self.awaited = self.awaited.saturating_sub(read);
        if waiting && self.awaited == 0 {
            flow.completions.push((now, now.since(asked)));
            io.call_at(now + self.exchange.think);
        }
        if over {
            io.ledger().flow(self.flow).finished = Some(now);
            self.connection = None;
            io.close(id);
        }
    }
}

impl Application for Requests {
    fn on_timer(&mut self, io: &mut Io<'_>) {
        match self.connection {
            Some(id) if self.awaited == 0 => self.ask(io, id),
            Some(_) => {}
            None if io.now() >= self.stop => {}
            None => {
                self.connection = io.connect(self.remote, self.profile.clone());
                if let Some(id) = self.connection {
                    io.transfer_begins(self.flow, id);
                }
            }
        }
    }

    fn on_event(&mut self, io: &mut Io<'_>, id: ConnectionId, event: Event) {
        match event {
            Event::Connected => self.ask(io, id),
            Event::Writable => self.push(io, id),
            Event::Readable | Event::Closed => self.take(io, id),
            _ => {}
        }
    }
}

/// The answering end.
#[derive(Debug)]
pub struct Responder {
    port: u16,
    exchange: Exchange,
    profile: Option<Arc<Profile>>,
    /// Of each connection: what is missing of its request, and of the responses to it.
    pending: Map<ConnectionId, (u64, u64)>,
}

impl Responder {
    /// Answers at `port`.
    pub fn new(port: u16, exchange: Exchange) -> Self {
        Responder { port, exchange, profile: None, pending: Map::default() }
    }

    /// The same with a profile of its own for what it accepts.
    pub fn with_profile(self, profile: Arc<Profile>) -> Self {
        Responder { profile: Some(profile), ..self }
    }

    fn serve(&mut self, io: &mut Io<'_>, id: ConnectionId) {
        let (mut read, over) = io.read(id);
        let Some((missing, owed)) = self.pending.get_mut(&id) else { return };
        while read >= *missing {
            read -= *missing;
            *missing = self.exchange.request.max(1);
            *owed += self.exchange.response;
        }
        *missing -= read;
        *owed -= io.write(id, *owed);
        if over && *owed == 0 {
            self.pending.remove(&id);
            io.close(id);
        }
    }
}

impl Application for Responder {
    fn on_timer(&mut self, io: &mut Io<'_>) {
        let _ = io.listen(self.port, self.profile.clone());
    }

    fn on_accept(&mut self, io: &mut Io<'_>, _listener: ListenerId, id: ConnectionId) {
        self.pending.insert(id, (self.exchange.request.max(1), 0));
        self.serve(io, id);
    }

    fn on_event(&mut self, io: &mut Io<'_>, id: ConnectionId, event: Event) {
        if matches!(event, Event::Readable | Event::Writable | Event::Closed) {
            self.serve(io, id);
        }
    }
}
