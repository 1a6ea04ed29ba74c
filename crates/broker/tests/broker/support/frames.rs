//! Packets at a device's descriptor, and at an interface.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use transom_device::frames::FrameSocket;
use transom_wire::offload::VirtioNetHdr;
use transom_wire::{Protocol, TcpHeader, checksum};

use super::Net;

/// A TCP segment with this many bytes of data in an IP packet; `flags` as in the header.
pub(crate) fn tcp(from: SocketAddr, to: SocketAddr, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = transom_testkit::packets::tcp(from, to, &TcpHeader::default(), payload);
    let at = header_len(&packet);
    packet[at + 13] = flags;
    packet[at + 16..at + 18].fill(0);
    let (transport, field) = (packet.split_off(at), 16);
    let mut transport = transport;
    checksum::fill(from.ip(), to.ip(), Protocol::TCP, &mut transport, field).unwrap();
    packet.extend(transport);
    packet
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

/// What a frame on the wire is about: source, destination and protocol; nothing for other frames than IP.
pub(crate) fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr, u8)> {
    match packet.first()? >> 4 {
        4 => {
            let part = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<4>()?));
            Some((part(12)?, part(16)?, *packet.get(9)?))
        }
        6 => {
            let part = |at: usize| Some(IpAddr::from(*packet.get(at..)?.first_chunk::<16>()?));
            Some((part(8)?, part(24)?, *packet.get(6)?))
        }
        _ => None,
    }
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
        // A datagram that nobody wants brings an answer, and with it the address.
        net.peer
            .run(|| {
                let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
                socket.send_to(b"?", (super::HOST4, 9)).unwrap();
            })
            .unwrap();
        let frames = tap.frames(|frame| frame.get(12..14) == Some(&[8, 0]));
        tap.host.copy_from_slice(&frames.last().unwrap()[6..12]);
        tap
    }

    /// The frames that have come, until one is what is looked for; all of them.
    fn frames(&self, mut last: impl FnMut(&[u8]) -> bool) -> Vec<Vec<u8>> {
        let end = Instant::now() + super::PATIENCE;
        let mut frames = Vec::new();
        let mut buffer = vec![0; FrameSocket::MAX_LEN];
        while Instant::now() < end {
            match self.socket.receive(&mut buffer).unwrap() {
                Some(length) => {
                    let frame = buffer[VirtioNetHdr::LEN..length].to_vec();
                    let found = last(&frame);
                    frames.push(frame);
                    if found {
                        return frames;
                    }
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        panic!("what was looked for did not come; {} frames did", frames.len());
    }

    /// The IP packets that have come, until one is what is looked for; all of them.
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

    /// Sends a packet in a frame to this Ethernet address.
    pub(crate) fn send_to(&self, to: [u8; 6], packet: &[u8]) {
        let kind: u16 = if packet[0] >> 4 == 4 { 0x0800 } else { 0x86dd };
        let link = [&to[..], &[2, 0, 0, 0, 0, 9], &kind.to_be_bytes()].concat();
        let frame = [&[0; VirtioNetHdr::LEN][..], &link, packet].concat();
        assert!(self.socket.send(&frame).unwrap());
    }
}
