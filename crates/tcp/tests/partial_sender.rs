//! A sender that gives data up: what it announces instead of sending it again, and what it sends again all the same.

use crate::common;

use common::{ISS, Peer, Setup, ms, seg};
use transom_tcp::{Connection, IcmpError, Persistence, Phase, RecoveryChoice, State};
use transom_wire::Seq;

fn gives_up(setup: Setup) -> Setup {
    setup.partial(|profile| profile.persistence = Some(Persistence::NONE))
}

/// Ten segments are on their way, and the round-trip time of 100 ms has passed.
fn ten_segments(setup: &Setup) -> Peer {
    let mut peer = setup.active();
    peer.write(10_000);
    assert_eq!(peer.ranges().len(), 10);
    peer.wait(100);
    peer
}

fn given_up(peer: &Peer) -> u64 {
    peer.info().partial.unwrap().given_up_bytes
}

#[test]
fn a_loss_is_announced_and_not_repaired() {
    let mut peer = ten_segments(&gives_up(Setup::default()));
    // The second segment is lost.
    peer.recv(seg().ack(1001)).silent();
    peer.recv(seg().ack(1001).sack(&[(2001, 3001)])).silent();
    peer.recv(seg().ack(1001).sack(&[(2001, 4001)])).silent();
    // RFC 6675's IsLost: more than two segments above. Nothing before what may still be on its way will be sent again.
    peer.recv(seg().ack(1001).sack(&[(2001, 5001)]));
    peer.expect(&["A 10001:10001 ack 1 forward 5001"]);
    let info = peer.info();
    // Congestion control has seen it: half of the nine segments in flight.
    assert_eq!(
        (info.phase, info.ssthresh, &*info.recovery),
        (Phase::Recovery, 4500, "no-retransmission")
    );
    assert_eq!((info.lost, info.in_flight, given_up(&peer)), (1000, 5000, 1000));
    // Further duplicates bring nothing new.
    peer.recv(seg().ack(1001).sack(&[(2001, 6001)])).silent();
    // The receiver moves over the hole.
    peer.recv(seg().ack(6001)).silent();
    assert_eq!((peer.info().phase, peer.info().srtt), (Phase::Recovery, Some(ms(100))));
    peer.recv(seg().ack(10_001)).silent();
    let info = peer.info();
    assert_eq!((info.phase, info.unacknowledged), (Phase::Open, 0));
    assert_eq!(info.counters.retransmitted_segments, 0);
    // 9000 bytes have arrived, as far as anybody knows.
    assert_eq!(info.delivered, 9000);
    peer.wait(60_000).silent();
}

#[test]
fn an_announcement_that_is_lost_is_repeated_a_round_trip_later() {
    let mut peer = ten_segments(&gives_up(Setup::default()));
    peer.recv(seg().sack(&[(1001, 2001)])).recv(seg().sack(&[(1001, 3001)]));
    peer.recv(seg().sack(&[(1001, 4001)])).expect(&["A 10001:10001 ack 1 forward 4001"]);
    peer.wait(99).recv(seg().sack(&[(1001, 5001)])).silent();
    // That was a sample of 199 ms, and the next is one of 230: the smoothed round-trip time is 127 ms by then.
    peer.wait(31).recv(seg().sack(&[(1001, 6001)]));
    peer.expect(&["A 10001:10001 ack 1 forward 4001"]);
    peer.recv(seg().ack(6001)).silent();
}

#[test]
fn a_further_loss_moves_the_point_on() {
    let mut peer = ten_segments(&gives_up(Setup::default()));
    // Segments 1 and 5 are lost.
    peer.recv(seg().sack(&[(1001, 4001)])).expect(&["A 10001:10001 ack 1 forward 4001"]);
    peer.recv(seg().sack(&[(5001, 8001), (1001, 4001)]));
    peer.expect(&["A 10001:10001 ack 1 forward 8001"]);
    peer.recv(seg().ack(10_001)).silent();
    assert_eq!((given_up(&peer), peer.info().phase), (2000, Phase::Open));
}

