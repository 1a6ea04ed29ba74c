//! Sheer numbers: what each packet of a flood costs, and that others are served meanwhile.

use crate::allocator::measure;
use crate::harness::*;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use transom_stack::ConnectionId;
use transom_tcp::State;
use transom_tcp::time::Duration;
use transom_wire::{Flags, IcmpMessage, Options, Seq, TcpHeader};

/// The nth of a great many forged sources.
fn spoofed(n: u32) -> SocketAddr {
    let address = Ipv4Addr::from_bits(0xc612_0000 + n % 0x1_ffff);
    SocketAddr::new(IpAddr::V4(address), 1_024 + (n / 7 % 60_000) as u16)
}

/// An honest client connects, writes and is answered. Returns whether a cookie was needed.
fn connects(victim: &mut Victim, n: u32) -> (bool, ConnectionId) {
    let from = SocketAddr::new(ATTACKER.ip(), 10_000 + n as u16);
    let cookies = victim.stack.counters().cookies_accepted;
    victim.sent();
    let (mut peer, id) = Peer::connect(victim, from, usual_options());
    peer.assert_alive(victim, id);
    (victim.stack.counters().cookies_accepted > cookies, id)
}

#[test]
fn legitimate_connects_succeed_during_and_after_a_syn_flood() {
    let mut victim = Victim::new();
    let mut held_early = 0;
    for n in 0..100_000u32 {
        let options = if n % 3 == 0 { bare_options() } else { usual_options() };
        let syn =
            Peer { seq: Seq::new(n.wrapping_mul(0x9e37_79b9)), ..Peer::new(spoofed(n), SERVICE) };
        assert!(victim.inject(&syn.syn(options)) <= 1);
        victim.sent();
        if n % 1_000 == 999 {
            let (by_cookie, id) = connects(&mut victim, n / 1_000);
            assert!(by_cookie, "the queue of half-open connections is full");
            // The options that the cookie could carry are there.
            let info = victim.info(id);
            assert!(info.sack && info.timestamps);
            assert_eq!(info.window_scale.unwrap().0, 7);
            victim.call(|stack, now| stack.abort(id, now));
            // 20,000 SYNs a second.
            victim.advance(Duration::from_millis(50));
        }
        if n == 30_000 {
            held_early = victim.held();
        }
        assert!(victim.stack.half_open_count() <= 256);
    }
    assert!(victim.held() <= held_early, "{} bytes, {held_early} early on", victim.held());
    assert!(victim.held() < 512 << 10, "{} bytes are held", victim.held());
    // Afterwards: the half-open connections give up, and nothing is left of them.
    victim.advance(Duration::from_secs(400));
    assert_eq!(victim.stack.half_open_count(), 0);
    let (by_cookie, id) = connects(&mut victim, 500);
    assert!(!by_cookie);
    assert_eq!(victim.state(id), State::Established);
}

/// The same against the bound on the whole host, with every listener's own far away, and against a flood within one
/// batch that leaves no time to answer.
#[test]
fn a_syn_flood_in_one_batch_is_answered_as_far_as_there_is_room() {
    let mut victim = Victim::with(|config, _, listen| {
        config.max_half_open = 100;
        listen.syn_backlog = 1 << 20;
    });
    for n in 0..20_000u32 {
        let syn = Peer::new(spoofed(n), SERVICE).syn(usual_options());
        victim.inject_without_sending(&syn);
    }
    let counters = victim.stack.counters();
    assert_eq!(victim.stack.half_open_count(), 100);
    assert!(counters.replies_dropped > 0);
    assert!(victim.held() < 1 << 20, "{} bytes are held", victim.held());
    victim.advance(Duration::ZERO);
    assert!(victim.sent().len() <= 1_024, "what was put aside");
    let (by_cookie, _) = connects(&mut victim, 1);
    assert!(by_cookie);
}

