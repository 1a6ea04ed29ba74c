//! The user timeout (RFC 9293 sections 3.8.3 and 3.10.8) and its option (RFC 5482).

use crate::common;
use transom_tcp::Setting;

use common::{Setup, line, ms, secs, seg};
use std::sync::Arc;
use transom_tcp::packet::Payload;
use transom_tcp::{Connection, ConnectionError, Profile, ProfileError, Segment, State};

/// [MUST-21] Data unacknowledged for so long ends the connection, at that very time.
#[test]
fn data_unacknowledged_for_too_long() {
    let mut peer = Setup::default().profile(|p| p.user_timeout = Some(secs(5))).active();
    peer.write(10);
    peer.wait(4_999).expect_state(State::Established);
    peer.wait(1).expect_state(State::Closed);
    assert_eq!(peer.connection.error(), Some(ConnectionError::TimedOut));
}

/// It runs from the oldest unacknowledged data: progress starts it anew, idleness does not end anything.
#[test]
fn progress_starts_it_anew() {
    let mut peer = Setup::default().profile(|p| p.user_timeout = Some(secs(5))).active();
    peer.wait(60_000).expect_state(State::Established);
    // Nagle's algorithm holds the second write until the first is acknowledged.
    peer.write(10).wait(4_000).write(10).wait(500).recv(seg().ack(11));
    peer.wait(4_999).expect_state(State::Established).wait(1).expect_state(State::Closed);
}

/// It takes the place of R2 in both directions, and none means for ever (if R2 says so too).
#[test]
fn it_takes_the_place_of_r2() {
    let mut peer = Setup::default().profile(|p| p.user_timeout = Some(secs(86_400))).active();
    peer.write(10).wait(86_399_000).expect_state(State::Established);
    peer.wait(1_000).expect_state(State::Closed);
}

/// Set while data waits: it counts from when that data left.
#[test]
fn it_can_be_set_at_any_time() {
    let mut peer = Setup::default().active();
    peer.write(10).wait(20_000);
    peer.connection.set(Setting::UserTimeout(Some(secs(30))));
    peer.wait(9_999).expect_state(State::Established);
    peer.wait(1).expect_state(State::Closed);
}

/// It also ends an attempt to connect.
#[test]
fn it_ends_an_attempt_to_connect() {
    let mut peer = Setup::default().profile(|p| p.user_timeout = Some(secs(10))).connecting();
    peer.run_to(9_999).expect_state(State::SynSent);
    peer.run_to(10_000).expect_state(State::Closed);
    assert_eq!(peer.connection.error(), Some(ConnectionError::TimedOut));
}

/// Against a closed window it counts the time without any answer.
#[test]
fn a_closed_window_that_answers_is_no_reason() {
    let mut peer =
        Setup::default().profile(|p| p.user_timeout = Some(secs(20))).window(1000).active();
    peer.write(2000).recv(seg().ack(1001).win(0)).drain();
    while peer.millis() < 120_000 {
        peer.next_timer();
        if !peer.drain().is_empty() {
            peer.recv(seg().ack(1001).win(0));
        }
    }
    peer.expect_state(State::Established);
    peer.wait(41_000).expect_state(State::Closed);
}

/// RFC 5482 section 3.1: in the SYN and in the first segment without SYN, and when it changes.
#[test]
fn it_is_advertised_if_enabled() {
    let setup = Setup::default()
        .profile(|p| (p.user_timeout, p.advertise_user_timeout) = (Some(ms(30_500)), true));
    let mut peer = setup.connecting();
    peer.write(1500);
    setup.accept(&mut peer);
    peer.expect(&["S 0:1 uto 31", "A 1:1 ack 1 uto 31", "A 1:1001 ack 1", "PA 1001:1501 ack 1"]);
    peer.recv(seg().ack(1501)).write(10).expect(&["PA 1501:1511 ack 1"]);
    peer.connection.set(Setting::UserTimeout(Some(secs(90))));
    peer.pump();
    peer.expect(&["A 1511:1511 ack 1 uto 90"]);
    peer.connection.set(Setting::UserTimeout(None));
    peer.pump();
    peer.silent();
    let mut quiet = Setup::default().profile(|p| p.user_timeout = Some(secs(30))).connecting();
    quiet.expect(&["S 0:1"]);
}

