//! Every parser on the same bytes: none panics, and what one accepts, written out and read again,
//! is the same value.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::net::IpAddr;
use transom_wire::offload::{Segmenter, VirtioNetHdr, recompute_checksum};
use transom_wire::tcp::QuotedTcp;
use transom_wire::*;

fuzz_target!(|bytes: &[u8]| {
    ip(bytes);
    transport(bytes);
    offload(bytes);
});

/// A packet of either version and what is in it.
fn ip(bytes: &[u8]) {
    _ = QuotedPacket::parse(bytes).map(|quoted| QuotedTcp::parse(quoted.transport));
    let Ok(packet) = IpPacket::parse(bytes) else { return };
    assert!(packet.total_len() <= bytes.len());
    let whole = &bytes[..packet.total_len()];
    written_again(&packet, whole);
    if let Some(message) = icmp(packet.src(), packet.dst(), packet.payload()) {
        _ = message.may_answer(&packet);
    }
    transport(packet.payload());
    let mut edited = whole.to_vec();
    ip::set_ecn(&mut edited, packet.ecn()).unwrap();
    assert_eq!(edited, whole, "nothing changes");
    let hop_limit = ip::decrement_hop_limit(&mut edited).unwrap();
    assert_eq!(hop_limit, packet.hop_limit().saturating_sub(1));
    if let (Ok(()), Ok(packet)) = (recompute_checksum(&mut edited), IpPacket::parse(&edited)) {
        let has_one = matches!(packet.protocol(), Protocol::TCP | Protocol::ICMPV6);
        assert!(!has_one || packet.fragment().is_some() || packet.transport_checksum_ok());
    }
}

/// The header's value, written in front of the same bytes, is that of the same packet.
fn written_again(packet: &IpPacket<'_>, whole: &[u8]) {
    let mut out = [0; 60];
    let (header_len, behind) = match packet {
        IpPacket::V4(v4) => {
            let len = v4.header().emit(packet.payload().len(), &mut out).unwrap();
            assert_eq!(len, packet.header_len());
            (len, packet.payload())
        }
        IpPacket::V6(v6) => {
            let behind = &whole[40..];
            (v6.header().emit(behind.len(), &mut out).unwrap(), behind)
        }
    };
    let again = [&out[..header_len], behind].concat();
    let again = IpPacket::parse(&again).unwrap();
    assert_eq!(again.payload(), packet.payload());
    assert_eq!(again.protocol(), packet.protocol());
    match (again, packet) {
        (IpPacket::V4(again), IpPacket::V4(v4)) => {
            assert_eq!(again.header(), v4.header());
            assert!(again.checksum_ok());
        }
        (IpPacket::V6(again), IpPacket::V6(v6)) => {
            assert_eq!(again.header(), v6.header());
            _ = v6.extension_problem();
            if let Some(header) = v6.fragment() {
                let mut out = [0; 8];
                FragmentHeader::emit(header.next_header, header.fragment, &mut out).unwrap();
                // Reserved bits are not kept.
                let received = &whole[usize::from(header.offset)..];
                assert_eq!((out[0], &out[4..]), (received[0], &received[4..8]));
            }
        }
        _ => panic!("another version"),
    }
}

/// An ICMP message from `src`, and the same again.
fn icmp(src: IpAddr, dst: IpAddr, bytes: &[u8]) -> Option<IcmpMessage<'_>> {
    let message = IcmpMessage::parse(src, dst, bytes).ok()?;
    let mut out = vec![0; bytes.len()];
    let len = message.emit(src, dst, &mut out).unwrap();
    assert_eq!(IcmpMessage::parse(src, dst, &out[..len]), Ok(message));
    Some(message)
}

/// The bytes as a transport packet of each kind.
fn transport(bytes: &[u8]) {
    if let Ok(segment) = TcpPacket::parse(bytes) {
        let mut out = [0; 60];
        // The canonical layout may need more room than the one received.
        if let Ok(len) = segment.header.emit(&mut out) {
            assert_eq!(TcpPacket::parse(&out[..len]).unwrap().header, segment.header);
        }
        _ = segment.header.to_string();
    }
    if let Ok(datagram) = UdpPacket::parse(bytes) {
        let mut out = [0; 8];
        datagram.header.emit(datagram.payload.len(), &mut out).unwrap();
        let again = [&out, datagram.payload].concat();
        assert_eq!(UdpPacket::parse(&again).unwrap().header, datagram.header);
    }
    // ICMP is only read with a right checksum, so that is put in.
    if bytes.len() >= 4 {
        let mut message = bytes.to_vec();
        message[2..4].fill(0);
        let checksum = Sum::of(&message).checksum();
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        icmp([0; 4].into(), [0; 4].into(), &message);
        let any = IpAddr::V6([0; 16].into());
        checksum::fill(any, any, Protocol::ICMPV6, &mut message, 2).unwrap();
        icmp(any, any, &message);
    }
}

/// The bytes as a virtio header and its packet, taken apart.
fn offload(bytes: &[u8]) {
    let Some((header, packet)) = bytes.split_at_checked(VirtioNetHdr::LEN) else { return };
    let header = VirtioNetHdr::decode(header).unwrap();
    assert_eq!(header.encode(), bytes[..VirtioNetHdr::LEN]);
    let Ok(offload) = header.rx_offload(packet) else { return };
    let mut segmenter = Segmenter::for_received(packet, &offload);
    let mut out = vec![0; segmenter.headers_len()];
    let mut segments = 0;
    while let Some(segment) = segmenter.next_segment(&mut out).unwrap() {
        segments += 1;
        let cut = [&out[..segment.header_len], &segment.payload.concat()].concat();
        assert!(cut.len() <= packet.len());
        if offload.segmentation.is_some() && segments > 1 {
            assert!(IpPacket::parse(&cut).unwrap().transport_checksum_ok());
        }
    }
    assert!((1..=1 + packet.len()).contains(&segments));
}
