//! Packets built by hand: what no honest host would send has to come from somewhere.
//!
//! Lengths and checksums are right unless a function says otherwise; every other field is what the test says. All of
//! them panic on what cannot be a packet at all, such as addresses of two versions or too many options.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use transom_wire::ip::Fragment;
use transom_wire::{
    FragmentHeader, IcmpMessage, IpHeader, Ipv4Header, Protocol, TcpHeader, UdpHeader, checksum,
    tcp,
};

/// An IP packet from `src` to `dst` around a transport packet.
pub fn ip(src: IpAddr, dst: IpAddr, protocol: Protocol, transport: &[u8]) -> Vec<u8> {
    let mut out = [0; 40];
    let len = IpHeader::new(src, dst, protocol).emit(transport.len(), &mut out).unwrap();
    [&out[..len], transport].concat()
}

/// The bytes of a TCP segment with its checksum, without an IP header. The ports are those of the addresses.
pub fn segment(src: SocketAddr, dst: SocketAddr, header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
    let header = TcpHeader { src_port: src.port(), dst_port: dst.port(), ..*header };
    let mut out = [0; 60];
    let len = header.emit(&mut out).unwrap();
    let mut segment = [&out[..len], payload].concat();
    let field = tcp::CHECKSUM_OFFSET;
    checksum::fill(src.ip(), dst.ip(), Protocol::TCP, &mut segment, field).unwrap();
    segment
}

/// A packet with a TCP segment. The ports are those of the addresses.
pub fn tcp(src: SocketAddr, dst: SocketAddr, header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
    ip(src.ip(), dst.ip(), Protocol::TCP, &segment(src, dst, header, payload))
}

/// A TCP segment from raw bytes; only the checksum is put right, if there are enough bytes to have one.
pub fn raw_tcp(src: IpAddr, dst: IpAddr, bytes: &[u8]) -> Vec<u8> {
    let mut segment = bytes.to_vec();
    if segment.len() >= tcp::CHECKSUM_OFFSET + 2 {
        checksum::fill(src, dst, Protocol::TCP, &mut segment, tcp::CHECKSUM_OFFSET).unwrap();
    }
    ip(src, dst, Protocol::TCP, &segment)
}

/// A TCP segment whose options are these bytes, padded with zeros to whole words.
pub fn tcp_with_options(
    src: SocketAddr,
    dst: SocketAddr,
    header: &TcpHeader,
    options: &[u8],
    payload: &[u8],
) -> Vec<u8> {
    let header = TcpHeader { src_port: src.port(), dst_port: dst.port(), ..*header };
    let mut out = [0; 60];
    header.emit(&mut out).unwrap();
    let mut options = options.to_vec();
    options.resize(options.len().next_multiple_of(4), 0);
    out[12] = ((5 + options.len() / 4) as u8) << 4 | (out[12] & 15);
    raw_tcp(src.ip(), dst.ip(), &[&out[..20], &options, payload].concat())
}

/// An IPv4 packet without options, given these (a multiple of four bytes).
pub fn with_ip_options(packet: &[u8], options: &[u8]) -> Vec<u8> {
    assert!(packet[0] == 0x45 && options.len().is_multiple_of(4));
    let mut out = [&packet[..20], options, &packet[20..]].concat();
    out[0] = 0x45 + (options.len() / 4) as u8;
    let total = (out.len() as u16).to_be_bytes();
    out[2..4].copy_from_slice(&total);
    out[10..12].fill(0);
    let sum = checksum::Sum::of(&out[..20 + options.len()]).checksum();
    out[10..12].copy_from_slice(&sum.to_be_bytes());
    out
}

/// An IPv4 fragment. `offset` is in bytes and counts from the end of the IP header.
pub fn fragment4(
    src: Ipv4Addr,
    dst: Ipv4Addr,
    protocol: Protocol,
    id: u16,
    offset: u16,
    more: bool,
    payload: &[u8],
) -> Vec<u8> {
    let header = Ipv4Header {
        id,
        dont_fragment: false,
        more_fragments: more,
        fragment_offset: offset,
        ..Ipv4Header::new(src, dst, protocol)
    };
    let mut out = [0; 20];
    header.emit(payload.len(), &mut out).unwrap();
    [&out[..], payload].concat()
}

/// An IPv6 fragment. `next` is what the payload (of the first one) begins with; `offset` is in bytes.
pub fn fragment6(
    src: Ipv6Addr,
    dst: Ipv6Addr,
    next: Protocol,
    id: u32,
    offset: u16,
    more: bool,
    payload: &[u8],
) -> Vec<u8> {
    let mut header = [0; 8];
    FragmentHeader::emit(next, Fragment { id, offset, more }, &mut header).unwrap();
    ip(src.into(), dst.into(), Protocol::FRAGMENT, &[&header, payload].concat())
}

/// An ICMP or ICMPv6 message in a packet.
pub fn icmp(src: impl Into<IpAddr>, dst: impl Into<IpAddr>, message: &IcmpMessage<'_>) -> Vec<u8> {
    let (src, dst) = (src.into(), dst.into());
    let mut out = vec![0; message.packet_len(src)];
    message.emit_packet(src, dst, &mut out).unwrap();
    out
}

/// "Fragmentation needed" (RFC 1191 section 4) from `router` about `offending`, an IPv4 packet, to who sent that.
pub fn too_big(router: Ipv4Addr, offending: &[u8], next_hop_mtu: u16) -> Vec<u8> {
    let dst = Ipv4Addr::from(<[u8; 4]>::try_from(&offending[12..16]).unwrap());
    icmp(router, dst, &IcmpMessage::PacketTooBig { mtu: next_hop_mtu.into(), quoted: offending })
}

/// A UDP datagram.
pub fn udp(src: SocketAddr, dst: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let mut out = [0; UdpHeader::LEN];
    let header = UdpHeader { src_port: src.port(), dst_port: dst.port() };
    header.emit(payload.len(), &mut out).unwrap();
    let mut datagram = [&out, payload].concat();
    let field = UdpHeader::CHECKSUM_OFFSET;
    checksum::fill(src.ip(), dst.ip(), Protocol::UDP, &mut datagram, field).unwrap();
    ip(src.ip(), dst.ip(), Protocol::UDP, &datagram)
}
