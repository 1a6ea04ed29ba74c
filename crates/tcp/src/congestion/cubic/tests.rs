//! CUBIC against the equations of RFC 9438, worked by hand. Segments are 1000 bytes, C = 0.4, β = 0.7.

use super::super::CongestionChoice;
use super::super::test_trace::{Trace, ms};
use super::*;
use std::string::ToString;

fn cubic() -> CongestionChoice {
    CongestionChoice::from(Cubic::default())
}

/// The whole window is acknowledged at once, so that (target − cwnd)/cwnd for each segment comes to target − cwnd.
fn jump(trace: &mut Trace, rtt: Duration) -> u64 {
    trace.now += rtt;
    let cwnd = trace.window.cwnd;
    trace.ack(cwnd, rtt, true);
    trace.window.cwnd
}

/// K = ∛((100 − 70) / 0.4) = ∛75 = 4.2171633 s.
#[test]
fn the_time_to_the_plateau() {
    let c = Cubic::default().c;
    assert_eq!(time_to_origin(30_000, c, 1000), 4_217_163);
    // ∛(800 / 0.4) = ∛2000 = 12.599210 s; ∛(0.4 / 0.4) = 1 s.
    assert_eq!(time_to_origin(800_000, c, 1000), 12_599_210);
    assert_eq!(time_to_origin(400, c, 1000), 1_000_000);
}

/// W_cubic(t) = 0.4·(t − 4.217163)³ + 100 segments.
#[test]
fn the_cubic_function() {
    let at = |millis: u64| w_cubic(millis * 1000, 4_217_163, 100_000, Cubic::default().c, 1000);
    let table = [
        (0, 70_000),     // 0.4 · −75.0000   = −30.0000
        (100, 72_083),   // 0.4 · −69.7904   = −27.9162
        (1000, 86_680),  // 0.4 · −33.2985   = −13.3194
        (2000, 95_640),  // 0.4 · −10.8993   =  −4.3597
        (4000, 99_995),  // 0.4 ·  −0.010241 =  −0.0041
        (5000, 100_191), // 0.4 ·   0.479750 =   0.1919
        (6000, 102_266), // 0.4 ·   5.666785 =   2.2667
        (8434, 129_993), // 0.4 ·  74.9826   =  29.9930: as far above as it began below
    ];
    for (millis, bytes) in table {
        let got = at(millis);
        assert!(got.abs_diff(bytes) <= 1, "W_cubic({millis} ms) = {got}, not {bytes}");
    }
    // A day later there is still an answer, and a clock that jumps does no harm.
    assert_eq!(
        w_cubic(u64::MAX, 0, 0, Cubic::default().c, 1000),
        w_cubic(LONGEST, 0, 0, Cubic::default().c, 1000)
    );
}

/// A loss at 100 segments, then rounds of 100 ms. The first acknowledgement begins the epoch: t = 0, and the window after it is
/// W_est, because W_cubic(0) = 70 is below W_est = 70 + 9/17 = 70.529. Afterwards it is W_cubic(t + 0.1).
#[test]
fn recovering_from_a_loss() {
    let mut trace = Trace::avoiding(&cubic(), 100);
    trace.loss();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (70_000, 70_000));
    let windows: std::vec::Vec<u64> = (0..60).map(|_| jump(&mut trace, ms(100))).collect();
    let table = [
        (0, 70_529),   // α = 3·0.3/1.7 = 9/17 = 0.52941 segments a round
        (1, 74_068),   // W_cubic(0.2) = 100 − 0.4·4.017163³ = 100 − 0.4·64.8279 = 74.0688
        (4, 79_455),   // W_cubic(0.5) = 100 − 0.4·3.717163³ = 100 − 0.4·51.3617 = 79.4553
        (9, 86_680),   // W_cubic(1.0)
        (19, 95_640),  // W_cubic(2.0)
        (39, 99_995),  // W_cubic(4.0)
        (49, 100_191), // W_cubic(5.0)
        (55, 101_057), // W_cubic(5.6) = 100 + 0.4·1.382837³ = 100 + 0.4·2.64431
        // W_est = 70 + 57·9/17 = 100.176 after round 56 has reached the old window and goes on by one a round; two rounds
        // later, 102.176, it has overtaken W_cubic(5.9) = 101.905.
        (59, 103_176), // 100.176 + 3
    ];
    for (round, bytes) in table {
        assert!(
            windows[round].abs_diff(bytes) <= 2,
            "round {round}: {} for {bytes}",
            windows[round]
        );
    }
}

