//! TCP Fast Open under attack (RFC 7413 section 5): what forged cookies, true ones in great numbers, and resets cost a host, and that others are served
//! meanwhile.

use crate::harness::*;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use transom_tcp::State;
use transom_tcp::time::Duration;
use transom_wire::{FastOpen, Flags, Options, TcpHeader};

const LIMIT: usize = 16;

fn victim() -> Victim {
    let mut victim = Victim::with(|_, _, listen| listen.fast_open = LIMIT);
    // A connection and what its SYN brought.
    victim.limits.allocations = 60;
    victim
}

/// A SYN with data.
fn syn(peer: &Peer, option: FastOpen, data: &[u8]) -> Vec<u8> {
    let options = Options { fast_open: Some(option), ..usual_options() };
    peer.packet(&TcpHeader { options, ..peer.header(Flags::SYN) }, data)
}

/// The nth of a great many forged sources.
fn spoofed(n: u32) -> SocketAddr {
    let address = Ipv4Addr::from_bits(0xc612_0000 + n % 0x1_ffff);
    SocketAddr::new(IpAddr::V4(address), 1_024 + (n / 7 % 60_000) as u16)
}

fn port(n: u32) -> SocketAddr {
    SocketAddr::new(ATTACKER.ip(), 1_024 + (n % 60_000) as u16)
}

/// The cookie that the victim gives to the attacker's own address.
fn cookie(victim: &mut Victim) -> FastOpen {
    let peer = Peer::new(ATTACKER, SERVICE);
    victim.inject(&syn(&peer, FastOpen::REQUEST, b""));
    let cookie = victim.last().options.fast_open.unwrap();
    victim.inject(&peer.at(Flags::RST, 1, 0, &[]));
    cookie
}

/// Guessed cookies, and the attacker's own one from other addresses: no connection begins, and nothing of the data is kept.
#[test]
fn forged_and_replayed_cookies_open_nothing() {
    let mut victim = victim();
    let stolen = cookie(&mut victim);
    for n in 0..30_000u32 {
        let guess = u64::from(n).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let len = [8, 8, 4, 6][n as usize % 4];
        let guess = FastOpen::new(&guess[..len]).unwrap();
        let option = if n % 2 == 0 { stolen } else { guess };
        victim.inject(&syn(&Peer::new(spoofed(n), SERVICE), option, &[7; 1000]));
        if n % 1_000 == 0 {
            victim.sent();
        }
    }
    assert_eq!((victim.stack.connection_count(), victim.acceptable()), (0, 0));
    assert_eq!(victim.counters().fast_opens_passive, 0);
    assert_eq!(victim.counters().fast_open_bad_cookies, 30_000);
    assert!(victim.held() < 512 << 10, "{} bytes are held", victim.held());
}

/// Section 5.1: whoever has a cookie can make the host begin so many connections, and no more; ordinary handshakes go on beside them.
#[test]
fn a_flood_with_a_true_cookie_is_bounded() {
    let mut victim = victim();
    let cookie = cookie(&mut victim);
    for n in 0..30_000u32 {
        victim.inject(&syn(&Peer::new(port(n), SERVICE), cookie, &[7; 1000]));
        if n % 1_000 == 999 {
            victim.sent();
            assert!(victim.stack.connection_count() <= LIMIT);
        }
    }
    assert_eq!(victim.acceptable(), LIMIT);
    assert!(victim.held() < 1 << 20, "{} bytes are held", victim.held());
    // Connections that were accepted still count.
    for _ in 0..LIMIT {
        let id = victim.accept_next();
        assert_eq!(victim.read(id).len(), 1000);
    }
    victim.inject(&syn(&Peer::new(port(40_000), SERVICE), cookie, b"one more"));
    assert_eq!(victim.acceptable(), 0);
    // Somebody else, in the ordinary way.
    let (mut honest, id) = Peer::connect(&mut victim, spoofed(1), usual_options());
    honest.assert_alive(&mut victim, id);
    // Nobody ever answers: everything is given up, and it is as before.
    victim.advance(Duration::from_secs(600));
    assert_eq!(victim.state(id), State::Established);
    assert_eq!(victim.stack.connection_count(), 1 + LIMIT, "those that were accepted are held");
    victim.sent();
    victim.inject(&syn(&Peer::new(port(50_000), SERVICE), cookie, b"data"));
    assert_eq!(victim.acceptable(), 1);
}

/// Section 5.1: resets in answer to SYN-ACKs that the attacker has sent to others do not get round the limit.
#[test]
fn resets_do_not_make_room_at_once() {
    let mut victim = victim();
    let cookie = cookie(&mut victim);
    for n in 0..20_000u32 {
        let peer = Peer::new(port(n), SERVICE);
        victim.inject(&syn(&peer, cookie, &[7; 1000]));
        victim.inject(&peer.at(Flags::RST, 1001, 0, &[]));
        victim.inject(&peer.at(Flags::RST, 1, 0, &[]));
        // Those that were reset wait for nobody.
        while victim.acceptable() > 0 {
            let id = victim.accept_next();
            victim.close(id);
        }
        if n % 1_000 == 999 {
            victim.sent();
            // 20 seconds for all of them.
            victim.advance(Duration::from_secs(1));
        }
    }
    assert_eq!(victim.counters().fast_opens_passive, LIMIT as u64);
    assert_eq!(victim.stack.connection_count(), 0);
    victim.advance(Duration::from_secs(60));
    victim.inject(&syn(&Peer::new(port(50_000), SERVICE), cookie, b"data"));
    assert_eq!(victim.acceptable(), 1);
}

/// One SYN-ACK at a time, ten a second at most, for a SYN that comes again and again; blind resets and SYNs elsewhere change nothing.
#[test]
fn a_repeated_syn_is_no_amplifier() {
    let mut victim = victim();
    let cookie = cookie(&mut victim);
    let peer = Peer::new(ATTACKER, SERVICE);
    let first = syn(&peer, cookie, &[7; 500]);
    victim.inject(&first);
    let mut answers = 0;
    for n in 0..10_000u32 {
        answers += victim.inject(&first);
        let elsewhere = i64::from(n.wrapping_mul(0x9e37_79b9) | 0x4000_0000);
        answers += victim.inject(&peer.at(Flags::SYN, elsewhere, 0, &[1; 100]));
        answers += victim.inject(&peer.at(Flags::RST, elsewhere, 0, &[]));
    }
    assert!(answers <= 2 * CHALLENGES_PER_SECOND, "{answers}");
    let id = victim.accept_next();
    assert_eq!((victim.state(id), victim.read(id)), (State::SynReceived, vec![7; 500]));
}
