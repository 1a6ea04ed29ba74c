//! A host: a Transom stack and the applications on it.

use super::packets::Packet;
use super::senders::Senders;
use super::topology::Routes;
use super::{Fabric, NetworkError, NodeId};
use crate::random::Rng;
use crate::traffic::{Application, FlowId, Io, Ledger, ReadResult, Sends};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use transom_stack::log::Encoded;
use transom_stack::{ConnectionId, ListenConfig, ListenerId, Stack, StackSignal};
use transom_tcp::Profile;
use transom_tcp::packet::{BufferPool, PacketBuf};
use transom_tcp::time::Instant;
use transom_wire::offload::{RxChecksum, RxOffload};

/// The offset of the payload in a buffer; the headers end there.
const PAYLOAD_AT: usize = 128;

/// A map without a random seed: nothing depends on its order, and hostile keys do not come from a simulated application.
pub(crate) type Map<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// A host in the network.
pub(crate) struct Host {
    pub(crate) stack: Stack,
    routes: Routes,
    applications: Vec<Option<Box<dyn Application>>>,
    registry: Registry,
    /// Buffers with zeros where the payload is.
    pool: BufferPool,
    spare: Option<PacketBuf>,
    /// Datagrams that have arrived: port and payload.
    inbox: Vec<(u16, usize)>,
    /// The reader of the event log, and the number of the next record.
    log: Option<(LogReader, u64)>,
}

/// Takes the records of a host's event log, in their order.
pub(crate) type LogReader = Box<dyn FnMut(&Encoded) + Send>;

/// An application that is to run on a host.
pub(super) struct Program {
    pub(super) start: Instant,
    pub(super) application: Box<dyn Application>,
    /// The profile of its connections, if it is not the host's.
    pub(super) profile: Option<Arc<Profile>>,
}

/// Which application has what on a host.
struct Registry {
    /// The profiles of applications that have their own.
    profiles: Vec<Option<Arc<Profile>>>,
    connections: Map<ConnectionId, usize>,
    listeners: Map<ListenerId, usize>,
    /// When applications want to be called, in the order of asking.
    timers: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    asked: u64,
    /// The applications that get the datagrams of a port.
    ports: Map<u16, usize>,
    /// Datagrams to be sent.
    outbox: Vec<Packet>,
    node: NodeId,
    address: Ipv4Addr,
    rng: Rng,
    senders: Senders,
}

impl Registry {
    fn call_at(&mut self, at: Instant, application: usize) {
        self.timers.push(Reverse((at, self.asked, application)));
        self.asked += 1;
    }

    fn profile_of(&self, application: usize) -> Option<Arc<Profile>> {
        self.profiles.get(application).cloned().flatten()
    }
}

/// A host in the network, for one of its applications.
struct HostIo<'a> {
    now: Instant,
    stack: &'a mut Stack,
    registry: &'a mut Registry,
    ledger: &'a mut Ledger,
    application: usize,
}

