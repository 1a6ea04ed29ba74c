//! The marker, step by step, worked by hand.

use super::*;

/// A flow that has been told of a window of `window` bytes above 1.
fn open(window: u32, mss: u16, scale: u8) -> Open {
    Open {
        edge: Seq::new(1) + window,
        ack: Seq::new(1),
        desired: u32::MAX,
        rtt: 0,
        period: 0,
        mss,
        scale,
        implausible_in_a_row: 0,
        closing: false,
    }
}

const fn to(bytes: u64) -> AckAction {
    AckAction::Window { bytes, fall: true }
}

/// The window field that goes on.
fn mark(open: &mut Open, number: u32, window: u16, wish: AckAction) -> u16 {
    match WindowMarker::mark(open, Ack { number: Seq::new(number), window }, wish) {
        Marked::AsItWas => window,
        Marked::Rewritten(changed) => {
            assert_ne!(changed, window, "nothing to rewrite");
            changed
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn figure_3_without_shrinking() {
    // Six packets of 1000 bytes are out and the target is three. Each acknowledgement lowers the window by the packet that it
    // acknowledges. The right edge stays at 6001 until the window is three packets, and then moves on.
    let mut flow = open(6000, 1000, 0);
    assert_eq!(mark(&mut flow, 1001, 6000, to(3000)), 5000);
    assert_eq!(mark(&mut flow, 2001, 6000, to(3000)), 4000);
    assert_eq!(mark(&mut flow, 3001, 6000, to(3000)), 3000);
    assert_eq!(flow.edge, Seq::new(6001));
    assert_eq!(mark(&mut flow, 4001, 6000, to(3000)), 3000);
    assert_eq!(flow.edge, Seq::new(7001));
}

#[test]
fn a_window_that_may_not_fall_stays() {
    let mut flow = open(6000, 1000, 0);
    let stay = AckAction::Window { bytes: 3000, fall: false };
    assert_eq!(mark(&mut flow, 1001, 6000, stay), 6000);
    assert_eq!(mark(&mut flow, 2001, 6000, to(3000)), 5000);
    assert_eq!(mark(&mut flow, 3001, 6000, stay), 5000, "what has fallen has fallen");
    assert_eq!(mark(&mut flow, 4001, 6000, AckAction::Window { bytes: 5500, fall: false }), 5500);
}

#[test]
fn a_target_below_one_segment_leaves_one() {
    let mut flow = open(3000, 1000, 0);
    let windows = [1001, 2001, 3001, 4001].map(|ack| mark(&mut flow, ack, 3000, to(536)));
    assert_eq!(windows, [2000, 1000, 1000, 1000]);
    assert_eq!(mark(&mut flow, 5001, 400, to(536)), 400, "unless the receiver has less");
    assert_eq!(mark(&mut flow, 5001, 0, to(536)), 0);
}

#[test]
fn never_above_what_is_advertised() {
    let mut flow = open(3000, 1000, 0);
    assert_eq!(mark(&mut flow, 1001, 3000, to(1 << 40)), 3000);
    assert_eq!(mark(&mut flow, 2001, 2500, to(9000)), 2500);
    assert_eq!(mark(&mut flow, 2001, 8000, to(9000)), 8000);
    // A receiver that takes back what it has offered is not overruled.
    assert_eq!(mark(&mut flow, 2001, 100, to(9000)), 100);
    assert_eq!(flow.edge, Seq::new(10_001), "though the sender has been told more");
}

#[test]
fn an_old_acknowledgement_does_not_take_back_what_was_given() {
    let mut flow = open(8000, 1000, 0);
    assert_eq!(mark(&mut flow, 2001, 8000, to(4000)), 6000);
    assert_eq!(mark(&mut flow, 6001, 8000, to(4000)), 4000);
    assert_eq!(flow.edge, Seq::new(10_001));
    // The one for 4001 comes late. Its own edge would be 8001; the receiver had offered up to 12,001 by then.
    assert_eq!(mark(&mut flow, 4001, 8000, to(4000)), 6000);
    assert_eq!((flow.edge, flow.ack), (Seq::new(10_001), Seq::new(6001)));
    // A window of the time when the receiver had offered no more than up to 8001 says that, and no sender minds.
    assert_eq!(mark(&mut flow, 4001, 4000, to(4000)), 4000);
}

#[test]
fn a_scaled_window_is_rounded_up() {
    // Units of 128 bytes. 64,000 bytes told, 500 units advertised.
    let mut flow = open(64_000, 1460, 7);
    // Down by 1460 to 62,540, which is 488.6 units; the edge, 64,001, is 62,540 bytes away.
    assert_eq!(mark(&mut flow, 1461, 500, to(10_000)), 489);
    // 489 units are 62,592 bytes: the edge is now 52 further, at 64,053.
    assert_eq!(flow.edge, Seq::new(1461 + 62_592));
    // One byte acknowledged: the edge is 62,591 away, and the unit has to be kept.
    assert_eq!(mark(&mut flow, 1462, 500, to(10_000)), 489);
    // A window of one unit holds no segment; what the receiver advertises is more than any rounding.
    let mut flow = open(10, 1460, 14);
    assert_eq!(mark(&mut flow, 1, 1, to(0)), 1);
    assert_eq!(mark(&mut flow, 1, u16::MAX, to(u64::MAX)), u16::MAX);
    assert_eq!(flow.edge, Seq::new(1 + (65_535 << 14)));
}

#[test]
fn numbers_wrap() {
    let mut flow = Open { edge: Seq::new(4000), ack: Seq::new(0xffff_fc18), ..open(0, 1000, 0) };
    // 1000 before zero; 5000 bytes are told. 2000 acknowledged, the target is 3000.
    assert_eq!(mark(&mut flow, 1000, 5000, to(3000)), 3000);
    assert_eq!((flow.ack, flow.edge), (Seq::new(1000), Seq::new(4000)));
}

#[test]
fn plausibility() {
    let flow = open(5000, 1000, 0);
    let plausible = |number: u32| WindowMarker::is_plausible(&flow, Seq::new(number));
    assert!(plausible(1) && plausible(5001));
    assert!(plausible(5002), "a window probe");
    assert!(!plausible(5003) && !plausible(0x7fff_ffff));
    assert!(plausible(5001u32.wrapping_sub(1 << 31)), "as old as they get");
}

#[test]
fn a_flow_that_does_not_fit_is_given_up_unless_something_fits_in_between() {
    let mut flow = open(5000, 1000, 0);
    for _ in 0..3 {
        for _ in 0..7 {
            assert_eq!(WindowMarker::strike(&mut flow), Marked::Implausible);
        }
        mark(&mut flow, 1, 5000, to(1 << 20));
    }
    let fates: [Marked; 8] = core::array::from_fn(|_| WindowMarker::strike(&mut flow));
    assert_eq!(fates[6..], [Marked::Implausible, Marked::Lost]);
}
