//! Fast recovery before NewReno (RFC 2581 section 3.2), worked by hand. Segments are 1000 bytes, the initial window is ten of them.

use crate::common;

use common::{Peer, Setup, seg};
use transom_tcp::{Phase, RecoveryChoice};

/// Ten segments are out, and twenty more are queued.
fn ten_out(recovery: RecoveryChoice) -> Peer {
    let mut peer = Setup::newreno().profile(|profile| profile.recovery = recovery).active();
    peer.write(30_000);
    assert_eq!(peer.ranges().len(), 10);
    peer
}

fn duplicates(peer: &mut Peer, ack: i64, count: usize) {
    for _ in 0..count {
        peer.recv(seg().ack(ack));
    }
}

fn state(peer: &Peer) -> (Phase, u64, u64) {
    let info = peer.info();
    (info.phase, info.cwnd, info.ssthresh)
}

/// The first and the fourth of ten segments are lost. The other eight make duplicates. The first two let one new segment out each (RFC 3042).
/// The third begins fast recovery: ssthresh is 5000, and 5000 + 3·1000 is less than the 12,000 outstanding. The eighth makes it 13,000: one
/// segment. So do the ninth and the tenth, which the two new ones bring.
#[test]
fn the_first_new_acknowledgement_ends_it() {
    let mut peer = ten_out(RecoveryChoice::Reno);
    duplicates(&mut peer, 1, 2);
    peer.expect_ranges(&[(10_001, 11_001), (11_001, 12_001)]);
    duplicates(&mut peer, 1, 1);
    peer.expect_ranges(&[(1, 1001)]);
    assert_eq!(state(&peer), (Phase::Recovery, 5000, 5000));
    duplicates(&mut peer, 1, 4);
    peer.silent();
    duplicates(&mut peer, 1, 3);
    peer.expect_ranges(&[(12_001, 13_001), (13_001, 14_001), (14_001, 15_001)]);
    // Step 5: recovery is over with an acknowledgement of three segments. 12,000 are still outstanding.
    peer.wait(50).recv(seg().ack(3001));
    peer.silent();
    assert_eq!(state(&peer), (Phase::Open, 5000, 5000));
    // Three more duplicates halve the window again, and find the second loss.
    duplicates(&mut peer, 3001, 2);
    assert_eq!(peer.info().phase, Phase::Disorder);
    peer.drain();
    duplicates(&mut peer, 3001, 1);
    assert_eq!(peer.ranges().first(), Some(&(3001, 4001)));
    assert_eq!(state(&peer), (Phase::Recovery, 2500, 2500));
    assert_eq!(peer.info().counters.fast_recoveries, 2);
    assert_eq!(peer.info().counters.timeouts, 0);
}

/// The same losses with NewReno: the partial acknowledgement repairs the second at once, and the window comes down only once.
#[test]
fn newreno_goes_on_where_reno_ends() {
    let mut peer = ten_out(RecoveryChoice::NewReno);
    duplicates(&mut peer, 1, 10);
    peer.drain();
    peer.wait(50).recv(seg().ack(3001));
    assert_eq!(peer.ranges().first(), Some(&(3001, 4001)));
    assert_eq!(state(&peer), (Phase::Recovery, 5000, 5000));
}

/// Without more duplicates the second loss waits for the timer, which the acknowledgement restarted: the round trip of the handshake, 100 ms,
/// makes it 300. Duplicates of what the timeout sends twice mean no loss.
#[test]
fn a_second_loss_can_need_the_timer() {
    let mut peer = ten_out(RecoveryChoice::Reno);
    duplicates(&mut peer, 1, 8);
    peer.drain();
    peer.wait(50).recv(seg().ack(3001));
    assert_eq!(peer.info().phase, Phase::Open);
    peer.drain();
    peer.next_timer();
    assert_eq!(peer.ranges(), [(3001, 4001)]);
    assert_eq!(state(&peer), (Phase::Loss, 1000, 2500));
    assert_eq!(peer.info().counters.timeouts, 1);
    duplicates(&mut peer, 3001, 5);
    assert_eq!(peer.info().phase, Phase::Loss);
    assert_eq!(peer.info().counters.fast_recoveries, 1);
    let all = peer.info().snd_nxt.stream_offset() as i64 + 1;
    peer.recv(seg().ack(all));
    assert_eq!(peer.info().phase, Phase::Open);
}

/// A lost segment alone: both repair it in the same way. At the end RFC 2581 sets cwnd to ssthresh, and the three segments that are missing to it
/// leave at once. RFC 6582 allows one more than what is in flight, 2000 bytes, so that no burst leaves.
#[test]
fn a_single_loss_differs_only_in_its_end() {
    let [reno, newreno] = [RecoveryChoice::Reno, RecoveryChoice::NewReno].map(|recovery| {
        let mut peer = ten_out(recovery);
        duplicates(&mut peer, 1, 9);
        let repair = peer.ranges();
        peer.wait(100).recv(seg().ack(12_001));
        (repair, peer.ranges().len(), state(&peer))
    });
    assert_eq!(reno.0, newreno.0);
    assert_eq!((reno.1, reno.2), (3, (Phase::Open, 5000, 5000)));
    assert_eq!((newreno.1, newreno.2), (1, (Phase::Open, 3000, 5000)));
}

/// Forged duplicates let out no more than what was in flight (RFC 5681 section 3.2, the note on bogus duplicates).
#[test]
fn forged_duplicates_release_a_flight_at_most() {
    let mut peer = ten_out(RecoveryChoice::Reno);
    duplicates(&mut peer, 1, 500);
    // Two by limited transmit, and those of half the window beyond what was out.
    let new = peer.ranges().iter().filter(|range| range.0 > 10_000).count();
    assert!(new <= 2 + 5 + 9, "{new}");
}
