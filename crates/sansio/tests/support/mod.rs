//! What the tests share: a host with a scripted peer, and two hosts joined by a link.

#![allow(dead_code, reason = "every test uses a part of it")]

use libc::{AF_INET, EINTR, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET};
use std::net::SocketAddr;
use transom_sansio::{Errno, Host, Result, SocketCalls};
use transom_stack::StackConfig;
use transom_tcp::Profile;
use transom_tcp::time::{Duration, Instant};
use transom_testkit::{Arrivals, End, Path, Peer, World};
use transom_wire::{Flags, IpPacket, Seq, TcpHeader, TcpPacket};

/// Linux' numbers: of linux/tcp_states.h, linux/tcp.h and linux/sockios.h.
pub(crate) const TCP_ESTABLISHED: u8 = 1;
pub(crate) const TCP_SYN_SENT: u8 = 2;
pub(crate) const TCP_SYN_RECV: u8 = 3;
pub(crate) const TCP_FIN_WAIT1: u8 = 4;
pub(crate) const TCP_FIN_WAIT2: u8 = 5;
pub(crate) const TCP_CLOSE: u8 = 7;
pub(crate) const TCP_LISTEN: u8 = 10;
pub(crate) const TCPI_OPT_TIMESTAMPS: u8 = 1;
pub(crate) const TCPI_OPT_SACK: u8 = 2;
pub(crate) const TCPI_OPT_WSCALE: u8 = 4;
pub(crate) const TCPI_OPT_SYN_DATA: u8 = 32;
pub(crate) const SIOCATMARK: u64 = 0x8905;

pub(crate) const LOCAL: &str = "192.0.2.1";
pub(crate) const REMOTE: &str = "192.0.2.2";

pub(crate) fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address and port")
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A host at `address` with the stack's defaults whose clock shows zero.
pub(crate) fn host(address: &str) -> Host {
    host_with(address, |_| {})
}

pub(crate) fn host_with(address: &str, change: impl FnOnce(&mut StackConfig)) -> Host {
    let mut config = StackConfig::new(vec![(address.parse().expect("an address"), 24)]);
    config.secret = [7; 16];
    // What the interface does with a TCP whose every step is known by hand; the default is another one.
    config.profile = Profile::classic().into();
    change(&mut config);
    Host::new(config, Instant::ZERO).expect("a configuration that works")
}

/// An error by its number.
pub(crate) fn failed<T>(errno: i32) -> Result<T> {
    Err(Errno(errno))
}

/// A segment as it was on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) header: TcpHeader,
    pub(crate) payload: Vec<u8>,
    pub(crate) ttl: u8,
    pub(crate) traffic_class: u8,
}

impl Seen {
    pub(crate) fn parse(at: Instant, packet: &[u8]) -> Seen {
        let ip = IpPacket::parse(packet).expect("an IP packet");
        assert!(ip.transport_checksum_ok(), "the checksum is wrong");
        let segment = TcpPacket::parse(ip.payload()).expect("a TCP segment");
        let (ttl, traffic_class) = (ip.hop_limit(), ip.traffic_class());
        let payload = segment.payload.to_vec();
        Seen { at, header: segment.header, payload, ttl, traffic_class }
    }
}

/// Takes everything the host has sent.
pub(crate) fn drain(host: &mut Host) -> Vec<Seen> {
    std::iter::from_fn(|| host.next_packet()).map(|(at, packet)| Seen::parse(at, &packet)).collect()
}

/// Takes the only segment the host has sent.
pub(crate) fn only(host: &mut Host) -> Seen {
    let seen = drain(host);
    assert_eq!(seen.len(), 1, "one segment was expected: {seen:#?}");
    seen.into_iter().next().expect("one")
}

/// The other end, at a port of `REMOTE`, of a connection to a port of the host at `LOCAL`.
pub(crate) fn peer(port: u16, host_port: u16) -> Peer {
    let [from, to] = [(REMOTE, port), (LOCAL, host_port)]
        .map(|(ip, port)| SocketAddr::new(ip.parse().expect("an address"), port));
    Peer { seq: Seq::new(1_000_000), ..Peer::new(from, to) }
}

/// What a peer and the host say to each other.
pub(crate) trait Dialogue {
    /// A packet with these flags and this payload arrives now.
    fn send(&mut self, host: &mut Host, flags: Flags, payload: &[u8]);

    /// Acknowledges everything in `seen`, from now on.
    fn take(&mut self, seen: &[Seen]);
}

impl Dialogue for Peer {
    fn send(&mut self, host: &mut Host, flags: Flags, payload: &[u8]) {
        let packet = self.next(flags, payload);
        host.inject(host.now(), &packet).expect("a packet of possible length");
    }

