//! BIC by hand: S_max = 32, S_min = 0.01, β = 0.125, segments of 1000 bytes.

use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;
use std::string::ToString;
use std::vec::Vec;

fn bic() -> CongestionChoice {
    CongestionChoice::from(Bic::default())
}

/// cwnd after each of `rounds` rounds in which the whole window is acknowledged at once: the step for a round trip, exactly.
fn steps(trace: &mut Trace, rounds: usize) -> Vec<u64> {
    let one = |trace: &mut Trace| {
        trace.now += ms(100);
        let cwnd = trace.window.cwnd;
        trace.ack(cwnd, ms(100), true);
        trace.window.cwnd
    };
    (0..rounds).map(|_| one(trace)).collect()
}

/// A loss at 100 leaves 87.5. Half the distance to 100 each time: 93.75, 96.875 … 12.5/2¹⁰ = 0.012 remain, of which the half is below
/// S_min = 0.01. That is added until 100 is passed. Then max probing: 1, 2, 4, 8, 16, and 32 from there on.
#[test]
fn search_and_probe() {
    let mut trace = Trace::avoiding(&bic(), 100);
    trace.loss();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (87_500, 87_500));
    let windows = steps(&mut trace, 20);
    assert_eq!(
        windows,
        [
            93_750, 96_875, 98_437, 99_218, 99_609, 99_804, 99_902, 99_951, 99_975, 99_987, 99_997,
            100_007, 101_007, 103_007, 107_007, 115_007, 131_007, 163_007, 195_007, 227_007
        ]
    );
}

/// A loss at 1000 leaves 875: 32 a round until less than 64 are missing. 907, 939; 61 missing: 969.5; 30.5 missing: 984.75.
#[test]
fn additive_increase_far_from_the_maximum() {
    let mut trace = Trace::avoiding(&bic(), 1000);
    trace.loss();
    assert_eq!(steps(&mut trace, 4), [907_000, 939_000, 969_500, 984_750]);
}

/// With an acknowledgement for each of n segments the distance shrinks by e^(−n/2w): 12.5·e^(−87/180) = 7.71 with a window of 90 on
/// average, 7.71·e^(−92/188) = 4.73, 4.73·e^(−95/192.4) = 2.89.
#[test]
fn segment_by_segment() {
    let mut trace = Trace::avoiding(&bic(), 100);
    trace.loss();
    for (window, want) in trace.rounds(3, ms(100)).into_iter().zip([92_290, 95_270, 97_110]) {
        assert!(window.abs_diff(want) < 20, "{window} for {want}");
    }
}

/// Losses at 100 and, on the way there, at 96.875: the maximum is the middle of 96.875 and 84.765, 90.820. The first step
/// leads half-way there: 84.765 + 3.027 = 87.792.
#[test]
fn fast_convergence() {
    let mut trace = Trace::avoiding(&bic(), 100);
    trace.loss();
    steps(&mut trace, 2);
    trace.loss();
    assert_eq!(trace.window.cwnd, 84_766); // 96875 − ⌊12109.375⌋
    assert_eq!(steps(&mut trace, 1), [87_793]);
    // A loss above the old maximum is no reason for it: 110 → 96.25, half-way to 110 is 103.125.
    let mut trace = Trace::avoiding(&bic(), 100);
    trace.loss();
    trace.window.cwnd = 110_000;
    trace.loss();
    assert_eq!(steps(&mut trace, 1), [103_125]);
}

/// Below 14 segments it is Reno, also after a loss.
#[test]
fn small_windows() {
    let mut trace = Trace::avoiding(&bic(), 11);
    assert_eq!(trace.rounds(3, ms(10)), [12_000, 13_000, 14_000]);
    let mut trace = Trace::avoiding(&bic(), 13);
    trace.loss();
    assert_eq!(trace.window.cwnd, 6500);
    let mut trace = Trace::avoiding(&bic(), 14);
    trace.loss();
    assert_eq!(trace.window.cwnd, 12_250, "14 are enough");
}

#[test]
fn an_undo_brings_the_search_back() {
    let mut trace = Trace::avoiding(&bic(), 100);
    trace.loss();
    let before = trace.window;
    trace.loss();
    trace.undo(before);
    assert_eq!(steps(&mut trace, 2), [93_750, 96_875]);
}

#[test]
fn texts() {
    assert_eq!(CongestionChoice::from(Bic::default()).to_string(), "bic");
    let smin = Fraction::from_millionths(1);
    assert_eq!(
        CongestionChoice::from(Bic { smax: 16, smin, ..Bic::default() }).to_string(),
        "bic(smax=16, smin=0.000001)"
    );
}
