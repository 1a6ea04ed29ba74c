//! Window control that is asked about and may not be there.
//!
//! A measurement or drawing of a link's window control needs a window control. Whether the link has one can differ from point to point of a sweep. A
//! band needs it at the points where it holds, its divisor at the point where that is measured, and a series that is requested by name at one point.

use super::error::{Problem, Problems};
use super::expect::{Direction, Quantity, Requirement};
use super::link::Link;
use super::measure::LinkSeries;
use super::open::Open;
use super::tree::{Span, Table, way};

/// Whether a quantity is about window control.
pub(super) fn is_about(quantity: &Quantity) -> bool {
    matches!(quantity.measure.needs(), Requirement::WindowControl | Requirement::WindowTarget)
}

/// The missing requirement of a quantity at these links, as text; `None` if nothing is missing.
pub(super) fn missing(quantity: &Quantity, links: &[Link]) -> Option<String> {
    if !is_about(quantity) {
        return None;
    }
    // A link that is not there has been reported.
    let link = links.iter().find(|link| Some(&link.name) == quantity.link.as_ref())?;
    let (config, way) = match quantity.direction.unwrap_or_default() {
        Direction::There => (&link.there, "there"),
        Direction::Back => (&link.back, "back"),
    };
    match &config.window {
        None => Some(format!("`{}` has no window control on the way {way}", link.name)),
        Some(policy) => {
            let without =
                quantity.measure.needs() == Requirement::WindowTarget && !policy.has_target();
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

/// Leaves out the series of which none of these links has anything, which are in the order in which the scenario names them.
pub(super) fn leave_out(
    tree: &Table,
    series: &mut Vec<LinkSeries>,
    links: &[Link],
    open: &mut Open,
) {
    let controlled = |link: &Link| link.there.window.is_some() || link.back.window.is_some();
    if links.iter().any(controlled) {
        return;
    }
    if tree.find(way!["measure", "links"]).is_some() {
        let text = "no link has window control, so there is nothing of this to draw";
        let named = series.iter().enumerate().filter(|(_, one)| one.is_of_window_control());
        let places = named.map(|(index, _)| tree.span(way!["measure", "links", index]));
        open.nothing.extend(places.map(|place| (place, text)));
    }
    series.retain(|one| !one.is_of_window_control());
}