/// Acknowledgements that try to guess a cookie: each is reset, none makes a connection, nothing is remembered.
#[test]
fn guessed_cookies_make_no_connection() {
    let mut victim = Victim::new();
    // Cookies are accepted only after some were sent.
    for n in 0..300 {
        victim.inject(&Peer::new(spoofed(n), SERVICE).syn(usual_options()));
    }
    assert!(victim.stack.counters().cookies_sent > 0);
    let held = victim.held();
    for n in 0..100_000u32 {
        let ack = Seq::new(n.wrapping_mul(0x85eb_ca6b));
        let guess = Peer { ack, ..Peer::new(spoofed(n + 1_000_000), SERVICE) };
        victim.inject(&guess.segment(Flags::ACK, b"data"));
        if n % 1_000 == 0 {
            victim.sent();
        }
    }
    assert_eq!(victim.stack.counters().cookies_accepted, 0);
    assert_eq!(victim.stack.connection_count(), 0);
    assert!(victim.held() <= held, "{} bytes are held, {held} before", victim.held());
}

#[test]
fn resets_are_never_answered() {
    let mut victim = Victim::new();
    let (mut peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    victim.sent();
    let held = victim.held();
    victim.limits = Limits { packets: 0, allocations: 0, held: held + 1 };
    for n in 0..100_000u32 {
        let header = TcpHeader {
            seq: Seq::new(n.wrapping_mul(0x9e37_79b9)),
            ack: Seq::new(n),
            flags: if n % 2 == 0 { Flags::RST } else { Flags::RST | Flags::ACK },
            ..TcpHeader::default()
        };
        let to = if n % 3 == 0 { SocketAddr::new(VICTIM.into(), 81) } else { SERVICE };
        victim.inject(&packets::tcp(spoofed(n), to, &header, b""));
    }
    victim.limits = Limits::default();
    peer.assert_alive(&mut victim, id);
}

/// A flood within one connection: any segment, over and over.
#[test]
fn a_flood_of_one_segment_allocates_nothing() {
    let mut victim = Victim::new();
    let (mut peer, id) = Peer::connect(&mut victim, ATTACKER, usual_options());
    peer.send(&mut victim, b"before");
    victim.read(id);
    let floods = [
        peer.segment(Flags::ACK, &[]),
        peer.at(Flags::ACK, -6, 0, b"before"),
        peer.at(Flags::ACK, 1 << 25, 0, b"outside"),
        peer.at(Flags::SYN, 0, 0, &[]),
        peer.at(Flags::RST, 7, 0, &[]),
        peer.at(Flags::ACK | Flags::URG, -6, 0, b"before"),
        peer.sack(&[(-1_000, -500), (-400, -300), (-200, -100)]),
    ];
    for flood in &floods {
        victim.inject(flood);
    }
    let held = victim.held();
    victim.limits = Limits { packets: 1, allocations: 0, held };
    for _ in 0..10_000 {
        for flood in &floods {
            victim.inject(flood);
        }
        victim.sent();
    }
    victim.limits = Limits::default();
    peer.assert_alive(&mut victim, id);
}

fn echo(n: u16, data: &[u8]) -> Vec<u8> {
    let IpAddr::V4(from) = ATTACKER.ip() else { unreachable!() };
    packets::icmp(from, VICTIM, &IcmpMessage::EchoRequest { ident: 7, seq: n, data })
}

/// Echo replies wait in a queue of 1024, and are no larger than a packet may be.
#[test]
fn echo_floods_are_bounded_by_the_queue() {
    let mut victim = Victim::new();
    let empty = victim.held();
    let request = echo(1, &[5; 1_400]);
    for _ in 0..50_000 {
        victim.inject_without_sending(&request);
    }
    let held = (victim.held() - empty) as usize;
    // The packets, and their places in the queue.
    assert!(held <= 1_024 * (1_428 + 256), "{held} bytes wait");
    assert_eq!(victim.stack.counters().replies_dropped, 50_000 - 1_024);
    victim.advance(Duration::ZERO);
    assert_eq!(victim.sent().len(), 1_024);
    // And the next is answered again.
    assert_eq!(victim.inject(&request), 1);
}

/// A request that arrived in fragments can be larger than what may leave in one packet. RFC 1122 section 3.2.2.6: its data comes back entire,
/// so the reply leaves in fragments too, no more of them than arrived.
#[test]
fn echo_replies_fit_the_interface() {
    let mut victim = Victim::new();
    let IpAddr::V4(from) = ATTACKER.ip() else { unreachable!() };
    for len in [1_472usize, 1_473, 1_500, 9_000, 65_000] {
        let whole = echo(len as u16, &vec![9; len]);
        let message = &whole[20..];
        let pieces = message.len().div_ceil(1_480);
        victim.limits = Limits {
            packets: pieces as u64,
            allocations: 2 * pieces as u64 + 20,
            ..Limits::default()
        };
        let mut offset = 0;
        while offset < message.len() {
            let end = (offset + 1_480).min(message.len());
            let more = end < message.len();
            victim.inject(&packets::fragment4(
                from,
                VICTIM,
                transom_wire::Protocol::ICMP,
                len as u16,
                offset as u16,
                more,
                &message[offset..end],
            ));
            offset = end;
        }
        let replies = victim.sent();
        assert_eq!(replies.len(), pieces, "{len} bytes");
        let data: Vec<u8> = replies
            .iter()
            .flat_map(|reply| {
                assert!(reply.bytes.len() <= 1_500, "{len} bytes");
                reply.bytes[20..].to_vec()
            })
            .collect();
        let parsed = IcmpMessage::parse(VICTIM, VICTIM, &data).expect("the reply is valid");
        assert!(matches!(parsed, IcmpMessage::EchoReply { data, .. }
            if data.len() == len && data.iter().all(|&b| b == 9)));
    }
}

/// ICMP errors are rate-limited [RFC 1812 section 4.3.2.8 for routers, RFC 4443 section 2.4 (f)], and never answer errors.
#[test]
fn datagrams_nobody_wants_get_a_limited_number_of_errors() {
    let mut victim = Victim::new();
    let held = victim.held();
    for second in 0..3 {
        let mut errors = 0;
        for n in 0..20_000 {
            let size = [0, 8, 1_400][n as usize % 3];
            errors += victim.inject(&packets::udp(spoofed(n), SERVICE, &vec![3; size]));
        }
        assert_eq!(errors, 100, "second {second}");
        for out in victim.sent() {
            assert!(out.bytes.len() <= 576, "RFC 1812 section 4.3.2.3");
        }
        victim.advance(Duration::from_secs(1));
    }
    // Protocols nobody speaks count with them.
    let from = spoofed(1);
    let errors: u64 = (0..1_000)
        .map(|n| {
            victim.inject(&packets::ip(
                from.ip(),
                VICTIM.into(),
                transom_wire::Protocol((n % 200 + 60) as u8),
                b"12345678",
            ))
        })
        .sum();
    assert!(errors <= 100);
    assert!(victim.held() < held + 4_096);
}

/// Segments for ports where nobody listens are reset one for one, and cost nothing to keep.
#[test]
fn segments_for_nobody_are_reset_and_forgotten() {
    let mut victim = Victim::new();
    let closed = SocketAddr::new(VICTIM.into(), 81);
    victim.inject(&Peer::new(spoofed(0), closed).segment(Flags::ACK, b"x"));
    let held = victim.held();
    victim.limits = Limits { packets: 1, allocations: 0, held };
    for n in 0..50_000 {
        let peer = Peer::new(spoofed(n), closed);
        assert_eq!(victim.inject(&peer.at(Flags::SYN, 0, 0, &[])), 1);
        let reset = victim.last();
        assert_eq!(reset.flags, Flags::RST | Flags::ACK);
        assert_eq!(reset.options, Options::default(), "a reset says no more than it must");
    }
}

/// The flood itself, for comparison with the host's memory: what the test allocates does not count.
#[test]
fn the_harness_counts_only_the_host() {
    let mut victim = Victim::new();
    let held = victim.held();
    let (noise, usage) = measure(|| vec![0u8; 1 << 20]);
    assert_eq!(usage.held, 1 << 20);
    victim.advance(Duration::from_secs(1));
    assert_eq!(victim.held(), held);
    drop(noise);
}
