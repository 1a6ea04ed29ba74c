//! Packets at a device's descriptor, and at an interface.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use transom_device::FrameSocket;
use transom_wire::offload::VirtioNetHdr;
use transom_wire::{Protocol, TcpHeader, checksum};

use super::Net;

pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// A TCP segment with this many bytes of data in an IP packet; `flags` as in the header.
pub(crate) fn tcp(from: SocketAddr, to: SocketAddr, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = transom_testkit::packets::tcp(from, to, &TcpHeader::default(), payload);
    let at = header_len(&packet);
    packet[at + 13] = flags;
    fill_checksum(&mut packet);
    packet
}

/// A segment of 100 bytes in two IP fragments. The first has 40 bytes of it, with the TCP header.
pub(crate) fn two_fragments(from: SocketAddr, to: SocketAddr, id: u16) -> [Vec<u8>; 2] {
    let packet = tcp(from, to, ACK, &[7; 100]);
    let header = if from.is_ipv4() { 20 } else { 40 };
    let (first, second) = packet[header..].split_at(40);
    let fragment = |offset, more, bytes: &[u8]| match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            transom_testkit::packets::fragment4(from, to, Protocol::TCP, id, offset, more, bytes)
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => transom_testkit::packets::fragment6(
            from,
            to,
            Protocol::TCP,
            id.into(),
            offset,
            more,
            bytes,
        ),
        _ => panic!("{from} and {to} are of two versions of IP"),
    };
    [fragment(0, true, first), fragment(40, false, second)]
}

/// Bytes of the IP header.
pub(crate) fn header_len(packet: &[u8]) -> usize {
    match packet[0] >> 4 {
        4 => usize::from(packet[0] & 15) * 4,
        _ => 40,
    }
}

/// The virtio-net header of 10 bytes: flags, kind of super-segment, header length, piece, and the checksum's places.
pub(crate) fn virtio(
    flags: u8,
    kind: u8,
    size: u16,
    start: u16,
    offset: u16,
) -> [u8; VirtioNetHdr::LEN] {
    let mut header = [0; VirtioNetHdr::LEN];
    header[0] = flags;
    header[1] = kind;
    if kind != 0 {
        header[2..4].copy_from_slice(&(start + 20).to_le_bytes());
    }
    header[4..6].copy_from_slice(&size.to_le_bytes());
    header[6..8].copy_from_slice(&start.to_le_bytes());
    header[8..10].copy_from_slice(&offset.to_le_bytes());
    header
}

/// Writes a packet as it is.
pub(crate) fn write(tun: &OwnedFd, packet: &[u8]) -> std::io::Result<()> {
    write_with(tun, &[0; VirtioNetHdr::LEN], packet)
}

pub(crate) fn write_with(tun: &OwnedFd, header: &[u8], packet: &[u8]) -> std::io::Result<()> {
    rustix::io::write(tun, &[header, packet].concat())?;
    Ok(())
}

/// Everything that waits at a device, without virtio-net headers.
pub(crate) fn waiting(tun: &OwnedFd) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut buffer = vec![0; 70_000];
    while let Ok(length) = rustix::io::read(tun, &mut buffer[..]) {
        packets.push(buffer[VirtioNetHdr::LEN..length].to_vec());
    }
    packets
}

/// The packets that come to a device until this one does, all of them.
pub(crate) fn until(tun: &OwnedFd, last: &[u8]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    super::until("the packet", || {
        packets.extend(waiting(tun));
        packets.iter().any(|packet: &Vec<u8>| packet == last)
    });
    packets
}

/// The next SYN that comes to a device.
pub(crate) fn next_syn(tun: &OwnedFd) -> Vec<u8> {
    let mut packets = Vec::new();
    super::until("a SYN", || {
        packets = waiting(tun);
        packets.retain(|packet| ends(packet).is_some() && ports(packet).2 & SYN != 0);
        !packets.is_empty()
    });
    packets.swap_remove(0)
}

/// The sequence number.
pub(crate) fn seq(packet: &[u8]) -> u32 {
    let at = header_len(packet) + 4;
    u32::from_be_bytes(packet[at..at + 4].try_into().unwrap())
}

/// The ports and the flags of a TCP segment.
pub(crate) fn ports(packet: &[u8]) -> (u16, u16, u8) {
    let tcp = &packet[header_len(packet)..];
    let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    (port(0), port(2), tcp[13])
}

/// A segment back, which acknowledges this one's SYN.
pub(crate) fn answer(packet: &[u8], flags: u8) -> Vec<u8> {
    let (source, destination) = ends(packet).unwrap();
    let at = header_len(packet);
    let sequence = u32::from_be_bytes(*packet[at + 4..].first_chunk().unwrap());
    let mut back = tcp(destination, source, flags, &[]);
    back[at + 8..at + 12].copy_from_slice(&sequence.wrapping_add(1).to_be_bytes());
    back[at + 14..at + 16].copy_from_slice(&[255, 255]);
    fill_checksum(&mut back);
    back
}

