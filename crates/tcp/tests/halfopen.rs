//! Passive opens: a listener's entry for a SYN, and the connection it becomes (RFC 9293 sections 3.5, 3.10.7.2 and
//! 3.10.7.4 for SYN-RECEIVED).

use crate::common;

use common::{ISS, PORTS, Setup, half_open, line, ms, secs, seg};
use std::sync::Arc;
use transom_tcp::time::Instant;
use transom_tcp::{Connection, HalfOpen, HalfOpenAction, Signal, State};
use transom_wire::{Seq, Timestamps};

fn reply(action: HalfOpenAction) -> String {
    match action {
        HalfOpenAction::Challenge(header) | HalfOpenAction::Reset(header) => line(&header),
        other => format!("{other:?}"),
    }
}

/// [MUST-14] The SYN-ACK answers what was offered, and only that. [SHLD-5]
#[test]
fn the_syn_ack() {
    let setup = Setup::default().timestamps().scale(5);
    let (mut half, peer) = setup.half_open();
    let syn_ack = half.syn_ack(&setup.profile, peer.now);
    assert_eq!(line(&syn_ack), "SA 0:1 ack 1");
    assert_eq!(syn_ack.options.mss, Some(1460));
    assert_eq!(syn_ack.options.window_scale, Some(0));
    assert!(syn_ack.options.sack_permitted);
    assert_eq!(syn_ack.options.timestamps, Some(Timestamps { value: 7_000, echo: 5_000 }));
    assert_eq!(syn_ack.window, 65_535);
    let bare = Setup { sack: false, mss: None, ..Setup::default() };
    let profile = setup.profile;
    let (mut half, peer) = Setup { profile: profile.clone(), ..bare }.half_open();
    let syn_ack = half.syn_ack(&profile, peer.now);
    assert_eq!(syn_ack.options.window_scale, None);
    assert_eq!(syn_ack.options.timestamps, None);
    assert!(!syn_ack.options.sack_permitted);
    assert_eq!(syn_ack.options.mss, Some(1460), "the MSS is sent in any case");
    assert_eq!(half.agreed.peer_mss, 536);
}

/// An ordinary passive open, with data right behind the handshake.
#[test]
fn a_passive_open() {
    let setup = Setup::default().timestamps().scale(2);
    let mut peer = setup.passive();
    assert_eq!(peer.info().srtt, Some(ms(100)), "the SYN-ACK was measured");
    assert_eq!(peer.info().mss, 988);
    assert_eq!(peer.info().snd_wnd, 65_535 << 2);
    peer.recv(seg().data(100)).wait(100).expect(&["A 1:1 ack 101"]);
    peer.write(1000).expect(&["A 1:989 ack 101", "PA 989:1001 ack 101"]);
}

/// The acknowledgement of the SYN-ACK may be lost: the first data completes the handshake, and a FIN would too.
#[test]
fn data_or_fin_completes_the_handshake() {
    let setup = Setup::default();
    let (mut half, mut peer) = setup.half_open();
    half.syn_ack(&setup.profile, peer.now);
    peer.now += ms(30);
    let first = seg().seq(1).data(200).fin();
    let (header, payload) = peer.build(&first);
    assert_eq!(half_open(&half, &peer, &header), HalfOpenAction::Complete);
    peer.connection = Connection::from_half_open(Arc::new(setup.profile), &half, peer.now);
    peer.deliver(&header, &payload);
    peer.pump();
    peer.expect(&["A 1:1 ack 202"]);
    peer.expect_state(State::CloseWait).read(200);
    let events = peer.take_signals();
    assert!(events.contains(&Signal::Connected) && events.contains(&Signal::Readable));
}

/// [MUST-11] A listener's entry: an acceptable reset returns to LISTEN in silence, nobody hears of it; elsewhere in
/// the window it is challenged, outside ignored (RFC 5961 section 3).
#[test]
fn resets() {
    let (half, peer) = Setup::default().half_open();
    for (seq, expected) in [
        (1, "Drop"),
        (2, "A 1:1 ack 1"),
        (60_000, "A 1:1 ack 1"),
        (0, "Ignore"),
        (70_000, "Ignore"),
    ] {
        let (header, _) = peer.build(&seg().seq(seq).rst());
        assert_eq!(reply(half_open(&half, &peer, &header)), expected, "at {seq}");
    }
}