/// Section 4.2: the target is at most one and a half windows. W_cubic(30.1) with K = 0 from 10 segments is 10 + 0.4·27271 = 10918.
#[test]
fn the_window_grows_by_half_a_round_at_most() {
    let mut trace = Trace::avoiding(&cubic(), 10);
    assert_eq!(jump(&mut trace, ms(100)), 11_000, "W_est with α = 1: one segment more");
    trace.now += Duration::from_secs(30);
    trace.cwnd_limited = true;
    assert_eq!(jump(&mut trace, ms(100)), 16_500);
}

/// Section 4.3 with a short round trip: at 1 ms Reno is faster than the cubic function. 100 segments, one loss, 70 left; K = 4.217.
/// After n rounds W_est = 70 + n·9/17 as long as acknowledged windows are as large as cwnd: 40 rounds give 91.176. W_cubic(0.04) is
/// 70.85. W_est reaches cwnd_prior = 100 after 30·17/9 = 56.67 rounds; from round 57 on α = 1.
#[test]
fn the_reno_friendly_region() {
    let mut trace = Trace::avoiding(&cubic(), 100);
    trace.loss();
    let windows: std::vec::Vec<u64> = (0..60).map(|_| jump(&mut trace, ms(1))).collect();
    assert_eq!(windows[0], 70_529);
    assert_eq!(windows[39], 91_176); // 70 + 40 · 0.529411 = 91.17647
    assert_eq!(windows[56], 100_176); // 70 + 57 · 0.529411 = 100.17647
    assert_eq!(windows[57], 101_176);
    assert_eq!(windows[59], 103_176);
}

/// The same as Linux has it: after 60 rounds W_est is 70 + 60·9/17 = 101.765.
#[test]
fn beyond_the_prior_window_as_before_it() {
    let linux = CongestionChoice::from(Cubic { beyond_prior: false, ..Cubic::default() });
    assert_eq!(linux.to_string(), "cubic(beyond-prior=off)");
    let mut trace = Trace::avoiding(&linux, 100);
    trace.loss();
    let windows: std::vec::Vec<u64> = (0..60).map(|_| jump(&mut trace, ms(1))).collect();
    assert_eq!((windows[56], windows[59]), (100_176, 101_764));
}

/// Slow start has ended at 100 segments without a loss. With a twentieth a round it is 100 · 1.05¹⁴ = 197.993 after 14 rounds. By the RFC's letter W_est adds
/// one a round, and W_cubic(1.4) = 100 + 0.4 · 2.744 = 101.1 is behind it.
#[test]
fn before_the_first_loss_the_window_grows_by_a_twentieth() {
    let letter = Cubic { before_loss: Fraction::from_millionths(0), ..Cubic::default() };
    assert_eq!(CongestionChoice::from(letter).to_string(), "cubic(before-loss=0)");
    for (choice, after) in [(cubic(), 197_993), (CongestionChoice::from(letter), 114_000)] {
        let mut trace = Trace::avoiding(&choice, 100);
        let windows: std::vec::Vec<u64> = (0..14).map(|_| jump(&mut trace, ms(100))).collect();
        assert!(windows[13].abs_diff(after) <= 20, "{} for {after}", windows[13]);
    }
    // After a loss the plateau is known.
    let mut trace = Trace::avoiding(&cubic(), 100);
    trace.loss();
    assert_eq!(jump(&mut trace, ms(100)), 70_529);
}

/// Reno's window is faster than a twentieth below twenty segments.
#[test]
fn before_the_first_loss_small_windows_grow_as_renos() {
    let mut trace = Trace::avoiding(&cubic(), 10);
    assert_eq!(jump(&mut trace, ms(100)), 11_000);
}