#[test]
fn without_sack_duplicates_tell_of_losses_one_by_one() {
    let mut peer = ten_segments(&gives_up(Setup::newreno()));
    // Segments 1 and 5 are lost.
    peer.recv(seg()).recv(seg()).silent();
    peer.recv(seg()).expect(&["A 10001:10001 ack 1 forward 1001"]);
    // The receiver moves on and stands before the next hole: RFC 6582's partial acknowledgement.
    peer.recv(seg().ack(4001)).expect(&["A 10001:10001 ack 1 forward 5001"]);
    peer.recv(seg().ack(10_001)).silent();
    assert_eq!((given_up(&peer), peer.info().phase), (2000, Phase::Open));
    assert_eq!(peer.info().counters.retransmitted_segments, 0);
}

#[test]
fn new_data_goes_on_while_old_is_given_up() {
    let mut peer = gives_up(Setup::default()).active();
    peer.write(20_000);
    assert_eq!(peer.ranges().len(), 10);
    peer.wait(100).recv(seg().sack(&[(1001, 4001)]));
    // Ten segments less three that arrived and one that is lost: cwnd is 5000 now, six are in flight.
    peer.expect(&["A 10001:10001 ack 1 forward 4001"]);
    assert_eq!((peer.info().cwnd, peer.info().in_flight), (5000, 6000));
    peer.recv(seg().sack(&[(1001, 6001)]));
    peer.expect(&["A 10001:11001 ack 1"]);
}

#[test]
fn the_tail_is_given_up_by_the_timer() {
    let mut peer = gives_up(Setup::default()).active();
    // RTO 300 ms.
    peer.write(3000).drain();
    peer.next_timer();
    peer.expect_timed(&["400 A 3001:3001 ack 1 forward 3001"]);
    assert_eq!((peer.info().phase, peer.info().in_flight), (Phase::Loss, 0));
    assert_eq!(peer.info().counters.timeouts, 1);
    peer.recv(seg().ack(3001)).silent();
    assert_eq!((peer.info().phase, peer.info().unacknowledged), (Phase::Open, 0));
    // Bytes that were never delivered do not open the window.
    assert_eq!((peer.info().cwnd, peer.info().delivered), (1000, 0));
}

#[test]
fn a_path_that_swallows_announcements_gets_the_data_after_all() {
    let mut peer = gives_up(Setup::default()).active();
    peer.write(3000).drain();
    peer.run_to(2500);
    // The announcement and two repetitions, with the timer's back-off.
    peer.expect_timed(&[
        "400 A 3001:3001 ack 1 forward 3001",
        "1000 A 3001:3001 ack 1 forward 3001",
        "2200 A 3001:3001 ack 1 forward 3001",
    ]);
    peer.next_timer().expect_timed(&["4600 A 1:1001 ack 1"]);
    peer.recv(seg().ack(1001)).expect(&["A 1001:2001 ack 1", "PA 2001:3001 ack 1"]);
    peer.recv(seg().ack(3001)).silent();
    // From then on things are as before.
    peer.write(1000).drain();
    peer.wait(5000);
    assert_eq!(peer.drain()[0].line(), "A 4001:4001 ack 1 forward 4001");
}

#[test]
fn the_fin_is_sent_until_it_is_acknowledged() {
    let setup = gives_up(Setup::default());
    let mut peer = setup.connecting();
    peer.write(1500).shutdown();
    setup.accept(&mut peer);
    peer.expect(&["S 0:1 partial", "A 1:1001 ack 1", "FPA 1001:1502 ack 1"]);
    peer.next_timer();
    peer.expect(&["A 1502:1502 ack 1 forward 1501", "FA 1501:1502 ack 1"]);
    // The announcement arrived, the FIN did not.
    peer.recv(seg().ack(1501)).silent();
    peer.next_timer().expect(&["FA 1501:1502 ack 1"]);
    peer.recv(seg().ack(1502)).expect_state(State::FinWait2);
    assert_eq!(given_up(&peer), 1500);
}

