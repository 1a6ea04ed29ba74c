//! The judge of the first exercise.

use std::error::Error;
use std::process::ExitCode;

use crate::watched_transfer::{Course, Judge, transfer};
use transom_tcp::Profile;
use transom_tcp::congestion::CongestionChoice;

/// Runs a minute over 10 Mbit/s and 40 ms with a queue of 34 packets, as much as the path itself holds.
pub(crate) fn check(congestion: CongestionChoice) -> Result<ExitCode, Box<dyn Error>> {
    let profile = Profile::classic().with_congestion(congestion);
    let path = "rate=10Mbit/s, delay=20ms, queue=34 packets";
    let course = transfer(profile, path, "delay=20ms", 60)?;
    course.draw();
    let mut judge = Judge::default();
    judge.expect("growth between losses, in segments a round trip", growth(&course), 0.8..=1.2);
    judge.expect("what a loss leaves of the window", kept(&course), 0.42..=0.58);
    judge.expect("rate, in Mbit/s", course.rate(), 9.0..=10.0);
    Ok(judge.end())
}

/// Where the second half has a reduction: the number of the sample before it.
fn reductions(course: &Course) -> Vec<usize> {
    let samples = &course.samples;
    (samples.len() / 2..samples.len() - 1)
        .filter(|&at| samples[at].reductions != samples[at + 1].reductions)
        .collect()
}

/// The median over the times without a loss. Zero if there were no losses.
fn growth(course: &Course) -> f64 {
    let at = reductions(course);
    let between = at.windows(2).map(|pair| {
        // From half a second behind one loss, when it is repaired, to the next.
        let (from, to) = (&course.samples[(pair[0] + 50).min(pair[1])], &course.samples[pair[1]]);
        let rtt = f64::midpoint(from.rtt, to.rtt) / 1e3;
        (to.window - from.window) / ((to.time - from.time).max(0.01) / rtt)
    });
    median(between.collect())
}

/// The least window of the half second after a loss, as a part of the window before it.
fn kept(course: &Course) -> f64 {
    let samples = &course.samples;
    let least = |at: usize| {
        let after = &samples[at + 1..(at + 50).min(samples.len())];
        after.iter().map(|sample| sample.window).fold(f64::INFINITY, f64::min)
    };
    median(reductions(course).into_iter().map(|at| least(at) / samples[at].window).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
