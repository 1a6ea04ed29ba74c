//! The course of a measure over time, and when it reaches a level.
//!
//! Theory of operation. A *course* is a measure at every sample of a run within the span of the band. A momentary measure, such as a window, has its
//! sampled value. A measure over a span, such as goodput, has at each sample the value of the window that ends there. So the first value comes a
//! whole window after the first moment. These values show when a course reaches a level, exact to a sample interval.

use super::{Span, flows_of, link_of};
use crate::run::{LinkObservations, Observations};
use crate::scenario::{Measure, Quantity};
use transom_sim::measure::{FlowSample, LinkSample, SenderSample, jain_index, per_second};
use transom_tcp::time::{Duration, Instant};

/// A measure at every sample.
type Course = Vec<(Instant, f64)>;

/// The level that a course must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Level {
    /// For once.
    Reached(f64),
    /// For good.
    Kept(f64),
}

impl Level {
    /// The level that a quantity is about, if it is about one.
    pub(super) fn of(quantity: &Quantity) -> Option<Level> {
        let reached = quantity.reaches.map(|level| Level::Reached(level.as_number()));
        reached.or(quantity.stays_above.map(|level| Level::Kept(level.as_number())))
    }

    /// How long after `from` it is reached, in nanoseconds; `None` if it never is.
    pub(super) fn time(self, course: &[(Instant, f64)], from: Instant) -> Option<f64> {
        let number = match self {
            Level::Reached(level) => course.iter().position(|(_, value)| *value >= level)?,
            Level::Kept(level) => {
                // A value that is no number, such as a share of nothing, is not above.
                let below = |(_, value): &(Instant, f64)| !matches!(value.partial_cmp(&level), Some(order) if order.is_ge());
                course.iter().rposition(below).map_or(0, |last| last + 1)
            }
        };
        let (at, _) = course.get(number)?;
        Some(at.since(from).as_nanos() as f64)
    }
}

/// The course of each flow, or of all of them or the link together.
pub(super) fn of(quantity: &Quantity, seen: &Observations, span: Span) -> Vec<Course> {
    let measure = quantity.measure;
    let window = quantity.window.map(|window| window.0).unwrap_or_default();
    if let Some(name) = &quantity.link {
        let link = link_of(quantity, name, seen).into_iter();
        return link.map(|link| of_link(measure, link, span, window)).collect();
    }
    let flows = flows_of(&quantity.flows, seen);
    let courses = flows.map(|flow| of_flow(measure, span.of_flow(flow), window)).collect();
    if measure == Measure::Jain { vec![fairness(courses)] } else { courses }
}

/// Counts since the first moment of the span: bytes delivered, by flow, or packets that a queue dropped.
pub(super) fn counted(quantity: &Quantity, seen: &Observations, span: Span) -> Vec<Course> {
    if let Some(name) = &quantity.link {
        let totals = |link| span.of_link(link).iter().map(|one| (one.at, drops(one)));
        return link_of(quantity, name, seen)
            .into_iter()
            .map(|link| growth(totals(link)))
            .collect();
    }
    let totals = |flow| span.of_flow(flow).iter().map(|one| (one.at, one.delivered));
    flows_of(&quantity.flows, seen).map(|flow| growth(totals(flow))).collect()
}

/// How much more than the first.
fn growth(totals: impl Iterator<Item = (Instant, u64)>) -> Course {
    let mut first = None;
    totals.map(|(at, now)| (at, (now - *first.get_or_insert(now)) as f64)).collect()
}

/// Packets that a link's queue has refused or dropped so far.
pub(super) fn drops(sample: &LinkSample) -> u64 {
    sample.counters.queue_full.packets + sample.counters.queue_dropped.packets
}

fn of_flow(measure: Measure, samples: &[FlowSample], window: Duration) -> Course {
    let rates_of = |total: fn(&FlowSample) -> Option<u64>| {
        let totals = samples.iter().map_while(|one| Some((one.at, total(one)?)));
        rates(&totals.collect::<Vec<_>>(), window)
    };
    match measure {
        Measure::Goodput | Measure::Jain => rates_of(|one| Some(one.delivered)),
        Measure::Throughput => rates_of(|one| one.sent.bytes),
        _ => {
            let value = |one: &FlowSample| Some((one.at, of_sender(measure, one.sender?)?));
            samples.iter().filter_map(value).collect()
        }
    }
}

