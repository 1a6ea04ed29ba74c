//! HighSpeed TCP against the table that RFC 3649 prints in its appendix B.

use super::super::test_trace::{MSS, Trace, ms};
use super::table::{DECREASE_BITS, TABLE, line};
use super::*;
use crate::congestion::CongestionChoice;

/// Windows of the RFC's table, one for each whole a(w) from 1 to 73, and b(w) in hundredths.
const PRINTED: [(u64, u32); 73] = [
    (38, 50),
    (118, 44),
    (221, 41),
    (347, 38),
    (495, 37),
    (663, 35),
    (851, 34),
    (1058, 33),
    (1284, 32),
    (1529, 31),
    (1793, 30),
    (2076, 29),
    (2378, 28),
    (2699, 28),
    (3039, 27),
    (3399, 27),
    (3778, 26),
    (4177, 26),
    (4596, 25),
    (5036, 25),
    (5497, 24),
    (5979, 24),
    (6483, 23),
    (7009, 23),
    (7558, 22),
    (8130, 22),
    (8726, 22),
    (9346, 21),
    (9991, 21),
    (10661, 21),
    (11358, 20),
    (12082, 20),
    (12834, 20),
    (13614, 19),
    (14424, 19),
    (15265, 19),
    (16137, 19),
    (17042, 18),
    (17981, 18),
    (18955, 18),
    (19965, 17),
    (21013, 17),
    (22101, 17),
    (23230, 17),
    (24402, 16),
    (25618, 16),
    (26881, 16),
    (28193, 16),
    (29557, 15),
    (30975, 15),
    (32450, 15),
    (33986, 15),
    (35586, 14),
    (37253, 14),
    (38992, 14),
    (40808, 14),
    (42707, 13),
    (44694, 13),
    (46776, 13),
    (48961, 13),
    (51258, 13),
    (53677, 12),
    (56230, 12),
    (58932, 12),
    (61799, 12),
    (64851, 11),
    (68113, 11),
    (71617, 11),
    (75401, 10),
    (79517, 10),
    (84035, 10),
    (89053, 10),
    (94717, 9),
];

#[test]
fn the_table_is_the_rfcs() {
    for (index, (line, (window, hundredths))) in TABLE.iter().zip(PRINTED).enumerate() {
        assert_eq!(line.window, window, "line {index}");
        assert_eq!(line.increase, index as u32 + 1);
        let scaled = u64::from(line.decrease) * 100;
        let rounded = (scaled + (1 << (DECREASE_BITS - 1))) >> DECREASE_BITS;
        assert_eq!(rounded, u64::from(hundredths), "b({window})");
    }
}

#[test]
fn the_line_for_a_window() {
    for (window, increase) in [
        (0, 1),
        (37, 1),
        (38, 1),
        (117, 1),
        (118, 2),
        (220, 2),
        (221, 3),
        (94_716, 72),
        (1 << 40, 73),
    ] {
        assert_eq!(line(window).increase, increase, "{window} segments");
    }
}

/// Up to 117 segments one a round, then two, and from 221 on three. K/cwnd for each acknowledgement lags as in LTCP: ∫ a/2w dw, here
/// ln(221/118) = 0.6.
#[test]
fn growth() {
    let mut trace = Trace::avoiding(&CongestionChoice::from(HighSpeed), 100);
    let windows = trace.rounds(18, ms(50));
    assert_eq!(windows[16], 117 * MSS);
    assert_eq!(windows[17], 118 * MSS);
    trace.rounds(50, ms(50));
    assert!((216..=218).contains(&trace.segments()), "100 more: {}", trace.segments());
    trace.rounds(4, ms(50));
    let before = trace.segments();
    trace.rounds(20, ms(50));
    assert!((59..=60).contains(&(trace.segments() - before)), "{}", trace.segments() - before);
}

/// b(38) = 0.5; b(1000) is that of the line at 851: 0.5 − 0.4·ln(851/38)/ln(83000/38) = 0.5 − 0.4·3.108846/7.689023 = 0.338269.
#[test]
fn reduction() {
    for (segments, left) in [(20, 10_000), (38, 19_000), (117, 58_500), (1000, 661_731)] {
        let mut trace = Trace::avoiding(&CongestionChoice::from(HighSpeed), segments);
        trace.loss();
        let got = trace.window.cwnd;
        assert!(got.abs_diff(left) <= segments / 60, "{got} of {segments} segments, not {left}");
        assert_eq!(trace.window.ssthresh, got);
    }
}
