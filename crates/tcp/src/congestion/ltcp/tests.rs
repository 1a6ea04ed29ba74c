//! LTCP against the paper: its thresholds, its conditions and its rounds.

use super::super::CongestionChoice;
use super::super::test_trace::{MSS, Trace, ms};
use super::*;
use std::string::ToString;
use std::vec;

fn ltcp() -> CongestionChoice {
    CongestionChoice::from(Ltcp::default())
}

fn fraction(millionths: u64) -> Fraction {
    Fraction::from_millionths(millionths)
}

fn paper(layers: u32) -> Rule {
    Rule::Paper { wt: 50, layers }
}

/// Equation 10: W_K = K(K+1)(K−1)/6 · 50, and equation 11: δ_K = K(K+1)/2 · 50.
#[test]
fn the_papers_thresholds() {
    let layers = Layers::default();
    // W_3 = 3·4·2/6 · 50 = 4·50; W_4 = 4·5·3/6 · 50 = 10·50; W_15 = 15·16·14/6 · 50 = 560·50.
    for (layer, window) in [(1, 0), (2, 50), (3, 200), (4, 500), (5, 1000), (15, 28_000)] {
        assert_eq!(layers.threshold(layer), window, "W_{layer}");
    }
    // δ_2 = 3·50, δ_3 = 6·50, δ_14 = 105·50.
    for (layer, step) in [(1, 50), (2, 150), (3, 300), (14, 5250)] {
        assert_eq!(layers.step(layer), Some(step), "δ_{layer}");
    }
    assert_eq!(layers.step(18), None);
    for (window, layer) in
        [(0, 1), (49, 1), (50, 2), (199, 2), (200, 3), (27_999, 14), (28_000, 15)]
    {
        assert_eq!(layers.of(window), layer, "{window} packets");
    }
    assert_eq!(layers.of(u64::MAX), 18);
}

/// Equation 13 with β = 0.15: 3/(18+1) = 0.1579 is above it, 3/(19+1) = 0.15 is not.
#[test]
fn beta_bounds_the_layers() {
    assert!(Layers::new(paper(18), fraction(150_000)).is_ok());
    let error = Layers::new(paper(19), fraction(150_000)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "beta = 0.15 has to be below 0.15 for layer 19: a loss at W_19 = 57000 could cost more than one layer, \
         as W_18 = 48450 (equation 12)"
    );
    for layer in 3..=40 {
        // 3/(K+1), and a millionth less.
        let limit = 3_000_000u64.div_ceil(u64::from(layer) + 1);
        assert!(Layers::new(paper(layer), fraction(limit)).is_err(), "{layer}");
        assert!(Layers::new(paper(layer), fraction(limit - 1)).is_ok(), "{layer}");
    }
    assert!(matches!(Layers::new(paper(2), fraction(0)), Err(RuleError::Beta { .. })));
    assert!(matches!(Layers::new(paper(2), Fraction::ONE), Err(RuleError::Beta { .. })));
    assert_eq!(Layers::new(paper(1), layers::BETA), Err(RuleError::Count(1)));
    assert_eq!(Layers::new(paper(65), layers::BETA), Err(RuleError::Count(65)));
}

/// Doubling keeps both conditions: δ_K/K is 1/2, 2/3, 1, 8/5 … of W_T from the second layer on, and 4·W_(K−1) is above K/(K−2)·W_(K−1),
/// which is 3 at most. β has to be below one half.
#[test]
fn the_papers_alternate() {
    let double = |layers| Rule::Double { wt: 50, layers };
    let layers = Layers::new(double(20), fraction(499_999)).unwrap();
    assert_eq!((layers.threshold(2), layers.threshold(3), layers.threshold(10)), (50, 100, 12_800));
    assert!(matches!(
        Layers::new(double(20), fraction(500_000)),
        Err(RuleError::Beta { layer: 3, .. })
    ));
}

