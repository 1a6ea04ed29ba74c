//! The flight as the sender counts it, against `SetPipe` of RFC 6675 section 4 computed literally.
//!
//! The sender keeps counters and calls a segment lost once; the RFC walks over the whole scoreboard each time. As long
//! as new data waits (so that neither rule 3 nor a rescue adds a second copy of what is not lost) both must come to
//! the same.

use crate::common;

use common::{Peer, Setup, seg};
use std::collections::BTreeSet;
use transom_tcp::{Phase, Setting};

const MSS: i64 = 1000;
const DUP_THRESH: usize = 3;

/// `SetPipe`, in whole segments numbered from 0.
fn set_pipe(una: i64, nxt: i64, sacked: &BTreeSet<i64>, high_rxt: i64) -> u64 {
    let is_lost = |segment: i64| {
        let above: Vec<i64> = sacked.range(segment + 1..).copied().collect();
        let runs = above.iter().filter(|&&n| !sacked.contains(&(n - 1))).count();
        runs >= DUP_THRESH || above.len() > DUP_THRESH - 1
    };
    let mut pipe = 0;
    for segment in (una..nxt).filter(|segment| !sacked.contains(segment)) {
        pipe += u64::from(!is_lost(segment)) + u64::from(segment <= high_rxt);
    }
    pipe * MSS as u64
}

/// The three most recent blocks, as a receiver reports them.
fn blocks(sacked: &BTreeSet<i64>, newest: i64) -> Vec<(i64, i64)> {
    let mut runs: Vec<(i64, i64)> = vec![];
    for &n in sacked {
        match runs.last_mut() {
            Some(run) if run.1 == n => run.1 = n + 1,
            _ => runs.push((n, n + 1)),
        }
    }
    runs.sort_by_key(|run| (!(run.0..run.1).contains(&newest), std::cmp::Reverse(run.0)));
    runs.truncate(3);
    runs.iter().map(|run| (1 + run.0 * MSS, 1 + run.1 * MSS)).collect()
}

/// Returns how many segments were sent again.
fn run(seed: u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    };
    let mut peer: Peer = Setup::default().scale(7).active();
    peer.recv(seg().win(65_535));
    peer.connection.set(Setting::SendBuffer(1 << 20));
    peer.write(500_000);
    // Slow start to a window of forty segments.
    for i in 1..=30 {
        peer.recv(seg().ack(1 + i * MSS).win(65_535));
    }
    peer.drain();
    let mut una = 30;
    let sent_before = 70;
    let mut sacked = BTreeSet::new();
    let mut high_rxt = -1;
    // One window of data; a fifth of it is lost, the rest arrives in an order with small jumps.
    let mut arriving: Vec<i64> = (una..una + 40).filter(|_| random(5) > 0).collect();
    for i in 0..arriving.len().saturating_sub(3) {
        if random(4) == 0 {
            arriving.swap(i, i + 1 + random(2) as usize);
        }
    }
    for segment in arriving {
        sacked.insert(segment);
        while sacked.remove(&una) {
            una += 1;
        }
        let report = blocks(&sacked, segment);
        peer.recv(seg().ack(1 + una * MSS).win(65_535).sack(&report));
        let recovering = peer.info().phase == Phase::Recovery;
        for (from, _) in peer.ranges() {
            let number = (from - 1) / MSS;
            if recovering && number < sent_before {
                high_rxt = high_rxt.max(number);
            }
        }
        let info = peer.info();
        let nxt = info.snd_nxt.stream_offset() as i64 / MSS;
        let expected = set_pipe(una, nxt, &sacked, high_rxt);
        assert_eq!(
            info.in_flight,
            expected,
            "seed {seed}, una {una} nxt {nxt} high_rxt {high_rxt} sacked {sacked:?}: {}",
            peer.summary()
        );
        if info.phase == Phase::Open {
            high_rxt = -1;
        }
    }
    assert_eq!(peer.info().counters.timeouts, 0);
    peer.info().counters.retransmitted_segments
}

#[test]
fn the_flight_is_the_pipe() {
    let retransmitted: u64 = (0..300).map(run).sum();
    // A fifth of forty segments is lost, but for those at the end that nothing tells of.
    assert!((300 * 5..300 * 9).contains(&retransmitted), "{retransmitted}");
}
