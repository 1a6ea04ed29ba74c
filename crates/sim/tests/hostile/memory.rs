//! Many peers at once: each keeps to what one connection may hold, and together they would fill the host.

use crate::allocator::measure;
use crate::harness::*;
use std::net::SocketAddr;
use transom_stack::{
    ConnectionId, ListenConfig, ListenerId, MemoryLimits, RESERVE, Stack, StackConfig,
};
use transom_tcp::MemoryState;
use transom_tcp::packet::PacketBuf;
use transom_tcp::time::Instant;
use transom_testkit::{Sent, one};
use transom_wire::Flags;
use transom_wire::offload::RxOffload;

/// It all happens at once.
const NOW: Instant = Instant::from_secs(1);

/// What the data of all connections may take here.
const LIMITS: MemoryLimits = MemoryLimits::of(12 << 20);

/// What a connection takes besides its data, and what belongs to it in tables: measured below.
const EACH: i64 = 6 << 10;

fn victim(most: usize) -> Victim {
    let mut victim = Victim::with(|config, _, listen| {
        config.memory = LIMITS;
        config.max_connections = most + 10;
        listen.backlog = most;
        listen.syn_backlog = most;
    });
    victim.limits.held = i64::MAX;
    // With each packet data of eight connections may be dropped.
    victim.limits.allocations = 150;
    victim
}

fn from(number: usize) -> SocketAddr {
    let [_, _, high, low] = (number as u32).to_be_bytes();
    SocketAddr::new([10, 0, 0, 10 + high].into(), 10_000 + u16::from(low))
}

fn state(victim: &Victim) -> MemoryState {
    victim.stack.memory().state
}

/// A connection that behaves: a hundred kilobytes go each way, though it may take more than one attempt.
fn goes_on(victim: &mut Victim, peer: &mut Peer, id: ConnectionId) {
    let data = stream(100_000);
    for part in data.chunks(1_000) {
        let packet = peer.data(part);
        victim.inject(&packet);
        assert_eq!(victim.read(id), part, "in order, and at once");
    }
    let mut written = 0;
    while written < data.len() {
        let taken = victim.write(id, &data[written..]);
        assert!(taken > 0, "the writer waits with nothing in flight");
        written += taken;
        while victim.connection(id).unacknowledged() > 0 {
            peer.receive(&victim.sent());
            let ack = peer.segment(Flags::ACK, &[]);
            victim.limits.packets = 100;
            victim.inject(&ack);
        }
    }
    victim.limits.packets = 1;
    victim.sent();
}

/// A host whose invariants are not checked after each packet, as that looks at every connection it has. Its memory is measured.
struct Crowded {
    stack: Stack,
    listener: ListenerId,
    held: i64,
}

impl Crowded {
    fn new(most: usize) -> Self {
        let mut config = StackConfig::new(vec![(VICTIM.into(), 24)]);
        config.memory = LIMITS;
        config.log_records = 0;
        let mut stack = Stack::new(config, NOW).unwrap();
        let listen = ListenConfig::default().with_backlog(most).with_syn_backlog(most);
        let listener = stack.listen(SERVICE, listen).unwrap();
        Crowded { stack, listener, held: 0 }
    }

    /// A packet arrives. What leaves, if anything does.
    fn inject(&mut self, packet: &[u8]) -> Vec<Sent> {
        let stack = &mut self.stack;
        let ((), usage) = measure(|| {
            let buffer = PacketBuf::from(packet);
            drop(stack.on_owned_packet(NOW, buffer, 0..packet.len(), RxOffload::default()));
            while stack.reclaim().is_some() {}
        });
        self.held += usage.held;
        self.sent()
    }

    fn sent(&mut self) -> Vec<Sent> {
        let mut sent = Vec::new();
        loop {
            let stack = &mut self.stack;
            let (packet, usage) =
                measure(|| stack.poll_transmit(NOW).map(|out| (out.to_vec(), out.offload)));
            // The copy is the test's own.
            self.held +=
                usage.held - packet.as_ref().map_or(0, |(bytes, _)| bytes.capacity() as i64);
            let Some((bytes, offload)) = packet else { return sent };
            sent.push(Sent::new(NOW, bytes, offload));
        }
    }

