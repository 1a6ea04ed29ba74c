//! What a window is worth that was not used, worked by hand (RFC 5681 section 4.1, RFC 7661).

use crate::common;

use common::{Peer, Setup, seg};
use transom_tcp::ValidationChoice::{self, Cwv, Keep, RestartWindow};
use transom_tcp::compose::compose_classic as compose;

/// Segments of 1000 bytes, 100 ms there and back, an RTO of 500 ms; the window has grown to `segments`, 10 or 20 or 40.
fn grown(validation: ValidationChoice, segments: usize) -> Peer {
    let setup = Setup::default().min_rto(500);
    let mut peer = setup.profile(|profile| profile.validation = validation).active();
    let mut flight = 10;
    while flight < segments {
        exchange(&mut peer, flight);
        flight *= 2;
    }
    assert_eq!(peer.info().cwnd, segments as u64 * 1000);
    peer
}

/// So many segments are written, and acknowledged after a round trip.
fn exchange(peer: &mut Peer, segments: usize) {
    peer.write(segments * 1000).drain();
    let end = peer.info().snd_nxt.stream_offset() as i64 + 1;
    peer.wait(100).recv(seg().ack(end)).drain();
}

/// After a second of silence 30 segments are written: the restart window is ten of them, the window that was 20.
#[test]
fn after_a_silence() {
    for (validation, leave) in [(RestartWindow, 10), (Keep, 20), (Cwv, 20)] {
        let mut peer = grown(validation, 20);
        peer.wait(1000).write(30_000);
        assert_eq!(peer.drain().len(), leave, "{validation:?}");
        assert_eq!(peer.info().cwnd, leave as u64 * 1000, "{validation:?}");
    }
}

/// Five minutes later RFC 7661 has halved it, and slow start leads to three quarters of what it was; ten seconds earlier not.
#[test]
fn after_five_minutes() {
    for (seconds, cwnd) in [(290, 40_000), (301, 20_000), (601, 10_000)] {
        let mut peer = grown(Cwv, 40);
        peer.wait(seconds * 1000).write(60_000);
        assert_eq!(peer.drain().len() as u64 * 1000, cwnd, "{seconds} s");
        assert_eq!(peer.info().cwnd, cwnd);
    }
    let mut peer = grown(Keep, 40);
    peer.wait(601_000).write(60_000);
    assert_eq!(peer.drain().len(), 40);
}

/// An application that sends a quarter of the window each round trip: it neither grows nor shrinks.
#[test]
fn a_window_of_which_a_quarter_is_used() {
    for validation in [RestartWindow, Keep, Cwv] {
        let mut peer = grown(validation, 40);
        for _ in 0..30 {
            exchange(&mut peer, 10);
            assert_eq!(peer.info().cwnd, 40_000, "{validation:?}");
        }
        // All of it may be used again, and then it grows.
        exchange(&mut peer, 40);
        assert_eq!(peer.info().cwnd, 80_000, "{validation:?}");
    }
}

/// The first of `segments` is lost, the others are selectively acknowledged, and after a round trip it is there too. Returns cwnd in the
/// recovery, and cwnd and ssthresh after it.
fn lose_one(peer: &mut Peer, segments: i64) -> (u64, u64, u64) {
    let una = peer.info().snd_una.stream_offset() as i64 + 1;
    peer.write(segments as usize * 1000).drain();
    peer.wait(100);
    for arrived in 2..=segments {
        peer.recv(seg().ack(una).sack(&[(una + 1000, una + arrived * 1000)]));
    }
    let during = peer.info().cwnd;
    assert_eq!(peer.info().phase, transom_tcp::Phase::Recovery);
    peer.wait(100).recv(seg().ack(una + segments * 1000)).drain();
    let after = peer.info();
    (during, after.cwnd, after.ssthresh)
}

/// RFC 7661 section 4.4.1. A window of 40 of which 12 are used, and then a loss among four: max(12, 4)/2 = 6, and after one segment was sent
/// again (12 − 1)/2 = 5.5. RFC 5681 has half of the flight, two. With the loss among 16: 8, and (16 − 1)/2 = 7.5.
#[test]
fn a_loss_in_the_nonvalidated_phase() {
    for (validation, lost, expected) in [
        (Cwv, 4, (6000, 5500, 5500)),
        (Keep, 4, (2000, 2000, 2000)),
        (Cwv, 16, (8000, 7500, 7500)),
        (Keep, 16, (8000, 8000, 8000)),
    ] {
        let mut peer = grown(validation, 40);
        for _ in 0..15 {
            exchange(&mut peer, 12);
        }
        assert_eq!(lose_one(&mut peer, lost), expected, "{validation:?}, {lost} segments");
    }
}

/// Half a second ago 20 segments were acknowledged in a round trip, which is half of 40. The window is validated still, and a loss does what it
/// always does.
#[test]
fn a_loss_in_the_validated_phase() {
    let mut peer = grown(Cwv, 40);
    for _ in 0..3 {
        exchange(&mut peer, 12);
    }
    assert_eq!(lose_one(&mut peer, 32), (16_000, 16_000, 16_000));
}

/// After a recovery nothing is known until a round trip is over: the next loss is RFC 5681's business.
#[test]
fn after_a_recovery_the_standard_rules() {
    let mut peer = grown(Cwv, 40);
    for _ in 0..15 {
        exchange(&mut peer, 12);
    }
    assert_eq!(lose_one(&mut peer, 16), (8000, 7500, 7500));
    assert_eq!(lose_one(&mut peer, 6), (3000, 3000, 3000));
}

/// With a controller that keeps 0.7 of a window the share is its own: 0.7·16 = 11.2, and 0.7·(16 − 1) = 10.5.
#[test]
fn the_share_is_the_controllers() {
    let profile = compose("cubic + cwv + sack").unwrap();
    let mut peer = Setup::default()
        .min_rto(500)
        .profile(|own| (own.congestion, own.validation) = (profile.congestion, profile.validation))
        .active();
    for flight in [10, 20] {
        exchange(&mut peer, flight);
    }
    for _ in 0..15 {
        exchange(&mut peer, 12);
    }
    assert_eq!(lose_one(&mut peer, 16), (11_200, 10_500, 10_500));
}
