//! The virtio header's layout and checks; segmentation checked by putting the segments together
//! again.

use super::*;
use crate::{
    Flags, Ipv4Header, Ipv4Packet, Ipv6Header, Options, Seq, TcpHeader, TcpPacket, Timestamps,
};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

fn addresses(kind: SegmentKind) -> (IpAddr, IpAddr) {
    match kind {
        SegmentKind::Tcp4 => {
            (Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::new(198, 51, 100, 2).into())
        }
        SegmentKind::Tcp6 => {
            let address = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last).into();
            (address(1), address(2))
        }
    }
}

/// Headers for `payload_len` bytes with a partial checksum, and the offset of the TCP header.
fn headers(kind: SegmentKind, tcp: &TcpHeader, payload_len: usize) -> (Vec<u8>, u16) {
    let (src, dst) = addresses(kind);
    let tcp_len = tcp.header_len() + payload_len;
    let mut bytes = vec![0; 100];
    let start = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let header = Ipv4Header { id: 0xffff, ..Ipv4Header::new(src, dst, Protocol::TCP) };
            header.emit(tcp_len, &mut bytes).unwrap()
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            Ipv6Header::new(src, dst, Protocol::TCP).emit(tcp_len, &mut bytes).unwrap()
        }
        _ => unreachable!("both addresses are of one version"),
    };
    let header_len = start + tcp.emit(&mut bytes[start..]).unwrap();
    bytes.truncate(header_len);
    let sum = checksum::pseudo_header(src, dst, Protocol::TCP, tcp_len as u32);
    checksum::store(&mut bytes, start + tcp::CHECKSUM_OFFSET, sum.0).unwrap();
    (bytes, start as u16)
}

fn tcp_header(flags: Flags) -> TcpHeader {
    let timestamps = Some(Timestamps { value: 1, echo: 2 });
    TcpHeader {
        src_port: 1,
        dst_port: 2,
        seq: Seq::new(u32::MAX - 1000),
        flags,
        options: Options { timestamps, ..Options::default() },
        ..TcpHeader::default()
    }
}

fn offload(kind: SegmentKind, headers: &[u8], start: u16, segment_size: u16) -> TxOffload {
    let header_len = headers.len() as u16;
    TxOffload {
        checksum: TxChecksum::Partial { start, offset: 16 },
        segmentation: Some(Segmentation { kind, segment_size, header_len }),
    }
}

/// All packets a segmenter yields.
fn packets(mut segmenter: Segmenter<'_>) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut out = vec![0xee; segmenter.headers_len()];
    while let Some(segment) = segmenter.next_segment(&mut out).unwrap() {
        let mut packet = out[..segment.header_len].to_vec();
        packet.extend(segment.payload.concat());
        assert_eq!(packet.len(), segment.total_len());
        packets.push(packet);
    }
    assert_eq!(segmenter.next_segment(&mut out), Ok(None));
    packets
}

#[test]
fn the_layout_is_little_endian() {
    let header = VirtioNetHdr {
        flags: 1,
        gso_type: 0x81,
        hdr_len: 0x0203,
        gso_size: 0x0405,
        csum_start: 0x0607,
        csum_offset: 0x0809,
    };
    let bytes = [1, 0x81, 3, 2, 5, 4, 7, 6, 9, 8];
    assert_eq!(header.encode(), bytes);
    assert_eq!(VirtioNetHdr::decode(&bytes), Ok(header));
    assert_eq!(VirtioNetHdr::decode(&bytes[..9]), Err(Error::Truncated));
}

#[test]
fn an_ordinary_packet_has_a_header_of_zeros() {
    let header = VirtioNetHdr::for_packet(&TxOffload::default(), &[], 40).unwrap();
    assert_eq!(header.encode(), [0; 10]);
    assert_eq!(header.rx_offload(&[]), Ok(RxOffload::default()));
}

#[test]
fn a_super_segment_is_described() {
    let (bytes, start) = headers(SegmentKind::Tcp4, &tcp_header(Flags::ACK | Flags::CWR), 3000);
    let offload = offload(SegmentKind::Tcp4, &bytes, start, 1448);
    let header = VirtioNetHdr::for_packet(&offload, &bytes, bytes.len() + 3000).unwrap();
    let expected = VirtioNetHdr {
        flags: 1,
        gso_type: 0x81,
        hdr_len: 52,
        gso_size: 1448,
        csum_start: 20,
        csum_offset: 16,
    };
    assert_eq!(header, expected);
    let packet = [bytes, vec![0; 3000]].concat();
    let received = header.rx_offload(&packet).unwrap();
    let expected = RxOffload { checksum: RxChecksum::Valid, segmentation: offload.segmentation };
    assert_eq!(received, expected);
    // A kernel's hdr_len may reach into the payload: it is not relied on.
    let hint = VirtioNetHdr { hdr_len: 1000, ..header };
    assert_eq!(hint.rx_offload(&packet), Ok(expected));
    // No more than one segment: an ordinary packet.
    let single = VirtioNetHdr { gso_size: 3000, ..header };
    assert_eq!(single.rx_offload(&packet).unwrap().segmentation, None);
}

