//! Checksums against the RFCs' worked examples and against a sum of byte pairs.

use super::*;
use core::net::{Ipv4Addr, Ipv6Addr};
use proptest::prelude::*;
use std::vec::Vec;

/// RFC 1071 1: the definition, word by word.
fn naive(bytes: &[u8]) -> u16 {
    let mut sum = 0u64;
    for pair in bytes.chunks(2) {
        sum += u64::from(pair[0]) << 8;
        sum += u64::from(*pair.get(1).unwrap_or(&0));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[test]
fn rfc_1071_section_3_example() {
    let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(Sum::of(&bytes).0, 0xddf2);
    assert_eq!(Sum::of(&bytes).checksum(), 0x220d);
    // The same broken after three bytes: 0x00 0x01 0xf2 | 0x03 …
    let sum = Sum::of(&bytes[..3]).followed_by(3, Sum::of(&bytes[3..]));
    assert_eq!(sum.0, 0xddf2);
}

#[test]
fn rfc_1624_section_4_example() {
    // HC = 0xDD2F, m = 0x5555, m' = 0x3285; the older equation gave 0xFFFF where 0x0000 is right.
    assert_eq!(update_u16(0xdd2f, 0x5555, 0x3285), 0x0000);
}

#[test]
fn sums_of_nothing_and_of_all_ones() {
    assert_eq!(Sum::of(&[]), Sum(0));
    assert_eq!(Sum::of(&[0; 1000]), Sum(0));
    assert_eq!(Sum::of(&[0xff; 1000]).0, 0xffff);
    assert_eq!(Sum::of(&[0xab]).0, 0xab00);
    assert_eq!(Sum::of(&[0xff; 70_000]).0, 0xffff);
}

#[test]
fn folding_takes_up_every_carry() {
    // Words at the edges, where one fold's carry makes the next fold carry.
    let edges = [0, 1, 2, 0x7fff, 0x8000, 0xfffd, 0xfffe, 0xffff];
    for index in 0..8u32.pow(5) {
        let words: [u16; 5] =
            core::array::from_fn(|place| edges[index as usize >> (3 * place) & 7]);
        let value = words.iter().fold(0u128, |value, &word| value << 16 | u128::from(word));
        let mut expected: u32 = words.iter().map(|&word| u32::from(word)).sum();
        while expected > 0xffff {
            expected = (expected & 0xffff) + (expected >> 16);
        }
        assert_eq!(fold(value).0, u16::from_be(expected as u16), "{words:x?}");
    }
}

#[test]
fn an_ipv4_header_by_hand() {
    // 4500 + 0073 + 0000 + 4000 + 4011 + c0a8 + 0001 + c0a8 + 00c7 = 2479c; 2 + 479c = 479e; ~479e
    // = b861
    let header = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x00, 0x00, 0xc0, 0xa8, 0x00,
        0x01, 0xc0, 0xa8, 0x00, 0xc7,
    ];
    assert_eq!(Sum::of(&header).checksum(), 0xb861);
}

#[test]
fn pseudo_headers_by_hand() {
    // c000 + 0201 + c633 + 6402 + 0006 + 0014 = 1ec50; folded ec51
    let src = Ipv4Addr::new(192, 0, 2, 1).into();
    let dst = Ipv4Addr::new(198, 51, 100, 2).into();
    assert_eq!(pseudo_header(src, dst, Protocol::TCP, 20).0, 0xec51);
    // 2001 + 0db8 + 1 + 2001 + 0db8 + 2 + 0001 (the length's upper half) + 0000 + 003a = 5bb0
    let src = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into();
    let dst = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2).into();
    assert_eq!(pseudo_header(src, dst, Protocol::ICMPV6, 0x1_0000).0, 0x5bb0);
}

#[test]
fn a_pseudo_header_is_the_sum_of_its_picture() {
    let src: Ipv6Addr = "fe80::1234:5678:9abc:def0".parse().unwrap();
    let dst: Ipv6Addr = "ff02::1:ff00:42".parse().unwrap();
    let mut picture = Vec::new();
    picture.extend(src.octets());
    picture.extend(dst.octets());
    picture.extend(0x0001_2345u32.to_be_bytes());
    picture.extend([0, 0, 0, 6]);
    let sum = pseudo_header(src.into(), dst.into(), Protocol::TCP, 0x0001_2345);
    assert_eq!(sum.0, naive(&picture));
}

#[test]
fn a_udp_checksum_of_zero_travels_as_all_ones() {
    let [src, dst] = [IpAddr::from([0, 0, 0, 0]); 2];
    // Protocol 17 and length 8 make 25; a source port of 0xffff − 25 − 8 (the length field) brings
    // the sum to 0xffff.
    let mut packet = [0xff, 0xff - 33, 0, 0, 0, 8, 0, 0];
    fill(src, dst, Protocol::UDP, &mut packet, 6).unwrap();
    assert_eq!(packet[6..], [0xff, 0xff]);
    assert!(verify(src, dst, Protocol::UDP, &packet));
}

#[test]
fn a_tcp_checksum_of_zero_stays_zero() {
    let address = IpAddr::from([0, 0, 0, 0]);
    // Protocol 6 and length 20 make 26.
    let mut packet = [0; 20];
    packet[..2].copy_from_slice(&[0xff, 0xff - 26]);
    packet[16..18].copy_from_slice(&[1, 2]);
    fill(address, address, Protocol::TCP, &mut packet, 16).unwrap();
    assert_eq!(packet[16..18], [0, 0]);
    assert!(verify(address, address, Protocol::TCP, &packet));
}

#[test]
fn fields_outside_the_packet_are_errors() {
    let address = IpAddr::from([0, 0, 0, 0]);
    for offset in [9, 10, 100, usize::MAX] {
        let result = fill(address, address, Protocol::TCP, &mut [0; 10], offset);
        assert_eq!(result, Err(Error::Truncated));
    }
}

proptest! {
    #[test]
    fn the_sum_is_the_naive_one(
        bytes in prop::collection::vec(any::<u8>(), 0..5000),
        start in 0usize..64,
    ) {
        let bytes = bytes.get(start..).unwrap_or_default();
        prop_assert_eq!(Sum::of(bytes).0, naive(bytes));
    }

    #[test]
    fn pieces_of_any_length_combine(pieces: Vec<Vec<u8>>) {
        let slices: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        prop_assert_eq!(Sum::of_slices(&slices).0, naive(&pieces.concat()));
    }

    #[test]
    fn updates_give_what_a_new_sum_gives(
        mut bytes in prop::collection::vec(any::<u8>(), 8..200),
        at in 0usize..96,
        word: u16,
    ) {
        bytes[0] |= 1; // never all zeros, whose sum has two representations
        let at = 2 + 2 * (at % ((bytes.len() - 6) / 2 + 1));

        let checksum = !naive(&bytes);
        let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
        prop_assert_eq!(update_u16(checksum, old, word), !naive(&bytes));
    }

    #[test]
    fn a_filled_checksum_verifies_and_a_flipped_bit_does_not(
        mut packet in prop::collection::vec(any::<u8>(), 20..200),
        src: u128, dst: u128, bit: usize,
    ) {
        let (src, dst) = (Ipv6Addr::from(src).into(), Ipv6Addr::from(dst).into());
        fill(src, dst, Protocol::TCP, &mut packet, 16).unwrap();
        prop_assert!(verify(src, dst, Protocol::TCP, &packet));
        let bit = bit % (packet.len() * 8);
        packet[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!verify(src, dst, Protocol::TCP, &packet));
    }
}