    fn take(&mut self, seen: &[Seen]) {
        for Seen { header, payload, .. } in seen {
            if header.flags.contains(Flags::SYN) {
                // Where the host begins.
                self.ack = header.seq;
            }
            self.receive_segment(header, payload.len());
        }
    }
}

/// A host with one established connection: the descriptor and the peer. Everything sent so far has been taken.
pub(crate) fn accepted(host: &mut Host) -> (i32, Peer) {
    let listener = host.socket(AF_INET, SOCK_STREAM, 0).expect("a socket");
    let yes = 1i32.to_ne_bytes();
    host.set_option(listener, SOL_SOCKET, SO_REUSEADDR, &yes).expect("an option");
    host.bind(listener, at("0.0.0.0:80")).expect("bind");
    host.listen(listener, 5).expect("listen");
    // Another port each time: what became of the last connection may still be there.
    drain(host);
    let nth = host.stack().counters().passive_opens;
    let mut peer = peer(40_000 + nth as u16, 80);
    peer.send(host, Flags::SYN, b"");
    let syn_ack = only(host);
    assert_eq!(syn_ack.header.flags, Flags::SYN | Flags::ACK);
    peer.take(&[syn_ack]);
    peer.send(host, Flags::ACK, b"");
    let (fd, remote) = host.accept(listener, 0).expect("accept");
    assert_eq!(remote, peer.from);
    assert!(drain(host).is_empty());
    host.close(listener).expect("close");
    (fd, peer)
}

/// Says whether a packet is lost: who sends it, and what it is.
pub(crate) type Loss = Box<dyn FnMut(char, &Seen) -> bool>;

/// A host as an end of a path.
pub(crate) struct Node(Host);

impl End for Node {
    /// A packet, and when it left.
    type Packet = (Instant, Vec<u8>);

    fn next_timeout(&self) -> Option<Instant> {
        self.0.next_event()
    }

    fn on_timeout(&mut self, now: Instant) {
        self.0.run_to(now).expect("time goes on");
        self.0.stack().check().expect("the host's invariants hold");
    }

    fn on_packet(&mut self, now: Instant, (_, packet): Self::Packet) {
        // The host takes it in `on_timeout`, before timers of this instant.
        self.0.inject(now, &packet).expect("the link takes time");
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Self::Packet> {
        self.0.next_packet()
    }
}

/// A link of constant delay that loses what it is told to.
pub(crate) struct Link {
    delay: Duration,
    lose: Loss,
    sent: Vec<(char, Seen)>,
}

impl Path<Node> for Link {
    fn carry(
        &mut self,
        _now: Instant,
        from: usize,
        (left, packet): (Instant, Vec<u8>),
        arrivals: &mut Arrivals<Node>,
    ) {
        let (name, seen) = (['a', 'b'][from], Seen::parse(left, &packet));
        let arrives = left + self.delay;
        if !(self.lose)(name, &seen) {
            arrivals.add(arrives, 1 - from, (arrives, packet));
        }
        self.sent.push((name, seen));
    }
}

/// Two hosts joined by such a link.
pub(crate) struct Pair(World<Node, Link>);

impl Pair {
    pub(crate) fn new(a: Host, b: Host, delay: Duration) -> Self {
        let now = a.now();
        let link = Link { delay, lose: Box::new(|_, _| false), sent: Vec::new() };
        Pair(World::new(vec![Node(a), Node(b)], link, now))
    }

    pub(crate) fn a(&mut self) -> &mut Host {
        &mut self.0.ends[0].0
    }

    pub(crate) fn b(&mut self) -> &mut Host {
        &mut self.0.ends[1].0
    }

    /// From now on the link loses these packets.
    pub(crate) fn lose(&mut self, lose: impl FnMut(char, &Seen) -> bool + 'static) {
        self.0.path.lose = Box::new(lose);
    }

    /// All packets that were sent, with the name of their sender.
    pub(crate) fn into_sent(self) -> Vec<(char, Seen)> {
        self.0.path.sent
    }

    /// Moves both clocks to the next event; whether there was one until `limit`.
    pub(crate) fn step(&mut self, limit: Instant) -> bool {
        self.0.step_until(limit)
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        let limit = self.0.now + span;
        while self.step(limit) {}
    }

    /// Repeats a blocking call on one of the hosts until it has waited long enough.
    pub(crate) fn complete<T>(
        &mut self,
        mut call: impl FnMut(&mut Pair) -> Result<T>,
    ) -> Result<T> {
        let limit = self.0.now + Duration::from_secs(3600);
        loop {
            match call(self) {
                Err(Errno(EINTR)) => assert!(self.step(limit), "nothing happens any more"),
                other => return other,
            }
        }
    }
}
