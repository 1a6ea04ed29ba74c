use proptest::prelude::*;

use super::*;
use crate::packet::ethernet_header;

const NOW: Duration = Duration::from_secs(100);
const OURS: Mac = [2, 0, 0, 0, 0, 1];
const THEIRS: Mac = [2, 0, 0, 0, 0, 2];

fn link(own: &[&str], mac: Mac) -> Link {
    Link::new(mac, own.iter().map(|own| own.parse().unwrap()).collect(), Routes::none())
}

fn ours() -> Link {
    link(&["192.0.2.1/24", "2001:db8::1/64"], OURS)
}

fn theirs() -> Link {
    link(&["192.0.2.2/24", "2001:db8::2/64"], THEIRS)
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn way(link: &mut Link, now: Duration, to: &str) -> Way {
    link.way(now, address(to), &TxPacket::whole(b"a packet"))
}

#[test]
fn two_stations_find_each_other_and_what_waited_goes() {
    for (to, own) in [("192.0.2.2", "192.0.2.1"), ("2001:db8::2", "2001:db8::1")] {
        let (mut ours, mut theirs) = (ours(), theirs());
        let Way::Ask(Some(question)) = way(&mut ours, NOW, to) else { panic!("{to}") };
        // Once a second is enough.
        assert!(matches!(way(&mut ours, NOW, to), Way::Ask(None)));
        let Taken::Link(Some(answer), held) = theirs.take(NOW, &question) else { panic!("{to}") };
        assert!(held.is_empty());
        assert!(answer.starts_with(&OURS), "to the one who has asked");
        let Taken::Link(None, held) = ours.take(NOW, &answer) else { panic!("{to}") };
        let held: Vec<_> = held.iter().map(|held| (&held.packet[..], held.to)).collect();
        assert_eq!(held, [(&b"a packet"[..], THEIRS); 2]);
        assert!(matches!(way(&mut ours, NOW, to), Way::To(THEIRS)));
        // A station that was asked knows the asker, because it will answer.
        assert!(matches!(way(&mut theirs, NOW, own), Way::To(OURS)));
    }
}

#[test]
fn a_neighbour_in_use_is_asked_again_before_it_is_forgotten() {
    let (mut ours, mut theirs) = (ours(), theirs());
    let to = address("192.0.2.2");
    let Way::Ask(Some(question)) = way(&mut ours, NOW, "192.0.2.2") else { panic!() };
    let Taken::Link(Some(answer), _) = theirs.take(NOW, &question) else { panic!() };
    ours.take(NOW, &answer);
    assert_eq!(ours.confirm(NOW, to), None);
    let later = NOW + Duration::from_secs(40);
    let question = ours.confirm(later, to).unwrap();
    assert!(question.starts_with(&THEIRS), "it alone is asked");
    let Taken::Link(Some(answer), _) = theirs.take(later, &question) else { panic!() };
    ours.take(later, &answer);
    assert!(matches!(way(&mut ours, NOW + Duration::from_secs(80), "192.0.2.2"), Way::To(_)));
    assert!(matches!(way(&mut ours, NOW + Duration::from_secs(200), "192.0.2.2"), Way::Ask(_)));
}

#[test]
fn there_is_no_way_out_without_a_gateway() {
    assert!(matches!(way(&mut ours(), NOW, "198.51.100.1"), Way::Nowhere));
    assert!(matches!(way(&mut ours(), NOW, "2001:db8:1::1"), Way::Nowhere));
}

#[test]
fn announcements_are_heard_by_those_who_know_us() {
    let (ours, mut theirs) = (ours(), theirs());
    let announcements = ours.announcements();
    assert_eq!(announcements.len(), 2);
    for (announcement, own) in announcements.iter().zip(["192.0.2.1", "2001:db8::1"]) {
        // Not by others: nobody is remembered unasked.
        theirs.take(NOW, announcement);
        assert!(matches!(way(&mut theirs, NOW, own), Way::Ask(_)), "{own}");
    }
}

/// [RFC1122-3.2.2-8] [RFC1122-3.3.6-6] [RFC4443-2.4-8]
#[test]
fn packets_are_for_the_station_and_discovery_is_not_the_stacks() {
    let mut ours = ours();
    let packet = [&[0x45][..], &[0; 19]].concat();
    let frame = |to: Mac| [&ethernet_header(THEIRS, to, &packet)[..], &packet].concat();
    assert!(matches!(ours.take(NOW, &frame(OURS)), Taken::Packet));
    assert!(matches!(ours.take(NOW, &frame(THEIRS)), Taken::Nothing));
    assert!(matches!(ours.take(NOW, &frame([0xff; 6])), Taken::Nothing));
    // An advertisement from beyond the link has been decremented on its way.
    let mut forged = frames::answer(THEIRS, address("2001:db8::2"), None).unwrap();
    forged[ETHERNET_LEN + 7] = 254;
    assert!(matches!(ours.take(NOW, &forged), Taken::Nothing));
}

#[test]
fn nobody_takes_our_address_or_a_groups_station() {
    let mut ours = ours();
    let thief = frames::answer([2, 0, 0, 0, 0, 9], address("192.0.2.1"), None).unwrap();
    let Taken::Link(None, held) = ours.take(NOW, &thief) else { panic!() };
    assert!(held.is_empty());
    way(&mut ours, NOW, "192.0.2.2");
    let group = frames::answer([0xff; 6], address("192.0.2.2"), None).unwrap();
    ours.take(NOW, &group);
    assert!(matches!(way(&mut ours, NOW, "192.0.2.2"), Way::Ask(_)));
}

proptest! {
    #[test]
    fn any_frame_is_taken_or_not(mut frame: Vec<u8>, ethertype in 0usize..4) {
        if frame.len() >= ETHERNET_LEN {
            frame[..6].copy_from_slice(&OURS);
            let ethertypes = [0x0800u16, 0x0806, 0x86dd, 0x88b5];
            frame[12..14].copy_from_slice(&ethertypes[ethertype].to_be_bytes());
        }
        ours().take(NOW, &frame);
    }

    /// A question or an answer with any one byte changed does no harm.
    #[test]
    fn damage_does_no_harm(at in 0usize..90, value: u8, v6: bool) {
        let (own, other) = if v6 { ("2001:db8::1", "2001:db8::2") } else { ("192.0.2.1", "192.0.2.2") };
        let question = frames::question(THEIRS, address(other), address(own), None).unwrap();
        let answer = frames::answer(THEIRS, address(other), Some((address(own), OURS))).unwrap();
        for mut frame in [question, answer] {
            let at = at % frame.len();
            frame[at] = value;
            ours().take(NOW, &frame);
        }
    }
}
