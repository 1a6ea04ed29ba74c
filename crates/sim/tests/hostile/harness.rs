//! The host under attack, and the peer who attacks it.
//!
//! A [`Victim`] is a [`Host`] at `10.0.0.2` with a listener on port 80, and with an [`Account`]: of the bytes of heap memory
//! it holds (exactly: only what is allocated inside its calls counts) and of the calls of the allocator.
//! [`Victim::inject`] asserts per packet what no packet may exceed.
//!
//! A [`Peer`] is the attacker.

pub use crate::peer::Dialogue;
pub use transom_testkit::{Peer, bare_options, packets, stream, usual_options};

use crate::allocator::measure;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use transom_stack::{ConnectionId, ListenConfig, ListenerId, Stack, StackConfig};
use transom_tcp::Profile;
use transom_tcp::packet::PacketBuf;
use transom_tcp::time::{Duration, Instant};
use transom_testkit::{Host, Watch};
use transom_wire::offload::RxOffload;
use transom_wire::{Seq, TcpHeader};

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
        Limits { packets: 1, allocations: 20, held: 4 << 20 }
    }
}

/// Counts what the calls on the victim cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Bytes of heap memory the stack holds.
    held: i64,
    /// Calls of the allocator so far.
    allocations: u64,
}

impl Watch for Account {
    fn watch<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let (result, usage) = measure(work);
        self.held += usage.held;
        self.allocations += usage.allocations;
        result
    }
}

/// The host under attack.
pub struct Victim {
    host: Host<Account>,
    listener: ListenerId,
    /// What no packet may exceed.
    pub limits: Limits,
}

/// A victim can be asked whatever a host can be asked.
impl Deref for Victim {
    type Target = Host<Account>;

    fn deref(&self) -> &Host<Account> {
        &self.host
    }
}

impl DerefMut for Victim {
    fn deref_mut(&mut self) -> &mut Host<Account> {
        &mut self.host
    }
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
        // The test looks at the memory that peers can make the host hold. The event log has its ring, whatever they do.
        config.log_records = 0;
        config.secret = *b"not a real one..";
        let (mut profile, mut listen) = (Profile::classic(), ListenConfig::default());
        change(&mut config, &mut profile, &mut listen);
        config.profile = Arc::new(profile);
        let mut host = Host::start(config, Account::default());
        let listener = host.listen_with(SERVICE, listen);
        Victim { host, listener, limits: Limits::default() }
    }

    /// Bytes of heap memory the host holds now.
    pub fn held(&self) -> i64 {
        self.watch.held
    }

    /// A packet arrives. Returns how many left because of it.
    pub fn inject(&mut self, packet: &[u8]) -> u64 {
        self.arrive(|stack, now| stack.on_packet(now, packet, RxOffload::default()))
    }

    /// A packet arrives in a buffer of just its size, which the host may keep, and then holds.
    pub fn inject_owned(&mut self, packet: &[u8]) -> u64 {
        self.arrive(|stack, now| {
            let buffer = PacketBuf::from(packet);
            drop(stack.on_owned_packet(now, buffer, 0..packet.len(), RxOffload::default()));
            while stack.reclaim().is_some() {}
        })
    }

    fn arrive(&mut self, deliver: impl FnOnce(&mut Stack, Instant)) -> u64 {
        let (before, allocations) = (self.unseen(), self.watch.allocations);
        self.call(deliver);
        let packets = (self.unseen() - before) as u64;
        let allocations = self.watch.allocations - allocations;
        let Limits { packets: most, allocations: most_allocations, held } = self.limits;
        assert!(packets <= most, "one packet made {packets} leave: {:?}", self.sent().last());
        assert!(allocations <= most_allocations, "one packet caused {allocations} allocations");
        assert!(self.held() <= held, "the host holds {} bytes, more than {held}", self.held());
        packets
    }

    /// A packet arrives, and the host does not come to sending: a burst.
    pub fn inject_without_sending(&mut self, packet: &[u8]) {
        let Host { stack, now, watch, .. } = &mut self.host;
        let before = watch.allocations;
        watch.watch(|| stack.on_packet(*now, packet, RxOffload::default()));
        assert!(watch.allocations - before <= self.limits.allocations);
        assert!(watch.held <= self.limits.held, "the host holds {} bytes", watch.held);
    }

    /// Lets time pass. Returns how many packets left.
    pub fn advance(&mut self, span: Duration) -> u64 {
        let before = self.unseen();
        self.run_for(span);
        (self.unseen() - before) as u64
    }

    /// The last segment that left, and forgets it and what left before it.
    pub fn last(&mut self) -> TcpHeader {
        self.sent().last().expect("a segment left").tcp()
    }

    /// The sequence number of the last segment that left; `otherwise` if none did.
    pub fn last_or(&mut self, otherwise: Seq) -> Seq {
        self.sent().last().filter(|out| out.is_tcp()).map_or(otherwise, |out| out.tcp().seq)
    }

    /// Takes the connection that waits at the listener.
    pub fn accept_next(&mut self) -> ConnectionId {
        self.host.accept(self.listener)
    }

    /// Connections that wait to be accepted.
    pub fn acceptable(&self) -> usize {
        self.stack.acceptable(self.listener)
    }
}
