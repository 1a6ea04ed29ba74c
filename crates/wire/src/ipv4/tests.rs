//! The IPv4 header against a header written by hand, and round trips of arbitrary ones.

use super::*;
use crate::IpPacket;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

/// 192.168.0.1 to 192.168.0.199, UDP, don't fragment, TTL 64; the checksum is worked out in
/// `checksum::tests`.
const HEADER: [u8; 20] = [
    0x45, 0x00, 0x00, 0x1c, // version, IHL 5; total length 28
    0x00, 0x00, 0x40, 0x00, // id 0, DF
    0x40, 0x11, 0xb8, 0xb8, // TTL 64, UDP, checksum: 0xb861 + (0x73 − 0x1c)
    0xc0, 0xa8, 0x00, 0x01, //
    0xc0, 0xa8, 0x00, 0xc7,
];

fn packet(header: &[u8], payload: &[u8]) -> Vec<u8> {
    [header, payload].concat()
}

#[test]
fn a_header_is_read() {
    let bytes = packet(&HEADER, b"8 bytes.and a trailer");
    let packet = Ipv4Packet::parse(&bytes).unwrap();
    assert_eq!(packet.src(), Ipv4Addr::new(192, 168, 0, 1));
    assert_eq!(packet.dst(), Ipv4Addr::new(192, 168, 0, 199));
    assert_eq!(packet.protocol(), Protocol::UDP);
    assert_eq!((packet.ttl(), packet.id(), packet.header_len()), (64, 0, 20));
    assert!(packet.header().dont_fragment && packet.fragment().is_none());
    assert_eq!(packet.payload(), b"8 bytes.");
    assert!(packet.checksum_ok());
    assert_eq!(
        packet.header(),
        Ipv4Header::new(
            Ipv4Addr::new(192, 168, 0, 1),
            Ipv4Addr::new(192, 168, 0, 199),
            Protocol::UDP
        )
    );
}

#[test]
fn a_header_is_written() {
    let src = Ipv4Addr::new(192, 168, 0, 1);
    let dst = Ipv4Addr::new(192, 168, 0, 199);
    let mut out = [0xee; 24];
    assert_eq!(Ipv4Header::new(src, dst, Protocol::UDP).emit(8, &mut out), Ok(20));
    assert_eq!(out[..20], HEADER);
    assert_eq!(out[20..], [0xee; 4]);
}

#[test]
fn a_flipped_bit_in_the_header_is_noticed() {
    for bit in 0..HEADER.len() * 8 {
        let mut bytes = packet(&HEADER, &[0; 8]);
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(Ipv4Packet::parse(&bytes).map_or(true, |packet| !packet.checksum_ok()), "{bit}");
    }
}

#[test]
fn lengths_that_lie_are_errors() {
    let bytes = packet(&HEADER, &[0; 8]);
    let with = |changes: &[(usize, u8)]| {
        let mut bytes = bytes.clone();
        for &(offset, value) in changes {
            bytes[offset] = value;
        }
        Ipv4Packet::parse(&bytes).map(|_| ()).unwrap_err()
    };
    for len in 0..28 {
        assert_eq!(Ipv4Packet::parse(&bytes[..len]).unwrap_err(), Error::Truncated);
    }
    assert_eq!(with(&[(0, 0x65)]), Error::BadVersion);
    assert_eq!(with(&[(0, 0x44)]), Error::BadHeaderLength);
    assert_eq!(with(&[(0, 0x48)]), Error::Truncated); // options longer than the bytes
    assert_eq!(with(&[(3, 19)]), Error::BadLength);
    assert_eq!(with(&[(3, 0)]), Error::BadLength);
    assert_eq!(with(&[(3, 29)]), Error::Truncated);
    assert_eq!(with(&[(0, 0x46), (3, 20)]), Error::BadLength); // total length inside the options
}