impl Io for HostIo<'_> {
    fn now(&self) -> Instant {
        self.now
    }

    fn node(&self) -> NodeId {
        self.registry.node
    }

    /// All applications of a host share its stream.
    fn rng(&mut self) -> &mut Rng {
        &mut self.registry.rng
    }

    fn ledger(&mut self) -> &mut Ledger {
        self.ledger
    }

    fn call_at(&mut self, at: Instant) {
        self.registry.call_at(at, self.application);
    }

    fn connect(&mut self, remote: SocketAddr) -> Option<ConnectionId> {
        let profile = self.registry.profile_of(self.application);
        let id = self.stack.connect(self.now, None, remote, profile).ok()?;
        self.registry.connections.insert(id, self.application);
        Some(id)
    }

    fn listen(&mut self, port: u16) -> bool {
        let profile = self.registry.profile_of(self.application);
        let config = ListenConfig::default().with_profile(profile);
        let listener = self.stack.listen(([0, 0, 0, 0], port).into(), config);
        listener.is_ok_and(|id| self.registry.listeners.insert(id, self.application).is_none())
    }

    fn local_address(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.stack.local_address(id)
    }

    fn remote_address(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.stack.remote_address(id)
    }

    fn write(&mut self, id: ConnectionId, count: u64) -> u64 {
        let now = self.now;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let written = self.stack.with_connection(id, now, |one| one.write_zeros(now, count));
        written.ok().and_then(Result::ok).unwrap_or(0) as u64
    }

    fn read(&mut self, id: ConnectionId) -> ReadResult {
        let now = self.now;
        let read = self.stack.with_connection(id, now, |one| {
            let mut taken = ReadResult::default();
            loop {
                let readable = one.readable();
                taken.bytes += one.consume(now, readable) as u64;
                let Some(hole) = one.take_hole() else { break };
                taken.skipped += hole.len;
            }
            ReadResult { over: one.end_of_stream() || one.error().is_some(), ..taken }
        });
        read.unwrap_or(ReadResult { over: true, ..ReadResult::default() })
    }

    fn shutdown(&mut self, id: ConnectionId) {
        let _ = self.stack.shutdown_write(id, self.now);
    }

    fn close(&mut self, id: ConnectionId) {
        self.registry.connections.remove(&id);
        self.registry.senders.closes(self.stack, self.ledger, id);
        self.stack.close(id, self.now);
    }

    fn follow(&mut self, id: ConnectionId, flow: FlowId) {
        self.registry.senders.follow(self.stack, self.ledger, id, flow);
    }

    fn sends(&mut self, flow: FlowId, which: Sends) {
        self.registry.senders.addresses.add(which, flow);
    }

    fn bind(&mut self, port: u16) -> bool {
        *self.registry.ports.entry(port).or_insert(self.application) == self.application
    }

    fn send_datagram(&mut self, port: u16, remote: SocketAddrV4, payload: u16) {
        let source = SocketAddrV4::new(self.registry.address, port);
        self.registry.outbox.extend(Packet::datagram(source, remote, payload));
    }
}

/// The reason for a call of an application.
enum Call {
    Timer,
    Accepted(ConnectionId),
    Signal(ConnectionId, transom_tcp::Signal),
    Datagram(usize),
}

impl Host {
    pub(super) fn new(
        stack: Stack,
        node: NodeId,
        (address, mtu): (Ipv4Addr, u32),
        routes: Routes,
        rng: Rng,
        programs: Vec<Program>,
    ) -> Self {
        let mut registry = Registry {
            profiles: programs.iter().map(|program| program.profile.clone()).collect(),
            connections: Map::default(),
            listeners: Map::default(),
            timers: BinaryHeap::new(),
            asked: 0,
            ports: Map::default(),
            outbox: Vec::new(),
            node,
            address,
            rng,
            senders: Senders::default(),
        };
        for (index, program) in programs.iter().enumerate() {
            registry.call_at(program.start, index);
        }
        Host {
            stack,
            routes,
            applications: programs.into_iter().map(|one| Some(one.application)).collect(),
            registry,
            pool: BufferPool::new(PAYLOAD_AT + mtu as usize, 64),
            spare: None,
            inbox: Vec::new(),
            log: None,
        }
    }

    /// Gives its links other names.
    pub(super) fn rename_links(&mut self, names: &BTreeMap<u32, u32>) {
        // In its place there is nothing to be renamed.
        let routes = std::mem::replace(&mut self.routes, Routes::ByHost(Box::default()));
        self.routes = routes.renamed(names);
    }

