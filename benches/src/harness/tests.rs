use super::*;
use std::cell::RefCell;
use std::rc::Rc;

#[test]
fn the_median_is_the_middle() {
    assert_eq!(median([].into_iter()), None);
    assert_eq!(median([3.0].into_iter()), Some(3.0));
    assert_eq!(median([9.0, 1.0, 2.0].into_iter()), Some(2.0));
    assert_eq!(median([4.0, 1.0, 2.0, 9.0].into_iter()), Some(3.0));
}

fn run(cases: Vec<Case>, rounds: usize) -> Vec<CaseResult> {
    let mut group = Group::new(Unit::PerSecond, cases);
    let watchdog = Watchdog::start(|name| panic!("{name} hangs")).unwrap();
    measure(&mut group, rounds, Duration::ZERO, &ProgressBar::hidden(), &watchdog)
}

#[test]
fn ratios_are_taken_within_a_round() {
    // The machine gets slower and slower; the case is always twice as fast as what it is held against.
    let (mut a, mut b) = ([8.0, 4.0, 2.0].into_iter(), [16.0, 8.0, 4.0].into_iter());
    let base = Case::new("base", move |_| Ok(a.next().unwrap()));
    let twice = Case::new("twice", move |_| Ok(b.next().unwrap()))
        .figure("base", Bound::AtLeast(1.9))
        .figure("base", Bound::AtMost(1.9))
        .absolute(Bound::AtLeast(8.0));
    let results = run(vec![base, twice], 3);
    let [strict, other, absolute] = &results[1].ratios[..] else { panic!("three ratios") };
    assert_eq!((strict.value, strict.reached), (Some(2.0), Some(true)));
    assert_eq!((other.value, other.reached), (Some(2.0), Some(false)));
    assert_eq!((absolute.value, absolute.reached), (Some(8.0), Some(true)));
    assert_eq!((results[1].min, results[1].median), (Some(4.0), Some(8.0)));
    assert_eq!(results[1].max, Some(16.0));
}

#[test]
fn every_other_round_runs_backwards() {
    let order = Rc::new(RefCell::new(String::new()));
    let case = |name: &'static str| {
        let order = Rc::clone(&order);
        Case::new(name, move |_| {
            order.borrow_mut().push_str(name);
            Ok(1.0)
        })
    };
    run(vec![case("a"), case("b"), case("c")], 3);
    assert_eq!(*order.borrow(), "abccbaabc");
}

#[test]
fn a_failed_sample_costs_its_round_and_is_told() {
    let mut count = 0;
    let flaky = Case::new("flaky", move |_| {
        count += 1;
        anyhow::ensure!(count != 2, "the second time");
        Ok(6.0)
    })
    .against("base");
    let mut value = 1.0;
    let base = Case::new("base", move |_| {
        value += 1.0;
        Ok(value)
    });
    let results = run(vec![base, flaky], 3);
    assert_eq!(results[1].samples, [Some(6.0), None, Some(6.0)]);
    assert_eq!(results[1].failure.as_deref(), Some("the second time"));
    // 6/2 and 6/4; the round in between does not count.
    assert_eq!(results[1].ratios[0].value, Some(2.25));
    assert_eq!(results[1].ratios[0].reached, None);
}
