//! The host under test, and a hand-made other end.
//!
//! Every call on a [`Host`] lets it send what it has and checks its connections' invariants; every packet it sends is
//! parsed and its checksums are verified. Times are virtual and do not start at zero.

use crate::packets;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use transom_stack::config::{StackConfig, StackCounters};
use transom_stack::listener::{ListenConfig, ListenerId};
use transom_stack::stack::{ConnectionId, Packet, SocketError, Stack, StackEvent};
use transom_tcp::connection::{Connection, Event, ReadError, State};
use transom_tcp::profile::Profile;
use transom_tcp::time::{Duration, Instant};
use transom_wire::offload::{RxOffload, TxChecksum, TxOffload, complete_checksum};
use transom_wire::{Flags, IpPacket, Options, Protocol, Seq, TcpHeader, TcpPacket, Timestamps};

/// The host's addresses.
pub const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub const HOST6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
/// A neighbour's.
pub const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const PEER6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
/// A router's on the way.
pub const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);
pub const ROUTER6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0xfe);

/// Where the host usually listens.
pub fn service() -> SocketAddr {
    at(HOST, 80)
}

/// An address and a port.
pub fn at(ip: impl Into<IpAddr>, port: u16) -> SocketAddr {
    SocketAddr::new(ip.into(), port)
}

/// A packet that left.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The whole packet; a partial checksum is completed.
    pub bytes: Vec<u8>,
    /// What was left to the device.
    pub offload: TxOffload,
}

impl Sent {
    pub fn ip(&self) -> IpPacket<'_> {
        IpPacket::parse(&self.bytes).expect("the host sends valid IP")
    }

    /// The TCP header.
    pub fn tcp(&self) -> TcpHeader {
        let ip = self.ip();
        assert_eq!(ip.protocol(), Protocol::TCP);
        *TcpPacket::parse(ip.payload()).expect("the host sends valid TCP").header()
    }

    pub fn flags(&self) -> Flags {
        self.tcp().flags
    }

    /// The TCP payload.
    pub fn payload(&self) -> Vec<u8> {
        TcpPacket::parse(self.ip().payload()).unwrap().payload().to_vec()
    }

    /// From and to.
    pub fn ends(&self) -> (SocketAddr, SocketAddr) {
        let (ip, tcp) = (self.ip(), self.tcp());
        (at(ip.src(), tcp.src_port), at(ip.dst(), tcp.dst_port))
    }
}

/// The host under test.
pub struct Host {
    pub stack: Stack,
    pub now: Instant,
    pub events: Vec<StackEvent>,
    out: Vec<Sent>,
}

impl Host {
    /// A host with an address of each version and the default configuration.
    pub fn new() -> Self {
        Host::with(|_, _| {})
    }

    /// The same, changed by `change`.
    pub fn with(change: impl FnOnce(&mut StackConfig, &mut Profile)) -> Self {
        let mut config = StackConfig::new(vec![(HOST.into(), 24), (HOST6.into(), 64)]);
        config.secret = *b"for tests only..";
        let mut profile = Profile::default();
        change(&mut config, &mut profile);
        config.profile = Arc::new(profile);
        let now = Instant::from_secs(1_000);
        let stack = Stack::new(config, now).unwrap();
        Host { stack, now, events: Vec::new(), out: Vec::new() }
    }

    /// Makes a call, and lets the host send what it has.
    pub fn call<T>(&mut self, work: impl FnOnce(&mut Stack, Instant) -> T) -> T {
        let result = work(&mut self.stack, self.now);
        self.flush();
        result
    }

    fn flush(&mut self) {
        while let Some(packet) = self.stack.poll_transmit(self.now) {
            let (mut bytes, offload) = (packet.to_vec(), packet.offload);
            if offload.checksum != TxChecksum::Complete {
                complete_checksum(&mut bytes, offload.checksum).unwrap();
            }
            let ip = IpPacket::parse(&bytes).expect("the host sends valid IP");
            if let IpPacket::V4(v4) = &ip {
                assert!(v4.checksum_ok(), "a wrong header checksum left");
            }
            if ip.protocol() == Protocol::TCP {
                assert!(ip.transport_checksum_ok(), "a wrong checksum left");
            }
            self.out.push(Sent { bytes, offload });
        }
        while let Some(event) = self.stack.poll_event() {
            self.events.push(event);
        }
        self.stack.check().unwrap();
    }

    /// A packet arrives. Returns what leaves because of it.
    pub fn inject(&mut self, packet: &[u8]) -> Vec<Sent> {
        self.inject_with(packet, RxOffload::default())
    }

    /// The same, with what a device knows about the packet.
    pub fn inject_with(&mut self, packet: &[u8], offload: RxOffload) -> Vec<Sent> {
        self.out.clear();
        self.call(|stack, now| {
            stack.on_packet(now, Packet::borrowed(packet).with_offload(offload))
        });
        self.sent()
    }