/// The state of a sender at one moment.
pub(super) fn of_sender(measure: Measure, sender: SenderSample) -> Option<f64> {
    // A kernel tells only the smoothed one.
    let rtt = sender.last_rtt.or(sender.srtt).map(|rtt| rtt.as_nanos() as f64);
    let rto = sender.rto.as_nanos() as f64;
    match measure {
        Measure::Cwnd => Some(sender.cwnd as f64),
        Measure::Ssthresh => sender.ssthresh.map(|bytes| bytes as f64),
        Measure::Flight => Some(sender.in_flight as f64),
        Measure::Rtt => rtt,
        Measure::Rto => Some(rto),
        Measure::RtoToRtt => rtt.filter(|rtt| *rtt > 0.0).map(|rtt| rto / rtt),
        _ => None,
    }
}

/// The growth of totals per second, over the window that ends at each sample.
fn rates(totals: &[(Instant, u64)], window: Duration) -> Course {
    let mut first = 0;
    let mut course = Vec::new();
    for &(at, now) in totals {
        let is_whole = |(then, _): &&(Instant, u64)| at.since(*then) >= window;
        // The last sample that is a whole window ago.
        while totals.get(first + 1).as_ref().is_some_and(is_whole) {
            first += 1;
        }
        if let Some(&(then, before)) = totals.get(first).filter(is_whole) {
            course.push((at, per_second(now.saturating_sub(before), at.since(then))));
        }
    }
    course
}

fn of_link(measure: Measure, link: &LinkObservations, span: Span, window: Duration) -> Course {
    let samples = span.of_link(link).iter();
    match (measure, link.rate) {
        (Measure::Utilisation, Some(rate)) => {
            let totals: Vec<_> =
                samples.map(|one| (one.at, one.counters.delivered.bytes)).collect();
            let share = |(at, speed)| (at, speed / rate.bits_per_sec() as f64);
            rates(&totals, window).into_iter().map(share).collect()
        }
        _ => samples.filter_map(|one| Some((one.at, of_way(measure, one)?))).collect(),
    }
}

/// The state of one direction of a link at one moment.
pub(super) fn of_way(measure: Measure, sample: &LinkSample) -> Option<f64> {
    match measure {
        Measure::QueueLength => Some(sample.waiting.packets as f64),
        Measure::WindowTarget => sample.window?.target.map(|bytes| bytes as f64),
        _ => None,
    }
}

/// Jain's index of the flows' goodputs. A flow that has not begun has no samples yet, and a share of nothing.
fn fairness(courses: Vec<Course>) -> Course {
    let Some(longest) = courses.iter().max_by_key(|course| course.len()) else {
        return Vec::new();
    };
    let share = |course: &Course, at: Instant| {
        let found = course.binary_search_by_key(&at, |(at, _)| *at);
        found.ok().and_then(|number| course.get(number)).map_or(0, |(_, rate)| *rate as u64)
    };
    let index = |(at, _): &(Instant, f64)| {
        (*at, jain_index(courses.iter().map(|course| share(course, *at))))
    };
    longest.iter().map(index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_level_is_reached_once_or_for_good() {
        let course: Course = [1.0, 5.0, 2.0, 6.0, 7.0]
            .into_iter()
            .zip(10..)
            .map(|(value, s)| (at(s), value))
            .collect();
        let seconds = |level: Level| level.time(&course, at(8)).map(|time| time / 1e9);
        assert_eq!(seconds(Level::Reached(5.0)), Some(3.0));
        assert_eq!(seconds(Level::Kept(5.0)), Some(5.0));
        assert_eq!(seconds(Level::Kept(1.0)), Some(2.0));
        assert_eq!(seconds(Level::Reached(7.5)), None);
        assert_eq!(seconds(Level::Kept(7.0)), Some(6.0));
        assert_eq!(seconds(Level::Kept(7.5)), None);
    }

    #[test]
    fn a_rate_is_that_of_the_window_that_ends_there() {
        // 100 bytes in the first second, then 300, then 500.
        let totals = [(at(0), 0), (at(1), 100), (at(2), 400), (at(3), 900)];
        // In bits per second.
        let course = rates(&totals, Duration::from_secs(1));
        assert_eq!(course, [(at(1), 800.0), (at(2), 2400.0), (at(3), 4000.0)]);
        let course = rates(&totals, Duration::from_secs(2));
        assert_eq!(course, [(at(2), 1600.0), (at(3), 3200.0)]);
        assert!(rates(&totals, Duration::from_secs(9)).is_empty());
    }
}