/// Section 4.7: 100 segments, then a loss at 80, below W_max: W_max = 80 · 1.7 / 2 = 68. The loss leaves 56: K = ∛(12/0.4) = ∛30 =
/// 3.107233 s. Without fast convergence W_max = 80, K = ∛(24/0.4) = ∛60 = 3.914868 s.
#[test]
fn fast_convergence() {
    for (choice, w_max) in [
        (Cubic::default(), 68_000),
        (Cubic { fast_convergence: false, ..Cubic::default() }, 80_000),
    ] {
        let mut controller = Controller {
            parameters: choice,
            state: State { w_max: 100_000, ..State::default() },
            before: None,
            seen: Instant::ZERO,
        };
        let mut window = Window { cwnd: 80_000, cwnd_cnt: 0, ssthresh: 70_000, mss: 1000 };
        controller.on_event(&mut window, CongestionEvent::Loss { flight: 80_000 }, Instant::ZERO);
        assert_eq!((controller.state.w_max, window.cwnd), (w_max, 56_000));
    }
}

/// Section 4.8: a timeout leaves one segment and ssthresh = 0.7·cwnd; the congestion avoidance that follows starts with K = 0.
#[test]
fn a_timeout() {
    let mut trace = Trace::avoiding(&cubic(), 100);
    trace.timeout();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (1000, 70_000));
    // A second expiry leaves ssthresh alone.
    trace.event(CongestionEvent::Timeout { flight: 1000, first: false });
    assert_eq!(trace.window.ssthresh, 70_000);
    // 1, 2, 4 … 64, 70: seven rounds of slow start.
    let windows = trace.rounds(7, ms(100));
    assert_eq!(&windows[..6], [2000, 4000, 8000, 16_000, 32_000, 64_000]);
    assert!((70_000..71_000).contains(&windows[6]), "{}", windows[6]);
    let begun = trace.now;
    trace.rounds(20, ms(100));
    // W_max = 70, K = 0: W_cubic(2.1) = 70 + 0.4·9.261 = 73.7; Reno would have 70 + 20·0.529 = 80.6, and is followed.
    assert_eq!(trace.now.since(begun), ms(2000));
    assert!((79_500..81_000).contains(&trace.window.cwnd), "{}", trace.window.cwnd);
}

/// Section 4.9: what was no loss leaves no trace.
#[test]
fn an_undo_brings_everything_back() {
    let mut trace = Trace::avoiding(&cubic(), 100);
    trace.loss();
    for _ in 0..30 {
        jump(&mut trace, ms(100));
    }
    let before = trace.window;
    let mut undisturbed = Trace::avoiding(&cubic(), 100);
    undisturbed.loss();
    for _ in 0..30 {
        jump(&mut undisturbed, ms(100));
    }
    trace.loss();
    assert!(trace.window.cwnd < before.cwnd * 3 / 4);
    trace.undo(before);
    assert_eq!(trace.window, before);
    for _ in 0..30 {
        assert_eq!(jump(&mut trace, ms(100)), jump(&mut undisturbed, ms(100)));
    }
}

/// Section 4.6: a mark may leave one segment in cwnd, ssthresh keeps two.
#[test]
fn marks() {
    let mut trace = Trace::avoiding(&cubic(), 100);
    trace.mark();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (70_000, 70_000));
    let mut trace = Trace::avoiding(&cubic(), 2);
    trace.mark();
    assert_eq!((trace.window.cwnd, trace.window.ssthresh), (1400, 2000));
}

/// Section 5.8: two flows, one of which has too little to send for ten seconds; afterwards both go the same way.
#[test]
fn time_without_use_does_not_count() {
    let mut busy = Trace::avoiding(&cubic(), 100);
    let mut lazy = Trace::avoiding(&cubic(), 100);
    for trace in [&mut busy, &mut lazy] {
        trace.loss();
        for _ in 0..5 {
            jump(trace, ms(100));
        }
    }
    lazy.cwnd_limited = false;
    for _ in 0..100 {
        jump(&mut lazy, ms(100));
    }
    assert_eq!(lazy.window, busy.window);
    lazy.cwnd_limited = true;
    for _ in 0..20 {
        assert_eq!(jump(&mut lazy, ms(100)), jump(&mut busy, ms(100)));
    }
}

#[test]
fn parameters() {
    assert_eq!(CongestionChoice::from(Cubic::default()).to_string(), "cubic");
    let other = Cubic { c: Fraction::from_millionths(1_000_000), ..Cubic::default() };
    assert_eq!(CongestionChoice::from(other).to_string(), "cubic(c=1)");
}
