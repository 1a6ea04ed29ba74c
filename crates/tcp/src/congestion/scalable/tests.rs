//! Scalable TCP by hand.

use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;
use std::string::ToString;

fn scalable() -> CongestionChoice {
    CongestionChoice::from(Scalable::default())
}

/// 100 segments of 1000 bytes acknowledged add 10 bytes each: 101000. The next round acknowledges 101: 102010. Then 102 whole ones:
/// 103030; 103: 104060; 104: 105100.
#[test]
fn a_hundredth_each_round() {
    let mut trace = Trace::avoiding(&scalable(), 100);
    assert_eq!(trace.rounds(5, ms(10)), [101_000, 102_010, 103_030, 104_060, 105_100]);
}

/// Fractions of a byte are kept: 0.000001 of 1000 bytes is a thousandth of a byte.
#[test]
fn fractions_add_up() {
    let a = Fraction::from_millionths(1);
    let mut trace =
        Trace::avoiding(&CongestionChoice::from(Scalable { a, ..Scalable::default() }), 500);
    assert_eq!(trace.rounds(4, ms(10)), [500_000, 500_001, 500_001, 500_002]);
}

/// A loss takes an eighth: 80 → 70. Kelly's table: recovery takes log(1 − b)/log(1 + a) = 0.13353/0.00995 = 13.4 round trips at
/// any window.
#[test]
fn losses_and_recovery() {
    for segments in [80, 8000] {
        let mut trace = Trace::avoiding(&scalable(), segments);
        trace.loss();
        assert_eq!(trace.window.cwnd, segments * 875);
        trace.rounds(13, ms(10));
        assert!(trace.window.cwnd < segments * 1000);
        trace.rounds(1, ms(10));
        assert!(trace.window.cwnd >= segments * 1000 - 1000, "{}", trace.window.cwnd);
    }
}

/// Up to 16 segments it is Reno.
#[test]
fn the_legacy_window() {
    let mut trace = Trace::avoiding(&scalable(), 14);
    assert_eq!(trace.rounds(3, ms(10)), [15_000, 16_000, 17_000]);
    // 17 segments of ten bytes each.
    assert_eq!(trace.rounds(1, ms(10)), [17_170]);
    let mut trace = Trace::avoiding(&scalable(), 16);
    trace.loss();
    assert_eq!(trace.window.cwnd, 8000);
}

#[test]
fn texts() {
    assert_eq!(CongestionChoice::from(Scalable::default()).to_string(), "scalable");
    assert_eq!(
        CongestionChoice::from(Scalable { low: 0, ..Scalable::default() }).to_string(),
        "scalable(low=0)"
    );
}
