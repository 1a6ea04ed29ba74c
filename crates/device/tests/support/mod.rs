//! What the tests against the kernel share: namespaces or a loud skip, waiting, and packets made by
//! hand with a checksum of their own.
#![allow(dead_code, unreachable_pub)]

pub mod by_hand;
pub mod pcapng;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use transom_device::namespace::Namespace;
use transom_device::tun::{Tun, TunBuilder, TunError};
use transom_device::{Device, RxPacket};

pub const PATIENCE: Duration = Duration::from_secs(10);

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const ACK: u8 = 16;

/// A new namespace, or `None` and a word about it where the system refuses.
pub fn namespace() -> Option<Namespace> {
    match Namespace::new() {
        Ok(namespace) => Some(namespace),
        Err(error) => {
            eprintln!("SKIPPED: no network namespace here: {error:?}");
            None
        }
    }
}

/// The same, in which the kernel says nothing by itself: with IPv6 it speaks on every interface (RFC 4861, RFC 9777), whenever it likes.
pub fn quiet_namespace() -> Option<Namespace> {
    let namespace = namespace()?;
    for which in ["all", "default"] {
        let set = namespace.set_sysctl(&format!("net.ipv6.conf.{which}.disable_ipv6"), "1");
        // A kernel without IPv6 does not have the file.
        let without_ipv6 = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        assert!(set.as_ref().err().is_none_or(without_ipv6), "{set:?}");
    }
    Some(namespace)
}

/// A TUN inside the namespace, or `None` and a word about it where there is no access to TUN at
/// all.
pub fn tun(namespace: &Namespace, builder: TunBuilder) -> Option<Tun> {
    match namespace.run(|| builder.open()).expect("entering a namespace of our own") {
        Ok(tun) => Some(tun),
        Err(TunError::Open(error)) => {
            eprintln!("SKIPPED: no access to TUN here: {error}");
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// Waits until the device is readable; false if that takes longer than `patience`.
pub fn wait_readable(device: &impl Device, patience: Duration) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(device.poll_fd().unwrap(), PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::try_from(patience).unwrap())).unwrap() == 1
}

/// The next packet that `wanted` accepts; others, such as the kernel's neighbour discovery, are
/// passed over.
pub fn receive(device: &mut impl Device, wanted: impl Fn(&RxPacket) -> bool) -> RxPacket {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match device.recv() {
            Ok(packet) if wanted(&packet) => return packet,
            Ok(packet) => device.recycle(packet.buffer),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
                let left = deadline.saturating_duration_since(Instant::now());
                assert!(wait_readable(device, left), "the packet did not come in time");
            }
        }
    }
}

/// Sum of 16-bit big-endian words, an odd last byte padded with zero: RFC 1071, the obvious way.
pub fn sum(bytes: &[u8]) -> u32 {
    bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum()
}

pub fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The sum over the pseudo-header of RFC 9293, section 3.1, or RFC 8200, section 8.1.
pub fn pseudo_sum(source: IpAddr, destination: IpAddr, protocol: u8, length: usize) -> u32 {
    let addresses = match (source, destination) {
        (IpAddr::V4(s), IpAddr::V4(d)) => sum(&s.octets()) + sum(&d.octets()),
        (IpAddr::V6(s), IpAddr::V6(d)) => sum(&s.octets()) + sum(&d.octets()),
        _ => panic!("addresses of two families"),
    };
    addresses + u32::from(protocol) + u32::from(fold(length as u32))
}

/// How the transport checksum of a packet made here turns out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    Right,
    Wrong,
    Open,
}

/// An IP header in front of a transport header, whose checksum field at `field` is filled in.
/// `extra` is the length of payload that follows the returned bytes; only an open checksum does not
/// have to cover it.
pub fn ip_packet(
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    mut transport: Vec<u8>,
    extra: usize,
    field: usize,
    checksum: Checksum,
) -> Vec<u8> {
    let length = transport.len() + extra;
    let pseudo = pseudo_sum(source, destination, protocol, length);
    let value = match checksum {
        Checksum::Open => fold(pseudo),
        Checksum::Right => !fold(pseudo + sum(&transport)),
        Checksum::Wrong => !fold(pseudo + sum(&transport)) ^ 0x0101,
    };
    transport[field..field + 2].copy_from_slice(&value.to_be_bytes());
    let mut packet = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut header = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, protocol, 0, 0];
            header[2..4].copy_from_slice(&((20 + length) as u16).to_be_bytes());
            header.extend_from_slice(&source.octets());
            header.extend_from_slice(&destination.octets());
            let header_sum = !fold(sum(&header));
            header[10..12].copy_from_slice(&header_sum.to_be_bytes());
            header
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut header = vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
            header[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            header.extend_from_slice(&source.octets());
            header.extend_from_slice(&destination.octets());
            header
        }
        _ => panic!("addresses of two families"),
    };
    packet.extend_from_slice(&transport);
    packet
}

