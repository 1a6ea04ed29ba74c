//! Fragments: overlapping, overrunning, never completed (RFC 791, RFC 8200 section 4.5, RFC 5722, RFC 1858).

use crate::harness::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use transom_tcp::time::Duration;
use transom_testkit::packets::{fragment4, fragment6, icmp};
use transom_wire::{IcmpMessage, Protocol};

const FROM: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// The bounds of the default configuration: 512 KiB, in 64 packets of 64 pieces; twice that with what vectors reserve.
const MOST_HELD: i64 = 2 * (512 << 10) + 64 * (64 * 16 + 256);

/// An echo request of `len` bytes of data, without its IP header.
fn echo(len: usize) -> Vec<u8> {
    let data: Vec<u8> = stream(len);
    icmp(FROM, VICTIM, &IcmpMessage::EchoRequest { ident: 1, seq: 1, data: &data })[20..].to_vec()
}

fn piece(id: u16, message: &[u8], from: usize, to: usize) -> Vec<u8> {
    let more = to < message.len();
    fragment4(FROM, VICTIM, Protocol::ICMP, id, from as u16, more, &message[from..to])
}

/// Honest fragments are put together, in any order, whatever happened before: what each test ends with.
fn assert_reassembles(victim: &mut Victim, id: u16) {
    let message = echo(1_000);
    for (from, to) in [(496, 1_008), (0, 200), (200, 496)] {
        victim.inject(&piece(id, &message, from, to));
    }
    let replies = victim.sent();
    assert_eq!(replies.len(), 1, "the request is answered");
    assert_eq!(replies[0].bytes.len(), 1_028);
}

#[test]
fn teardrops_and_other_overlaps_drop_the_packet() {
    let mut victim = Victim::new();
    let message = echo(1_000);
    let overlaps: [&[(usize, usize)]; 7] = [
        // Teardrop: the second lies inside the first.
        &[(0, 400), (200, 304), (400, 1_008)],
        &[(0, 400), (392, 800), (800, 1_008)],
        &[(200, 400), (0, 208), (400, 1_008)],
        // The second covers the first.
        &[(200, 304), (0, 400), (400, 1_008)],
        &[(400, 1_008), (0, 400), (0, 408)],
        // The same start, another end; the tail twice with different starts.
        &[(0, 200), (0, 208), (208, 1_008)],
        &[(800, 1_008), (792, 1_008), (0, 800)],
    ];
    for (id, pieces) in overlaps.iter().enumerate() {
        for &(from, to) in *pieces {
            victim.inject(&piece(id as u16, &message, from, to));
        }
        // The whole of it again does not revive it.
        victim.inject(&piece(id as u16, &message, 0, 504));
        victim.inject(&piece(id as u16, &message, 504, 1_008));
        let replies = victim.sent().len();
        // (An overlap behind the completion is a new packet's first piece: the fifth is whole after two.)
        assert!(replies <= usize::from(id == 4), "{pieces:?} was answered {replies} times");
    }
    victim.advance(Duration::from_secs(60));
    assert_reassembles(&mut victim, 3);
}

#[test]
fn the_ping_of_death_is_dropped() {
    let mut victim = Victim::new();
    // Together 65,528 + 1,480 bytes: more than a packet may have.
    for offset in [65_528u16, 65_520, 64_800] {
        victim.inject(&fragment4(FROM, VICTIM, Protocol::ICMP, 9, offset, false, &[0; 1_480]));
    }
    victim.inject(&fragment4(FROM, VICTIM, Protocol::ICMP, 9, 65_528, true, &[0; 8]));
    assert_eq!(victim.stack.counters().fragments_dropped, 4);
    // The longest there can be is taken: 65,515 bytes behind the header.
    let message = echo(65_507);
    // The reply leaves in as many pieces as the request came in.
    victim.limits = Limits { packets: 45, allocations: 110, ..Limits::default() };
    let mut from = 0;
    while from < message.len() {
        let to = (from + 1_480).min(message.len());
        victim.inject(&piece(10, &message, from, to));
        from = to;
    }
    victim.limits = Limits::default();
    let replies = victim.sent();
    assert_eq!(replies.len(), 45);
    assert!(replies.iter().all(|reply| reply.bytes.len() <= 1_500));
    let data: usize = replies.iter().map(|reply| reply.bytes.len() - 20).sum();
    assert_eq!(data, 8 + 65_507);
    assert!(victim.held() < 64 << 10, "{} bytes are held for nothing", victim.held());
    assert_reassembles(&mut victim, 11);
}