/// A passive open advertises it with the SYN-ACK and its first segment.
#[test]
fn a_passive_open_advertises_it_too() {
    let setup = Setup::default()
        .profile(|p| (p.user_timeout, p.advertise_user_timeout) = (Some(secs(40)), true));
    let (mut half, peer) = setup.half_open();
    assert_eq!(line(&half.syn_ack(&setup.profile, peer.now)), "SA 0:1 ack 1 uto 40");
    let (header, _) = peer.build(&seg().seq(1));
    let mut connection = Connection::from_half_open(Arc::new(setup.profile), &half, peer.now);
    let segment = Segment {
        header: &header,
        payload: Payload::EMPTY,
        segment_size: None,
        ecn: transom_wire::Ecn::NotEct,
    };
    connection.on_segment(peer.now, &segment);
    let first = connection.poll_transmit(peer.now).expect("a segment of its own").header;
    assert_eq!(line(&first), "A 1:1 ack 1 uto 40");
    assert!(connection.poll_transmit(peer.now).is_none());
}

/// The option fits beside timestamps and as many SACK blocks as it leaves room for.
#[test]
fn it_fits_beside_sack_blocks() {
    let mut peer =
        Setup::default().timestamps().profile(|p| p.advertise_user_timeout = true).active();
    for i in 1..=4 {
        peer.recv(seg().seq(1 + i * 1000).data(500));
    }
    peer.drain();
    peer.connection.set(Setting::UserTimeout(Some(secs(90))));
    peer.pump();
    peer.expect(&["A 1:1 ack 1 sack 4001-4501 3001-3501 uto 90"]);
}

/// The other side: min(U, max(own, theirs, L)); zero is ignored; what the application set stays.
#[test]
fn the_peers_wish_is_adopted_within_bounds() {
    let bounds = |own| {
        Setup::default().profile(move |p| {
            p.user_timeout = own;
            p.adopt_user_timeout = Some((secs(10), secs(100)));
        })
    };
    for (own, theirs, expected) in [
        (None, 50, Some(secs(50))),
        (None, 5, Some(secs(10))),
        (None, 500, Some(secs(100))),
        (None, 0, None),
        (Some(secs(60)), 50, Some(secs(60))),
        (Some(secs(30)), 50, Some(secs(50))),
    ] {
        let mut peer = bounds(own).active();
        peer.recv(seg().user_timeout(theirs));
        assert_eq!(peer.connection.settings().user_timeout, expected, "{own:?} {theirs}");
    }
    // With the SYN-ACK.
    let setup = bounds(None);
    let mut peer = setup.connecting();
    let syn_ack = seg().syn().options(setup.syn_options(&peer)).user_timeout(77);
    peer.recv(syn_ack);
    assert_eq!(peer.connection.settings().user_timeout, Some(secs(77)));
    // The application's word is the last.
    peer.connection.set(Setting::UserTimeout(Some(secs(3))));
    peer.recv(seg().user_timeout(50));
    assert_eq!(peer.connection.settings().user_timeout, Some(secs(3)));
    // Not asked for, or in a segment that is not acceptable.
    let mut peer = Setup::default().active();
    peer.recv(seg().user_timeout(50));
    assert_eq!(peer.connection.settings().user_timeout, None);
    let mut peer = bounds(None).active();
    peer.recv(seg().seq(90_000).user_timeout(50)).recv(seg().seq(1).ack(50).user_timeout(50));
    assert_eq!(peer.connection.settings().user_timeout, None);
    let nonsense = Profile::classic().with_adopt_user_timeout(Some((secs(2), secs(1))));
    assert_eq!(nonsense.validate(), Err(ProfileError::UserTimeoutBounds(secs(2), secs(1))));
}
