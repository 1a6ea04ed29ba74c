//! DCTCP by hand: g = 1/16, segments of 1000 bytes.

use super::super::test_trace::{Trace, ms};
use super::*;
use crate::congestion::CongestionChoice;
use std::string::ToString;

fn trace(alpha: u64) -> Trace {
    let alpha = Fraction::from_millionths(alpha);
    let mut trace =
        Trace::avoiding(&CongestionChoice::from(Dctcp { alpha, ..Dctcp::default() }), 100);
    trace.cwnd_limited = false; // the window stays as it is between reductions
    trace
}

/// A window of 100 segments of which the last `marked` carry marks; the last acknowledgement ends it.
fn window(trace: &mut Trace, marked: u64) {
    trace.now += ms(1);
    for i in 0..100 {
        trace.ecn_echo = i >= 100 - marked;
        trace.ack(1000, ms(1), i == 99);
    }
}

/// cwnd·(1 − α/2): with α = 1 half, with 0.5 three quarters, with 0 all.
#[test]
fn the_reduction() {
    for (alpha, left) in [(1_000_000, 50_000), (500_000, 75_000), (250_000, 87_500), (0, 100_000)] {
        let mut trace = trace(alpha);
        trace.mark();
        assert_eq!((trace.window.cwnd, trace.window.ssthresh), (left, left));
    }
}

/// α = α·15/16 + F/16. From 1 with F = 0.5: 0.96875; with F = 0 then 0.908203, 0.851440. From 0 with F = 1: 0.0625, 0.121094, 0.176025,
/// and after 11 windows 1 − (15/16)^11 = 0.508325.
#[test]
fn alpha() {
    let left = |trace: &mut Trace| {
        trace.window.cwnd = 100_000;
        trace.mark();
        trace.window.cwnd
    };
    let mut falling = trace(1_000_000);
    for (marked, alpha) in [(50, 968_750), (0, 908_203), (0, 851_440)] {
        falling.window.cwnd = 100_000;
        window(&mut falling, marked);
        let want = 100_000 - 100_000 * alpha / 2_000_000;
        assert!(left(&mut falling).abs_diff(want) <= 1);
    }
    let mut rising = trace(0);
    for n in 1..=11 {
        window(&mut rising, 100);
        let alpha = [62_500, 121_094, 176_025].get(n - 1).copied();
        let alpha = alpha.or((n == 11).then_some(508_325));
        if let Some(alpha) = alpha {
            let want = 100_000 - 100_000 * alpha / 2_000_000;
            assert!(left(&mut rising).abs_diff(want) <= 1, "{n}");
        }
    }
}

/// Without marks α decays, if not to nothing: 15/2²⁰ of 100 segments are less than a byte.
#[test]
fn alpha_decays() {
    let mut trace = trace(1_000_000);
    for _ in 0..400 {
        window(&mut trace, 0);
    }
    trace.mark();
    assert!(trace.window.cwnd >= 99_999, "{}", trace.window.cwnd);
}

/// Section 3.5: a loss halves, whatever α is; a timeout leaves one segment; growth is Reno's.
#[test]
fn the_rest_is_reno() {
    let mut trace = trace(0);
    trace.loss();
    assert_eq!(trace.window.cwnd, 50_000);
    trace.timeout();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (1000, 25_000));
    let mut trace = Trace::avoiding(&CongestionChoice::from(Dctcp::default()), 10);
    assert_eq!(trace.rounds(2, ms(1)), [11_000, 12_000]);
    // Two segments are the least.
    trace.window.cwnd = 2000;
    trace.mark();
    assert_eq!(trace.window.cwnd, 2000);
}

#[test]
fn texts() {
    assert_eq!(CongestionChoice::from(Dctcp::default()).to_string(), "dctcp");
    let alpha = Fraction::default();
    assert_eq!(
        CongestionChoice::from(Dctcp { alpha, ..Dctcp::default() }).to_string(),
        "dctcp(alpha=0)"
    );
}