#[test]
fn fragments_never_completed_are_bounded_and_forgotten() {
    let empty = Victim::new().held();
    type Make = fn(u32) -> Vec<u8>;
    let kinds: [(&str, Make); 5] = [
        ("first pieces", |n| spoofed(n, 0, true, 1_480)),
        ("last pieces, far out", |n| spoofed(n, 64_000, false, 8)),
        ("one byte at the end", |n| spoofed(n, 65_504, false, 1)),
        ("middle pieces", |n| spoofed(n, 8 * (n % 8_000) as u16, true, 8)),
        ("one packet in tiny pieces", |n| {
            fragment4(
                FROM,
                VICTIM,
                Protocol::UDP,
                77,
                (16 * n % 65_000 / 8 * 8) as u16,
                true,
                &[0; 8],
            )
        }),
    ];
    for (name, make) in kinds {
        let mut victim = Victim::new();
        victim.limits = Limits { packets: 0, allocations: 8, held: empty + MOST_HELD };
        for n in 0..100_000 {
            victim.inject(&make(n));
            if n % 10_000 == 0 {
                victim.advance(Duration::from_millis(100));
            }
        }
        victim.limits = Limits::default();
        assert_reassembles(&mut victim, 3);
        victim.advance(Duration::from_secs(61));
        let left = victim.held() - empty;
        // The queue of answers keeps the room that the errors about 64 first pieces took.
        assert!(left < 32 << 10, "{name}: {left} bytes are still held");
        assert!(victim.stack.counters().fragments_dropped > 0, "{name}");
    }
}

fn spoofed(n: u32, offset: u16, more: bool, len: usize) -> Vec<u8> {
    let from = Ipv4Addr::from_bits(0xc612_0000 + n);
    fragment4(from, VICTIM, Protocol::UDP, n as u16, offset, more, &vec![0; len])
}

/// The IPv6 kinds: overlaps (RFC 5722), a fragment header inside a fragment, and atomic fragments (RFC 6946).
#[test]
fn ipv6_fragments_are_no_better() {
    let (from, to): (Ipv6Addr, Ipv6Addr) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    let mut victim = Victim::new();
    let data = stream(1_000);
    let request = transom_wire::IcmpMessage::EchoRequest { ident: 1, seq: 1, data: &data };
    let mut message = vec![0; 8 + data.len()];
    request.emit(from, to, &mut message).unwrap();
    let piece = |id, start: usize, end: usize| {
        let more = end < message.len();
        fragment6(from, to, Protocol::ICMPV6, id, start as u16, more, &message[start..end])
    };
    for (start, end) in [(0, 400), (392, 800), (800, 1_008), (0, 400)] {
        victim.inject(&piece(1, start, end));
    }
    assert_eq!(victim.sent().len(), 0, "overlapping");
    // Fragments all the way down: each, put together, is a fragment again.
    let mut nested = piece(2, 0, 1_008)[40..].to_vec();
    for id in 3..200u32 {
        let mut header = [0; 8];
        let fragment = transom_wire::ip::Fragment { id, offset: 0, more: true };
        transom_wire::FragmentHeader::emit(Protocol::FRAGMENT, fragment, &mut header).unwrap();
        nested.resize(nested.len().next_multiple_of(8), 0);
        nested = [&header[..], &nested].concat();
        let whole = packets::ip(IpAddr::V6(from), IpAddr::V6(to), Protocol::FRAGMENT, &nested);
        assert!(victim.inject(&whole) <= 1);
        let tail =
            fragment6(from, to, Protocol::FRAGMENT, id, (nested.len() - 8) as u16, false, &[0; 8]);
        assert!(victim.inject(&tail) <= 1);
    }
    victim.sent();
    victim.advance(Duration::from_secs(60));
    // An atomic fragment is a whole packet.
    assert_eq!(victim.inject(&piece(500, 0, 1_008)), 1);
    for (start, end) in [(800, 1_008), (0, 400), (400, 800)] {
        victim.inject(&piece(501, start, end));
    }
    assert_eq!(victim.sent().len(), 2);
}
