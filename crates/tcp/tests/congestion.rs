//! Slow start and congestion avoidance, traced by hand (RFC 5681 section 3.1, RFC 6928, RFC 3465).

use crate::common;

use common::{Peer, Setup, seg};
use transom_tcp::{CongestionChoice, Counting, InitialWindow, Phase, Setting};

/// One round: everything that is out is acknowledged, one acknowledgement for each `per_ack` segments, `millis` later.
/// Returns the segments sent in answer.
fn round(peer: &mut Peer, per_ack: i64, millis: u64) -> usize {
    peer.wait(millis);
    let una = peer.info().snd_una.stream_offset() as i64 + 1;
    let nxt = peer.info().snd_nxt.stream_offset() as i64 + 1;
    let mut at = una;
    while at < nxt {
        at = (at + per_ack * 1000).min(nxt);
        peer.recv(seg().ack(at));
    }
    peer.ranges().len()
}

fn bulk(setup: Setup) -> Peer {
    let mut peer = setup.scale(7).active();
    peer.recv(seg().win(65_535));
    peer.connection.set(Setting::SendBuffer(4 << 20));
    peer.write(2_000_000).drain();
    peer
}

/// RFC 6928: ten segments, or 14600 bytes if they are larger, but two at the least.
#[test]
fn the_initial_window() {
    for (mss, cwnd) in [(536, 5_360), (1000, 10_000), (1460, 14_600)] {
        let peer = Setup::default().mss(Some(mss)).active();
        assert_eq!(peer.info().cwnd, cwnd);
    }
    let mut setup = Setup::default().mss(Some(8960));
    (setup.path.mtu, setup.path.interface_mtu) = (9000, 9000);
    assert_eq!(setup.active().info().cwnd, 17_920, "two of 8960");
    setup.path.mtu = 6040;
    assert_eq!(setup.active().info().cwnd, 14_600, "6000 · 2 < 14600 < 6000 · 10");
}

/// [MUST-19] Slow start doubles the window each round trip, however the receiver divides its acknowledgements.
#[test]
fn slow_start_doubles() {
    for per_ack in [1, 2, 10] {
        let mut peer = bulk(Setup::default());
        assert_eq!(peer.info().in_flight, 10_000);
        for expected in [20, 40, 80, 160] {
            assert_eq!(round(&mut peer, per_ack, 100), expected);
            assert_eq!(peer.info().cwnd, expected as u64 * 1000);
        }
    }
}

/// [MUST-19] Above ssthresh one segment more each round trip.
#[test]
fn congestion_avoidance_adds_one_segment() {
    let mut peer = bulk(Setup::default());
    for _ in 0..2 {
        round(&mut peer, 1, 100);
    }
    assert_eq!(peer.info().in_flight, 40_000);
    // One loss: ssthresh = cwnd = 20 000.
    peer.wait(50);
    let una = peer.info().snd_una.stream_offset() as i64 + 1;
    for i in 2..=4 {
        peer.recv(seg().ack(una).sack(&[(una + 1000, una + i * 1000)]));
    }
    assert_eq!((peer.info().phase, peer.info().cwnd), (Phase::Recovery, 20_000));
    let upto = peer.info().snd_nxt.stream_offset() as i64 + 1;
    peer.recv(seg().ack(una).sack(&[(una + 1000, upto)]));
    peer.wait(50).recv(seg().ack(upto));
    assert_eq!(peer.info().phase, Phase::Open);
    peer.drain();
    assert_eq!((peer.info().cwnd, peer.info().in_flight), (20_000, 20_000));
    for cwnd in [21_000, 22_000, 23_000, 24_000] {
        round(&mut peer, 1, 100);
        assert_eq!(peer.info().cwnd, cwnd);
    }
    // With every second segment acknowledged the same growth, give or take the bytes not yet counted.
    for cwnd in [25_000, 26_000, 27_000] {
        round(&mut peer, 2, 100);
        assert!(peer.info().cwnd == cwnd, "{} for {cwnd}", peer.info().cwnd);
    }
}

/// RFC 5681 section 3.1, equations 2 and 3, where acknowledgements are counted: one for each segment doubles the window, one for every second
/// makes it half as much again, and two for each segment make it three times as large.
#[test]
fn slow_start_that_counts_acknowledgements() {
    for (per_ack, windows) in [(1000, [20, 40, 80]), (2000, [15, 23, 35]), (500, [30, 90, 270])] {
        let mut peer = bulk(Setup::default().profile(|profile| profile.counting = Counting::Acks));
        for segments in windows {
            peer.wait(100);
            let (mut at, nxt) = (peer.acked(), peer.info().snd_nxt.stream_offset() as i64 + 1);
            while at < nxt {
                at = (at + per_ack).min(nxt);
                peer.recv(seg().ack(at));
            }
            peer.drain();
            assert_eq!(peer.info().cwnd, segments * 1000, "one for {per_ack} bytes");
        }
    }
}