#[test]
fn a_verified_checksum_is_reported() {
    let header = VirtioNetHdr { flags: VirtioNetHdr::DATA_VALID, ..VirtioNetHdr::default() };
    assert_eq!(header.rx_offload(&[]).unwrap().checksum, RxChecksum::Valid);
}

#[test]
fn impossible_requests_are_refused() {
    let (bytes, start) = headers(SegmentKind::Tcp4, &tcp_header(Flags::ACK), 3000);
    let good = offload(SegmentKind::Tcp4, &bytes, start, 1448);
    let segmentation = good.segmentation.unwrap();
    let len = bytes.len() + 3000;
    assert!(VirtioNetHdr::for_packet(&good, &bytes, len).is_ok());
    assert!(Segmenter::new(&bytes, [&[0; 3000], &[]], &good).is_ok());
    let with = |change: Segmentation| TxOffload { segmentation: Some(change), ..good };
    for (bad, why) in [
        (TxOffload { checksum: TxChecksum::Complete, ..good }, "complete checksum"),
        (with(Segmentation { segment_size: 0, ..segmentation }), "no payload"),
        (with(Segmentation { header_len: 39, ..segmentation }), "headers cut"),
        (with(Segmentation { header_len: 60_000, ..segmentation }), "headers outside"),
        (
            TxOffload { checksum: TxChecksum::Partial { start: 20, offset: 6 }, ..good },
            "UDP's checksum",
        ),
        (
            TxOffload { checksum: TxChecksum::Partial { start: 60_000, offset: 16 }, ..good },
            "TCP outside",
        ),
    ] {
        assert_eq!(VirtioNetHdr::for_packet(&bad, &bytes, len), Err(Error::BadOffload), "{why}");
        let segmenter = Segmenter::new(&bytes, [&[0; 3000], &[]], &bad);
        assert_eq!(segmenter.err(), Some(Error::BadOffload), "{why}");
    }
    for start in [2990u16, 3035, u16::MAX] {
        let checksum = TxChecksum::Partial { start, offset: u16::MAX };
        let bad = TxOffload { checksum, segmentation: None };
        assert_eq!(VirtioNetHdr::for_packet(&bad, &bytes, len), Err(Error::BadOffload));
        assert!(Segmenter::new(&bytes, [&[], &[]], &bad).is_err());
        assert_eq!(complete_checksum(&mut [0; 100], checksum), Err(Error::BadOffload));
    }
    // A data offset below five words, and headers that do not end where it says.
    for offset in [0x40, 0x70, 0x90] {
        let mut bytes = bytes.clone();
        bytes[32] = offset;
        let segmenter = Segmenter::new(&bytes, [&[0; 3000], &[]], &good);
        assert_eq!(segmenter.err(), Some(Error::BadOffload));
    }
    let mut short = bytes[..36].to_vec();
    short[32] = 0x40;
    let request = with(Segmentation { header_len: 36, ..segmentation });
    assert!(Segmenter::new(&short, [&[0; 3000], &[]], &request).is_err());
    let wrong_version = with(Segmentation { kind: SegmentKind::Tcp6, ..segmentation });
    assert!(Segmenter::new(&bytes, [&[], &[]], &wrong_version).is_err());
    for flags in [Flags::SYN, Flags::RST | Flags::ACK] {
        let (bytes, start) = headers(SegmentKind::Tcp4, &tcp_header(flags), 3000);
        let request = offload(SegmentKind::Tcp4, &bytes, start, 1448);
        assert!(Segmenter::new(&bytes, [&[0; 3000], &[]], &request).is_err());
    }
    // Segments that exceed an IP packet: only if there is that much payload.
    let huge = with(Segmentation { segment_size: u16::MAX, ..segmentation });
    assert!(Segmenter::new(&bytes, [&[0; 3000], &[]], &huge).is_ok());
    let payload = vec![0; 65_535];
    let segmenter = Segmenter::new(&bytes, [&payload, &[]], &huge);
    assert_eq!(segmenter.err(), Some(Error::TooLong));
}