pub fn udp(from: SocketAddr, to: SocketAddr, payload: &[u8], checksum: Checksum) -> Vec<u8> {
    let mut datagram = Vec::new();
    datagram.extend_from_slice(&from.port().to_be_bytes());
    datagram.extend_from_slice(&to.port().to_be_bytes());
    datagram.extend_from_slice(&((8 + payload.len()) as u16).to_be_bytes());
    datagram.extend_from_slice(&[0, 0]);
    datagram.extend_from_slice(payload);
    ip_packet(from.ip(), to.ip(), 17, datagram, 0, 6, checksum)
}

/// The fields of a TCP header that the tests set.
pub struct Tcp {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub window: u16,
    pub options: &'static [u8],
}

impl Tcp {
    /// The headers for `payload_len` bytes of payload that are sent beside them, with an open
    /// checksum unless there is no payload.
    pub fn headers(&self, payload_len: usize, checksum: Checksum) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend_from_slice(&self.from.port().to_be_bytes());
        header.extend_from_slice(&self.to.port().to_be_bytes());
        header.extend_from_slice(&self.seq.to_be_bytes());
        header.extend_from_slice(&self.ack.to_be_bytes());
        header.push((((20 + self.options.len()) / 4) << 4) as u8);
        header.push(self.flags);
        header.extend_from_slice(&self.window.to_be_bytes());
        header.extend_from_slice(&[0; 4]);
        header.extend_from_slice(self.options);
        ip_packet(self.from.ip(), self.to.ip(), 6, header, payload_len, 16, checksum)
    }
}

/// What the tests read from a packet of either family without extension headers.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub protocol: u8,
    pub transport: &'a [u8],
    pub ip_header_len: usize,
}

impl<'a> Seen<'a> {
    pub fn of(packet: &'a [u8]) -> Option<Self> {
        let array = |at: usize| -> [u8; 4] { packet[at..at + 4].try_into().unwrap() };
        let long = |at: usize| -> [u8; 16] { packet[at..at + 16].try_into().unwrap() };
        match packet.first()? >> 4 {
            4 => Some(Seen {
                source: array(12).into(),
                destination: array(16).into(),
                protocol: packet[9],
                transport: &packet[20..],
                ip_header_len: 20,
            }),
            6 => Some(Seen {
                source: long(8).into(),
                destination: long(24).into(),
                protocol: packet[6],
                transport: &packet[40..],
                ip_header_len: 40,
            }),
            _ => None,
        }
    }

    pub fn ports(&self) -> (u16, u16) {
        let port = |at: usize| u16::from_be_bytes([self.transport[at], self.transport[at + 1]]);
        (port(0), port(2))
    }

    pub fn seq(&self) -> u32 {
        u32::from_be_bytes(self.transport[4..8].try_into().unwrap())
    }

    pub fn ack(&self) -> u32 {
        u32::from_be_bytes(self.transport[8..12].try_into().unwrap())
    }

    pub fn flags(&self) -> u8 {
        self.transport[13]
    }

    pub fn tcp_header_len(&self) -> usize {
        usize::from(self.transport[12] >> 4) * 4
    }

    pub fn tcp_payload(&self) -> &'a [u8] {
        &self.transport[self.tcp_header_len()..]
    }

    pub fn tcp_checksum(&self) -> u16 {
        u16::from_be_bytes([self.transport[16], self.transport[17]])
    }

    pub fn pseudo_sum(&self) -> u32 {
        pseudo_sum(self.source, self.destination, self.protocol, self.transport.len())
    }

    /// Whether the transport checksum is complete and right.
    pub fn checksum_is_right(&self) -> bool {
        fold(self.pseudo_sum() + sum(self.transport)) == 0xffff
    }
}

pub fn is_protocol(protocol: u8) -> impl Fn(&RxPacket) -> bool {
    move |packet| Seen::of(packet.bytes()).is_some_and(|seen| seen.protocol == protocol)
}