    /// When it wants to be called.
    pub(super) fn next_call(&self) -> Option<Instant> {
        let timer = self.registry.timers.peek().map(|Reverse((at, ..))| *at);
        match (timer, self.stack.next_timeout()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// A packet has arrived unharmed.
    pub(super) fn receive(&mut self, now: Instant, packet: &Packet) {
        if let Some((port, payload)) = packet.as_datagram() {
            // Its application is told when the host runs, which is next.
            self.inbox.push((port, payload));
            return;
        }
        if packet.is_from_outside() {
            return self.receive_bytes(now, packet.headers());
        }
        let offload = RxOffload { checksum: RxChecksum::Valid, segmentation: None };
        let headers = packet.headers();
        let end = PAYLOAD_AT + packet.zeros();
        let mut buffer = self.spare.take().unwrap_or_else(|| self.pool.take());
        if packet.zeros() == 0 || headers.len() > PAYLOAD_AT || end > buffer.len() {
            self.spare = Some(buffer);
            self.stack.on_packet(now, headers, offload);
            return;
        }
        let start = PAYLOAD_AT - headers.len();
        buffer[start..PAYLOAD_AT].copy_from_slice(headers);
        self.spare = self.stack.on_owned_packet(now, buffer, start..end, offload);
    }

    /// A packet has arrived whose checksums are to be verified.
    pub(super) fn receive_bytes(&mut self, now: Instant, bytes: &[u8]) {
        self.stack.on_packet(now, bytes, RxOffload::default());
    }

    /// Acts on the time, lets the applications act on what has happened, and sends what there is to send.
    pub(super) fn run(&mut self, now: Instant, fabric: &mut Fabric) -> Result<(), NetworkError> {
        self.stack.on_timeout(now);
        while let Some(&Reverse((at, _, application))) = self.registry.timers.peek()
            && at <= now
        {
            self.registry.timers.pop();
            self.call(now, fabric, application, Call::Timer);
        }
        for (port, payload) in std::mem::take(&mut self.inbox) {
            if let Some(&application) = self.registry.ports.get(&port) {
                self.call(now, fabric, application, Call::Datagram(payload));
            }
        }
        loop {
            while let Some(signal) = self.stack.poll_signal() {
                self.tell(now, fabric, signal);
            }
            while let Some(buffer) = self.stack.reclaim() {
                self.pool.put(buffer);
            }
            let mut sent = false;
            for datagram in std::mem::take(&mut self.registry.outbox) {
                self.send(now, fabric, datagram)?;
            }
            while let Some(transmit) = self.stack.poll_transmit(now) {
                sent = true;
                fabric.comment.push_str(transmit.comment);
                let packet = Packet::of(&transmit);
                self.send(now, fabric, packet)?;
                self.hand_out_log();
            }
            if !sent {
                self.hand_out_log();
                return Ok(());
            }
        }
    }

    /// Hands the event log to `reader` from now on.
    pub(super) fn watch_log(&mut self, reader: LogReader) {
        self.log = Some((reader, self.stack.log(u64::MAX).next));
    }

    /// Hands out what is new in the event log. One call makes fewer records than the log holds.
    fn hand_out_log(&mut self) {
        let Some((reader, next)) = &mut self.log else { return };
        let reading = self.stack.log(*next);
        reading.records().for_each(&mut *reader);
        *next = reading.next;
    }

    fn send(
        &mut self,
        now: Instant,
        fabric: &mut Fabric,
        packet: Packet,
    ) -> Result<(), NetworkError> {
        let senders = &mut self.registry.senders;
        if !senders.addresses.is_empty() {
            senders.sent(&packet, &self.stack, &mut fabric.ledger);
        }
        fabric.send_from(now, &self.routes, packet)
    }

    /// Writes down what its connections have counted.
    pub(super) fn count(&mut self, ledger: &mut Ledger) {
        self.registry.senders.count(&self.stack, ledger);
    }

    fn tell(&mut self, now: Instant, fabric: &mut Fabric, signal: StackSignal) {
        match signal {
            StackSignal::Acceptable(listener) => {
                let Some(&application) = self.registry.listeners.get(&listener) else { return };
                while let Some((id, _)) = self.stack.accept(listener) {
                    self.registry.connections.insert(id, application);
                    self.call(now, fabric, application, Call::Accepted(id));
                }
            }
            // No listener of a simulation holds SYNs.
            StackSignal::Incoming(..)
            | StackSignal::Admitted(..)
            | StackSignal::IncomingGone(..) => {}
            StackSignal::Connection(id, signal) => {
                if let Some(&application) = self.registry.connections.get(&id) {
                    self.call(now, fabric, application, Call::Signal(id, signal));
                }
            }
        }
    }

    fn call(&mut self, now: Instant, fabric: &mut Fabric, index: usize, call: Call) {
        let Some(mut application) = self.applications.get_mut(index).and_then(Option::take) else {
            return;
        };
        let mut io = HostIo {
            now,
            stack: &mut self.stack,
            registry: &mut self.registry,
            ledger: &mut fabric.ledger,
            application: index,
        };
        match call {
            Call::Timer => application.on_timer(&mut io),
            Call::Accepted(id) => application.on_accept(&mut io, id),
            Call::Signal(id, signal) => application.on_signal(&mut io, id, signal),
            Call::Datagram(payload) => application.on_datagram(&mut io, payload),
        }
        if let Some(slot) = self.applications.get_mut(index) {
            *slot = Some(application);
        }
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("routes", &self.routes).finish_non_exhaustive()
    }
}
