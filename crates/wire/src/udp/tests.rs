//! UDP datagrams written by hand, and round trips.

use super::*;
use core::net::{Ipv4Addr, Ipv6Addr};
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

const V4: (IpAddr, IpAddr) =
    (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V4(Ipv4Addr::new(198, 51, 100, 2)));
const V6: (IpAddr, IpAddr) = (IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));

/// Ports 1000 and 53, payload "hi". The sum: pseudo-header c000 + 0201 + c633 + 6402 + 0011 + 000a
/// = 1ec51, that is ec52; 03e8 + 0035 + 000a + 6869 = 6c90; together 158e2, that is 58e3;
/// complement a71c.
const DATAGRAM: [u8; 10] = [0x03, 0xe8, 0x00, 0x35, 0x00, 0x0a, 0xa7, 0x1c, b'h', b'i'];

#[test]
fn a_datagram_is_read_and_written() {
    let mut bytes = DATAGRAM.to_vec();
    bytes.push(0xee);
    let packet = UdpPacket::parse(&bytes).unwrap();
    let header = UdpHeader { src_port: 1000, dst_port: 53 };
    assert_eq!(packet.header, header);
    assert_eq!(packet.payload, b"hi");
    assert!(packet.checksum_ok(V4.0, V4.1));
    assert!(!packet.checksum_ok(V6.0, V6.1));
    let mut out = [b'h', b'i'].repeat(5);
    assert_eq!(header.emit(2, &mut out), Ok(8));
    checksum::fill(V4.0, V4.1, Protocol::UDP, &mut out, UdpHeader::CHECKSUM_OFFSET).unwrap();
    assert_eq!(out, DATAGRAM);
}

#[test]
fn a_missing_checksum_is_allowed_in_ipv4_alone() {
    let mut bytes = DATAGRAM;
    bytes[6..8].fill(0);
    let packet = UdpPacket::parse(&bytes).unwrap();
    assert!(packet.checksum_ok(V4.0, V4.1));
    assert!(!packet.checksum_ok(V6.0, V6.1));
}

#[test]
fn lengths_that_lie_are_errors() {
    for len in 0..10 {
        assert_eq!(UdpPacket::parse(&DATAGRAM[..len]).unwrap_err(), Error::Truncated);
    }
    for len in 0..8 {
        let mut bytes = DATAGRAM;
        bytes[5] = len;
        assert_eq!(UdpPacket::parse(&bytes).unwrap_err(), Error::BadLength);
    }
    let header = UdpHeader { src_port: 1, dst_port: 2 };
    assert_eq!(header.emit(65_527, &mut [0; 8]), Ok(8));
    assert_eq!(header.emit(65_528, &mut [0; 8]), Err(Error::TooLong));
    assert_eq!(header.emit(0, &mut [0; 7]), Err(Error::BufferTooSmall));
}

proptest! {
    #[test]
    fn written_datagrams_are_read_back(src_port: u16, dst_port: u16, payload: Vec<u8>) {
        let header = UdpHeader { src_port, dst_port };
        let mut bytes = vec![0; 8];
        prop_assert_eq!(header.emit(payload.len(), &mut bytes), Ok(8));
        bytes.extend(&payload);
        checksum::fill(V6.0, V6.1, Protocol::UDP, &mut bytes, UdpHeader::CHECKSUM_OFFSET).unwrap();
        let packet = UdpPacket::parse(&bytes).unwrap();
        prop_assert_eq!(packet.header, header);
        prop_assert_eq!(packet.payload, &payload[..]);
        prop_assert!(packet.checksum_ok(V6.0, V6.1));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(packet) = UdpPacket::parse(&bytes) {
            prop_assert!(packet.payload.len() + 8 <= bytes.len());
            _ = packet.checksum_ok(V6.0, V6.1);
        }
    }
}