#[test]
fn fragments_are_told() {
    let mut bytes = packet(&HEADER, &[0; 8]);
    bytes[4..8].copy_from_slice(&[0x12, 0x34, 0x20, 0x00]);
    let first = Ipv4Packet::parse(&bytes).unwrap();
    assert_eq!(first.fragment(), Some(Fragment { id: 0x1234, offset: 0, more: true }));
    bytes[6..8].copy_from_slice(&[0x1f, 0xff]);
    let last = Ipv4Packet::parse(&bytes).unwrap();
    assert_eq!(last.fragment(), Some(Fragment { id: 0x1234, offset: 65_528, more: false }));
    assert!(!last.header().dont_fragment);
    // Offsets count in eights; others cannot be written.
    let header = Ipv4Header { fragment_offset: 4, ..last.header() };
    assert_eq!(header.emit(8, &mut [0; 20]), Err(Error::BadLength));
}

#[test]
fn options_are_kept() {
    // Loose source route (131) with one address, then NOP, end of list, padding.
    let options = [131, 7, 4, 10, 0, 0, 1, 1, 0, 0, 0, 0];
    let mut header = HEADER.to_vec();
    header[0] = 0x48;
    header[3] = 40;
    header.extend(options);
    let bytes = packet(&header, &[0; 8]);
    let packet = Ipv4Packet::parse(&bytes).unwrap();
    assert_eq!(packet.options, options);
    let mut out = [0; 60];
    assert_eq!(packet.header().emit(8, &mut out), Ok(32));
    assert_eq!(out[20..32], options);
    assert_eq!(Ipv4Options::new(&[0; 41]), None);
    assert_eq!(Ipv4Options::new(&[1; 5]).unwrap().as_slice(), [1, 1, 1, 1, 1, 0, 0, 0]);
}

#[test]
fn a_header_that_does_not_fit_is_not_written() {
    let any = Ipv4Addr::UNSPECIFIED;
    let header = Ipv4Header::new(any, any, Protocol::TCP);
    assert_eq!(header.emit(65_515, &mut [0; 20]), Ok(20));
    assert_eq!(header.emit(65_516, &mut [0; 20]), Err(Error::TooLong));
    assert_eq!(header.emit(usize::MAX, &mut [0; 20]), Err(Error::TooLong));
    assert_eq!(header.emit(0, &mut [0; 19]), Err(Error::BufferTooSmall));
}

fn arbitrary_header() -> impl Strategy<Value = Ipv4Header> {
    (
        any::<(u32, u32, u8, u16, bool, bool)>(),
        0u16..8192,
        any::<(u8, u8)>(),
        prop::collection::vec(any::<u8>(), 0..=40),
    )
        .prop_map(
            |(
                (src, dst, traffic_class, id, dont_fragment, more_fragments),
                offset,
                rest,
                options,
            )| {
                let (ttl, protocol) = rest;
                Ipv4Header {
                    src: src.into(),
                    dst: dst.into(),
                    traffic_class,
                    id,
                    dont_fragment,
                    more_fragments,
                    fragment_offset: offset * 8,
                    ttl,
                    protocol: Protocol(protocol),
                    options: Ipv4Options::new(&options).unwrap(),
                }
            },
        )
}

proptest! {
    #[test]
    fn written_headers_are_read_back(header in arbitrary_header(), payload: Vec<u8>) {
        let mut bytes = vec![0; 60];
        let len = header.emit(payload.len(), &mut bytes).unwrap();
        prop_assert_eq!(len, MIN_HEADER_LEN + header.options.as_slice().len());
        bytes.truncate(len);
        bytes.extend(&payload);
        let packet = Ipv4Packet::parse(&bytes).unwrap();
        prop_assert_eq!(packet.header(), header);
        prop_assert_eq!(packet.payload(), &payload[..]);
        prop_assert!(packet.checksum_ok());
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 1..120)) {
        bytes[0] = 0x40 | bytes[0] & 15;
        if let Ok(packet) = IpPacket::parse(&bytes) {
            prop_assert!(packet.total_len() <= bytes.len());
            let IpPacket::V4(packet) = packet else { panic!("version 4") };
            _ = (packet.header(), packet.fragment());
        }
        _ = QuotedPacket::parse(&bytes);
    }
}