    fn connect(&mut self, from: SocketAddr) -> (Peer, ConnectionId) {
        let mut peer = Peer::new(from, SERVICE);
        let syn_ack = one(self.inject(&peer.syn(usual_options()))).tcp();
        let ack = peer.answer(&syn_ack, usual_options());
        assert!(self.inject(&ack).is_empty());
        let (stack, listener) = (&mut self.stack, self.listener);
        let (accepted, usage) = measure(|| stack.accept(listener));
        self.held += usage.held;
        (peer, accepted.unwrap().0)
    }

    fn read(&mut self, id: ConnectionId) -> Vec<u8> {
        let mut bytes = vec![0; 100_000];
        let read = self.stack.read(id, NOW, &mut bytes).unwrap_or(0);
        bytes.truncate(read);
        bytes
    }
}

/// Ten thousand peers leave a hole and send 30 kB behind it: 300 MB that nobody will ever read. The host keeps 12 MB at most, whoever sends in order is
/// served, and a peer that fills its hole gets through.
#[test]
fn holes_of_ten_thousand_peers() {
    const PEERS: usize = 10_000;
    let mut host = Crowded::new(PEERS);
    let (mut good, id) = host.connect(ATTACKER);
    let behind = stream(3_000);
    let mut peers = Vec::new();
    for number in 0..PEERS {
        let (peer, id) = host.connect(from(number));
        for n in 0..10 {
            host.inject(&peer.at(Flags::ACK, 1_000 + 3_000 * n, 0, &behind));
        }
        assert!(host.stack.memory().held <= LIMITS.limit, "{number}");
        peers.push((peer, id));
    }
    let info = host.stack.memory();
    assert_eq!(info.state, MemoryState::Pressure);
    assert!(info.pressures > 0 && info.pruned > 0, "{info:?}");
    let most = LIMITS.limit as i64 * 3 / 2 + EACH * PEERS as i64;
    assert!(host.held <= most, "{} bytes are held, {most} at most", host.held);
    for part in stream(100_000).chunks(1_000) {
        host.inject(&good.data(part));
        assert_eq!(host.read(id), part, "in order, and at once");
    }
    // Honest peers send again what was dropped.
    let (peer, id) = &mut peers[PEERS / 2];
    let mut expected = Vec::new();
    for part in [&stream(1_000), &behind, &behind] {
        host.inject(&peer.data(part));
        expected.extend_from_slice(part);
    }
    assert_eq!(host.read(*id), expected);
    for (_, id) in &peers {
        host.stack.abort(*id, NOW);
    }
    host.sent();
    assert_eq!((host.stack.memory().state, host.stack.memory().held), (MemoryState::Normal, 0));
}

/// Two thousand peers send what an application does not read, in order. Data that was promised room has to be kept, and each connection keeps a little
/// at least; beyond the limit the rest waits with the senders.
#[test]
fn data_that_nobody_reads() {
    const PEERS: usize = 2_000;
    let mut victim = victim(PEERS);
    let (mut good, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    let mut peers = Vec::new();
    for number in 0..PEERS {
        let (mut peer, id) = Peer::connect(&mut victim, from(number), usual_options());
        for _ in 0..20 {
            let packet = peer.data(&stream(3_000));
            victim.inject_owned(&packet);
        }
        peers.push((peer, id));
        victim.sent();
    }
    assert_eq!(state(&victim), MemoryState::Full);
    let held = victim.stack.memory().held;
    assert!(held <= LIMITS.limit + RESERVE * PEERS, "{held}");
    goes_on(&mut victim, &mut good, id);
    // When they are read, there is room again.
    for (_, id) in &peers {
        assert!(victim.read(*id).len() >= RESERVE / 2);
    }
    assert_eq!(state(&victim), MemoryState::Normal);
}

/// Peers that take nothing: an application that writes to them all waits, and the written data stays within the limit.
#[test]
fn data_that_nobody_takes() {
    const PEERS: usize = 1_000;
    let mut victim = victim(PEERS);
    let mut written = 0;
    let mut ids = Vec::new();
    for number in 0..PEERS {
        let (_, id) = Peer::connect(&mut victim, from(number), usual_options());
        let data = stream(200_000);
        while let taken @ 1.. = victim.call(|stack, now| stack.write(id, now, &data)).unwrap_or(0) {
            written += taken;
        }
        ids.push(id);
        victim.sent();
    }
    assert!(written <= LIMITS.limit + (256 << 10) + RESERVE * PEERS, "{written}");
    assert!(written >= LIMITS.limit / 2, "{written}");
    let (mut good, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    goes_on(&mut victim, &mut good, id);
}
