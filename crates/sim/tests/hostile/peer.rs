//! The attacker's idea of a connection: it makes segments relative to the sequence numbers it knows, and may add to them
//! whatever it likes.

use crate::harness::{SERVICE, Victim};
use crate::packets;
use std::net::SocketAddr;
use transom_stack::stack::ConnectionId;
use transom_tcp::connection::State;
use transom_wire::{Flags, Options, Seq, TcpHeader, Timestamps};

/// Options as a usual client offers them.
pub fn usual_options() -> Options {
    Options {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 5_000, echo: 0 }),
        ..Options::default()
    }
}

/// Options without any extension.
pub fn bare_options() -> Options {
    Options { mss: Some(1460), ..Options::default() }
}

/// Bytes of a stream that tell their place.
pub fn stream(from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(|i| (i % 251) as u8).collect()
}

/// The attacker's side of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its address and port.
    pub from: SocketAddr,
    /// The victim's.
    pub to: SocketAddr,
    /// The next sequence number it would send.
    pub seq: Seq,
    /// The next it expects: everything before has "arrived".
    pub ack: Seq,
    /// The window field it sends.
    pub window: u16,
    /// The timestamps of its next segment, if agreed.
    pub timestamps: Option<Timestamps>,
}

impl Peer {
    /// A peer that has sent nothing yet.
    pub fn new(from: SocketAddr, to: SocketAddr) -> Self {
        // Close to the wrap, so that it is crossed.
        let seq = Seq::new(0xffff_ffc0);
        Peer { from, to, seq, ack: Seq::new(0), window: 65_535, timestamps: None }
    }

    /// A segment's header at the present position.
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

    /// The packet of any header and payload.
    pub fn packet(&self, header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
        packets::tcp(self.from, self.to, header, payload)
    }

    /// The packet of a segment at the present position, moved by `seq` and `ack`.
    pub fn at(&self, flags: Flags, seq: i64, ack: i64, payload: &[u8]) -> Vec<u8> {
        let header = self.header(flags);
        let moved =
            TcpHeader { seq: header.seq + seq as u32, ack: header.ack + ack as u32, ..header };
        self.packet(&moved, payload)
    }

    /// An acknowledgement with SACK blocks, given relative to [`Peer::ack`].
    pub fn sack(&self, blocks: &[(i64, i64)]) -> Vec<u8> {
        let mut header = self.header(Flags::ACK);
        for &(left, right) in blocks {
            header.options.sack.push(transom_wire::SackBlock {
                left: self.ack + left as u32,
                right: self.ack + right as u32,
            });
        }
        self.packet(&header, &[])
    }

    /// The SYN.
    pub fn syn(&self, options: Options) -> Vec<u8> {
        let header = TcpHeader { options, ..self.header(Flags::SYN) };
        self.packet(&header, &[])
    }

    /// Takes over what a SYN-ACK said and answers it. `options` are those of the SYN.
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
        self.at(Flags::ACK, 0, 0, &[])
    }

    /// Connects to the victim's listener and is accepted.
    pub fn connect(
        victim: &mut Victim,
        from: SocketAddr,
        options: Options,
    ) -> (Peer, ConnectionId) {
        let mut peer = Peer::new(from, SERVICE);
        victim.inject(&peer.syn(options));
        let syn_ack = victim.last();
        let ack = peer.answer(&syn_ack, options);
        victim.inject(&ack);
        let id = victim.accept();
        assert_eq!(victim.state(id), State::Established);
        (peer, id)
    }

    /// Sends data in order.
    pub fn send(&mut self, victim: &mut Victim, payload: &[u8]) {
        victim.inject(&self.at(Flags::ACK | Flags::PSH, 0, 0, payload));
        self.seq += payload.len() as u32;
    }

    /// Acknowledges everything that has left the victim, as an honest receiver would, and forgets it.
    pub fn acknowledge(&mut self, victim: &mut Victim) {
        for out in victim.sent() {
            let Some(header) = out.tcp() else { continue };
            let end = header.seq + header.segment_len(out.payload().len() as u32);
            if end.after(self.ack) {
                self.ack = end;
            }
            if let (Some(ours), Some(theirs)) = (&mut self.timestamps, header.options.timestamps) {
                ours.echo = theirs.value;
            }
        }
        victim.inject(&self.at(Flags::ACK, 0, 0, &[]));
    }

    /// Whether data still passes both ways: what every test of a connection that must survive ends with.
    pub fn assert_alive(&mut self, victim: &mut Victim, id: ConnectionId) {
        let limits = std::mem::replace(&mut victim.limits.packets, 1_000);
        victim.sent();
        self.send(victim, b"still there?");
        assert_eq!(victim.read(id), b"still there?");
        assert_eq!(victim.write(id, b"yes"), 3);
        assert!(victim.sent().iter().any(|out| out.payload().ends_with(b"yes")), "no answer left");
        self.ack += 3;
        victim.inject(&self.at(Flags::ACK, 0, 0, &[]));
        assert_eq!(victim.info(id).in_flight, 0);
        victim.limits.packets = limits;
    }
}
