//! Packets built by hand: what no honest host would send has to come from somewhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use transom_wire::ip::Fragment;
use transom_wire::ipv4::Ipv4Header;
use transom_wire::ipv6::{FragmentHeader, Ipv6Header};
use transom_wire::{IcmpMessage, Icmpv6Message, Protocol, TcpHeader, checksum, icmp, icmpv6};

/// An IP packet from `src` to `dst` around a transport packet.
pub fn ip(src: IpAddr, dst: IpAddr, protocol: Protocol, transport: &[u8]) -> Vec<u8> {
    let mut out = [0; 40];
    let len = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            Ipv4Header::new(src, dst, protocol).emit(transport.len(), &mut out).unwrap()
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            Ipv6Header::new(src, dst, protocol).emit(transport.len(), &mut out).unwrap()
        }
        _ => panic!("addresses of two versions"),
    };
    [&out[..len], transport].concat()
}

/// The bytes of a TCP segment with its checksum, without an IP header. The ports are those of the addresses.
pub fn segment(src: SocketAddr, dst: SocketAddr, header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
    let header = TcpHeader { src_port: src.port(), dst_port: dst.port(), ..*header };
    let mut out = [0; 60];
    let len = header.emit(&mut out).unwrap();
    let mut segment = [&out[..len], payload].concat();
    checksum::fill(src.ip(), dst.ip(), Protocol::TCP, &mut segment, 16).unwrap();
    segment
}

/// A packet with a TCP segment.
pub fn tcp(src: SocketAddr, dst: SocketAddr, header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
    ip(src.ip(), dst.ip(), Protocol::TCP, &segment(src, dst, header, payload))
}

/// The same, with IPv4 options (a multiple of four bytes).
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

/// An IPv4 fragment.
pub fn fragment4(
    src: Ipv4Addr,
    dst: Ipv4Addr,
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
        ..Ipv4Header::new(src, dst, Protocol::TCP)
    };
    let mut out = [0; 20];
    header.emit(payload.len(), &mut out).unwrap();
    [&out[..], payload].concat()
}

/// An IPv6 fragment.
pub fn fragment6(
    src: Ipv6Addr,
    dst: Ipv6Addr,
    id: u32,
    offset: u16,
    more: bool,
    payload: &[u8],
) -> Vec<u8> {
    let mut header = [0; 8];
    FragmentHeader::emit(Protocol::TCP, Fragment { id, offset, more }, &mut header).unwrap();
    ip(src.into(), dst.into(), Protocol::FRAGMENT, &[&header, payload].concat())
}

/// An ICMP message in an IPv4 packet.
pub fn icmp4(src: Ipv4Addr, dst: Ipv4Addr, message: &IcmpMessage<'_>) -> Vec<u8> {
    let mut out = vec![0; 20 + message.encoded_len()];
    let header = Ipv4Header::new(src, dst, Protocol::ICMP);
    let len = icmp::emit_packet(&header, message, &mut out).unwrap();
    out.truncate(len);
    out
}

/// An ICMPv6 message in an IPv6 packet.
pub fn icmp6(src: Ipv6Addr, dst: Ipv6Addr, message: &Icmpv6Message<'_>) -> Vec<u8> {
    let mut out = vec![0; 40 + message.encoded_len()];
    let header = Ipv6Header::new(src, dst, Protocol::ICMPV6);
    let len = icmpv6::emit_packet(&header, message, &mut out).unwrap();
    out.truncate(len);
    out
}

/// A UDP datagram.
pub fn udp(src: SocketAddr, dst: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    let mut datagram = [
        &src.port().to_be_bytes()[..],
        &dst.port().to_be_bytes(),
        &len.to_be_bytes(),
        &[0, 0],
        payload,
    ]
    .concat();
    checksum::fill(src.ip(), dst.ip(), Protocol::UDP, &mut datagram, 6).unwrap();
    ip(src.ip(), dst.ip(), Protocol::UDP, &datagram)
}
