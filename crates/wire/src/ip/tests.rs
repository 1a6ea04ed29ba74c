//! What holds for packets of either version.

use super::*;
use crate::{Ipv4Header, Ipv6Header};
use core::net::{Ipv4Addr, Ipv6Addr};
use proptest::prelude::*;

fn ipv4(traffic_class: u8, ttl: u8) -> [u8; 24] {
    let (src, dst) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(198, 51, 100, 2));
    let mut bytes = [0; 24];
    let header = Ipv4Header { traffic_class, ttl, ..Ipv4Header::new(src, dst, Protocol::TCP) };
    header.emit(4, &mut bytes).unwrap();
    bytes
}

fn ipv6(traffic_class: u8, hop_limit: u8) -> [u8; 44] {
    let src = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    let mut bytes = [0; 44];
    let header = Ipv6Header::new(src, Ipv6Addr::LOCALHOST, Protocol::TCP);
    Ipv6Header { traffic_class, hop_limit, flow_label: 0xf_ffff, ..header }
        .emit(4, &mut bytes)
        .unwrap();
    bytes
}

#[test]
fn the_version_selects_the_parser() {
    assert!(matches!(IpPacket::parse(&ipv4(0, 1)), Ok(IpPacket::V4(_))));
    assert!(matches!(IpPacket::parse(&ipv6(0, 1)), Ok(IpPacket::V6(_))));
    assert_eq!(IpPacket::parse(&[0x50; 60]).unwrap_err(), Error::BadVersion);
    assert_eq!(IpPacket::parse(&[]).unwrap_err(), Error::Truncated);
}

#[test]
fn common_fields_agree() {
    let (four, six) = (ipv4(0xb9, 7), ipv6(0xb9, 7));
    for packet in [IpPacket::parse(&four).unwrap(), IpPacket::parse(&six).unwrap()] {
        assert_eq!((packet.traffic_class(), packet.ecn()), (0xb9, Ecn::Ect1));
        assert_eq!((packet.hop_limit(), packet.protocol()), (7, Protocol::TCP));
        assert_eq!(packet.payload().len(), 4);
        assert_eq!(packet.total_len(), packet.header_len() + 4);
        assert_eq!(packet.fragment(), None);
    }
}

#[test]
fn ecn_codepoints_are_those_of_rfc_3168() {
    for (bits, ecn) in [(0, Ecn::NotEct), (1, Ecn::Ect1), (2, Ecn::Ect0), (3, Ecn::Ce)] {
        assert_eq!(Ecn::from_traffic_class(0xfc | bits), ecn);
        assert_eq!(ecn.bits(), bits);
    }
}

#[test]
fn edits_in_place_need_a_header() {
    for bytes in [&mut [][..], &mut [0x45], &mut [0x45; 11], &mut [0x60]] {
        assert_eq!(set_ecn(bytes, Ecn::Ce), Err(Error::Truncated));
        assert_eq!(decrement_hop_limit(bytes), Err(Error::Truncated));
    }
    assert_eq!(set_ecn(&mut [0x10; 40], Ecn::Ce), Err(Error::BadVersion));
    assert_eq!(decrement_hop_limit(&mut [0x10; 40]), Err(Error::BadVersion));
    assert_eq!(decrement_hop_limit(&mut ipv4(0, 0)), Ok(0));
    assert_eq!(decrement_hop_limit(&mut ipv6(0, 0)), Ok(0));
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    let mut bytes = ipv4(0, 9);
    bytes[11] ^= 1;
    set_ecn(&mut bytes, Ecn::Ce).unwrap();
    decrement_hop_limit(&mut bytes).unwrap();
    assert!(!Ipv4Packet::parse(&bytes).unwrap().checksum_ok());
}

proptest! {
    #[test]
    fn marking_changes_the_codepoint_alone(traffic_class: u8, bits in 0u8..4) {
        let ecn = Ecn::from_traffic_class(bits);
        let (mut four, mut six) = (ipv4(traffic_class, 9), ipv6(traffic_class, 9));
        set_ecn(&mut four, ecn).unwrap();
        set_ecn(&mut six, ecn).unwrap();
        prop_assert_eq!(four, ipv4(traffic_class & 0xfc | bits, 9));
        prop_assert_eq!(six, ipv6(traffic_class & 0xfc | bits, 9));
    }

    #[test]
    fn a_hop_changes_the_hop_limit_alone(hop_limit in 1u8..) {
        let (mut four, mut six) = (ipv4(0, hop_limit), ipv6(0, hop_limit));
        prop_assert_eq!(decrement_hop_limit(&mut four), Ok(hop_limit - 1));
        prop_assert_eq!(decrement_hop_limit(&mut six), Ok(hop_limit - 1));
        prop_assert_eq!(four, ipv4(0, hop_limit - 1));
        prop_assert_eq!(six, ipv6(0, hop_limit - 1));
    }
}

#[test]
fn a_codepoint_can_be_read_without_reading_the_packet() {
    for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
        // The codepoint beside a DSCP of 46, expedited forwarding.
        let class = 46 << 2 | ecn.bits();
        assert_eq!(peek_ecn(&[0x45, class, 0, 20]), ecn);
        assert_eq!(peek_ecn(&[0x60 | class >> 4, class << 4, 0, 0]), ecn);
    }
    assert_eq!(peek_ecn(&[0x45]), Ecn::NotEct);
    assert_eq!(peek_ecn(&[0x15, 3]), Ecn::NotEct);
}
