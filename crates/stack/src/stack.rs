//! A host: many connections over one interface, without a clock, a thread or a device.
//!
//! The owner passes packets ([`Stack::on_packet`]) and time ([`Stack::on_timeout`]), and makes the application's calls. After
//! each of these it takes packets to send until there are none ([`Stack::poll_transmit`]), signals ([`Stack::poll_signal`]) and
//! the next deadline ([`Stack::next_timeout`]).
//!
//! A connection with something to send is in the ready queue; nothing is scanned. A deadline that moves later is not moved in
//! the timing wheel. The timer fires at the old time, finds nothing due and is set again. That costs one visit per round trip
//! instead of one per acknowledgement.

mod addresses;
mod comment;
mod every_address;
mod fast_open;
mod handshake;
mod icmp;
mod incoming;
mod opens;
mod ports;
mod predict;
mod receive;
mod refusals;
mod replies;
mod reserved;
mod shards;
mod sharing;
mod sockets;
mod template;
mod time_waits;
mod timers;
mod transmit;

pub use opens::{ConnectError, ListenError};
pub use shards::{ForwardedPacket, Shard};
pub use sockets::SocketError;
pub use transmit::Transmit;

use crate::config::{MOST_CONNECTIONS, PortSource, StackConfig, StackConfigError, StackCounters};
use crate::destinations::DestinationCounters;
use crate::fast_open::Servers;
use crate::flow::{BoundPortChange, FlowKey, FlowTable, KeyedHash};
use crate::fragments::Fragments;
use crate::incoming::{HeldSyn, IncomingId};
use crate::listener::{HalfEntry, ListenTable, Listener, ListenerId};
use crate::log::{Log, Reading, Subject};
use crate::memory::{Memory, MemoryInfo};
use crate::path_mtus::{PathMtu, PathMtus};
use crate::secrets::{Purpose, Secrets};
use crate::slab::Slab;
use crate::totals::{HostCounts, HostTotals};
use crate::wheel::{TimerId, Wheel};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use replies::Reply;
use template::Template;
use time_waits::WaitEntry;
use transmit::IpFields;
use transom_tcp::packet::PacketBuf;
use transom_tcp::time::Instant;
use transom_tcp::{Connection, MemoryState, Prepared, Signal, SpareBlocks};

/// A connection's name, unique among all shards of its host. It stays unique: a name whose connection is gone names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnectionId {
    /// The place, and above it the number of the shard.
    index: u32,
    generation: u32,
}

/// So many bits of a name's index are the place.
const PLACE_BITS: u32 = MOST_CONNECTIONS.trailing_zeros();

impl ConnectionId {
    const fn new(shard: Shard, place: u32, generation: u32) -> Self {
        ConnectionId { index: shard.index << PLACE_BITS | place, generation }
    }

    /// A unique number for each connection, for logs and tables.
    pub fn as_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The name with this number, for connections outside of a stack. In a stack that has not assigned the name, it names
    /// nothing.
    pub fn from_u64(number: u64) -> Self {
        ConnectionId { index: number as u32, generation: (number >> 32) as u32 }
    }
}

/// A signal for the owner of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackSignal {
    /// A connection's.
    Connection(ConnectionId, Signal),
    /// A listener has a connection to accept.
    Acceptable(ListenerId),
    /// A listener holds a SYN, which waits for [`Stack::admit`] or [`Stack::refuse`].
    Incoming(ListenerId, IncomingId),
    /// The connection of an admitted SYN is there to be [accepted](Stack::accept_admitted).
    Admitted(ListenerId, IncomingId),
    /// A held SYN is not held any more, though its owner has not decided: the peer took it back, or the time limit has passed. Or it was admitted, and
    /// the peer did not complete the handshake.
    IncomingGone(ListenerId, IncomingId),
}

/// The purpose of a timer in the wheel.
#[derive(Clone, Copy, Debug)]
enum Wake {
    Connection(u32),
    HalfOpen(u32),
    TimeWait(u32),
    Held(u32),
}

/// The holder of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Application,
    /// It waits in a listener's accept queue.
    Listener(ListenerId),
    /// None: it ends by itself.
    Nobody,
}

