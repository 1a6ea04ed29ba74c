//! Requests and responses: one after the other over one connection, or the objects of pages over several.
//!
//! How large a request and its response are is drawn where the request is made. The other end is told beside the network
//! ([`Plan`]), as a real server reads it in the request.

use super::{Application, Bond, FlowId, Io, Sends};
use crate::network::host::Map;
use crate::random::Draw;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_stack::ConnectionId;
use transom_tcp::Signal;
use transom_tcp::time::{Duration, Instant};

/// A request and its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes of a request; at least one.
    pub request: Draw,
    /// Bytes of the response; at least one.
    pub response: Draw,
    /// Nanoseconds that the client waits after a response, or after a page.
    pub think: Draw,
}

impl Exchange {
    fn draw(&self, io: &mut dyn Io) -> (u64, u64) {
        let request = self.request.draw(io.rng()).max(1);
        (request, self.response.draw(io.rng()).max(1))
    }
}

/// How requests are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One after the other over one connection, with a pause after each; so many, or for ever.
    Sequence(Option<u32>),
    /// Pages of so many objects, fetched over so many connections at a time, which are opened for each page; a pause after each page.
    Pages {
        /// Objects of a page; at least one.
        objects: u32,
        /// Connections at a time; at least one.
        connections: u32,
    },
}

/// Requests under way, by the client's address: the bytes of each and of its response.
type Pending = BTreeMap<SocketAddr, VecDeque<(u64, u64)>>;

/// The state that the two ends share.
#[derive(Clone, Debug, Default)]
struct Plan(Arc<Mutex<Pending>>);