    /// What has left since the last look.
    pub fn sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.out)
    }

    /// The one packet that has left since the last look.
    pub fn sent_one(&mut self) -> Sent {
        one(self.sent())
    }

    /// Lets time pass; returns what leaves meanwhile, and when.
    pub fn advance(&mut self, span: Duration) -> Vec<(Instant, Sent)> {
        self.flush();
        self.out.clear();
        let end = self.now + span;
        let (mut left, mut wakes) = (Vec::new(), 0);
        while let Some(due) = self.stack.next_timeout().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            self.call(|stack, now| stack.on_timeout(now));
            left.extend(self.sent().into_iter().map(|sent| (self.now, sent)));
            wakes += 1;
            assert!(wakes < 100_000, "timers spin at {:?}", self.now);
        }
        self.now = end;
        left
    }

    pub fn counters(&self) -> StackCounters {
        self.stack.counters()
    }

    pub fn listen(&mut self, address: SocketAddr) -> ListenerId {
        self.listen_with(address, ListenConfig::default())
    }

    pub fn listen_with(&mut self, address: SocketAddr, config: ListenConfig) -> ListenerId {
        self.stack.listen(address, config).unwrap()
    }

    /// Connects to `remote`; the SYN waits in [`Host::sent`].
    pub fn connect(&mut self, remote: SocketAddr) -> ConnectionId {
        self.call(|stack, now| stack.connect(now, None, remote, None)).unwrap()
    }

    /// The same from a local address.
    pub fn connect_from(&mut self, local: SocketAddr, remote: SocketAddr) -> ConnectionId {
        self.call(|stack, now| stack.connect(now, Some(local), remote, None)).unwrap()
    }

    pub fn accept(&mut self, listener: ListenerId) -> ConnectionId {
        self.call(|stack, _| stack.accept(listener)).expect("a connection to accept").0
    }

    pub fn connection(&self, id: ConnectionId) -> &Connection {
        self.stack.connection(id).expect("the connection exists")
    }

    /// `Closed` also when there is none any more.
    pub fn state(&self, id: ConnectionId) -> State {
        self.stack.connection(id).map_or(State::Closed, Connection::state)
    }

    pub fn write(&mut self, id: ConnectionId, bytes: &[u8]) {
        let written = self.call(|stack, now| stack.write(id, now, bytes)).expect("can write");
        assert_eq!(written, bytes.len());
    }

    /// Everything there is to read.
    pub fn read(&mut self, id: ConnectionId) -> Vec<u8> {
        let (mut all, mut buffer) = (Vec::new(), vec![0; 65_536]);
        loop {
            match self.call(|stack, now| stack.read(id, now, &mut buffer)) {
                Ok(0) | Err(SocketError::Read(ReadError::WouldBlock)) => return all,
                Ok(n) => all.extend_from_slice(&buffer[..n]),
                Err(error) => panic!("cannot read: {error}"),
            }
        }
    }

    pub fn close(&mut self, id: ConnectionId) {
        self.call(|stack, now| stack.close(id, now));
    }

    /// How often `event` of `id` was reported.
    pub fn count(&self, id: ConnectionId, event: Event) -> usize {
        let event = StackEvent::Connection(id, event);
        self.events.iter().filter(|&&seen| seen == event).count()
    }
}

/// The only packet of several.
#[track_caller]
pub fn one(sent: Vec<Sent>) -> Sent {
    assert_eq!(sent.len(), 1, "{sent:?}");
    sent.into_iter().next().unwrap()
}

/// Options as a usual client offers them.
pub fn usual() -> Options {
    Options {
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 5_000, echo: 0 }),
        ..bare()
    }
}

/// No option but the maximum segment size.
pub fn bare() -> Options {
    Options { mss: Some(1460), ..Options::default() }
}

/// Bytes that tell their place.
pub fn stream(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// The other end of a connection, made by hand.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// The next sequence number it sends.
    pub seq: Seq,
    /// The next it expects.
    pub ack: Seq,
    pub window: u16,
    /// The timestamps of its next segment, if agreed.
    pub timestamps: Option<Timestamps>,
}

impl Peer {
    /// A peer that has sent nothing yet.
    pub fn new(from: SocketAddr, to: SocketAddr) -> Self {
        // So close to the wrap that it is crossed.
        let seq = Seq::new(0xffff_ffc0);
        Peer { from, to, seq, ack: Seq::new(0), window: 65_535, timestamps: None }
    }

    pub fn header(&self, flags: Flags) -> TcpHeader {
        TcpHeader {
            seq: self.seq,
            ack: if flags.contains(Flags::ACK) { self.ack } else { Seq::new(0) },
            flags,
            window: self.window,
            options: Options { timestamps: self.timestamps, ..Options::default() },
            ..TcpHeader::default()
        }
    }