#[derive(Debug)]
struct Slot {
    connection: Connection,
    key: FlowKey,
    owner: Owner,
    timer: Option<(TimerId, Instant)>,
    ready: bool,
    /// The table's entry belongs to something else by now (TIME-WAIT) or is gone.
    detached: bool,
    ip_fields: IpFields,
    /// The identification of its next packet, if it has one.
    ident: u16,
    template: Option<Template>,
    /// The other end is at one of our own addresses.
    to_self: bool,
    /// Its local address is not the host's any more.
    homeless: bool,
    /// The listener whose limit it counts against: it opened fast, and its handshake is not complete.
    fast_pending_at: Option<ListenerId>,
    /// The held SYN that it came from.
    incoming: Option<IncomingId>,
    /// Its memory, as last counted.
    held: usize,
}

impl Slot {
    fn set_ip_fields(&mut self, ip_fields: IpFields) {
        self.ip_fields = ip_fields;
        self.template = Template::new(&self.key, &ip_fields);
    }

    /// Updates whether packets may be fragmented, as the connection requires.
    fn follow_connection(&mut self) {
        let dont_fragment = self.connection.dont_fragment();
        if dont_fragment != self.ip_fields.dont_fragment {
            self.set_ip_fields(IpFields { dont_fragment, ..self.ip_fields });
        }
    }

    /// A template for the prepared packet, if it must not be fragmented while others may be.
    fn template_of_probe(&self, prepared: &Prepared) -> Option<Template> {
        if self.ip_fields.dont_fragment || !prepared.probes_path() {
            return None;
        }
        Template::new(&self.key, &IpFields { dont_fragment: true, ..self.ip_fields })
    }
}

/// Calls `call` on a connection, which has the host's state of memory and its free blocks meanwhile.
#[inline]
fn lent<T>(
    connection: &mut Connection,
    state: MemoryState,
    blocks: &mut SpareBlocks,
    call: impl FnOnce(&mut Connection) -> T,
) -> T {
    connection.swap_memory(state, blocks);
    let result = call(connection);
    connection.swap_memory(state, blocks);
    result
}

/// Buffers waiting for the owner to take them back; more stay with their connections.
const MAX_SPENT: usize = 256;

/// A host.
#[derive(Debug)]
pub struct Stack {
    config: StackConfig,
    secrets: Secrets,
    flows: FlowTable,
    // Boxed, so that a growing table does not move every connection.
    slots: Slab<Box<Slot>>,
    halves: Slab<HalfEntry>,
    held: Slab<HeldSyn>,
    waits: Slab<WaitEntry>,
    wait_order: VecDeque<(u32, u32)>,
    listeners: Slab<Listener>,
    listening: ListenTable,
    /// Places that are bound and nothing else yet.
    reserved: Vec<crate::mapped::Bound>,
    wheel: Wheel<Wake>,
    ready: VecDeque<u32>,
    /// Transmissions the connection at the front of the ready queue has had in a row.
    turn: u32,
    replies: VecDeque<Reply>,
    /// Packets from ourselves to ourselves.
    loopback: VecDeque<Vec<u8>>,
    /// Packets for other stacks of the host.
    forwarded: VecDeque<ForwardedPacket>,
    signals: VecDeque<StackSignal>,
    fragments: Fragments,
    path_mtus: PathMtus,
    /// For Fast Open.
    servers: Servers,
    /// The next ports.
    ports: DestinationCounters,
    /// The next identifications of packets that leave in fragments.
    idents: DestinationCounters,
    /// Those of its host, and what this shard has told them.
    totals: Arc<HostTotals>,
    told: HostCounts,
    scratch: transmit::Scratch,
    /// The connection a packet last was for.
    latest: u32,
    /// Buffers that were kept and have been read.
    spent: Vec<PacketBuf>,
    /// Memory for what connections send.
    blocks: SpareBlocks,
    counters: StackCounters,
    log: Log,
    memory: Memory,
}

