//! The attacker's side of a connection to a victim: a [`Peer`] makes segments relative to the sequence numbers it knows, and
//! the test may add to them whatever it likes.

use crate::harness::{SERVICE, Victim};
use std::net::SocketAddr;
use transom_stack::ConnectionId;
use transom_tcp::State;
use transom_testkit::Peer;
use transom_wire::{Flags, Options};

/// What a peer and a victim say to each other.
pub trait Dialogue: Sized {
    /// Connects to the victim's listener and is accepted.
    fn connect(victim: &mut Victim, from: SocketAddr, options: Options) -> (Self, ConnectionId);

    /// Sends data in order.
    fn send(&mut self, victim: &mut Victim, payload: &[u8]);

    /// Acknowledges everything that has left the victim, as an honest receiver would, and forgets it.
    fn acknowledge(&mut self, victim: &mut Victim);

    /// Whether data still passes both ways: what every test of a connection that must survive ends with.
    fn assert_alive(&mut self, victim: &mut Victim, id: ConnectionId);
}

impl Dialogue for Peer {
    fn connect(victim: &mut Victim, from: SocketAddr, options: Options) -> (Peer, ConnectionId) {
        let mut peer = Peer::new(from, SERVICE);
        victim.inject(&peer.syn(options));
        let syn_ack = victim.last();
        let ack = peer.answer(&syn_ack, options);
        victim.inject(&ack);
        let id = victim.accept_next();
        assert_eq!(victim.state(id), State::Established);
        (peer, id)
    }

    fn send(&mut self, victim: &mut Victim, payload: &[u8]) {
        victim.inject(&self.data(payload));
    }

    fn acknowledge(&mut self, victim: &mut Victim) {
        self.receive(victim.sent().iter().filter(|out| out.is_tcp()));
        victim.inject(&self.segment(Flags::ACK, &[]));
    }

    fn assert_alive(&mut self, victim: &mut Victim, id: ConnectionId) {
        let limits = std::mem::replace(&mut victim.limits.packets, 1_000);
        victim.sent();
        self.send(victim, b"still there?");
        assert_eq!(victim.read(id), b"still there?");
        assert_eq!(victim.write(id, b"yes"), 3);
        assert!(victim.sent().iter().any(|out| out.payload().ends_with(b"yes")), "no answer left");
        self.ack += 3;
        victim.inject(&self.segment(Flags::ACK, &[]));
        assert_eq!(victim.info(id).in_flight, 0);
        victim.limits.packets = limits;
    }
}