/// The same SYN again has the SYN-ACK repeated; another, or one with ACK, is challenged. A host that lost its state
/// then answers with the reset that returns us to LISTEN.
#[test]
fn syns() {
    let setup = Setup::default();
    let (half, peer) = setup.half_open();
    let options = setup.syn_options(&peer);
    let syn = |seq| seg().seq(seq).syn().no_ack().options(options);
    let (same, _) = peer.build(&syn(0));
    assert_eq!(half_open(&half, &peer, &same), HalfOpenAction::RepeatSynAck);
    for segment in [syn(5), syn(90_000), seg().seq(0).syn()] {
        let (other, _) = peer.build(&segment);
        assert_eq!(reply(half_open(&half, &peer, &other)), "A 1:1 ack 1");
    }
}

/// Section 3.10.7.4, fifth step: an unacceptable acknowledgement is reset, and the entry stays.
#[test]
fn acknowledgements() {
    let (half, peer) = Setup::default().half_open();
    for ack in [0, 2, -9, 100_000] {
        let (header, _) = peer.build(&seg().seq(1).ack(ack));
        assert_eq!(reply(half_open(&half, &peer, &header)), format!("R {ack}:{ack}"));
    }
    let (header, _) = peer.build(&seg().seq(1).no_ack().data(5));
    assert_eq!(half_open(&half, &peer, &header), HalfOpenAction::Ignore);
    let (header, _) = peer.build(&seg().seq(70_000));
    assert_eq!(reply(half_open(&half, &peer, &header)), "A 1:1 ack 1", "outside the window");
}

/// PAWS holds for the entry too (RFC 7323 section 5.3).
#[test]
fn timestamps() {
    let (half, peer) = Setup::default().timestamps().half_open();
    let (old, _) = peer.build(&seg().seq(1).ts(4_999, 7_000));
    assert_eq!(reply(half_open(&half, &peer, &old)), "A 1:1 ack 1");
    let (none, _) = peer.build(&seg().seq(1).no_ts());
    assert_eq!(half_open(&half, &peer, &none), HalfOpenAction::Ignore);
    let (reset, _) = peer.build(&seg().seq(1).no_ts().rst());
    assert_eq!(half_open(&half, &peer, &reset), HalfOpenAction::Drop);
}

/// The SYN-ACK is repeated with exponential back-off until it was tried often enough.
#[test]
fn the_syn_ack_is_repeated() {
    let setup = Setup::default();
    let (mut half, _) = setup.half_open();
    let mut now = Instant::ZERO;
    let mut times = vec![];
    while half.transmissions <= 5 {
        half.syn_ack(&setup.profile, now);
        times.push(now.as_millis());
        now = half.deadline;
    }
    assert_eq!(times, [0, 1_000, 3_000, 7_000, 15_000, 31_000]);
}

/// RFC 6298 section 5.7 and RFC 5681 section 3.1 on this side: after a repeated SYN-ACK no sample, three seconds, one
/// segment.
#[test]
fn a_lost_syn_ack_makes_the_start_cautious() {
    let setup = Setup::default();
    let (mut half, mut peer) = setup.half_open();
    half.syn_ack(&setup.profile, peer.now);
    peer.now = half.deadline;
    half.syn_ack(&setup.profile, peer.now);
    let (header, _) = peer.build(&seg().seq(1));
    peer.connection = Connection::from_half_open(Arc::new(setup.profile), &half, peer.now);
    peer.deliver(&header, &[]);
    let info = peer.info();
    assert_eq!((info.srtt, info.rto, info.cwnd), (None, secs(3), 1000));
}

/// Rebuilt from a SYN cookie, it completes like any other.
#[test]
fn from_a_cookie() {
    let setup = Setup::default();
    let (original, mut peer) = setup.half_open();
    let (ack, _) = peer.build(&seg().seq(1).win(3000));
    let options = setup.syn_options(&peer);
    let half =
        HalfOpen::from_cookie(&setup.profile, PORTS, setup.path, 7_000, &ack, &options, peer.now);
    assert_eq!((half.iss, half.irs), (Seq::new(ISS), original.irs));
    assert_eq!(half_open(&half, &peer, &ack), HalfOpenAction::Complete);
    peer.connection = Connection::from_half_open(Arc::new(setup.profile), &half, peer.now);
    peer.deliver(&ack, &[]);
    peer.expect_state(State::Established);
    assert_eq!((peer.info().mss, peer.info().snd_wnd), (1000, 3000));
}