    pub fn packet(&self, header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
        packets::tcp(self.from, self.to, header, payload)
    }

    /// A segment at the present position.
    pub fn segment(&self, flags: Flags, payload: &[u8]) -> Vec<u8> {
        self.packet(&self.header(flags), payload)
    }

    pub fn syn(&self, options: Options) -> Vec<u8> {
        self.packet(&TcpHeader { options, ..self.header(Flags::SYN) }, &[])
    }

    /// Takes over what a SYN-ACK says and answers it. `options` are those of the SYN.
    pub fn answer(&mut self, syn_ack: &TcpHeader, options: Options) -> Vec<u8> {
        assert_eq!(syn_ack.flags, Flags::SYN | Flags::ACK);
        assert_eq!(syn_ack.ack, self.seq + 1);
        self.seq += 1;
        self.ack = syn_ack.seq + 1;
        self.timestamps =
            options.timestamps.zip(syn_ack.options.timestamps).map(|(ours, theirs)| Timestamps {
                value: ours.value.wrapping_add(1),
                echo: theirs.value,
            });
        self.segment(Flags::ACK, &[])
    }

    /// Shakes hands with a listener; the connection waits to be accepted.
    pub fn shake(&mut self, host: &mut Host, options: Options) {
        let syn_ack = one(host.inject(&self.syn(options))).tcp();
        let ack = self.answer(&syn_ack, options);
        assert!(host.inject(&ack).is_empty());
    }

    /// Connects to a listener and is accepted.
    pub fn connect(
        host: &mut Host,
        listener: ListenerId,
        from: SocketAddr,
        to: SocketAddr,
    ) -> (Peer, ConnectionId) {
        let mut peer = Peer::new(from, to);
        peer.shake(host, usual());
        let id = host.accept(listener);
        assert_eq!(host.state(id), State::Established);
        (peer, id)
    }

    /// Answers the host's `syn`; its connection is open then.
    pub fn welcome(host: &mut Host, syn: &Sent) -> Peer {
        let (from, to) = syn.ends();
        let syn = syn.tcp();
        assert_eq!(syn.flags, Flags::SYN);
        let mut peer = Peer { ack: syn.seq + 1, ..Peer::new(to, from) };
        let stamps =
            syn.options.timestamps.map(|ours| Timestamps { value: 5_000, echo: ours.value });
        let options = Options { timestamps: stamps, ..usual() };
        let header = TcpHeader { options, ..peer.header(Flags::SYN | Flags::ACK) };
        let ack = one(host.inject(&peer.packet(&header, &[]))).tcp();
        peer.seq += 1;
        assert_eq!((ack.flags, ack.seq, ack.ack), (Flags::ACK, peer.ack, peer.seq));
        peer.timestamps = stamps;
        peer
    }

    /// Sends in order.
    pub fn send(&mut self, host: &mut Host, payload: &[u8]) -> Vec<Sent> {
        let sent = host.inject(&self.segment(Flags::ACK | Flags::PSH, payload));
        self.seq += payload.len() as u32;
        sent
    }

    /// Takes what has left the host as received.
    pub fn receive(&mut self, sent: &[Sent]) {
        for sent in sent {
            let header = sent.tcp();
            let end = header.seq + header.segment_len(sent.payload().len() as u32);
            if end.after(self.ack) {
                self.ack = end;
            }
            if let (Some(ours), Some(theirs)) = (&mut self.timestamps, header.options.timestamps) {
                ours.echo = theirs.value;
            }
        }
    }

    /// Data passes both ways: what every test of a connection that must survive ends with.
    #[track_caller]
    pub fn assert_alive(&mut self, host: &mut Host, id: ConnectionId) {
        self.send(host, b"still there?");
        assert_eq!(host.read(id), b"still there?");
        host.sent();
        host.write(id, b"yes");
        let sent = host.sent();
        assert!(sent.iter().any(|sent| sent.payload().ends_with(b"yes")), "{sent:?}");
        self.receive(&sent);
        host.inject(&self.segment(Flags::ACK, &[]));
    }

    /// Both sides close, the host first: it ends in TIME-WAIT.
    pub fn close_after(&mut self, host: &mut Host, id: ConnectionId) {
        host.sent();
        host.close(id);
        let fin = host.sent_one();
        assert!(fin.flags().contains(Flags::FIN));
        self.receive(&[fin]);
        let ack = one(host.inject(&self.segment(Flags::ACK | Flags::FIN, &[])));
        self.seq += 1;
        assert_eq!(ack.tcp().ack, self.seq);
    }

    /// The peer closes its side.
    pub fn close_by_peer(&mut self, host: &mut Host) {
        host.inject(&self.segment(Flags::ACK | Flags::FIN, &[]));
        self.seq += 1;
    }
}
