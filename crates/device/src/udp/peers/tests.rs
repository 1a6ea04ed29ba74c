use proptest::prelude::*;

use super::*;
use crate::udp::datagram::CHECKSUM_COVERED;

const NOW: Duration = Duration::from_secs(1000);

fn peers() -> Peers {
    let networks = Networks::of(&["10.9.0.1/24".parse().unwrap(), "fd09::1/64".parse().unwrap()]);
    Peers::new(networks.unwrap(), [7; 16])
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Numbers of sessions, which in a test may be guessed.
fn counting() -> impl FnMut() -> u32 {
    let mut last = 0x1000;
    move || {
        last += 1;
        last
    }
}

fn hello(identity: u8) -> Hello {
    let wanted = Addresses::default();
    Hello { session: 5, identity: [identity; 16], cookie: [0; 16], wanted }
}

fn answer(verdict: Verdict) -> (Header, Vec<u8>) {
    let Verdict::Answer(bytes) = verdict else { panic!("no answer: {verdict:?}") };
    let (header, body) = Header::read(&bytes).unwrap();
    (header, body.to_vec())
}

/// Says hello twice, as one does who gets the answers, and returns the last one.
fn greet(
    peers: &mut Peers,
    now: Duration,
    from: SocketAddr,
    mut hello: Hello,
) -> (Header, Vec<u8>) {
    // A number for each that is not used yet.
    let mut fresh = {
        let mut next = 0x1000 + peers.len() as u32 * 7 + u32::from(from.port());
        move || {
            next += 1;
            next
        }
    };
    let (header, body) = answer(peers.judge(now, from, &hello.bytes(), &mut fresh));
    assert_eq!((header.kind, header.session), (kind::CHALLENGE, hello.session));
    hello.cookie = body.try_into().unwrap();
    answer(peers.judge(now, from, &hello.bytes(), fresh))
}

fn welcome(peers: &mut Peers, now: Duration, from: SocketAddr, hello: Hello) -> Welcome {
    let (header, body) = greet(peers, now, from, hello);
    assert_eq!(header.kind, kind::WELCOME, "{:?}", Refusal::read(header, &body));
    Welcome::read(&body).unwrap()
}

/// An IP packet of nothing in particular.
fn packet(from: &str, to: &str) -> Vec<u8> {
    use transom_wire::{Ipv4Header, Protocol};
    let header = Ipv4Header::new(from.parse().unwrap(), to.parse().unwrap(), Protocol(253));
    let mut bytes = vec![0; 40];
    header.emit(20, &mut bytes).unwrap();
    bytes
}

fn datagram(session: u32, packet: &[u8]) -> Vec<u8> {
    let mut header = Header::new(kind::PACKET, session);
    header.flags = CHECKSUM_COVERED;
    [&header.bytes()[..], packet].concat()
}

#[test]
fn a_forged_source_takes_neither_memory_nor_a_place() {
    let mut peers = peers();
    for host in 0..2000u32 {
        let from = SocketAddr::new(std::net::Ipv4Addr::from(0x0a00_0000 + host).into(), 9);
        let mut hello = hello((host % 251) as u8);
        // One who cannot receive there does not know the cookie.
        hello.cookie = [host as u8; 16];
        let answered = answer(peers.judge(NOW, from, &hello.bytes(), counting()));
        assert_eq!(answered.0.kind, kind::CHALLENGE);
        assert!(HEADER_LEN + answered.1.len() < Hello::LEN);
    }
    assert_eq!(peers.len(), 0);
}

#[test]
fn an_admitted_peer_gets_an_address_and_may_use_no_other() {
    let mut peers = peers();
    let (alice, bob) = (at("192.0.2.1:9"), at("192.0.2.2:9"));
    let to_alice = welcome(&mut peers, NOW, alice, hello(1));
    assert_eq!(to_alice.given.v4.unwrap().to_string(), "10.9.0.2");
    assert_eq!(to_alice.own.v6.unwrap().to_string(), "fd09::1");
    let to_bob = welcome(&mut peers, NOW, bob, hello(2));
    assert_eq!(to_bob.given.v4.unwrap().to_string(), "10.9.0.3");
    let mut judge = |from, session, source: &str, destination: &str| {
        let datagram = datagram(session, &packet(source, destination));
        peers.judge(NOW, from, &datagram, counting())
    };
    assert_eq!(judge(alice, to_alice.session, "10.9.0.2", "10.9.0.1"), Verdict::Deliver);
    // With somebody else's address inside, to somebody else, to nowhere.
    assert_eq!(judge(bob, to_bob.session, "10.9.0.2", "10.9.0.1"), Verdict::Drop);
    assert_eq!(judge(alice, to_alice.session, "10.9.0.2", "10.9.0.3"), Verdict::Drop);
    assert_eq!(judge(alice, to_alice.session, "10.9.0.1", "10.9.0.1"), Verdict::Drop);
    assert_eq!(judge(alice, to_alice.session, "10.9.0.2", "192.0.2.9"), Verdict::Drop);
    // From somewhere else with her session: she is told to say hello, if it is she.
    let (header, _) = answer(judge(bob, to_alice.session, "10.9.0.2", "10.9.0.1"));
    assert_eq!((header.kind, header.session), (kind::STRANGER, to_alice.session));
    // Packets for her still go to her place.
    assert_eq!(peers.at("10.9.0.2".parse().unwrap()).unwrap().endpoint, alice);
}

#[test]
fn a_peer_whose_address_changes_goes_on() {
    let mut peers = peers();
    let before = welcome(&mut peers, NOW, at("192.0.2.1:9"), hello(1));
    let moved = Hello { wanted: before.given, ..hello(1) };
    let after = welcome(&mut peers, NOW, at("198.51.100.7:1234"), moved);
    assert_eq!(after, before);
    assert_eq!(peers.len(), 1);
    let endpoint = peers.at("10.9.0.2".parse().unwrap()).unwrap().endpoint;
    assert_eq!(endpoint, at("198.51.100.7:1234"));
    // Another identity cannot have the address.
    let thief = Hello { wanted: before.given, ..hello(2) };
    let (header, body) = greet(&mut peers, NOW, at("203.0.113.1:9"), thief);
    assert_eq!((header.kind, Refusal::read(header, &body)), (kind::REFUSAL, Refusal::Address));
}

#[test]
fn peers_that_say_bye_or_nothing_lose_their_place() {
    let mut peers = peers();
    let alice = at("192.0.2.1:9");
    let first = welcome(&mut peers, NOW, alice, hello(1));
    let bye = Header::new(kind::BYE, first.session).bytes();
    // Not from elsewhere.
    assert_eq!(peers.judge(NOW, at("192.0.2.2:9"), &bye, counting()), Verdict::Drop);
    assert_eq!(peers.len(), 1);
    assert_eq!(peers.judge(NOW, alice, &bye, counting()), Verdict::Drop);
    assert_eq!(peers.len(), 0);
    let silent = welcome(&mut peers, NOW, alice, hello(2));
    let wanted = Hello { wanted: silent.given, ..hello(3) };
    let later = NOW + SILENCE + Duration::from_secs(1);
    let given = welcome(&mut peers, later, at("192.0.2.3:9"), wanted).given;
    assert_eq!(given, silent.given);
}

#[test]
fn one_host_does_not_take_all_places() {
    let mut peers = peers();
    for number in 0..MOST_OF_ONE_HOST {
        let from = SocketAddr::new([192, 0, 2, 1].into(), 1000 + number as u16);
        welcome(&mut peers, NOW, from, hello(number as u8));
    }
    let (header, body) = greet(&mut peers, NOW, at("192.0.2.1:9"), hello(200));
    assert_eq!(Refusal::read(header, &body), Refusal::Full);
    welcome(&mut peers, NOW, at("192.0.2.2:9"), hello(200));
}

#[test]
fn another_version_is_told_and_nothing_else() {
    let mut peers = peers();
    let mut bytes = hello(1).bytes();
    bytes[0] = 9;
    let (header, body) = answer(peers.judge(NOW, at("192.0.2.1:9"), &bytes, counting()));
    assert_eq!((header.version, header.session), (VERSION, 5));
    assert_eq!(Refusal::read(header, &body), Refusal::Version(VERSION));
    let mut bytes = datagram(1, b"");
    bytes[0] = 9;
    assert_eq!(peers.judge(NOW, at("192.0.2.1:9"), &bytes, counting()), Verdict::Drop);
}

#[test]
fn answers_to_strangers_are_few() {
    let mut peers = peers();
    let answered = (0..5000u32).filter(|session| {
        let verdict = peers.judge(NOW, at("192.0.2.1:9"), &datagram(*session, b"x"), counting());
        matches!(verdict, Verdict::Answer(_))
    });
    assert_eq!(answered.count(), ANSWERS_PER_SECOND as usize);
}

#[test]
fn pings_are_answered_with_no_more_than_they_have() {
    let mut peers = peers();
    let alice = at("192.0.2.1:9");
    let session = welcome(&mut peers, NOW, alice, hello(1)).session;
    for length in [0, 3, 8, 1400] {
        let ping = [&Header::new(kind::PING, session).bytes()[..], &vec![1; length]].concat();
        let (header, body) = answer(peers.judge(NOW, alice, &ping, counting()));
        assert_eq!((header.kind, header.session, body.len()), (kind::PONG, 5, length.min(8)));
    }
}

proptest! {
    /// Random datagrams from random peers: nobody is let in, and no answer is longer than its question.
    #[test]
    fn garbage_is_dropped(
        kind in 0u8..12, version in 0u8..3, session in 0u32..0x1010, body: Vec<u8>, host: u8,
    ) {
        let mut peers = peers();
        welcome(&mut peers, NOW, at("192.0.2.1:9"), hello(1));
        let mut header = Header::new(kind, session);
        header.version = version;
        let datagram = [&header.bytes()[..], &body].concat();
        let from = SocketAddr::new([198, 51, 100, host].into(), 9);
        match peers.judge(NOW, from, &datagram, counting()) {
            Verdict::Deliver => prop_assert!(false, "a stranger's packet"),
            Verdict::Answer(answer) => prop_assert!(answer.len() <= datagram.len()),
            Verdict::Drop => {}
        }
        prop_assert_eq!(peers.len(), 1);
        prop_assert_eq!(peers.at("10.9.0.2".parse().unwrap()).unwrap().endpoint, at("192.0.2.1:9"));
    }
}
