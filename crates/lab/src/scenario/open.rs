//! Checks that need all points of a sweep.
//!
//! Each point is resolved separately. A quantity that a band measures at another point must exist there. A setting without an effect at one point is
//! wrong only if it has none at any. Both are checked when all points are known and there is no other error.

use super::control;
use super::error::{Problem, Problems};
use super::expect::Quantity;
use super::link::Link;
use super::sweep::Setting;
use super::tree::Span;
use std::collections::BTreeMap;

/// The open checks of a point.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// Quantities measured at other points.
    pub(super) other_points: Vec<OtherPoint>,
    /// Settings without an effect at this point: where, and why.
    pub(super) nothing: Vec<(Span, &'static str)>,
}

/// A quantity that is measured at another point of the sweep.
#[derive(Debug)]
pub(super) struct OtherPoint {
    /// That point.
    pub(super) point: usize,
    /// The quantity.
    pub(super) quantity: Quantity,
    /// The place in the text.
    pub(super) place: Span,
}

/// The open checks of all points, each position once.
#[derive(Debug, Default)]
pub(super) struct AllOpen {
    /// By point and place.
    other_points: BTreeMap<(usize, usize), OtherPoint>,
    /// Settings without an effect at any point; `None` before the first.
    nothing: Option<Vec<(Span, &'static str)>>,
}

impl AllOpen {
    /// Adds a point's.
    pub(super) fn add(&mut self, open: Open) {
        for one in open.other_points {
            self.other_points.insert((one.point, one.place.start), one);
        }
        match &mut self.nothing {
            Some(nothing) => nothing.retain(|one| open.nothing.contains(one)),
            None => self.nothing = Some(open.nothing),
        }
    }

    /// Reports what is wrong. `at` gives a point's values and links, the latter unless something else is wrong with it.
    pub(super) fn check(
        self,
        mut at: impl FnMut(usize) -> (Vec<Setting>, Option<Vec<Link>>),
        problems: &mut Problems,
    ) {
        let nothing = self.nothing.unwrap_or_default();
        if !nothing.is_empty() {
            // It is so at every point.
            problems.at_point(&[]);
        }
        for (place, text) in nothing {
            problems.add(place, Problem::Conflict(text.into()));
        }
        let mut last: Option<(usize, Vec<Setting>, Option<Vec<Link>>)> = None;
        for OtherPoint { point, quantity, place } in self.other_points.into_values() {
            if last.as_ref().is_none_or(|(before, ..)| *before != point) {
                let (settings, links) = at(point);
                last = Some((point, settings, links));
            }
            let Some((_, settings, Some(links))) = &last else { continue };
            if let Some(text) = control::missing(&quantity, links) {
                problems.at_point(settings);
                problems.add(place, Problem::Conflict(text));
            }
        }
    }
}