#[test]
fn hostile_headers_are_refused() {
    let (bytes, _) = headers(SegmentKind::Tcp4, &tcp_header(Flags::ACK), 3000);
    let packet = [bytes, vec![0; 3000]].concat();
    let good = VirtioNetHdr {
        flags: 1,
        gso_type: 1,
        hdr_len: 52,
        gso_size: 1448,
        csum_start: 20,
        csum_offset: 16,
    };
    assert!(good.rx_offload(&packet).is_ok());
    for (bad, why) in [
        (VirtioNetHdr { csum_start: u16::MAX, csum_offset: u16::MAX, ..good }, "checksum outside"),
        (VirtioNetHdr { csum_start: 3051, csum_offset: 0, ..good }, "checksum half outside"),
        (VirtioNetHdr { gso_size: 0, ..good }, "no payload"),
        (VirtioNetHdr { gso_type: 4, ..good }, "the other version"),
        (VirtioNetHdr { gso_type: 3, ..good }, "UDP fragments"),
        (VirtioNetHdr { gso_type: 0x7f, ..good }, "no such type"),
    ] {
        assert_eq!(bad.rx_offload(&packet), Err(Error::BadOffload), "{why}");
    }
    for len in [0, 19, 51, packet.len() - 1] {
        let result = VirtioNetHdr { flags: 0, ..good }.rx_offload(&packet[..len]);
        assert_eq!(result, Err(Error::BadOffload), "{len}");
    }
    let mut short_offset = packet.clone();
    short_offset[32] = 0x40;
    assert_eq!(good.rx_offload(&short_offset), Err(Error::BadOffload));
    // A checksum field at the very end is inside.
    assert!(VirtioNetHdr { csum_start: 3050, csum_offset: 0, ..good }.rx_offload(&packet).is_ok());
    let mut udp = packet.clone();
    udp[9] = 17;
    assert_eq!(good.rx_offload(&udp), Err(Error::BadOffload));
    let mut piece = packet.clone();
    piece[6] = 0x20;
    assert_eq!(good.rx_offload(&piece), Err(Error::BadOffload));
}

#[test]
fn a_partial_checksum_is_completed() {
    let payload = b"odd length!";
    let (bytes, start) = headers(SegmentKind::Tcp6, &tcp_header(Flags::ACK), payload.len());
    let checksum = TxChecksum::Partial { start, offset: 16 };
    let request = TxOffload { checksum, segmentation: None };
    let mut packet = [&bytes, &payload[..]].concat();
    assert!(!IpPacket::parse(&packet).unwrap().transport_checksum_ok());
    complete_checksum(&mut packet, checksum).unwrap();
    assert!(IpPacket::parse(&packet).unwrap().transport_checksum_ok());
    // The segmenter does the same to a packet in parts, wherever it is divided.
    for at in 0..payload.len() {
        let (first, second) = payload.split_at(at);
        let segmenter = Segmenter::new(&bytes, [first, second], &request).unwrap();
        assert_eq!(packets(segmenter), [packet.clone()]);
    }
    let whole = [&bytes, &payload[..]].concat();
    for at in bytes.len()..=whole.len() {
        let (headers, rest) = whole.split_at(at);
        let segmenter = Segmenter::new(headers, [rest, &[]], &request).unwrap();
        assert_eq!(packets(segmenter), [packet.clone()]);
    }
    // Nothing to do, nothing done.
    let segmenter = Segmenter::new(&packet, [&[], &[]], &TxOffload::default()).unwrap();
    assert_eq!(packets(segmenter), [packet]);
}

#[test]
fn flags_and_urgent_pointer_go_where_they_belong() {
    let flags =
        Flags::ACK | Flags::FIN | Flags::PSH | Flags::CWR | Flags::URG | Flags::ECE | Flags::AE;
    let tcp = TcpHeader { urgent: 150, ..tcp_header(flags) };
    let (bytes, start) = headers(SegmentKind::Tcp4, &tcp, 350);
    let request = offload(SegmentKind::Tcp4, &bytes, start, 100);
    let packets = packets(Segmenter::new(&bytes, [&[7; 350], &[]], &request).unwrap());
    let seen: Vec<_> = packets
        .iter()
        .map(|packet| {
            let ip = Ipv4Packet::parse(packet).unwrap();
            let tcp = TcpPacket::parse(ip.payload()).unwrap().header;
            (ip.id(), tcp.seq.get(), tcp.flags, tcp.urgent)
        })
        .collect();
    let always = Flags::ACK | Flags::ECE | Flags::AE;
    let first = u32::MAX - 1000;
    assert_eq!(
        seen,
        [
            (0xffff, first, always | Flags::CWR | Flags::URG, 150),
            (0x0000, first + 100, always | Flags::URG, 50),
            (0x0001, first + 200, always, 0),
            (0x0002, first + 300, always | Flags::FIN | Flags::PSH, 0),
        ]
    );
}