/// Sets the checksum of a TCP segment.
pub(crate) fn fill_checksum(packet: &mut [u8]) {
    let (source, destination) = ends(packet).unwrap();
    let at = header_len(packet);
    packet[at + 16..at + 18].fill(0);
    let (from, to) = (source.ip(), destination.ip());
    checksum::fill(from, to, Protocol::TCP, &mut packet[at..], 16).unwrap();
}

/// Where a TCP segment comes from and goes to; nothing for other packets.
pub(crate) fn ends(packet: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let (from, to) = match packet.first()? >> 4 {
        4 if packet.get(9) == Some(&6) => {
            let part = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<4>()?));
            (part(12)?, part(16)?)
        }
        6 if packet.get(6) == Some(&6) => {
            let part = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<16>()?));
            (part(8)?, part(24)?)
        }
        _ => return None,
    };
    packet.get(header_len(packet) + 20 - 1)?;
    let (source, destination, _) = ports(packet);
    Some((SocketAddr::new(from, source), SocketAddr::new(to, destination)))
}

/// Looks at the neighbour's interface, and sends frames from there.
pub(crate) struct Tap {
    socket: FrameSocket,
    /// The host's Ethernet address there.
    host: [u8; 6],
}

impl Tap {
    pub(crate) fn new(net: &Net) -> Self {
        let index = net.peer.interfaces().state("eth0").unwrap().index;
        let socket = net.peer.run(|| FrameSocket::open(index)).unwrap().unwrap();
        let mut tap = Tap { socket, host: [0; 6] };
        // A datagram that nobody wants brings an answer, and with it the address. The kernel drops one that waits too long for a neighbour.
        let socket = net.peer.run(|| std::net::UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
        let answer = |frame: &[u8]| frame.get(12..14) == Some(&[8, 0]);
        let end = Instant::now() + super::PATIENCE;
        let frames = loop {
            // The answer to an earlier one may be reported here.
            let _ = socket.send_to(b"?", (super::HOST4, 9));
            match tap.frames_within(Duration::from_secs(1), answer) {
                Ok(frames) => break frames,
                Err(_) => assert!(Instant::now() < end, "the host does not answer"),
            }
        };
        tap.host.copy_from_slice(&frames.last().unwrap()[6..12]);
        tap
    }

    /// Receives frames until `last` accepts one. Returns all of them.
    fn frames(&self, last: impl FnMut(&[u8]) -> bool) -> Vec<Vec<u8>> {
        self.frames_within(super::PATIENCE, last).unwrap_or_else(|others| {
            panic!("the expected frame did not come; {} other frames did", others.len())
        })
    }

    /// The same for so long. Without the expected frame it returns the others as an error.
    fn frames_within(
        &self,
        span: Duration,
        mut last: impl FnMut(&[u8]) -> bool,
    ) -> Result<Vec<Vec<u8>>, Vec<Vec<u8>>> {
        let end = Instant::now() + span;
        let mut frames = Vec::new();
        let mut buffer = vec![0; FrameSocket::MAX_LEN];
        while Instant::now() < end {
            match self.socket.receive(&mut buffer).unwrap() {
                Some(length) => {
                    let frame = buffer[VirtioNetHdr::LEN..length].to_vec();
                    let found = last(&frame);
                    frames.push(frame);
                    if found {
                        return Ok(frames);
                    }
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        Err(frames)
    }

    /// Receives IP packets until `last` accepts one. Returns all of them.
    pub(crate) fn until(&self, mut last: impl FnMut(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let frames = self.frames(|frame| frame.len() > 34 && last(&frame[14..]));
        frames
            .into_iter()
            .filter(|frame| frame.len() > 34)
            .map(|frame| frame[14..].to_vec())
            .collect()
    }

    /// Sends a packet in a frame to the host.
    pub(crate) fn send(&self, packet: &[u8]) {
        self.send_to(self.host, packet);
    }

    /// Sends a packet in a frame of a VLAN to the host.
    pub(crate) fn send_tagged(&self, tag: u16, packet: &[u8]) {
        let inside = [&tag.to_be_bytes()[..], &[8, 0], packet].concat();
        let link = [&self.host[..], &[2, 0, 0, 0, 0, 9, 0x81, 0]].concat();
        let frame = [&[0; VirtioNetHdr::LEN][..], &link, &inside].concat();
        assert!(self.socket.send(&frame).unwrap());
    }

    /// Sends a packet in a frame to this Ethernet address.
    pub(crate) fn send_to(&self, to: [u8; 6], packet: &[u8]) {
        let kind: u16 = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        let link = [&to[..], &[2, 0, 0, 0, 0, 9], &kind.to_be_bytes()].concat();
        let frame = [&[0; VirtioNetHdr::LEN][..], &link, packet].concat();
        assert!(self.socket.send(&frame).unwrap());
    }
}
