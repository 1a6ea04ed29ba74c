//! Fragments in any order give the packet; hostile ones give nothing and cost little.

use super::*;
use proptest::prelude::*;
use std::net::Ipv4Addr;
use transom_wire::{Ipv4Header, Protocol};

const SRC: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const DST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

fn fragment(id: u16, offset: u16, more: bool, payload: &[u8]) -> Vec<u8> {
    let header = Ipv4Header {
        id,
        dont_fragment: false,
        more_fragments: more,
        fragment_offset: offset,
        ..Ipv4Header::new(SRC, DST, Protocol::UDP)
    };
    let mut packet = std::vec![0; 20 + payload.len()];
    header.emit(payload.len(), &mut packet).unwrap();
    packet[20..].copy_from_slice(payload);
    packet
}

fn add(fragments: &mut Fragments, bytes: &[u8], now: Instant) -> Option<Vec<u8>> {
    match fragments.add(&IpPacket::parse(bytes).unwrap(), bytes, now) {
        Reassembly::Whole(whole) => Some(whole),
        Reassembly::Waiting => None,
        wrong => panic!("{wrong:?}"),
    }
}

#[test]
fn overlapping_fragments_are_never_delivered() {
    let mut f = Fragments::new(FragmentLimits::default());
    assert_eq!(add(&mut f, &fragment(1, 0, true, &[1; 16]), Instant::ZERO), None);
    assert_eq!(add(&mut f, &fragment(1, 8, true, &[2; 16]), Instant::ZERO), None);
    assert_eq!(add(&mut f, &fragment(1, 24, false, &[3; 5]), Instant::ZERO), None);
    assert_eq!(f.bytes, 0, "a poisoned packet holds nothing");
}

/// The same range with other bytes is no duplicate: one of the two is forged, and nobody can tell which.
#[test]
fn a_fragment_that_says_something_else_spoils_the_packet() {
    let mut f = Fragments::new(FragmentLimits::default());
    assert_eq!(add(&mut f, &fragment(1, 0, true, &[1; 16]), Instant::ZERO), None);
    assert_eq!(add(&mut f, &fragment(1, 0, true, &[2; 16]), Instant::ZERO), None);
    assert_eq!(add(&mut f, &fragment(1, 16, false, &[3; 5]), Instant::ZERO), None);
    let expired = f.expire(Instant::ZERO + FragmentLimits::default().lifetime);
    assert_eq!((expired.len(), f.dropped), (0, 1), "it is forgotten in silence");
}

/// [RFC8200-4.5-16] RFC 3168 section 5.3: a mark on one fragment is one on the packet, which is dropped if its sender does not take part in ECN.
#[test]
fn marks_on_fragments_are_marks_on_the_packet() {
    use transom_wire::Ecn::{Ce, Ect0, Ect1, NotEct};
    let cases = [
        ([Ect0, Ect0], Some(Ect0)),
        ([NotEct, NotEct], Some(NotEct)),
        ([Ect0, Ce], Some(Ce)),
        ([Ce, Ect1], Some(Ce)),
        ([Ce, Ce], Some(Ce)),
        ([NotEct, Ce], None),
        ([Ce, NotEct], None),
        ([Ect1, Ect0], Some(Ect1)),
    ];
    let (a, b): (std::net::Ipv6Addr, std::net::Ipv6Addr) =
        ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    for (codepoints, expected) in cases {
        let v4 = [fragment(1, 0, true, &[1; 16]), fragment(1, 16, false, &[2; 5])];
        let v6 = [(0, true, 16), (16, false, 5)].map(|(offset, more, len)| {
            transom_testkit::packets::fragment6(
                a,
                b,
                Protocol::UDP,
                1,
                offset,
                more,
                &std::vec![7; len],
            )
        });
        for mut pieces in [v4, v6] {
            let mut f = Fragments::new(FragmentLimits::default());
            let mut whole = None;
            for (piece, codepoint) in pieces.iter_mut().zip(codepoints) {
                set_ecn(piece, codepoint).unwrap();
                whole = add(&mut f, piece, Instant::ZERO);
            }
            let got = whole.map(|whole| {
                let ip = IpPacket::parse(&whole).unwrap();
                if let IpPacket::V4(v4) = ip {
                    assert!(v4.checksum_ok());
                }
                ip.ecn()
            });
            assert_eq!(got, expected, "{codepoints:?}");
            assert_eq!((f.dropped, f.bytes), (u64::from(expected.is_none()), 0));
        }
    }
}

/// What comes back is the first fragment as it arrived, whenever it arrived, and nothing without it.
#[test]
fn an_expired_packet_gives_back_its_first_fragment() {
    let limits = FragmentLimits::default();
    let mut f = Fragments::new(limits);
    let first = fragment(1, 0, true, &[1; 16]);
    add(&mut f, &fragment(1, 32, true, &[3; 16]), Instant::ZERO);
    add(&mut f, &first, Instant::ZERO);
    add(&mut f, &fragment(1, 16, true, &[2; 16]), Instant::ZERO);
    add(&mut f, &fragment(2, 16, true, &[2; 16]), Instant::ZERO);
    assert_eq!(f.expire(Instant::ZERO + limits.lifetime), [first]);
    assert_eq!((f.bytes, f.dropped), (0, 2));
}