#[test]
fn an_urgent_pointer_of_zero_is_the_first_segments_own() {
    let tcp = tcp_header(Flags::ACK | Flags::URG);
    let (bytes, start) = headers(SegmentKind::Tcp4, &tcp, 200);
    let request = offload(SegmentKind::Tcp4, &bytes, start, 100);
    let urgent: Vec<_> = packets(Segmenter::new(&bytes, [&[7; 200], &[]], &request).unwrap())
        .iter()
        .map(|packet| packet[33] & 0x20 != 0)
        .collect();
    assert_eq!(urgent, [true, false]);
}

#[test]
fn a_received_super_segment_comes_apart() {
    let (bytes, _) = headers(SegmentKind::Tcp4, &tcp_header(Flags::ACK), 3000);
    let packet = [bytes, vec![9; 3000], vec![0xee; 5]].concat();
    let segmentation = Segmentation { kind: SegmentKind::Tcp4, segment_size: 1448, header_len: 52 };
    let offload = RxOffload { checksum: RxChecksum::Valid, segmentation: Some(segmentation) };
    let parts = packets(Segmenter::for_received(&packet, &offload));
    assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [1500, 1500, 52 + 104]);
    assert!(parts.iter().all(|part| IpPacket::parse(part).unwrap().transport_checksum_ok()));
    // A claim that does not fit leaves the packet as it is.
    let wrong = Segmentation { header_len: 51, ..segmentation };
    let offload = RxOffload { segmentation: Some(wrong), ..offload };
    assert_eq!(packets(Segmenter::for_received(&packet, &offload)), [packet]);
}

#[test]
fn a_received_checksum_is_put_right_only_if_it_is_known_to_be() {
    let (bytes, _) = headers(SegmentKind::Tcp4, &tcp_header(Flags::ACK), 5);
    let packet = [&bytes, &b"hello"[..]].concat();
    let valid = RxOffload { checksum: RxChecksum::Valid, segmentation: None };
    let fixed = packets(Segmenter::for_received(&packet, &valid)).concat();
    assert!(IpPacket::parse(&fixed).unwrap().transport_checksum_ok());
    let mut recomputed = packet.clone();
    recompute_checksum(&mut recomputed).unwrap();
    assert_eq!(recomputed, fixed);
    // UDP over IPv4 may have no checksum, and then gets none.
    let mut udp = packet.clone();
    udp[9] = 17;
    udp[26..28].fill(0);
    assert_eq!(packets(Segmenter::for_received(&udp, &valid)).concat(), udp);
    let mut recomputed = udp.clone();
    recompute_checksum(&mut recomputed).unwrap();
    assert_eq!(recomputed, udp);
    // A checksum that was not verified may be wrong, and stays wrong.
    assert_eq!(packets(Segmenter::for_received(&packet, &RxOffload::default())).concat(), packet);
    // Bytes that are no packet are passed on as well.
    assert_eq!(packets(Segmenter::for_received(&[1, 2, 3], &valid)).concat(), [1, 2, 3]);
    assert_eq!(recompute_checksum(&mut [1, 2, 3]), Err(Error::BadVersion));
}

#[test]
fn every_checksum_with_a_pseudo_header_is_recomputed() {
    let valid = RxOffload { checksum: RxChecksum::Valid, segmentation: None };
    for (kind, protocol) in [
        (SegmentKind::Tcp4, Protocol::UDP),
        (SegmentKind::Tcp6, Protocol::UDP),
        (SegmentKind::Tcp6, Protocol::ICMPV6),
    ] {
        let (mut packet, start) = headers(kind, &tcp_header(Flags::ACK), 0);
        let protocol_at = if kind == SegmentKind::Tcp4 { 9 } else { 6 };
        packet[protocol_at] = protocol.0;
        packet[usize::from(start)..].fill(0x77);
        assert!(!IpPacket::parse(&packet).unwrap().transport_checksum_ok());
        let seen = packets(Segmenter::for_received(&packet, &valid)).concat();
        assert!(IpPacket::parse(&seen).unwrap().transport_checksum_ok(), "{protocol}");
        recompute_checksum(&mut packet).unwrap();
        assert_eq!(packet, seen);
    }
    // A piece's checksum is not its own.
    let (mut piece, _) = headers(SegmentKind::Tcp4, &tcp_header(Flags::ACK), 0);
    piece[6] = 0x20;
    let before = piece.clone();
    recompute_checksum(&mut piece).unwrap();
    assert_eq!(piece, before);
    assert_eq!(packets(Segmenter::for_received(&piece, &valid)).concat(), before);
}