impl Stack {
    /// A host as configured, starting at `now`.
    ///
    /// # Errors
    /// If the configuration is not consistent.
    pub fn new(config: StackConfig, now: Instant) -> Result<Self, StackConfigError> {
        config.validate()?;
        let secrets = Secrets::new(config.secret);
        let hash = KeyedHash::new(secrets.table_key());
        Ok(Stack {
            flows: FlowTable::new(hash.clone(), config.ports == PortSource::Caller),
            slots: Slab::new(),
            halves: Slab::new(),
            held: Slab::new(),
            waits: Slab::new(),
            wait_order: VecDeque::new(),
            listeners: Slab::new(),
            listening: ListenTable::new(hash.clone()),
            reserved: Vec::new(),
            wheel: Wheel::new(now),
            ready: VecDeque::new(),
            turn: 0,
            replies: VecDeque::new(),
            loopback: VecDeque::new(),
            forwarded: VecDeque::new(),
            signals: VecDeque::new(),
            fragments: Fragments::new(config.fragments),
            path_mtus: PathMtus::new(hash.clone()),
            servers: Servers::new(config.fast_open.servers, hash),
            ports: DestinationCounters::new(
                Purpose::Port,
                secrets.hash(Purpose::Port, &0u8) as u32,
            ),
            idents: DestinationCounters::new(Purpose::Identification, 0),
            scratch: transmit::Scratch::new(),
            latest: 0,
            spent: Vec::new(),
            blocks: SpareBlocks::of_a_host(),
            counters: StackCounters::default(),
            log: Log::new(config.log_records),
            memory: Memory::new(config.memory),
            totals: config.totals.clone().unwrap_or_else(|| Arc::new(HostTotals::new(1))),
            told: HostCounts::default(),
            secrets,
            config,
        })
    }

    /// The configuration.
    pub fn config(&self) -> &StackConfig {
        &self.config
    }

    /// The counters.
    pub fn counters(&self) -> StackCounters {
        StackCounters { fragments_dropped: self.fragments.dropped, ..self.counters }
    }

    /// The memory of all connections' data, and the effects of the limits on it.
    pub fn memory(&self) -> MemoryInfo {
        MemoryInfo { spare: self.blocks.memory(), ..self.memory.info() }
    }

    /// Looks what the other shards of the host hold, so that [`Stack::memory`] has the state of now.
    pub fn refresh_memory(&mut self) {
        let elsewhere = self.elsewhere().memory;
        self.memory.learn_elsewhere(elsewhere);
    }

    /// The state for the next call. Where it is not normal, others may have given memory back since.
    #[inline]
    fn memory_state(&mut self) -> MemoryState {
        if self.memory.state() != MemoryState::Normal {
            self.refresh_memory();
        }
        self.memory.state()
    }

