use super::*;
use crate::udp::datagram::challenge;

const NOW: Duration = Duration::from_secs(1000);
const OURS: u32 = 5;
const THEIRS: u32 = 6;

fn given() -> Addresses {
    Addresses { v4: Some([10, 9, 0, 2].into()), v6: None }
}

fn welcome() -> Welcome {
    let own = Addresses { v4: Some([10, 9, 0, 1].into()), v6: None };
    Welcome { session: THEIRS, given: given(), lengths: [24, 0], own }
}

fn joining() -> Joined {
    Joined::new("192.0.2.1:9".parse().unwrap(), OURS, [1; 16], Addresses::default())
}

fn joined() -> Joined {
    let mut joined = joining();
    joined.make_hello(NOW);
    assert_eq!(joined.judge(NOW, &welcome().bytes(OURS)), Verdict::Drop);
    assert_eq!(joined.packet_session(), Some(THEIRS));
    joined
}

fn kind_of(datagram: &[u8]) -> u8 {
    Header::read(datagram).unwrap().0.kind
}

#[test]
fn a_challenge_is_answered_once() {
    let mut joined = joining();
    joined.make_hello(NOW);
    let Verdict::Answer(hello) = joined.judge(NOW, &challenge([9; 16], OURS)) else { panic!() };
    let (header, body) = Header::read(&hello).unwrap();
    assert_eq!(Hello::read(header, body).unwrap().cookie, [9; 16]);
    assert_eq!(joined.judge(NOW, &challenge([9; 16], OURS)), Verdict::Drop);
    assert_eq!(joined.judge(NOW, &challenge([8; 16], OURS + 1)), Verdict::Drop, "another session");
}

#[test]
fn an_end_that_has_not_asked_ignores_a_welcome() {
    let mut joined = joining();
    joined.judge(NOW, &welcome().bytes(OURS));
    assert!(joined.welcome.is_none());
    joined.make_hello(NOW);
    joined.judge(NOW, &welcome().bytes(OURS + 1));
    assert!(joined.welcome.is_none(), "somebody else's");
    let nothing = Welcome { given: Addresses::default(), ..welcome() };
    let impossible = Welcome { lengths: [33, 0], ..welcome() };
    for wrong in [nothing, impossible, Welcome { session: 0, ..welcome() }] {
        joined.judge(NOW, &wrong.bytes(OURS));
        assert!(joined.welcome.is_none(), "{wrong:?}");
    }
    joined.judge(NOW + AWAITED * 2, &welcome().bytes(OURS));
    assert!(joined.welcome.is_none(), "long after");
}

#[test]
fn the_addresses_stay_for_life() {
    let mut joined = joined();
    joined.make_hello(NOW);
    let other = Addresses { v4: Some([10, 9, 0, 3].into()), v6: None };
    joined.judge(NOW, &Welcome { given: other, session: 7, ..welcome() }.bytes(OURS));
    assert_eq!(joined.packet_session(), Some(THEIRS));
    joined.judge(NOW, &Welcome { session: 7, ..welcome() }.bytes(OURS));
    assert_eq!(joined.packet_session(), Some(7));
}

#[test]
fn silence_is_broken_and_long_silence_begins_anew() {
    let mut joined = joined();
    assert_eq!(joined.tick(NOW + KEEPALIVE / 2), None);
    let ping = joined.tick(NOW + KEEPALIVE).unwrap();
    assert_eq!(kind_of(&ping), kind::PING);
    assert_eq!(joined.tick(NOW + KEEPALIVE + TICK), None, "one is enough");
    // Packets keep the mapping as well.
    joined.sent = NOW + KEEPALIVE * 2;
    assert_eq!(joined.tick(NOW + KEEPALIVE * 2 + TICK), None);
    let pong = Header::new(kind::PONG, OURS).bytes();
    joined.judge(NOW + FORGOTTEN, &pong);
    assert_eq!(kind_of(&joined.tick(NOW + FORGOTTEN + TICK * 2).unwrap()), kind::PING);
    let lost = NOW + FORGOTTEN * 2 + TICK;
    assert_eq!(kind_of(&joined.tick(lost).unwrap()), kind::HELLO);
}

#[test]
fn one_who_is_forgotten_says_hello_and_no_more_than_once_a_second() {
    let mut joined = joined();
    let later = NOW + Duration::from_secs(30);
    let stranger = Header::new(kind::STRANGER, THEIRS).bytes();
    let Verdict::Answer(hello) = joined.judge(later, &stranger) else { panic!() };
    let (header, body) = Header::read(&hello).unwrap();
    assert_eq!(Hello::read(header, body).unwrap().wanted, given(), "the address it has");
    assert_eq!(joined.judge(later, &stranger), Verdict::Drop);
    let forged = Header::new(kind::STRANGER, THEIRS + 1).bytes();
    assert_eq!(joined.judge(later + HELLO_PAUSE, &forged), Verdict::Drop);
}

#[test]
fn a_refusal_counts_only_when_one_has_asked() {
    let mut joined = joining();
    joined.judge(NOW, &Refusal::Full.bytes(OURS));
    assert_eq!(joined.refused, None);
    joined.make_hello(NOW);
    let mut refusal = Refusal::Version(VERSION).bytes(OURS);
    refusal[0] = 3;
    joined.judge(NOW, &refusal);
    assert_eq!(joined.refused, Some(Refusal::Version(3)));
}

proptest::proptest! {
    #[test]
    fn garbage_is_dropped(kind in 0u8..12, session in 4u32..8, body: Vec<u8>) {
        let mut joined = joined();
        let datagram = [&Header::new(kind, session).bytes()[..], &body].concat();
        let later = NOW + AWAITED * 2;
        match joined.judge(later, &datagram) {
            Verdict::Deliver => panic!("no packet of the other end's"),
            Verdict::Answer(answer) => proptest::prop_assert!(answer.len() <= Hello::LEN),
            Verdict::Drop => {}
        }
        proptest::prop_assert_eq!(joined.welcome.as_ref(), Some(&welcome()));
    }
}