#[test]
fn a_flood_of_first_fragments_is_bounded_and_expires() {
    let limits = FragmentLimits::default();
    let mut f = Fragments::new(limits);
    for id in 0..10_000 {
        add(&mut f, &fragment(id, 0, true, &[0; 1400]), Instant::ZERO);
        assert!(f.bytes <= limits.bytes);
        assert!(f.partial.len() <= limits.packets);
    }
    f.expire(Instant::ZERO + limits.lifetime);
    assert_eq!((f.bytes, f.partial.len()), (0, 0));
}

#[test]
fn fragments_far_apart_cost_no_more_than_the_bound() {
    let limits = FragmentLimits { bytes: 100_000, ..FragmentLimits::default() };
    let mut f = Fragments::new(limits);
    for id in 0..100 {
        add(&mut f, &fragment(id, 65_000, true, &[0; 8]), Instant::ZERO);
        assert!(f.bytes <= 100_000, "{}", f.bytes);
    }
}

#[test]
fn the_ping_of_death_does_nothing() {
    let mut f = Fragments::new(FragmentLimits::default());
    assert_eq!(add(&mut f, &fragment(1, 65_528, false, &[0; 400]), Instant::ZERO), None);
    assert_eq!(f.bytes, 0);
}

proptest! {
    #[test]
    fn any_order_gives_the_packet(
        len in 1usize..3000, size in 1usize..60, order in any::<u64>(), twice in any::<bool>(),
    ) {
        let payload: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let size = size * 8;
        let mut pieces: Vec<_> = payload.chunks(size).enumerate().map(|(i, chunk)| {
            fragment(7, (i * size) as u16, (i + 1) * size < len, chunk)
        }).collect();
        if pieces.len() > FragmentLimits::default().pieces { return Ok(()); }
        let mut seed = order;
        for i in (1..pieces.len()).rev() {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            pieces.swap(i, (seed >> 33) as usize % (i + 1));
        }
        let mut f = Fragments::new(FragmentLimits::default());
        let mut whole = None;
        for (i, piece) in pieces.iter().enumerate() {
            prop_assert!(whole.is_none());
            if twice && i > 0 { prop_assert_eq!(add(&mut f, &pieces[i - 1], Instant::ZERO), None); }
            whole = add(&mut f, piece, Instant::ZERO);
            if pieces.len() == 1 { return Ok(()); } // not a fragment at all
        }
        let whole = whole.unwrap();
        let packet = IpPacket::parse(&whole).unwrap();
        prop_assert_eq!(packet.payload(), &payload[..]);
        prop_assert!(packet.fragment().is_none());
        if let IpPacket::V4(v4) = packet { prop_assert!(v4.checksum_ok()); }
        prop_assert_eq!(f.bytes, 0);
    }

    /// A packet that is cut fits everywhere, and gives itself when it is put together.
    /// [RFC8200-4.5-2] [RFC8200-4.5-3] [RFC8200-4.5-4]
    #[test]
    fn fragments_come_together_again(len in 1usize..4000, mtu in 68usize..1500, v6: bool, id: u32) {
        let payload: Vec<u8> = (0..len).map(|i| (i * 7) as u8).collect();
        let (src, dst): (std::net::IpAddr, std::net::IpAddr) = if v6 {
            ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap())
        } else {
            (SRC.into(), DST.into())
        };
        let packet = transom_testkit::packets::ip(src, dst, Protocol(200), &payload);
        let limits = FragmentLimits { pieces: usize::MAX, ..FragmentLimits::default() };
        let mut f = Fragments::new(limits);
        let pieces = cut(&packet, mtu, id).unwrap();
        let last = pieces.len() - 1;
        let mut whole = None;
        for piece in &pieces {
            prop_assert!(whole.is_none());
            prop_assert!(piece.len() <= mtu);
            let ip = IpPacket::parse(piece).unwrap();
            if let IpPacket::V4(v4) = ip { prop_assert!(v4.checksum_ok() && !v4.header().dont_fragment); }
            if last == 0 { return Ok(()); } // an atomic fragment
            let expected = if v6 { id } else { id & 0xffff };
            prop_assert_eq!(ip.fragment().unwrap().id, expected);
            whole = add(&mut f, piece, Instant::ZERO);
        }
        let whole = whole.unwrap();
        let whole = IpPacket::parse(&whole).unwrap();
        prop_assert_eq!((whole.src(), whole.dst(), whole.protocol()), (src, dst, Protocol(200)));
        prop_assert_eq!(whole.payload(), &payload[..]);
        prop_assert!(whole.fragment().is_none());
    }
}
