//! The host under attack, and the peer who attacks it.
//!
//! A [`Victim`] is a real [`Stack`] at `10.0.0.2` with a listener on port 80. Every call on it goes through
//! [`Victim::call`], which lets it send what it has, checks its invariants, and keeps account: of the bytes of heap memory
//! it holds (exactly: only what is allocated inside its calls counts), of the calls of the allocator, and of the packets it
//! sends. [`Victim::inject`] asserts per packet what no packet may exceed.
//!
//! A [`Peer`] is the attacker.

pub use crate::peer::{Peer, bare_options, stream, usual_options};

use crate::allocator::measure;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use transom_stack::config::StackConfig;
use transom_stack::listener::{ListenConfig, ListenerId};
use transom_stack::stack::{ConnectionId, Packet, SocketError, Stack, StackEvent};
use transom_tcp::connection::{Connection, Info, ReadError, State};
use transom_tcp::packet::PacketBuf;
use transom_tcp::profile::Profile;
use transom_tcp::time::{Duration, Instant};
use transom_wire::offload::RxOffload;
use transom_wire::{IpPacket, Seq, TcpHeader, TcpPacket};

/// The victim's address.
pub const VICTIM: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Where it listens.
pub const SERVICE: SocketAddr = SocketAddr::new(IpAddr::V4(VICTIM), 80);
/// An attacker's address and port.
pub const ATTACKER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 4000);
/// The challenge acknowledgements one connection sends in a second at most.
pub const CHALLENGES_PER_SECOND: u64 = 10;

/// What one injected packet may cause at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Packets that leave.
    pub packets: u64,
    /// Calls of the allocator.
    pub allocations: u64,
    /// Bytes of heap memory held in all.
    pub held: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { packets: 1, allocations: 16, held: 4 << 20 }
    }
}

/// A packet that left the victim.
#[derive(Clone)]
pub struct Out {
    /// The whole packet.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes.len())?;
        self.tcp().map_or(Ok(()), |header| write!(f, ": {header}"))
    }
}

impl Out {
    /// Its TCP header, if it is TCP; the checksums are verified on the way.
    pub fn tcp(&self) -> Option<TcpHeader> {
        let ip = IpPacket::parse(&self.bytes).expect("the victim sends valid IP");
        (ip.protocol() == transom_wire::Protocol::TCP).then(|| {
            assert!(ip.transport_checksum_ok(), "a wrong checksum left");
            *TcpPacket::parse(ip.payload()).expect("the victim sends valid TCP").header()
        })
    }

    /// Its TCP payload.
    pub fn payload(&self) -> Vec<u8> {
        let ip = IpPacket::parse(&self.bytes).unwrap();
        TcpPacket::parse(ip.payload()).map_or(Vec::new(), |tcp| tcp.payload().to_vec())
    }
}

/// The host under attack.
pub struct Victim {
    stack: Stack,
    now: Instant,
    listener: Option<ListenerId>,
    out: Vec<Out>,
    /// Bytes of heap memory the stack holds.
    held: i64,
    /// What was reported to the application, newest last.
    pub events: Vec<StackEvent>,
    /// What no packet may exceed.
    pub limits: Limits,
}

impl Victim {
    /// A host with the default configuration.
    pub fn new() -> Self {
        Victim::with(|_, _, _| {})
    }

