//! Packets that no host has sent, thrown in on either side of the router; and what arrives of them.
//!
//! They go to addresses that nobody has, one behind each side, so that no host answers.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};

use transom_device::FrameSocket;
use transom_device::namespace::Namespace;
use transom_wire::offload::VirtioNetHdr;
use transom_wire::tcp::{Flags, Options, TcpHeader};
use transom_wire::{Ipv4Header, Protocol, Seq, checksum};

use crate::support::{BOTTLENECK, Net, run};

/// On the senders' side.
pub(crate) const NEAR: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 77);
/// On the receivers'.
pub(crate) const FAR: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 77);
/// The same of the other family.
pub(crate) const FAR_SIX: Ipv6Addr = Ipv6Addr::new(0xfd02, 0, 0, 0, 0, 0, 0, 0x77);
pub(crate) const NEAR_SIX: Ipv6Addr = Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 0x77);
/// Bytes before the IP packet: a virtio-net header, and Ethernet's.
pub(crate) const START: usize = VirtioNetHdr::LEN + 14;

/// One side of the router.
pub(crate) struct Side {
    socket: FrameSocket,
    /// What stands before a packet to the router, without its type.
    head: Vec<u8>,
    buffer: Vec<u8>,
}

/// The address of an Ethernet interface.
pub(crate) fn mac(namespace: &Namespace, name: &str) -> String {
    let shown = run(namespace, "ip", &["-o", "link", "show", "dev", name]);
    let mut words = shown.split_whitespace().skip_while(|word| *word != "link/ether");
    words.nth(1).unwrap().to_owned()
}

impl Side {
    /// At an interface of a host, with frames for another interface.
    pub(crate) fn new(hosts: (&Namespace, &str), router: (&Namespace, &str)) -> Self {
        let index = hosts.0.interfaces().state(hosts.1).unwrap().index;
        let socket = hosts.0.run(|| FrameSocket::open(index)).unwrap().unwrap();
        let mut head = vec![0; VirtioNetHdr::LEN];
        for mac in [mac(router.0, router.1), mac(hosts.0, hosts.1)] {
            head.extend(mac.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()));
        }
        Side { socket, head, buffer: vec![0; FrameSocket::MAX_LEN] }
    }

    /// Sends an IP packet, however long it takes.
    pub(crate) fn send(&self, packet: &[u8]) {
        let six = packet.first().is_some_and(|first| first >> 4 == 6);
        let kind: &[u8] = if six { &[0x86, 0xdd] } else { &[8, 0] };
        self.send_frame(&[&self.head[..], kind, packet].concat());
    }

    /// Sends a frame with its virtio-net header.
    pub(crate) fn send_frame(&self, frame: &[u8]) {
        while !self.socket.send(frame).unwrap() {
            std::thread::yield_now();
        }
    }

    /// The next frame that arrived, with its virtio-net header.
    pub(crate) fn receive(&mut self) -> Option<&[u8]> {
        let length = self.socket.receive(&mut self.buffer).unwrap()?;
        self.buffer.get(..length)
    }
}

/// The senders' side and the receivers'. Packets for [`NEAR`] and [`FAR`] are forwarded, wherever they come from; a wire needs no help.
pub(crate) fn sides(net: &Net, forwards: bool) -> [Side; 2] {
    let places = [
        ((&net.sender, "near"), "in", [NEAR.to_string(), NEAR_SIX.to_string()]),
        ((&net.receiver, "far"), BOTTLENECK, [FAR.to_string(), FAR_SIX.to_string()]),
    ];
    if forwards {
        net.router.set_sysctl("net.ipv4.conf.all.rp_filter", "0").unwrap();
        for ((hosts, name), router, addresses) in &places {
            net.router.set_sysctl(&format!("net.ipv4.conf.{router}.rp_filter"), "0").unwrap();
            let at = mac(hosts, name);
            for to in addresses {
                run(&net.router, "ip", &["neigh", "add", to, "lladdr", &at, "dev", router]);
            }
        }
    }
    places.map(|(hosts, router, _)| Side::new(hosts, (&net.router, router)))
}

/// A segment from one socket to another.
pub(crate) fn segment(
    from: SocketAddrV4,
    to: SocketAddrV4,
    flags: Flags,
    (seq, ack): (u32, u32),
    window: u16,
    options: &Options,
    payload: &[u8],
) -> Vec<u8> {
    let header = TcpHeader {
        src_port: from.port(),
        dst_port: to.port(),
        seq: Seq::new(seq),
        ack: Seq::new(ack),
        flags,
        window,
        options: *options,
        ..TcpHeader::default()
    };
    let mut tcp = vec![0; header.header_len()];
    header.emit(&mut tcp).unwrap();
    tcp.extend_from_slice(payload);
    let (src, dst) = (*from.ip(), *to.ip());
    checksum::fill(src.into(), dst.into(), Protocol::TCP, &mut tcp, 16).unwrap();
    let mut packet = vec![0; 20];
    Ipv4Header::new(src, dst, Protocol::TCP).emit(tcp.len(), &mut packet).unwrap();
    packet.extend(tcp);
    packet
}
