//! The other end of a connection, scripted by the test.
//!
//! A [`Peer`] knows headers and nothing else: its addresses, the sequence number it would send next, the one it expects,
//! its window and its timestamps. It makes segments at that position, or anywhere relative to it, and never decides by
//! itself what to say. So it serves an honest client and an attacker alike.

use crate::packets;
use crate::sent::Sent;
use std::net::SocketAddr;
use transom_wire::{Flags, Options, SackBlock, Seq, TcpHeader, Timestamps};

/// Options as a usual client offers them: a maximum segment size of 1460 bytes, a window scale of 7, SACK and timestamps
/// (RFC 9293 section 3.7.1, RFC 7323, RFC 2018).
pub fn usual_options() -> Options {
    Options {
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: Some(Timestamps { value: 5_000, echo: 0 }),
        ..bare_options()
    }
}

/// No option but the maximum segment size, 1460 bytes.
pub fn bare_options() -> Options {
    Options { mss: Some(1460), ..Options::default() }
}

/// The first `len` bytes of a stream whose bytes tell their place.
pub fn stream(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// The other end of a connection, made by hand.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its address and port.
    pub from: SocketAddr,
    /// The host's.
    pub to: SocketAddr,
    /// The next sequence number it sends.
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
        // So close to the wrap that it is crossed.
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

    /// The packet of any header and payload, from this peer to the host.
    pub fn packet(&self, header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
        packets::tcp(self.from, self.to, header, payload)
    }

    /// The packet of a segment at the present position.
    pub fn segment(&self, flags: Flags, payload: &[u8]) -> Vec<u8> {
        self.packet(&self.header(flags), payload)
    }

    /// The same, moved by `seq` and `ack`.
    pub fn at(&self, flags: Flags, seq: i64, ack: i64, payload: &[u8]) -> Vec<u8> {
        let header = self.header(flags);
        let moved =
            TcpHeader { seq: header.seq + seq as u32, ack: header.ack + ack as u32, ..header };
        self.packet(&moved, payload)
    }

    /// The packet of the next segment in order: what takes sequence space is counted.
    pub fn next(&mut self, flags: Flags, payload: &[u8]) -> Vec<u8> {
        let header = self.header(flags);
        self.seq += header.segment_len(payload.len() as u32);
        self.packet(&header, payload)
    }

    /// The packet of the next data in order.
    pub fn data(&mut self, payload: &[u8]) -> Vec<u8> {
        self.next(Flags::ACK | Flags::PSH, payload)
    }

    /// The packet of an acknowledgement with SACK blocks, given relative to [`Peer::ack`].
    pub fn sack(&self, blocks: &[(i64, i64)]) -> Vec<u8> {
        let mut header = self.header(Flags::ACK);
        for &(left, right) in blocks {
            header
                .options
                .sack
                .push(SackBlock { left: self.ack + left as u32, right: self.ack + right as u32 });
        }
        self.packet(&header, &[])
    }

    /// The packet of its SYN.
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

    /// Takes what has left the host as received. Every packet is a TCP segment of this connection.
    pub fn receive<'a>(&mut self, sent: impl IntoIterator<Item = &'a Sent>) {
        for sent in sent {
            self.receive_segment(&sent.tcp(), sent.payload().len());
        }
    }

    /// Takes one segment, with so many bytes of payload, as received.
    pub fn receive_segment(&mut self, header: &TcpHeader, payload: usize) {
        let end = header.seq + header.segment_len(payload as u32);
        if end.after(self.ack) {
            self.ack = end;
        }
        if let (Some(ours), Some(theirs)) = (&mut self.timestamps, header.options.timestamps) {
            ours.echo = theirs.value;
        }
    }
}