    /// A host with a configuration, the profile of all its connections, and its listener's queues changed by `change`.
    pub fn with(change: impl FnOnce(&mut StackConfig, &mut Profile, &mut ListenConfig)) -> Self {
        let mut config =
            StackConfig::new(vec![(VICTIM.into(), 24), ("fd00::2".parse().unwrap(), 64)]);
        config.secret = *b"not a real one..";
        let (mut profile, mut listen) = (Profile::default(), ListenConfig::default());
        change(&mut config, &mut profile, &mut listen);
        config.profile = Arc::new(profile);
        // Not at zero: nothing may depend on the clock's origin.
        let now = Instant::from_secs(1_000);
        let (stack, usage) = measure(|| Stack::new(config, now).unwrap());
        let mut victim = Victim {
            stack,
            now,
            listener: None,
            out: Vec::new(),
            held: usage.held,
            events: Vec::new(),
            limits: Limits::default(),
        };
        victim.listener = Some(victim.call(|stack, _| stack.listen(SERVICE, listen).unwrap()));
        victim
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The host, to look at.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Bytes of heap memory the host holds now.
    pub fn held(&self) -> i64 {
        self.held
    }

    /// Makes a call on the host, and lets it send what it has.
    pub fn call<T>(&mut self, work: impl FnOnce(&mut Stack, Instant) -> T) -> T {
        let now = self.now;
        let (result, usage) = measure(|| work(&mut self.stack, now));
        self.held += usage.held;
        self.flush();
        result
    }

    /// Takes what the host has to send. Returns the calls of the allocator it made.
    fn flush(&mut self) -> u64 {
        let mut allocations = 0;
        loop {
            let (packet, usage) = measure(|| self.stack.poll_transmit(self.now));
            let Some(packet) = packet else {
                self.held += usage.held;
                allocations += usage.allocations;
                break;
            };
            let bytes = packet.to_vec();
            self.held += usage.held;
            allocations += usage.allocations;
            self.out.push(Out { bytes });
        }
        while let Some(event) = self.stack.poll_event() {
            self.events.push(event);
        }
        self.stack.check().unwrap();
        allocations
    }

    /// A packet arrives. Returns how many left because of it.
    pub fn inject(&mut self, packet: &[u8]) -> u64 {
        self.arrive(|stack, now| stack.on_packet(now, Packet::borrowed(packet)))
    }

    /// A packet arrives in a buffer of just its size, which the host may keep, and then holds.
    pub fn inject_owned(&mut self, packet: &[u8]) -> u64 {
        self.arrive(|stack, now| {
            let buffer = PacketBuf::copy_of(packet);
            drop(stack.on_owned_packet(now, buffer, 0..packet.len(), RxOffload::default()));
            while stack.reclaim().is_some() {}
        })
    }

    fn arrive(&mut self, deliver: impl FnOnce(&mut Stack, Instant)) -> u64 {
        let before = self.out.len();
        let ((), usage) = measure(|| deliver(&mut self.stack, self.now));
        self.held += usage.held;
        let allocations = usage.allocations + self.flush();
        let packets = (self.out.len() - before) as u64;
        let Limits { packets: most, allocations: most_allocations, held } = self.limits;
        assert!(packets <= most, "one packet made {packets} leave: {:?}", self.out.last());
        assert!(allocations <= most_allocations, "one packet caused {allocations} allocations");
        assert!(self.held <= held, "the host holds {} bytes, more than {held}", self.held);
        packets
    }

    /// A packet arrives, and the host does not come to sending: a burst.
    pub fn inject_without_sending(&mut self, packet: &[u8]) {
        let ((), usage) = measure(|| self.stack.on_packet(self.now, Packet::borrowed(packet)));
        self.held += usage.held;
        assert!(usage.allocations <= self.limits.allocations);
        assert!(self.held <= self.limits.held, "the host holds {} bytes", self.held);
    }

    /// Lets time pass. Asserts that timers do not spin, and returns how many packets left.
    pub fn advance(&mut self, span: Duration) -> u64 {
        let before = self.out.len();
        let end = self.now + span;
        let mut wakes = 0u64;
        while let Some(at) = self.stack.next_timeout().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            self.call(|stack, now| stack.on_timeout(now));
            wakes += 1;
            assert!(wakes < 1_000_000, "timers spin at {:?}", self.now);
        }
        self.now = end;
        (self.out.len() - before) as u64
    }

    /// Takes what has left since the last call.
    pub fn sent(&mut self) -> Vec<Out> {
        std::mem::take(&mut self.out)
    }

    /// The last segment that left, and forgets it and what left before it.
    pub fn last(&mut self) -> TcpHeader {
        let out = self.sent();
        out.last().and_then(Out::tcp).expect("a segment left")
    }

    /// The sequence number of the last segment that left; `otherwise` if none did.
    pub fn last_or(&mut self, otherwise: Seq) -> Seq {
        self.sent().last().and_then(Out::tcp).map_or(otherwise, |header| header.seq)
    }

    /// The connection that waits to be accepted.
    pub fn accept(&mut self) -> ConnectionId {
        let listener = self.listener.expect("it listens");
        self.call(|stack, _| stack.accept(listener)).expect("a connection to accept").0
    }

    /// Connections that wait to be accepted.
    pub fn acceptable(&self) -> usize {
        self.listener.map_or(0, |listener| self.stack.acceptable(listener))
    }

    /// A connection, to look at.
    pub fn connection(&self, id: ConnectionId) -> &Connection {
        self.stack.connection(id).expect("the connection exists")
    }

    /// A connection's state; `Closed` when there is none.
    pub fn state(&self, id: ConnectionId) -> State {
        self.stack.connection(id).map_or(State::Closed, Connection::state)
    }

    /// A snapshot of a connection.
    pub fn info(&self, id: ConnectionId) -> Info {
        self.connection(id).info(self.now)
    }

    /// Writes as much of `bytes` as goes.
    pub fn write(&mut self, id: ConnectionId, bytes: &[u8]) -> usize {
        self.call(|stack, now| stack.write(id, now, bytes)).expect("can write")
    }

    /// Reads everything there is to read.
    pub fn read(&mut self, id: ConnectionId) -> Vec<u8> {
        let mut all = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            match self.call(|stack, now| stack.read(id, now, &mut buffer)) {
                Ok(0) | Err(SocketError::Read(ReadError::WouldBlock)) => return all,
                Ok(n) => all.extend_from_slice(&buffer[..n]),
                Err(error) => panic!("cannot read: {error}"),
            }
        }
    }

    /// The application lets go.
    pub fn close(&mut self, id: ConnectionId) {
        self.call(|stack, now| stack.close(id, now));
    }
}
