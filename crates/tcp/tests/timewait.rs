//! TIME-WAIT without the connection (RFC 9293 sections 3.6.1 and 3.10.7.4, RFC 1337, RFC 6191).

use crate::common;

use common::{Peer, Setup, line, ms, secs, seg, theirs};
use transom_tcp::packet::Payload;
use transom_tcp::{Segment, TimeWait, TimeWaitAction};

/// 100 bytes went each way; SND.NXT is 102, RCV.NXT 102, both FINs included. It is 100 ms and TS.Recent is 5100.
fn waiting(setup: &Setup) -> (TimeWait, Peer) {
    let mut peer = setup.active();
    peer.write(100).recv(seg().ack(101).data(100)).read(100).shutdown();
    assert!(TimeWait::new(&peer.connection, peer.now).is_none(), "not yet");
    peer.recv(seg().ack(102).fin());
    let wait = TimeWait::new(&peer.connection, peer.now).expect("TIME-WAIT");
    (wait, peer)
}

fn answer(wait: &mut TimeWait, peer: &Peer, segment: common::Seg) -> String {
    let (header, payload) = peer.build(&segment);
    let segment = Segment {
        header: &header,
        payload: Payload::borrowed(&payload),
        segment_size: None,
        ecn: transom_wire::Ecn::NotEct,
    };
    match wait.on_segment(peer.now, &segment) {
        TimeWaitAction::Ignore => "ignored".into(),
        TimeWaitAction::Ack(header) => line(&header),
        TimeWaitAction::Reopen(seq) => {
            format!("reopen beyond {}", seq.distance_from(peer.connection.iss()))
        }
    }
}

/// [MUST-13] Two segment lifetimes, anew with each FIN that comes again.
#[test]
fn it_lasts_two_segment_lifetimes() {
    let (mut wait, mut peer) = waiting(&Setup::default());
    assert_eq!(wait.expires, peer.now + secs(60));
    peer.now += secs(30);
    assert_eq!(answer(&mut wait, &peer, seg().seq(101).ack(102).fin()), "A 102:102 ack 102");
    assert_eq!(wait.expires, peer.now + secs(60));
    // With data in front of it, as it was sent first.
    peer.now += secs(30);
    assert_eq!(
        answer(&mut wait, &peer, seg().seq(51).ack(102).data(50).fin()),
        "A 102:102 ack 102"
    );
    assert_eq!(wait.expires, peer.now + secs(60));
    // A FIN elsewhere is answered and prolongs nothing.
    peer.now += secs(30);
    assert_eq!(answer(&mut wait, &peer, seg().seq(40).ack(102).fin()), "A 102:102 ack 102");
    assert_eq!(wait.expires, peer.now + secs(30));
}

/// RFC 1337: nothing shortens it, no reset, no acknowledgement, no old data.
#[test]
fn it_is_not_assassinated() {
    let (mut wait, peer) = waiting(&Setup::default());
    let expires = wait.expires;
    for reset in [seg().seq(102).rst(), seg().seq(103).rst(), seg().seq(102).rst_ack(102)] {
        assert_eq!(answer(&mut wait, &peer, reset), "ignored");
    }
    assert_eq!(answer(&mut wait, &peer, seg().seq(102).ack(102)), "ignored");
    assert_eq!(answer(&mut wait, &peer, seg().seq(1).ack(1).data(100)), "A 102:102 ack 102");
    assert_eq!(wait.expires, expires);
}

/// Answers to what may be forged are two a second.
#[test]
fn answers_are_limited() {
    let (mut wait, mut peer) = waiting(&Setup::default());
    let mut answered = 0;
    for _ in 0..100 {
        peer.now += ms(10);
        answered += usize::from(answer(&mut wait, &peer, seg().seq(9_000_000)) != "ignored");
    }
    assert_eq!(answered, 2);
}

/// [MAY-2] Without timestamps a SYN beyond all old sequence numbers opens anew; our next ISS lies beyond the old ones.
#[test]
fn a_new_incarnation_by_sequence_number() {
    let setup = Setup::default();
    let (mut wait, mut peer) = waiting(&setup);
    let options = setup.syn_options(&peer);
    let syn = |seq| seg().seq(seq).syn().no_ack().options(options);
    assert_eq!(answer(&mut wait, &peer, syn(103)), "reopen beyond 102");
    assert_eq!(answer(&mut wait, &peer, syn(1 << 30)), "reopen beyond 102");
    // An old duplicate leads back to TIME-WAIT: it is acknowledged, and a true peer would reset.
    assert_eq!(answer(&mut wait, &peer, syn(0)), "A 102:102 ack 102");
    peer.now += secs(1);
    assert_eq!(answer(&mut wait, &peer, syn(102)), "A 102:102 ack 102");
    // A SYN-ACK opens nothing, and is challenged (RFC 5961 section 4.2).
    peer.now += secs(1);
    assert_eq!(answer(&mut wait, &peer, seg().seq(500).syn()), "A 102:102 ack 102");
}

