//! MulTCP by hand.

use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;

fn multcp(n: u64) -> CongestionChoice {
    CongestionChoice::from(MulTcp { n })
}

/// N = 4 from 400 segments: four more each round. With N/cwnd for each acknowledgement the round lags by N²/2w = 0.02 of a segment.
#[test]
fn n_segments_each_round() {
    let mut trace = Trace::avoiding(&multcp(4), 400);
    for round in 1..=20 {
        trace.round(ms(10));
        let got = trace.segments();
        assert!((400 + 4 * round - 1..=400 + 4 * round).contains(&got), "{got} after {round}");
    }
}

/// One flow is Reno.
#[test]
fn one_is_reno() {
    let mut trace = Trace::avoiding(&multcp(1), 20);
    assert_eq!(trace.rounds(3, ms(10)), [21_000, 22_000, 23_000]);
    trace.loss();
    assert_eq!(trace.window.cwnd, 11_500);
}

/// (N − 1/2)/N: 3/4 for two, 7/8 for four, 0.95 for ten. A timeout leaves half in ssthresh.
#[test]
fn reductions() {
    for (n, left) in [(2, 75_000), (4, 87_500), (10, 95_000)] {
        let mut trace = Trace::avoiding(&multcp(n), 100);
        trace.loss();
        assert_eq!((trace.window.cwnd, trace.window.ssthresh), (left, left));
        let mut trace = Trace::avoiding(&multcp(n), 100);
        trace.timeout();
        assert_eq!((trace.window.cwnd, trace.window.ssthresh), (1000, 50_000));
    }
}