    /// The recent events of connections, from number `from` on (they are counted from zero). Beyond the last one there is nothing to read, and
    /// [`Reading::next`] says where that is.
    pub fn log(&mut self, from: u64) -> Reading<'_> {
        self.log.end_run();
        self.log.read(from)
    }

    /// Connections that exist, TIME-WAIT and half-open ones not included.
    pub fn connection_count(&self) -> usize {
        self.slots.len()
    }

    /// Half-open connections.
    pub fn half_open_count(&self) -> usize {
        self.halves.len()
    }

    /// Connections in TIME-WAIT.
    pub fn time_wait_count(&self) -> usize {
        self.waits.len()
    }

    fn slot_index(&self, id: ConnectionId) -> Option<u32> {
        // A name of another shard's is no place here.
        let place = id.index ^ self.config.shard.index << PLACE_BITS;
        (self.slots.generation(place)? == id.generation).then_some(place)
    }

    fn id_of(&self, index: u32) -> Option<ConnectionId> {
        Some(ConnectionId::new(self.config.shard, index, self.slots.generation(index)?))
    }

    /// A connection as the log names it.
    #[inline]
    fn subject(&self, index: u32, now: Instant) -> Subject {
        let generation = self.slots.generation(index).unwrap_or_default();
        let id = ConnectionId::new(self.config.shard, index, generation);
        Subject { now, connection: id.as_u64() }
    }

    /// Calls `call` on a connection and records what it did.
    fn recorded<T>(
        &mut self,
        index: u32,
        now: Instant,
        call: impl FnOnce(&mut Connection) -> T,
    ) -> Option<T> {
        let subject = self.subject(index, now);
        let state = self.memory_state();
        let connection = &mut self.slots.get_mut(index)?.connection;
        let result = lent(connection, state, &mut self.blocks, call);
        connection.publish(&mut self.log.recorder(subject));
        Some(result)
    }

    /// The next signal.
    pub fn poll_signal(&mut self) -> Option<StackSignal> {
        self.signals.pop_front()
    }

    /// The next change at one of the host's bound ports, where the [caller](PortSource::Caller) allocates ports.
    pub fn poll_port_change(&mut self) -> Option<BoundPortChange> {
        self.flows.poll_change()
    }

    /// A connection changed: collect its signals and put it into the ready queue.
    fn touched(&mut self, index: u32, now: Instant) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if !slot.ready {
            slot.ready = true;
            self.ready.push_back(index);
        }
        slot.connection.reclaim(&mut self.spent, MAX_SPENT);
        let held = slot.connection.held();
        if held != slot.held {
            self.memory.change(core::mem::replace(&mut slot.held, held), held);
        }
        if self.memory.state() != MemoryState::Normal {
            self.blocks.clear();
            self.prune();
        }
        let Some(slot) = self.slots.get_mut(index) else { return };
        let mut next = slot.connection.poll_signal();
        if next.is_none() {
            return;
        }
        let Some(id) = self.id_of(index) else { return };
        let Some(slot) = self.slots.get_mut(index) else { return };
        let mut time_wait = false;
        let (mut connected, mut closed) = (false, false);
        while let Some(signal) = next {
            next = slot.connection.poll_signal();
            time_wait |= signal == Signal::TimeWait;
            connected |= signal == Signal::Connected;
            closed |= signal == Signal::Closed;
            if slot.owner == Owner::Application {
                self.signals.push_back(StackSignal::Connection(id, signal));
            }
        }
        let offered = slot.connection.opening().is_fast;
        let owner = slot.owner;
        if connected || closed {
            self.after_handshake(index, now);
        }
        if connected
            && !offered
            && let Owner::Listener(listener) = owner
        {
            self.offer(listener, id);
        }
        if time_wait {
            self.enter_time_wait(index, now);
        }
    }

    /// There is pressure: data beyond gaps is dropped, of a few connections at a time.
    #[cold]
    fn prune(&mut self) {
        for place in self.memory.next_candidates(self.slots.capacity()) {
            let Some(slot) = self.slots.get_mut(place) else { continue };
            self.memory.prune(&mut slot.connection);
            let held = slot.connection.held();
            self.memory.change(core::mem::replace(&mut slot.held, held), held);
        }
    }

    /// A connection has nothing more to send for now: sets its timer, and drops it if it has ended.
    fn settle(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        slot.ready = false;
        if slot.connection.is_finished() {
            self.detach(index);
            if self.slots.get(index).is_some_and(|slot| slot.owner == Owner::Nobody)
                && let Some(slot) = self.slots.remove(index)
            {
                self.memory.change(slot.held, 0);
            }
            return;
        }
        let wanted = slot.connection.next_timeout();
        match (slot.timer, wanted) {
            // The wheel will come by early enough; see the module's introduction.
            (Some((_, at)), Some(wanted)) if at <= wanted => {}
            (None, None) => {}
            (old, wanted) => {
                if let Some((timer, _)) = old {
                    self.wheel.remove(timer);
                }
                slot.timer = wanted.map(|at| (self.wheel.insert(at, Wake::Connection(index)), at));
            }
        }
    }

    /// Takes a connection out of the flow table and the wheel.
    fn detach(&mut self, index: u32) {
        self.learn_path_mtu(index);
        let Some(slot) = self.slots.get_mut(index) else { return };
        if let Some((timer, _)) = slot.timer.take() {
            self.wheel.remove(timer);
        }
        if !slot.detached {
            slot.detached = true;
            let key = slot.key;
            self.flows.remove(&key);
        }
    }

    /// A connection has ended: later ones to the same host use its path MTU.
    fn learn_path_mtu(&mut self, index: u32) {
        let (Some(slot), Some(id)) = (self.slots.get(index), self.id_of(index)) else { return };
        let path = slot.connection.path_state();
        let Some(mtu) = path.proven.filter(|_| !slot.detached) else { return };
        let (remote, whole) = (slot.key.remote, slot.connection.dont_fragment());
        self.path_mtus.prove(remote, PathMtu { mtu, whole });
        if path.is_narrow {
            let found = PathMtu { mtu, whole: whole || !path.fragments };
            self.path_mtus.note(id, remote, found, path.heard);
        }
    }

    /// Puts a completed connection into its listener's accept queue.
    fn offer(&mut self, listener: ListenerId, id: ConnectionId) {
        if let Some(entry) = self.listeners.named_mut(listener.index, listener.generation) {
            entry.accept.push_back(id);
            entry.tell();
            self.counters.passive_opens += 1;
            self.signals.push_back(StackSignal::Acceptable(listener));
        }
    }
}
