//! A TCP connection with the kernel whose other end is done by hand, packet by packet.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};

use transom_device::namespace::Namespace;
use transom_device::{Device, RxPacket, TxPacket};
use transom_wire::offload::RxChecksum;

use super::*;

/// The kernel's address and ours, in the documentation prefixes of RFC 5737 and RFC 3849.
pub fn addresses(v6: bool) -> (IpAddr, IpAddr) {
    if v6 {
        ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap())
    } else {
        (Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::new(192, 0, 2, 2).into())
    }
}

pub fn is_open_checksum(packet: &RxPacket) -> bool {
    let seen = Seen::of(packet.bytes()).unwrap();
    packet.offload.checksum == RxChecksum::Valid && seen.tcp_checksum() == fold(seen.pseudo_sum())
}

/// A connection whose one end is the kernel's and whose other end is done here by hand,
/// established.
pub struct ByHand {
    pub ours: SocketAddr,
    pub kernels: SocketAddr,
    /// The next sequence number from us.
    pub seq: u32,
    /// The next sequence number from the kernel.
    pub ack: u32,
}

/// Window scale 10, so that the window of 65,535 is 64 MB; MSS 1,400.
const SYN_OPTIONS: &[u8] = &[2, 4, 0x05, 0x78, 1, 3, 3, 10];

impl ByHand {
    /// Lets the kernel connect to us and answers.
    pub fn accept(tun: &mut impl Device, namespace: &Namespace, v6: bool) -> (Self, TcpStream) {
        let (_, ours) = addresses(v6);
        let ours = SocketAddr::from((ours, 7));
        std::thread::scope(|scope| {
            let connecting = scope
                .spawn(|| namespace.run(|| TcpStream::connect_timeout(&ours, PATIENCE)).unwrap());
            let syn = receive(tun, is_protocol(6));
            let seen = Seen::of(syn.bytes()).unwrap();
            assert_eq!(seen.flags(), SYN);
            if tun.capabilities().tx_checksum {
                assert!(is_open_checksum(&syn), "the kernel leaves the checksum to us");
            } else {
                assert!(seen.checksum_is_right());
            }
            let kernels = SocketAddr::from((seen.source, seen.ports().0));
            let mut hand = ByHand { ours, kernels, seq: 1000, ack: seen.seq().wrapping_add(1) };
            hand.send(tun, SYN | ACK, SYN_OPTIONS);
            hand.seq += 1;
            let answer = receive(tun, is_protocol(6));
            let seen = Seen::of(answer.bytes()).unwrap();
            assert_eq!((seen.flags(), seen.ack()), (ACK, 1001));
            (hand, connecting.join().unwrap().unwrap())
        })
    }

    pub fn header(&self, flags: u8, options: &'static [u8]) -> Tcp {
        let ByHand { ours, kernels, seq, ack } = *self;
        Tcp { from: ours, to: kernels, seq, ack, flags, window: 65_535, options }
    }

    pub fn send(&self, tun: &mut impl Device, flags: u8, options: &'static [u8]) {
        let packet = self.header(flags, options).headers(0, Checksum::Right);
        tun.send(&TxPacket::whole(&packet)).unwrap();
    }

    /// Waits until the kernel has acknowledged everything sent.
    pub fn wait_acknowledged(&self, tun: &mut impl Device) {
        let packet = receive(tun, |packet| {
            Seen::of(packet.bytes())
                .is_some_and(|seen| seen.protocol == 6 && seen.ack() == self.seq)
        });
        tun.recycle(packet.buffer);
    }

    /// Receives and acknowledges until `length` bytes are there; shows every packet to `look`.
    pub fn collect(
        &mut self,
        tun: &mut impl Device,
        length: usize,
        mut look: impl FnMut(&RxPacket),
    ) -> Vec<u8> {
        let mut data = Vec::new();
        while data.len() < length {
            let packet = receive(tun, is_protocol(6));
            look(&packet);
            let seen = Seen::of(packet.bytes()).unwrap();
            assert_eq!(seen.flags() & (SYN | FIN | RST), 0);
            if seen.seq() == self.ack {
                data.extend_from_slice(seen.tcp_payload());
                self.ack = self.ack.wrapping_add(seen.tcp_payload().len() as u32);
            }
            self.send(tun, ACK, &[]);
            tun.recycle(packet.buffer);
        }
        data
    }
}

pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
}