/// RFC 9293 section 3.10.7.4: what is not acceptable is answered. After the peer's FIN that is everything but its last acknowledgement.
#[test]
fn segments_other_than_the_last_acknowledgement_are_answered() {
    let (mut wait, mut peer) = waiting(&Setup::default());
    let expires = wait.expires;
    assert_eq!(answer(&mut wait, &peer, seg().seq(102).ack(102)), "ignored");
    // A keep-alive, and an acknowledgement beyond the FIN.
    for seq in [101, 103, 2_000] {
        peer.now += secs(1);
        assert_eq!(answer(&mut wait, &peer, seg().seq(seq).ack(102)), "A 102:102 ack 102");
    }
    // Without ACK too, if it is outside of the window; inside it is dropped.
    for segment in [seg().seq(101).fin(), seg().seq(101), seg().seq(50).data(52), seg().seq(-3)] {
        peer.now += secs(1);
        assert_eq!(answer(&mut wait, &peer, segment.no_ack()), "A 102:102 ack 102");
    }
    for segment in [seg().seq(102), seg().seq(102).data(5), seg().seq(2_000)] {
        peer.now += secs(1);
        assert_eq!(answer(&mut wait, &peer, segment.no_ack()), "ignored");
    }
    assert_eq!(wait.expires, expires);
}

/// Only the FIN itself is answered each time: FINs that stand elsewhere are forged.
#[test]
fn forged_fins_are_answered_twice_a_second() {
    let (mut wait, mut peer) = waiting(&Setup::default());
    let mut answered = 0;
    for _ in 0..100 {
        peer.now += ms(10);
        let forged = seg().seq(5_000).ack(102).fin();
        answered += usize::from(answer(&mut wait, &peer, forged) != "ignored");
    }
    assert_eq!(answered, 2);
}

/// [SHLD-4] RFC 6191 section 2: a later timestamp is enough, whatever the sequence number; the same one leaves it to
/// the sequence number; an earlier one is an old duplicate.
#[test]
fn a_new_incarnation_by_timestamp() {
    let setup = Setup::default().timestamps();
    let (mut wait, mut peer) = waiting(&setup);
    let syn = |seq, stamp| {
        let options = setup.syn_options(&Setup::default().connecting());
        seg().seq(seq).syn().no_ack().options(options).ts(stamp, 0)
    };
    assert_eq!(answer(&mut wait, &peer, syn(5, 5_101)), "reopen beyond 102");
    assert_eq!(answer(&mut wait, &peer, syn(103, 5_100)), "reopen beyond 102");
    assert_eq!(answer(&mut wait, &peer, syn(102, 5_100)), "A 102:102 ack 102");
    peer.now += secs(1);
    assert_eq!(answer(&mut wait, &peer, syn(50_000, 5_099)), "A 102:102 ack 102");
    // Without the option: by the sequence number.
    peer.now += secs(1);
    assert_eq!(answer(&mut wait, &peer, syn(103, 0).no_ts()), "reopen beyond 102");
    assert_eq!(answer(&mut wait, &peer, syn(102, 0).no_ts()), "A 102:102 ack 102");
}

/// The acknowledgements carry timestamps and the last window, as the connection's would.
#[test]
fn answers_look_like_the_connections() {
    let setup = Setup::default().timestamps();
    let (mut wait, mut peer) = waiting(&setup);
    peer.now += ms(400);
    let (header, payload) = peer.build(&seg().seq(101).ack(102).fin());
    let segment = Segment {
        header: &header,
        payload: Payload::borrowed(&payload),
        segment_size: None,
        ecn: transom_wire::Ecn::NotEct,
    };
    let TimeWaitAction::Ack(ack) = wait.on_segment(peer.now, &segment) else { panic!("an answer") };
    peer.connection.on_segment(peer.now, &segment);
    let own = peer.connection.poll_transmit(peer.now).expect("an answer").header;
    assert_eq!(ack, own);
    assert_eq!(ack.ack, theirs(102));
}

/// An old timestamp on anything else is an old duplicate (PAWS), FIN or not.
#[test]
fn old_segments_prolong_nothing() {
    let (mut wait, mut peer) = waiting(&Setup::default().timestamps());
    peer.now += secs(10);
    let expires = wait.expires;
    let old = seg().seq(101).ack(102).fin().ts(5_000, 7_000);
    assert_eq!(answer(&mut wait, &peer, old), "A 102:102 ack 102");
    assert_eq!(wait.expires, expires);
}

/// Our own side may reuse the ports a second later, if timestamps tell the incarnations apart.
#[test]
fn reuse_by_an_active_open() {
    let (wait, peer) = waiting(&Setup::default().timestamps());
    assert!(!wait.may_be_reused(peer.now + secs(1)));
    assert!(wait.may_be_reused(peer.now + ms(1001)));
    let (wait, peer) = waiting(&Setup::default());
    assert!(!wait.may_be_reused(peer.now + secs(59)));
}
