//! The host under test, and a hand-made other end.
//!
//! The host has an address of each version, as have its neighbours. [`OnTheWire`] is how packets arrive at it, one at a time,
//! and what leaves because of each; [`Dialogue`] is what a [`Peer`] and the host say to each other.

pub use transom_testkit::{Peer, Sent, bare_options, one, packets, stream, usual_options};

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use transom_stack::{ConnectionId, ListenerId, StackConfig};
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Profile, State};
use transom_wire::offload::RxOffload;
use transom_wire::{Flags, Options, TcpHeader, Timestamps};

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

/// The host under test.
pub type Host = transom_testkit::Host;

/// A host among its neighbours.
pub trait OnTheWire: Sized {
    /// A host with an address of each version and the default configuration.
    fn new() -> Self {
        Self::with(|_, _| {})
    }

    /// The same, changed by `change`.
    fn with(change: impl FnOnce(&mut StackConfig, &mut Profile)) -> Self;

    /// A packet arrives. Returns what leaves because of it.
    fn inject(&mut self, packet: &[u8]) -> Vec<Sent> {
        self.inject_with(packet, RxOffload::default())
    }

    /// The same, with what a device knows about the packet.
    fn inject_with(&mut self, packet: &[u8], offload: RxOffload) -> Vec<Sent>;

    /// Lets time pass; returns what leaves meanwhile, and when.
    fn advance(&mut self, span: Duration) -> Vec<(Instant, Sent)>;
}

impl OnTheWire for Host {
    fn with(change: impl FnOnce(&mut StackConfig, &mut Profile)) -> Self {
        let mut config = StackConfig::new(vec![(HOST.into(), 24), (HOST6.into(), 64)]);
        config.secret = *b"for tests only..";
        let mut profile = Profile::classic();
        change(&mut config, &mut profile);
        config.profile = Arc::new(profile);
        Host::start(config, ())
    }

    fn inject_with(&mut self, packet: &[u8], offload: RxOffload) -> Vec<Sent> {
        self.sent();
        self.call(|stack, now| stack.on_packet(now, packet, offload));
        self.sent()
    }

    fn advance(&mut self, span: Duration) -> Vec<(Instant, Sent)> {
        self.call(|_, _| ());
        self.sent();
        self.run_for(span);
        self.sent().into_iter().map(|sent| (sent.at, sent)).collect()
    }
}

/// What a peer and the host say to each other.
pub trait Dialogue: Sized {
    /// Shakes hands with a listener; the connection waits to be accepted.
    fn shake(&mut self, host: &mut Host, options: Options);

    /// Connects to a listener and is accepted.
    fn connect(
        host: &mut Host,
        listener: ListenerId,
        from: SocketAddr,
        to: SocketAddr,
    ) -> (Self, ConnectionId);

    /// Answers the host's `syn`; its connection is open then.
    fn welcome(host: &mut Host, syn: &Sent) -> Self;

    /// Sends in order.
    fn send(&mut self, host: &mut Host, payload: &[u8]) -> Vec<Sent>;

    /// Data passes both ways: what every test of a connection that must survive ends with.
    #[track_caller]
    fn assert_alive(&mut self, host: &mut Host, id: ConnectionId);

    /// Both sides close, the host first: it ends in TIME-WAIT.
    fn close_after(&mut self, host: &mut Host, id: ConnectionId);

    /// The peer closes its side.
    fn close_by_peer(&mut self, host: &mut Host);
}

impl Dialogue for Peer {
    fn shake(&mut self, host: &mut Host, options: Options) {
        let syn_ack = one(host.inject(&self.syn(options))).tcp();
        let ack = self.answer(&syn_ack, options);
        assert!(host.inject(&ack).is_empty());
    }

    fn connect(
        host: &mut Host,
        listener: ListenerId,
        from: SocketAddr,
        to: SocketAddr,
    ) -> (Peer, ConnectionId) {
        let mut peer = Peer::new(from, to);
        peer.shake(host, usual_options());
        let id = host.accept(listener);
        assert_eq!(host.state(id), State::Established);
        (peer, id)
    }

    fn welcome(host: &mut Host, syn: &Sent) -> Peer {
        let (from, to) = syn.ends();
        let syn = syn.tcp();
        assert_eq!(syn.flags, Flags::SYN);
        let mut peer = Peer { ack: syn.seq + 1, ..Peer::new(to, from) };
        let stamps =
            syn.options.timestamps.map(|ours| Timestamps { value: 5_000, echo: ours.value });
        let options = Options { timestamps: stamps, ..usual_options() };
        let header = TcpHeader { options, ..peer.header(Flags::SYN | Flags::ACK) };
        let ack = one(host.inject(&peer.packet(&header, &[]))).tcp();
        peer.seq += 1;
        assert_eq!((ack.flags, ack.seq, ack.ack), (Flags::ACK, peer.ack, peer.seq));
        peer.timestamps = stamps;
        peer
    }

    fn send(&mut self, host: &mut Host, payload: &[u8]) -> Vec<Sent> {
        host.inject(&self.data(payload))
    }

    fn assert_alive(&mut self, host: &mut Host, id: ConnectionId) {
        self.send(host, b"still there?");
        assert_eq!(host.read(id), b"still there?");
        host.sent();
        host.write_all(id, b"yes");
        let sent = host.sent();
        assert!(sent.iter().any(|sent| sent.payload().ends_with(b"yes")), "{sent:?}");
        self.receive(&sent);
        host.inject(&self.segment(Flags::ACK, &[]));
    }

    fn close_after(&mut self, host: &mut Host, id: ConnectionId) {
        host.sent();
        host.close(id);
        let fin = host.sent_one();
        assert!(fin.flags().contains(Flags::FIN));
        self.receive(&[fin]);
        let ack = one(host.inject(&self.next(Flags::ACK | Flags::FIN, &[])));
        assert_eq!(ack.tcp().ack, self.seq);
    }

    fn close_by_peer(&mut self, host: &mut Host) {
        host.inject(&self.next(Flags::ACK | Flags::FIN, &[]));
    }
}
