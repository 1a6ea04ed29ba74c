//! Packets for the stack's scripts, and what is asked of those it sends.

use crate::bytes::Script;
use std::net::{IpAddr, SocketAddr};
use transom_stack::is_unicast;
use transom_wire::offload::recompute_checksum;
use transom_wire::{
    FastOpen, Flags, IcmpMessage, IpHeader, IpPacket, Options, Protocol, SackBlock, Seq, TcpHeader,
    TcpPacket, Timestamps,
};

/// The longest packet of the host's interface.
pub(super) const MTU: usize = 1_500;
/// An address from its text.
pub(super) fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The host's address that belongs with a peer's.
pub(super) fn ours(peer: IpAddr) -> IpAddr {
    address(if peer.is_ipv4() { "10.0.0.2" } else { "fd00::2" })
}

/// An IP packet from `src` to `dst`.
pub(super) fn ip(src: IpAddr, dst: IpAddr, protocol: Protocol, payload: &[u8]) -> Vec<u8> {
    let mut out = [0; 40];
    let len = IpHeader::new(src, dst, protocol).emit(payload.len(), &mut out);
    len.map_or(Vec::new(), |len| [&out[..len], payload].concat())
}

/// A TCP segment; the checksum is put right.
pub(super) fn tcp(src: SocketAddr, dst: SocketAddr, header: &TcpHeader, payload: &[u8]) -> Vec<u8> {
    let header = TcpHeader { src_port: src.port(), dst_port: dst.port(), ..*header };
    let mut out = [0; 60];
    let Ok(len) = header.emit(&mut out) else { return Vec::new() };
    let mut packet = ip(src.ip(), dst.ip(), Protocol::TCP, &[&out[..len], payload].concat());
    _ = recompute_checksum(&mut packet);
    packet
}

/// Where a stranger's packet comes from: seldom from where none can.
pub(super) fn remote(script: &mut Script<'_>) -> SocketAddr {
    let ip = match script.below(16) {
        0 => script.pick(&["10.0.0.255", "127.0.0.1", "224.0.0.1", "::1"]),
        // Itself.
        1 => script.pick(&["10.0.0.2", "10.0.0.9", "fd00::2"]),
        2..6 => "fd00::1",
        6 => "10.0.0.3",
        _ => "10.0.0.1",
    };
    SocketAddr::new(address(ip), script.pick(&[5_000, 5_001, 5_002, 5_003, 5_004, 80, 80, 0]))
}

/// Options of any kind.
pub(super) fn options(script: &mut Script<'_>, near: Seq) -> Options {
    let mut options = Options {
        mss: script.pick(&[Some(1_460), None, Some(0), Some(536)]),
        window_scale: script.pick(&[Some(7), None, Some(14), Some(255)]),
        sack_permitted: script.flag(),
        timestamps: script.flag().then(|| Timestamps { value: script.long(), echo: script.long() }),
        ..Options::default()
    };
    if script.below(4) == 3 {
        let left = near + script.offset();
        options = Options { timestamps: options.timestamps, ..Options::default() };
        options.sack.push(SackBlock { left, right: left + u32::from(script.word()) });
    }
    options
}

/// The cookie that a SYN-ACK brings, and to whom.
pub(super) fn cookie_in(packet: &[u8]) -> Option<(IpAddr, FastOpen)> {
    let ip = IpPacket::parse(packet).ok()?;
    let segment = TcpPacket::parse(ip.payload()).ok().filter(|_| ip.protocol() == Protocol::TCP)?;
    let header = segment.header();
    let answers = header.flags.contains(Flags::SYN | Flags::ACK);
    let cookie = header.options.fast_open.filter(|_| answers)?;
    Some((ip.dst(), cookie))
}

/// What leaves the host is beyond reproach; whether it has every address.
pub(super) fn check_packet(packet: &[u8], every_address: bool) {
    assert!(packet.len() <= MTU, "{} bytes", packet.len());
    let ip = IpPacket::parse(packet).expect("valid IP");
    assert_eq!(ip.total_len(), packet.len());
    let addresses = ["10.0.0.2", "fd00::2", "10.0.0.9"].map(address);
    assert!(is_unicast(ip.dst()) && ip.dst() != address("10.0.0.255"), "to {}", ip.dst());
    if every_address {
        assert!(is_unicast(ip.src()), "from {}", ip.src());
    } else {
        assert!(addresses.contains(&ip.src()), "from {}", ip.src());
        assert!(!addresses.contains(&ip.dst()), "what is for the host itself does not leave");
    }
    match ip.protocol() {
        Protocol::TCP => {
            assert!(ip.transport_checksum_ok());
            let tcp = TcpPacket::parse(ip.payload()).expect("valid TCP");
            assert!(tcp.header().src_port != 0 && tcp.header().dst_port != 0);
        }
        Protocol::ICMP => {
            _ = IcmpMessage::parse(ip.src(), ip.dst(), ip.payload()).expect("valid ICMP")
        }
        _ => assert!(ip.transport_checksum_ok()),
    }
}
