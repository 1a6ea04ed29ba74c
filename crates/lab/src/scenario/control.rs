//! Window control that is asked about and may not be there.
//!
//! What is measured of a link's window control, or drawn of it, needs one. Whether there is one can differ from point to point of a sweep: a band needs it
//! at the points where it holds, and what it is divided by at the point where that is measured; a series that is asked for by its name, somewhere.

use super::error::{Problem, Problems};
use super::expect::{Direction, Needs, Quantity};
use super::link::Link;
use super::measure::LinkSeries;
use super::sweep::Setting;
use super::tree::{Span, Table, way};
use std::collections::BTreeMap;

/// Whether a quantity is one of window control.
pub(super) fn is_asked(quantity: &Quantity) -> bool {
    matches!(quantity.measure.needs(), Needs::WindowControl | Needs::WindowTarget)
}

/// What a quantity needs and is missing at these links, in words; `None` if nothing is.
fn missing(quantity: &Quantity, links: &[Link]) -> Option<String> {
    if !is_asked(quantity) {
        return None;
    }
    // A link that is not there has been reported.
    let link = links.iter().find(|link| Some(&link.name) == quantity.link.as_ref())?;
    let (config, way) = match quantity.direction.unwrap_or_default() {
        Direction::There => (&link.there, "there"),
        Direction::Back => (&link.back, "back"),
    };
    match &config.window.0 {
        None => Some(format!("`{}` has no window control on the way {way}", link.name)),
        Some(policy) => {
            let without = quantity.measure.needs() == Needs::WindowTarget && !policy.has_target();
            without.then(|| format!("`{}` has no target that all flows share", policy.name()))
        }
    }
}

/// Reports what a quantity needs that is not there.
pub(super) fn check(quantity: &Quantity, links: &[Link], place: Span, problems: &mut Problems) {
    if let Some(text) = missing(quantity, links) {
        problems.add(place, Problem::Conflict(text));
    }
}

/// Leaves out the series of which none of these links has anything. Returns where the scenario names such.
pub(super) fn leave_out(tree: &Table, series: &mut Vec<LinkSeries>, links: &[Link]) -> Vec<Span> {
    let controlled = |link: &Link| !link.there.window.is_none() || !link.back.window.is_none();
    if links.iter().any(controlled) {
        return Vec::new();
    }
    let mut places = Vec::new();
    if tree.find(way!["measure", "links"]).is_some() {
        let named = series.iter().enumerate().filter(|(_, one)| one.is_of_window_control());
        places.extend(named.map(|(index, _)| tree.span(way!["measure", "links", index])));
    }
    series.retain(|one| !one.is_of_window_control());
    places
}

/// A quantity that is measured at another point of the sweep.
#[derive(Debug)]
pub(super) struct Elsewhere {
    /// That point.
    pub(super) point: usize,
    /// The quantity.
    pub(super) quantity: Quantity,
    /// Where it is written.
    pub(super) place: Span,
}

/// What one point of a sweep leaves open.
#[derive(Debug, Default)]
pub(super) struct Open {
    /// What is measured at others.
    pub(super) elsewhere: Vec<Elsewhere>,
    /// Where series are named of which there is nothing at this one.
    pub(super) undrawn: Vec<Span>,
}

/// What all points leave open, each place once.
#[derive(Debug, Default)]
pub(super) struct AllOpen {
    /// By point and place.
    elsewhere: BTreeMap<(usize, usize), Elsewhere>,
    /// Where series are named of which there has been nothing at any point; `None` before the first.
    undrawn: Option<Vec<Span>>,
}

impl AllOpen {
    /// Adds a point's.
    pub(super) fn add(&mut self, open: Open) {
        for one in open.elsewhere {
            self.elsewhere.insert((one.point, one.place.start), one);
        }
        match &mut self.undrawn {
            Some(undrawn) => undrawn.retain(|place| open.undrawn.contains(place)),
            None => self.undrawn = Some(open.undrawn),
        }
    }

    /// Reports what is found to be missing. `at` gives a point's values and links, the latter unless something is wrong with it.
    pub(super) fn check(
        self,
        mut at: impl FnMut(usize) -> (Vec<Setting>, Option<Vec<Link>>),
        problems: &mut Problems,
    ) {
        for place in self.undrawn.unwrap_or_default() {
            let text = "no link has window control, so there is nothing of this to draw".into();
            problems.add(place, Problem::Conflict(text));
        }
        let mut last: Option<(usize, Vec<Setting>, Option<Vec<Link>>)> = None;
        for (_, Elsewhere { point, quantity, place }) in self.elsewhere {
            if last.as_ref().is_none_or(|(before, ..)| *before != point) {
                let (settings, links) = at(point);
                last = Some((point, settings, links));
            }
            let Some((_, settings, Some(links))) = &last else { continue };
            if let Some(text) = missing(&quantity, links) {
                problems.at_point(settings);
                problems.add(place, Problem::Conflict(text));
            }
        }
    }
}