/// The same in congestion avoidance: SMSS·SMSS/cwnd for each acknowledgement. A window of ten segments grows by one in a round trip with an
/// acknowledgement for each segment, and by one in two with one for every second.
#[test]
fn congestion_avoidance_that_counts_acknowledgements() {
    let windows = |counting: Counting, per_ack: i64| {
        let mut peer = bulk(Setup::default().profile(|profile| profile.counting = counting));
        // The timer expires, slow start leads back to half the flight.
        peer.next_timer();
        peer.recv(seg().ack(10_001)).drain();
        while peer.info().cwnd < 10_000 {
            round(&mut peer, 1, 100);
        }
        let start = peer.info().cwnd;
        assert_eq!((start, peer.info().ssthresh), (10_000, 5000), "{counting:?}");
        [(); 4].map(|()| {
            round(&mut peer, per_ack, 100);
            peer.info().cwnd / 1000
        })
    };
    assert_eq!(windows(Counting::Acks, 1), [11, 12, 13, 14]);
    assert_eq!(windows(Counting::Acks, 2), [10, 11, 11, 12]);
    assert_eq!(windows(Counting::Bytes, 2), [11, 12, 13, 14]);
}

/// RFC 2001's initial window, RFC 2581's and RFC 3390's; the restart window is the same (RFC 5681 section 4.1).
#[test]
fn an_initial_window_of_choice() {
    for segments in [1, 2, 4, 10] {
        let choice = InitialWindow::segments(segments).unwrap();
        let setup = Setup::default().profile(|profile| profile.initial_window = choice);
        let peer = bulk(setup);
        assert_eq!((peer.info().cwnd, peer.info().in_flight), (segments * 1000, segments * 1000));
        let mut peer = Setup::default().profile(|profile| profile.initial_window = choice).active();
        for written in [1, 2, 4, 8, 16] {
            peer.write(written * 1000).drain();
            peer.wait(100).ack_all();
        }
        assert!(peer.info().cwnd > segments * 1000);
        peer.wait(10_000).write(60_000);
        assert_eq!(peer.drain().len() as u64, segments);
    }
}

/// The window crosses ssthresh within one acknowledgement: slow start up to it, the rest counts towards avoidance.
#[test]
fn crossing_ssthresh() {
    let mut peer = bulk(Setup::default());
    peer.next_timer();
    assert_eq!((peer.info().cwnd, peer.info().ssthresh), (1000, 5000));
    peer.drain();
    // Everything had arrived: the acknowledgement of 10 000 takes cwnd to 5000, 5000 are left over for one more
    // segment.
    peer.recv(seg().ack(10_001));
    assert_eq!(peer.info().cwnd, 6000);
}

/// A window that is not used does not grow (RFC 7661, RFC 5681's spirit).
#[test]
fn an_unused_window_does_not_grow() {
    let mut peer = Setup::default().active();
    for i in 0..200 {
        peer.write(1000).wait(10).recv(seg().ack((i + 1) * 1000 + 1));
    }
    assert_eq!(peer.info().cwnd, 10_000);
    let mut peer = Setup::default().window(3000).active();
    peer.write(200_000);
    for _ in 0..50 {
        round(&mut peer, 1, 10);
    }
    assert_eq!(peer.info().cwnd, 10_000, "the peer's window was the limit");
}

/// In slow start a window of which more than half was used counts as used (RFC 7661's measure of a validated window):
/// doubling takes a round trip to show.
#[test]
fn a_half_used_window_grows_in_slow_start() {
    let mut peer = Setup::default().active();
    peer.write(6000).wait(100);
    peer.recv(seg().ack(1001));
    assert_eq!(peer.info().cwnd, 11_000, "6000 of 10000");
    peer.recv(seg().ack(2001)).recv(seg().ack(6001));
    assert_eq!(peer.info().cwnd, 11_000, "5000 of 11000");
}

/// ssthresh never falls below two segments (RFC 5681 equation 4).
#[test]
fn the_floor_is_two_segments() {
    let mut peer = Setup::default().active();
    peer.write(500).next_timer();
    assert_eq!((peer.info().ssthresh, peer.info().cwnd), (2000, 1000));
}

/// Congestion control is a unit: without it the peer's window alone bounds the flight.
#[test]
fn no_congestion_control() {
    let mut setup = Setup::default();
    setup.profile.congestion = CongestionChoice::none();
    let mut peer = setup.active();
    peer.write(60_000);
    assert_eq!(peer.ranges().len(), 60);
}