#[test]
fn rules_that_do_not_converge_are_refused() {
    let check = |thresholds: &[u64], beta| {
        Layers::new(Rule::Thresholds(thresholds.to_vec()), fraction(beta))
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(check(&[50, 200, 500, 1000], 150_000), Ok(()));
    // Steps of 50, 50: 50/3 is not above 50/2.
    assert_eq!(
        check(&[50, 100, 150], 150_000).unwrap_err(),
        "flows would not converge: from layer 2 to 3 the step per flow has to rise (equation 2), and 50/2 is not below 50/3"
    );
    // δ_2 = 10, δ_3 = 16: 16/3 = 5.3 is above 10/2 = 5, but W_4 = 126 is not above 3·W_2 = 300.
    assert_eq!(
        check(&[100, 110, 126], 50_000).unwrap_err(),
        "flows would not converge: W_4 = 126 is not above 3/1 of W_2 = 100 (equation 8), so the larger flow could recover first"
    );
    // As steep per flow, 200/2 = 300/3, is not steeper; three times as wide, 300 = 3·100, is not wider.
    assert!(check(&[100, 300, 600], 150_000).unwrap_err().contains("(equation 2)"));
    assert_eq!(check(&[100, 300, 601], 150_000), Ok(()));
    assert!(check(&[100, 150, 300], 150_000).unwrap_err().contains("(equation 8)"));
    assert_eq!(check(&[100, 150, 301], 150_000), Ok(()));
    assert_eq!(
        check(&[50, 50], 150_000).unwrap_err(),
        "W_3 = 50 packets is not above W_2 = 50, or is more than 17179869184"
    );
    assert!(check(&[1 << 35], 150_000).is_err());
    assert!(check(&[], 150_000).is_err());
    assert!(check(&[u64::MAX, 0], 150_000).is_err());
}

/// Below 50 packets one segment a round, then two, from 200 on three.
#[test]
fn a_layer_more_is_a_segment_more() {
    let mut trace = Trace::avoiding(&ltcp(), 40);
    let windows = trace.rounds(10, ms(100));
    assert_eq!(windows, (41..=50).map(|w| w * MSS).collect::<vec::Vec<_>>());
    // 75 rounds of two lead from 50 to 200, 100 rounds of three from 200 to 500. Whole segments lag by one at most,
    // and K/cwnd for each of w acknowledgements, with cwnd growing meanwhile, comes to K − K²/2w: ∫ K/2w dw = ln(200/50) = 1.4 segments
    // less on the way from 50 to 200, and 1.5·ln(500/200) = 1.4 from there to 500.
    let near = |got: u64, want: u64, lag: u64| {
        assert!(got <= want && want - got <= lag, "{got} for {want}")
    };
    trace.rounds(25, ms(100));
    near(trace.segments(), 100, 2);
    trace.rounds(50, ms(100));
    near(trace.segments(), 200, 3);
    trace.rounds(50, ms(100));
    near(trace.segments(), 350, 4);
    trace.rounds(50, ms(100));
    near(trace.segments(), 500, 4);
}

/// A loss at 600 packets (K = 4, W_4 = 500) leaves 510: the layer stays, and with it four segments a round. The next at 560 leaves
/// 476 < 500: K = 3. At 210 (K = 3): 178.5 < 200, K = 2. At 52: 44.2, K = 1, and the next loss halves: 48 becomes 24.
#[test]
fn losses_cost_at_most_a_layer() {
    let growth = |trace: &mut Trace| {
        let before = trace.window.cwnd;
        trace.rounds(5, ms(100));
        (trace.window.cwnd - before) / MSS
    };
    for (window, left, in_five_rounds) in
        [(600, 510_000, 20), (560, 476_000, 15), (210, 178_500, 10), (52, 44_200, 5)]
    {
        let mut trace = Trace::avoiding(&ltcp(), window);
        // K follows from the window when slow start is over; one acknowledgement lets it see that.
        trace.ack(1, ms(100), false);
        trace.loss();
        assert_eq!((trace.window.cwnd, trace.window.ssthresh), (left, left));
        let grown = growth(&mut trace);
        assert!(grown.abs_diff(in_five_rounds) <= 1, "{grown} after a loss at {window}");
    }
    let mut trace = Trace::avoiding(&ltcp(), 48);
    trace.ack(1, ms(100), false);
    trace.loss();
    assert_eq!(trace.window.cwnd, 24_000);
}

/// Slow start is not modified: a loss in it halves, and K follows from what is left.
#[test]
fn slow_start_is_renos() {
    let mut trace = Trace::new(&ltcp(), 10);
    assert_eq!(trace.rounds(6, ms(100)), [20, 40, 80, 160, 320, 640].map(|w| w * MSS));
    trace.loss();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (320_000, 320_000));
    trace.rounds(10, ms(100));
    assert!(trace.segments().abs_diff(350) <= 1, "three a round from 320: {}", trace.segments());
    let before = trace.window.cwnd;
    trace.timeout();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (1000, before / 2));
}

/// A window below ssthresh is in slow start, in every layer: a loss halves 210 segments instead of leaving 178.5.
#[test]
fn a_loss_on_the_way_back_halves() {
    let mut trace = Trace::avoiding(&ltcp(), 210);
    trace.ack(1, ms(100), false);
    trace.window.ssthresh = 400_000;
    trace.loss();
    assert_eq!(trace.window.cwnd, 105_000);
}

/// After an idle time the layer is that of the window which is left: ten segments are Reno's, and a loss halves them.
#[test]
fn an_idle_restart_forgets_the_layer() {
    let mut trace = Trace::avoiding(&ltcp(), 210);
    trace.ack(1, ms(100), false);
    trace.window.ssthresh = 5000;
    trace.event(CongestionEvent::Unvalidated { cwnd: 10_000, ssthresh: 0, idle: true });
    assert_eq!(trace.window.cwnd, 10_000);
    trace.loss();
    assert_eq!(trace.window.cwnd, 5000);
}

#[test]
fn an_undo_brings_the_layer_back() {
    let mut trace = Trace::avoiding(&ltcp(), 210);
    trace.ack(1, ms(100), false);
    let before = trace.window;
    trace.loss();
    trace.undo(before);
    let start = trace.window.cwnd;
    trace.rounds(10, ms(100));
    assert!(((trace.window.cwnd - start) / MSS).abs_diff(30) <= 1, "three a round");
}

#[test]
fn texts() {
    let text =
        |rule, beta| CongestionChoice::from(Ltcp::new(rule, fraction(beta)).unwrap()).to_string();
    assert_eq!(CongestionChoice::from(Ltcp::default()).to_string(), "ltcp");
    assert_eq!(text(paper(9), 200_000), "ltcp(beta=0.2, layers=9)");
    assert_eq!(text(Rule::Double { wt: 40, layers: 18 }, 150_000), "ltcp(rule=double, wt=40)");
    assert_eq!(text(Rule::Thresholds(vec![50, 200]), 150_000), "ltcp(thresholds=50/200)");
}