impl Plan {
    /// Both ends are on one core: an end that closes takes away what the other has not come to.
    fn bond(&self) -> Bond {
        Bond::State(Arc::as_ptr(&self.0).addr())
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request and the response to it.
#[derive(Clone, Copy, Debug)]
struct Fetch {
    asked: Instant,
    unsent: u64,
    awaited: u64,
}

/// The asking end. Each exchange counts as a completed transfer, from the request to the last byte of the response.
#[derive(Debug)]
struct Requests {
    flow: FlowId,
    remote: SocketAddr,
    exchange: Exchange,
    pattern: Pattern,
    plan: Plan,
    stop: Instant,
    /// The connections in the order in which they were opened, with what each is waiting for.
    fetches: Vec<(ConnectionId, Option<Fetch>)>,
    /// Requests still to be made: of the page, or in all.
    left: u32,
    begun: bool,
}

/// Both ends of requests to `remote` until `stop`.
pub fn requests(
    flow: FlowId,
    remote: SocketAddr,
    exchange: Exchange,
    pattern: Pattern,
    stop: Instant,
) -> (Box<dyn Application>, Box<dyn Application>) {
    let plan = Plan::default();
    let client = Requests {
        flow,
        remote,
        exchange,
        pattern,
        plan: plan.clone(),
        stop,
        fetches: Vec::new(),
        left: 0,
        begun: false,
    };
    let server = Responder { flow, port: remote.port(), plan, pending: Map::default() };
    (Box::new(client), Box::new(server))
}

impl Requests {
    fn open(&mut self, io: &mut dyn Io) {
        let Some(id) = io.connect(self.remote) else { return };
        self.fetches.push((id, None));
        let now = io.now();
        io.ledger().flow(self.flow).started.get_or_insert(now);
    }

    /// Makes the next request on a connection, or closes it if there is none to make.
    fn ask(&mut self, io: &mut dyn Io, id: ConnectionId) {
        let now = io.now();
        if self.left == 0 || now >= self.stop {
            return self.close(io, id);
        }
        if self.left != u32::MAX {
            self.left -= 1;
        }
        let (request, response) = self.exchange.draw(io);
        if let Some(local) = io.local_address(id) {
            self.plan.lock().entry(local).or_default().push_back((request, response));
        }
        if let Some(slot) = self.slot(id) {
            *slot = Some(Fetch { asked: now, unsent: request, awaited: response });
        }
        self.push(io, id);
    }

    fn slot(&mut self, id: ConnectionId) -> Option<&mut Option<Fetch>> {
        self.fetches.iter_mut().find(|(one, _)| *one == id).map(|(_, fetch)| fetch)
    }

    fn push(&mut self, io: &mut dyn Io, id: ConnectionId) {
        if let Some(Some(fetch)) = self.slot(id) {
            fetch.unsent -= io.write(id, fetch.unsent);
        }
    }

    fn take(&mut self, io: &mut dyn Io, id: ConnectionId) {
        let taken = io.read(id);
        let now = io.now();
        let flow = io.ledger().flow(self.flow);
        flow.delivered += taken.bytes;
        flow.skipped += taken.skipped;
        if let Some(slot) = self.slot(id)
            && let Some(fetch) = slot
        {
            fetch.awaited = fetch.awaited.saturating_sub(taken.progress());
            if fetch.awaited == 0 {
                let took = now.since(fetch.asked);
                *slot = None;
                io.ledger().flow(self.flow).completions.push((now, took));
                match self.pattern {
                    Pattern::Sequence(_) => self.pause(io),
                    Pattern::Pages { .. } => self.ask(io, id),
                }
            }
        }
        if taken.over {
            self.close(io, id);
        }
    }

    fn pause(&mut self, io: &mut dyn Io) {
        let think = Duration::from_nanos(self.exchange.think.draw(io.rng()));
        let at = io.now() + think;
        io.call_at(at);
    }

    fn close(&mut self, io: &mut dyn Io, id: ConnectionId) {
        let Some(place) = self.fetches.iter().position(|(one, _)| *one == id) else { return };
        self.fetches.remove(place);
        if let Some(local) = io.local_address(id) {
            self.plan.lock().remove(&local);
        }
        io.close(id);
        if !self.fetches.is_empty() {
            return;
        }
        let now = io.now();
        io.ledger().flow(self.flow).finished = Some(now);
        if matches!(self.pattern, Pattern::Pages { .. }) {
            self.pause(io);
        }
    }
}

impl Application for Requests {
    fn on_timer(&mut self, io: &mut dyn Io) {
        if io.now() >= self.stop {
            let open: Vec<ConnectionId> = self.fetches.iter().map(|(id, _)| *id).collect();
            return open.into_iter().for_each(|id| self.close(io, id));
        }
        match self.pattern {
            Pattern::Sequence(count) => {
                let idle = self.fetches.iter().find(|(_, fetch)| fetch.is_none());
                match idle.map(|(id, _)| *id) {
                    Some(id) => self.ask(io, id),
                    None if !self.begun => {
                        self.begun = true;
                        self.left = count.unwrap_or(u32::MAX);
                        self.open(io);
                        if self.stop != Instant::FAR_FUTURE {
                            io.call_at(self.stop);
                        }
                    }
                    None => {}
                }
            }
            Pattern::Pages { objects, connections } => {
                if self.fetches.is_empty() {
                    self.left = objects.max(1);
                    (0..connections.clamp(1, self.left)).for_each(|_| self.open(io));
                }
            }
        }
    }

    fn on_signal(&mut self, io: &mut dyn Io, id: ConnectionId, signal: Signal) {
        match signal {
            Signal::Connected => self.ask(io, id),
            Signal::Writable => self.push(io, id),
            Signal::Readable | Signal::Closed => self.take(io, id),
            _ => {}
        }
    }

    fn bonds(&self) -> Option<Vec<Bond>> {
        Some(vec![self.plan.bond(), Bond::Receives(self.flow)])
    }
}

/// The answering end.
#[derive(Debug)]
struct Responder {
    flow: FlowId,
    port: u16,
    plan: Plan,
    /// Of each connection: its client, what has come of its next request, and what is owed.
    pending: Map<ConnectionId, (SocketAddr, u64, u64)>,
}

impl Responder {
    fn serve(&mut self, io: &mut dyn Io, id: ConnectionId) {
        let taken = io.read(id);
        let Some((client, come, owed)) = self.pending.get_mut(&id) else { return };
        *come += taken.progress();
        {
            let mut plan = self.plan.lock();
            let asked = plan.entry(*client).or_default();
            while let Some((request, response)) =
                asked.pop_front_if(|(request, _)| *request <= *come)
            {
                *come -= request;
                *owed += response;
            }
        }
        *owed -= io.write(id, *owed);
        if taken.over && *owed == 0 {
            self.pending.remove(&id);
            io.close(id);
        }
    }
}

impl Application for Responder {
    fn on_timer(&mut self, io: &mut dyn Io) {
        // If somebody else listens there already, nothing will be answered, and the ledger shows it.
        io.listen(self.port);
        io.sends(self.flow, Sends::From(self.port));
    }

    fn on_accept(&mut self, io: &mut dyn Io, id: ConnectionId) {
        if let Some(client) = io.remote_address(id) {
            io.register_sender(self.flow, id);
            self.pending.insert(id, (client, 0, 0));
            self.serve(io, id);
        }
    }

    fn on_signal(&mut self, io: &mut dyn Io, id: ConnectionId, signal: Signal) {
        if matches!(signal, Signal::Readable | Signal::Writable | Signal::Closed) {
            self.serve(io, id);
        }
    }

    fn bonds(&self) -> Option<Vec<Bond>> {
        Some(vec![self.plan.bond(), Bond::Sends(self.flow)])
    }
}