#[test]
fn udp_over_a_partial_checksum_is_never_zero() {
    // Nothing but a field whose sum is 0xffff.
    let mut packet = [0, 0, 0, 0, 0, 0, 0xff, 0xff];
    complete_checksum(&mut packet, TxChecksum::Partial { start: 0, offset: 6 }).unwrap();
    assert_eq!(packet[6..], [0xff, 0xff]);
    let mut packet = [0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    complete_checksum(&mut packet, TxChecksum::Partial { start: 0, offset: 16 }).unwrap();
    assert_eq!(packet[16..], [0, 0]);
}

proptest! {
    #[test]
    fn segments_make_up_the_payload_and_verify(
        is_v6: bool,
        first in prop::collection::vec(any::<u8>(), 0..3000),
        second in prop::collection::vec(any::<u8>(), 0..3000),
        in_headers in prop::collection::vec(any::<u8>(), 0..50),
        segment_size in 1u16..2000,
        seq: u32,
        has_options: bool,
    ) {
        let kind = if is_v6 { SegmentKind::Tcp6 } else { SegmentKind::Tcp4 };
        let payload = [&in_headers[..], &first, &second].concat();
        let mut tcp = TcpHeader { seq: Seq::new(seq), ..tcp_header(Flags::ACK | Flags::PSH) };
        if !has_options {
            tcp.options = Options::default();
        }
        let (mut bytes, start) = headers(kind, &tcp, payload.len());
        let request = offload(kind, &bytes, start, segment_size);
        bytes.extend(&in_headers);
        let segmenter = Segmenter::new(&bytes, [&first, &second], &request).unwrap();
        let packets = packets(segmenter);
        prop_assert_eq!(packets.len(), payload.len().div_ceil(segment_size.into()).max(1));
        let mut reassembled: Vec<u8> = Vec::new();
        for (index, packet) in packets.iter().enumerate() {
            let ip = IpPacket::parse(packet).unwrap();
            prop_assert_eq!(ip.total_len(), packet.len());
            prop_assert!(ip.transport_checksum_ok());
            if let IpPacket::V4(ip) = ip {
                prop_assert!(ip.checksum_ok());
            }
            let segment = TcpPacket::parse(ip.payload()).unwrap();
            let expected = TcpHeader {
                seq: Seq::new(seq) + reassembled.len() as u32,
                flags: if index + 1 == packets.len() { tcp.flags } else { Flags::ACK },
                ..tcp
            };
            prop_assert_eq!(segment.header, expected);
            reassembled.extend(segment.payload);
        }
        prop_assert_eq!(reassembled, payload);
    }

    #[test]
    fn arbitrary_claims_never_panic(
        header in any::<[u8; 10]>(),
        mut packet in prop::collection::vec(any::<u8>(), 0..200),
        is_tcp4: bool,
    ) {
        if is_tcp4 && packet.len() > 40 {
            let len = packet.len() as u8;
            packet[..4].copy_from_slice(&[0x45, 0, 0, len]);
            packet[6..10].copy_from_slice(&[0, 0, 64, 6]);
            packet[32] &= 0x7f;
        }
        let header = VirtioNetHdr::decode(&header).unwrap();
        for gso_type in [header.gso_type, 0, 1, 4] {
            let header = VirtioNetHdr { gso_type, ..header };
            if let Ok(offload) = header.rx_offload(&packet) {
                let total: usize = packets(Segmenter::for_received(&packet, &offload))
                    .iter()
                    .map(Vec::len)
                    .sum();
                prop_assert!(total > 0 || packet.is_empty());
            }
        }
    }

    #[test]
    fn arbitrary_requests_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        payload in prop::collection::vec(any::<u8>(), 0..120),
        (start, offset, segment_size, header_len) in (0u16..130, 0u16..40, 0u16..50, 0u16..130),
        kind in prop::option::of(any::<bool>()),
    ) {
        let checksum = TxChecksum::Partial { start, offset };
        let kind = kind.map(|v6| if v6 { SegmentKind::Tcp6 } else { SegmentKind::Tcp4 });
        let segmentation = kind.map(|kind| Segmentation { kind, segment_size, header_len });
        let request = TxOffload { checksum, segmentation };
        if let Ok(segmenter) = Segmenter::new(&bytes, [&payload, &[]], &request) {
            prop_assert!(!packets(segmenter).is_empty());
        }
        _ = VirtioNetHdr::for_packet(&request, &bytes, bytes.len() + payload.len());
    }
}