#[test]
fn a_fin_alone_is_not_data() {
    let mut peer = gives_up(Setup::default()).active();
    peer.shutdown().expect(&["FA 1:2 ack 1"]);
    peer.next_timer().expect(&["FA 1:2 ack 1"]);
    peer.next_timer().expect(&["FA 1:2 ack 1"]);
    assert_eq!(given_up(&peer), 0);
}

#[test]
fn a_window_probe_is_repeated() {
    let mut peer = gives_up(Setup::default()).window(1000).active();
    peer.write(3000).expect(&["A 1:1001 ack 1"]);
    peer.recv(seg().ack(1001).win(0)).silent();
    peer.next_timer().expect(&["A 1001:1002 ack 1"]);
    peer.next_timer().expect(&["A 1001:1002 ack 1"]);
    // The window opens: what the probe carried is sent like all other data, once.
    peer.recv(seg().ack(1001).win(1000)).expect(&["A 1001:2001 ack 1"]);
    // All of that is lost, and the window closes.
    peer.next_timer().expect(&["A 2001:2001 ack 1 forward 2001"]);
    peer.recv(seg().ack(2001).win(0)).silent();
    peer.next_timer().expect(&["A 2001:2002 ack 1"]);
}

#[test]
fn nothing_is_sent_again_to_find_out_whether_it_was_lost() {
    // RFC 8985's probe is new data, or nothing.
    let mut peer = gives_up(Setup::default())
        .profile(|profile| profile.recovery = RecoveryChoice::RackTlp)
        .active();
    peer.write(2000).expect(&["A 1:1001 ack 1", "PA 1001:2001 ack 1"]);
    peer.next_timer().silent();
    peer.next_timer().expect(&["A 2001:2001 ack 1 forward 2001"]);
    // RFC 6675's rule 3 would send what lies below something that arrived, though it is not lost yet.
    let mut peer = ten_segments(&gives_up(Setup::default()));
    peer.recv(seg().sack(&[(1001, 4001)])).drain();
    peer.recv(seg().sack(&[(5001, 6001), (1001, 4001)])).silent();
    peer.recv(seg().sack(&[(8001, 10_001), (5001, 6001), (1001, 4001)]));
    peer.expect(&["A 10001:10001 ack 1 forward 6001"]);
    assert_eq!(peer.info().counters.retransmitted_segments, 0);
}

#[test]
fn data_too_big_for_the_path_is_given_up_at_once() {
    let mut peer = gives_up(Setup::default()).active();
    peer.write(3000).drain();
    peer.connection.on_icmp(peer.now, IcmpError::TooBig(600), Seq::new(ISS.wrapping_add(1)));
    peer.pump();
    peer.expect(&["A 3001:3001 ack 1 forward 3001"]);
    assert_eq!(peer.info().counters.retransmitted_segments, 0);
}

#[test]
fn one_retransmission_and_no_more() {
    let once = Persistence::new(Some(1), None);
    let setup = Setup::default().partial(|profile| profile.persistence = Some(once));
    let mut peer = ten_segments(&setup);
    peer.recv(seg().sack(&[(1001, 4001)])).expect(&["A 1:1001 ack 1"]);
    assert_eq!(peer.info().recovery, "limited-retransmission");
    peer.recv(seg().sack(&[(1001, 10_001)])).silent();
    // That is lost too.
    peer.next_timer();
    peer.expect(&["A 10001:10001 ack 1 forward 10001"]);
    peer.recv(seg().ack(10_001)).silent();
    assert_eq!((given_up(&peer), peer.info().phase), (1000, Phase::Open));
}

