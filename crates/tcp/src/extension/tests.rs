//! The lattice, Table 1 by hand, and a property: for any request, the value in use is safe.

use super::safe;
use super::stack::{Combined, Decider};
use super::{Fault, Interval, LayerId, Limits, Value, Variable};
use crate::pos::Pos;
use crate::time::Duration;
use proptest::prelude::*;
use std::vec::Vec;

/// The values that two layers with these requests leave: none if they contradict each other.
fn meet(a: Interval, b: Interval) -> Option<Interval> {
    let asks = |id, interval| layer(id, move |limits| limits.set(Variable::Cwnd, interval));
    let ruling = combine(&[asks(0, a), asks(1, b)]).rule(Variable::Cwnd, 0, Interval::ANY);
    // Two layers that ask for nothing leave everything.
    ruling.requested.or((!ruling.conflict).then_some(Interval::ANY))
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn the_ranges_of_table_1() {
    let range = |low, high| Interval::new(low, high).unwrap();
    assert_eq!(safe::cwnd(10_000), range(0, 10_000));
    assert_eq!(safe::cwnd_cnt(500), range(0, 500));
    // 1 segment ≤ v ≤ x
    assert_eq!(safe::ssthresh(20_000, 1000), range(1000, 20_000));
    assert_eq!(safe::rcv_wnd(65_535), range(0, 65_535));
    let pos = |n: u64| Pos::FIRST_DATA + n;
    let at = |n: u64| pos(n).get();
    assert_eq!(safe::rcv_nxt(pos(100), 4000), range(at(100), at(4100)));
    assert_eq!(safe::snd_una(pos(100), pos(700)), range(at(100), at(700)));
    assert_eq!(safe::snd_nxt(pos(300), pos(700)), range(at(300), at(700)));
    assert_eq!(safe::dupthresh(8), range(1, 8));
    assert_eq!(safe::dupthresh(0), range(1, 1));
    assert_eq!(safe::rto(ms(800)), Interval::at_least(ms(800).as_nanos()));
    assert_eq!(safe::retransmits(Some(15)), range(0, 15));
    assert_eq!(safe::retransmits(None), Interval::ANY);
    assert_eq!(safe::pacing_rate(Some(1_000_000)), range(1, 1_000_000));
    assert_eq!(safe::pacing_rate(None), Interval::at_least(1));
}

fn layer(id: u32, ask: impl FnOnce(&mut Limits)) -> (LayerId, Limits) {
    let mut limits = Limits::default();
    ask(&mut limits);
    (LayerId(id), limits)
}

fn combine(layers: &[(LayerId, Limits)]) -> Combined {
    let mut combined = Combined::default();
    for variable in Variable::ALL {
        combined.combine(variable, layers.iter().map(|(id, limits)| (*id, limits)));
    }
    combined
}

/// Two layers narrow each other; who decides is who stands for the bound that is used.
#[test]
fn layers_narrow_each_other() {
    let both = combine(&[
        layer(0, |limits| limits.at_most(Value::Cwnd(9000))),
        layer(1, |limits| limits.at_most(Value::Cwnd(5000))),
    ]);
    let ruling = both.rule(Variable::Cwnd, 10_000, safe::cwnd(10_000));
    assert_eq!((ruling.effective, ruling.decided_by), (5000, Decider::Layer(LayerId(1))));
    assert_eq!(ruling.requested, Some(Interval::at_most(5000)));
    // TCP's own is within what both want.
    let ruling = both.rule(Variable::Cwnd, 4000, safe::cwnd(4000));
    assert_eq!((ruling.effective, ruling.decided_by), (4000, Decider::Tcp));
}

/// More than is safe is asked for: the nearest that is safe is used.
#[test]
fn unsafe_values_are_coerced() {
    let greedy = combine(&[layer(7, |limits| limits.exactly(Value::Cwnd(50_000)))]);
    let ruling = greedy.rule(Variable::Cwnd, 10_000, safe::cwnd(10_000));
    assert_eq!((ruling.effective, ruling.decided_by), (10_000, Decider::SafeRange));
}

/// Limits that contradict each other leave TCP's own value.
#[test]
fn a_conflict_leaves_tcps_own() {
    let conflict = combine(&[
        layer(0, |limits| limits.at_least(Value::Dupthresh(8))),
        layer(1, |limits| limits.at_most(Value::Dupthresh(5))),
    ]);
    let ruling = conflict.rule(Variable::Dupthresh, 3, safe::dupthresh(20));
    assert!(ruling.conflict);
    assert_eq!((ruling.effective, ruling.decided_by, ruling.requested), (3, Decider::Tcp, None));
}

/// The least more than the most: it is kept as it was, and the layer is at fault.
#[test]
fn nonsense_is_noticed() {
    let (_, limits) = layer(0, |limits| {
        limits.at_most(Value::Cwnd(4000));
        limits.between(Value::Cwnd(10), Value::Cwnd(9));
    });
    assert_eq!(limits.fault(), Some(Fault::Nonsense(Variable::Cwnd)));
    assert_eq!(limits.asked(Variable::Cwnd), Interval::at_most(4000));
}

#[test]
fn names_are_found_again() {
    for (index, variable) in Variable::ALL.into_iter().enumerate() {
        assert_eq!(variable as usize, index);
        assert_eq!(Variable::named(variable.name()), Some(variable));
    }
    assert_eq!(Variable::named("mss"), None);
}

fn interval() -> impl Strategy<Value = Interval> {
    let value = prop_oneof![0u64..64, any::<u64>()];
    (value.clone(), value).prop_map(|(a, b)| Interval::new(a.min(b), a.max(b)).unwrap())
}

fn stack() -> impl Strategy<Value = Vec<(LayerId, Limits)>> {
    let asked = prop::collection::vec((0..Variable::ALL.len(), interval()), 0..6);
    prop::collection::vec(asked, 0..5).prop_map(|layers| {
        let layers = (0u32..).zip(layers);
        layers
            .map(|(id, asked)| {
                layer(id, |limits| {
                    for (variable, interval) in asked {
                        limits.set(Variable::ALL[variable], interval);
                    }
                })
            })
            .collect()
    })
}

proptest! {
    /// Commutative, associative, idempotent: whatever the order, and however often.
    #[test]
    fn intervals_are_a_lattice(a in interval(), b in interval(), c in interval()) {
        prop_assert_eq!(meet(a, b), meet(b, a));
        prop_assert_eq!(meet(a, a), Some(a));
        prop_assert_eq!(meet(a, Interval::ANY), Some(a));
        let left = meet(a, b).and_then(|ab| meet(ab, c));
        let right = meet(b, c).and_then(|bc| meet(a, bc));
        prop_assert_eq!(left, right);
        if let Some(both) = meet(a, b) {
            prop_assert!(a.contains(both.low()) && b.contains(both.low()));
            prop_assert!(a.contains(both.high()) && b.contains(both.high()));
        }
    }

    /// The same layers in another order, or twice, are the same: every ruling, its decider included.
    #[test]
    fn the_order_of_layers_is_of_no_consequence(
        mut layers in stack(), own: u64, safe in interval(), turn in 0usize..5,
    ) {
        let once = combine(&layers);
        let twice: Vec<_> = layers.iter().chain(&layers).cloned().collect();
        let twice = combine(&twice);
        let most = layers.len().max(1);
        layers.rotate_left(turn % most);
        let turned = combine(&layers);
        layers.reverse();
        let reversed = combine(&layers);
        for variable in Variable::ALL {
            let ruling = once.rule(variable, own, safe);
            for other in [&twice, &turned, &reversed] {
                prop_assert_eq!(ruling, other.rule(variable, own, safe));
            }
        }
    }

    /// The value in use is safe or TCP's own, and TCP's own if nobody asks.
    #[test]
    fn whatever_is_used_is_safe(layers in stack(), own: u64, safe in interval()) {
        let combined = combine(&layers);
        for variable in Variable::ALL {
            let ruling = combined.rule(variable, own, safe);
            prop_assert!(safe.contains(ruling.effective) || ruling.effective == own);
            if !combined.asks(variable) || combined.conflicts(variable) {
                prop_assert_eq!(ruling.effective, own);
            }
            match ruling.requested {
                Some(requested) if ruling.decided_by != Decider::SafeRange => {
                    prop_assert!(requested.contains(ruling.effective));
                }
                _ => {}
            }
        }
    }

    /// One layer more never widens what is asked for.
    #[test]
    fn layers_only_narrow(layers in stack(), own: u64) {
        let Some((_, below)) = layers.split_last() else { return Ok(()) };
        let (below, all) = (combine(below), combine(&layers));
        for variable in Variable::ALL {
            let before = below.rule(variable, own, Interval::ANY).requested;
            let after = all.rule(variable, own, Interval::ANY).requested;
            if let (Some(before), Some(after)) = (before, after) {
                prop_assert_eq!(meet(before, after), Some(after));
            }
            if below.conflicts(variable) {
                prop_assert!(all.conflicts(variable));
            }
        }
    }
}