#[test]
fn a_lifetime_ends_to_the_millisecond() {
    let brief = Persistence::new(None, Some(ms(150)));
    let setup = Setup::default().partial(|profile| profile.persistence = Some(brief));
    // First sent at 100.
    let mut peer = ten_segments(&setup);
    peer.recv(seg().sack(&[(1001, 4001)])).expect_timed(&["200 A 1:1001 ack 1"]);
    peer.recv(seg().sack(&[(1001, 10_001)])).silent();
    peer.run_to(249).silent();
    peer.run_to(250).expect_timed(&["250 A 10001:10001 ack 1 forward 10001"]);
    peer.recv(seg().ack(10_001)).silent();
    assert_eq!(given_up(&peer), 1000);
}

#[test]
fn data_given_up_behind_a_repair_is_announced_after_it() {
    // Lifetimes end in the order of the data; numbers of transmissions need not.
    let once = Persistence::new(Some(1), None);
    let setup = Setup::default().partial(|profile| profile.persistence = Some(once));
    let mut peer = setup.active();
    peer.write(2000).drain();
    // Both are lost. The first is sent again; cwnd is one segment.
    peer.next_timer().expect(&["A 1:1001 ack 1"]);
    // That arrives; the second is sent again, with new data behind it.
    peer.write(1000).silent();
    peer.recv(seg().ack(1001)).expect(&["A 1001:2001 ack 1", "PA 2001:3001 ack 1"]);
    peer.next_timer();
    // The second has had its chance, the third not.
    peer.expect(&["A 3001:3001 ack 1 forward 2001", "PA 2001:3001 ack 1"]);
    peer.recv(seg().ack(3001)).silent();
    assert_eq!(given_up(&peer), 1000);
}

#[test]
fn a_plain_peer_gets_everything() {
    let mut setup = gives_up(Setup::default());
    setup.partial = false;
    let mut peer = setup.connecting();
    peer.expect(&["S 0:1 partial"]);
    setup.accept(&mut peer);
    peer.expect(&["A 1:1 ack 1"]);
    let info = peer.info();
    assert_eq!(info.recovery, "sack");
    assert!(!info.partial.unwrap().agreed && info.partial.unwrap().persistence.is_none());
    peer.write(10_000).drain();
    peer.wait(100).recv(seg().sack(&[(1001, 4001)])).expect(&["A 1:1001 ack 1"]);
    assert_eq!(given_up(&peer), 0);
}

#[test]
fn the_option_is_dropped_from_a_syn_that_is_not_answered() {
    let mut peer = gives_up(Setup::default()).connecting();
    peer.next_timer().next_timer().expect(&["S 0:1 partial", "S 0:1 partial", "S 0:1"]);
    // An answer to one of the first still counts.
    let setup = gives_up(Setup::default());
    setup.accept(&mut peer);
    assert!(peer.info().partial.unwrap().agreed);
}

#[test]
fn it_is_agreed_in_a_passive_open_too_and_only_if_both_want_it() {
    let peer = gives_up(Setup::default()).passive();
    assert_eq!(peer.info().recovery, "no-retransmission");
    // Not wanted here: not even answered.
    let unwilling = Setup { partial: true, ..Setup::default() };
    let (mut half, peer) = unwilling.half_open();
    let answer = half.syn_ack(&unwilling.profile, peer.now);
    assert_eq!((answer.options.partial, half.agreed.partial), (None, false));
    assert_eq!(unwilling.passive().info().partial, None);
    // Not wanted there.
    let alone = Setup { partial: false, ..gives_up(Setup::default()) };
    let (mut half, peer) = alone.half_open();
    assert_eq!(half.syn_ack(&alone.profile, peer.now).options.partial, None);
    assert_eq!(alone.passive().info().recovery, "sack");
}

#[test]
fn partial_reliability_costs_an_ordinary_connection_nothing() {
    // The state is in a box that ordinary connections do not have. Their units are in the connection itself.
    assert!(size_of::<Connection>() <= 1920, "{}", size_of::<Connection>());
}
