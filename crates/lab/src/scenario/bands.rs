//! Reads `[[expect]]`: from what is written to bands around quantities that exist.

use super::bound::{Bound, Scalar, Unit};
use super::claim::Control;
use super::control;
use super::decode::{decode, keys_of};
use super::error::{Problem, Problems};
use super::expect::{Band, BandOptions, Quantity, QuantityOptions, Statistic};
use super::known::Known;
use super::open::OtherPoint;
use super::resolve::split;
use super::sweep::wrong_type;
use super::tree::{Node, Span, Table, Value, way};

/// A quantity that is measured relative to another point of the sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The band; its `relative_to` is measured at `baseline`.
    pub band: Band,
    /// The other point's number, as [`Scenario::sweep`](super::Scenario::sweep) counts from zero.
    pub baseline: usize,
}

/// Bands of a single run, and those that need another.
#[derive(Debug, Default)]
pub(super) struct Bands {
    pub(super) bands: Vec<Band>,
    pub(super) comparisons: Vec<Comparison>,
    pub(super) controls: Vec<Control>,
    /// Quantities that must be measured at other points.
    pub(super) other_points: Vec<OtherPoint>,
}

impl Bands {
    /// Reads one item of `[[expect]]`.
    pub(super) fn read(
        &mut self,
        table: &Table,
        span: &Span,
        known: &Known<'_>,
        problems: &mut Problems,
    ) -> Option<()> {
        let (mut band, mut rest) = split(table, keys_of::<BandOptions>());
        let control = take_control(&mut band);
        let when = rest.0.remove("when").map(|entry| entry.node);
        let relative = rest.0.remove("relative-to").map(|entry| entry.node);
        let also = [keys_of::<BandOptions>(), &["when", "relative-to"]].concat();
        let options: Option<BandOptions> = decode(&band, span, &[], problems);
        let quantity: Option<QuantityOptions> = decode(&rest, span, &also, problems);
        let mut applies = true;
        if let Some(when) = &when {
            let indices = known.sweep.indices(known.point);
            for (axis, index) in known.axes("when", when, problems) {
                applies &= known.sweep.has(axis, &indices, index);
            }
        }
        let (options, quantity) = (options?, quantity?);
        let place = |table: &Table, key: &str| match table.get(key) {
            Some(node) => node.span.clone(),
            None => span.clone(),
        };
        let Some(measure) = quantity.measure else {
            if !table.0.contains_key("measure") {
                problems.add(span.clone(), Problem::MissingKey { key: "measure".into() });
            }
            return None;
        };
        let own = known.quantity(measure, &quantity, table, span, problems);
        let is_moment = quantity.reaches.is_some() || quantity.stays_above.is_some();
        let mut unit = if is_moment { Unit::Time } else { measure.unit() };
        let mut relative_to = None;
        let mut difference = false;
        let mut baseline = None;
        if let Some(node) = &relative {
            let Value::Table(all) = &node.value else {
                problems.add(node.span.clone(), wrong_type(&node.value, "a table"));
                return None;
            };
            let mut all = all.clone();
            let at = all.0.remove("at").map(|entry| entry.node);
            if let Some(entry) = all.0.remove("difference") {
                let Value::Boolean(value) = entry.node.value else {
                    let problem = wrong_type(&entry.node.value, "true or false");
                    problems.add(entry.node.span, problem);
                    return None;
                };
                difference = value;
            }
            if !difference {
                unit = Unit::Number;
            }
            let other: QuantityOptions = decode(&all, &node.span, &["at", "difference"], problems)?;
            let its_measure = other.measure.unwrap_or(measure);
            // Parts that are left out are as in the band.
            let merged = inherit(&other, &quantity);
            relative_to = known.quantity(its_measure, &merged, &all, &node.span, problems);
            let each = |one: &Option<Quantity>| {
                one.as_ref().is_some_and(|one| {
                    one.statistic == Some(Statistic::Each) && one.flows.len() > 1
                })
            };
            // Each of several flows can be compared with itself elsewhere, or all with one.
            if each(&relative_to) && (at.is_none() || other.flow.is_some() || other.flows.is_some())
            {
                let text = "the divisor must be one value: choose a statistic other than \"each\"";
                problems.add(node.span.clone(), Problem::Conflict(text.into()));
                return None;
            }
            if let Some(at) = &at {
                let chosen = known.axes("at", at, problems);
                baseline = known.sweep.point_at(&chosen, known.point);
                if baseline.is_none() {
                    let text = "no point of the sweep has these values".into();
                    problems.add(at.span.clone(), Problem::Conflict(text));
                }
            }
            let differ = |(one, other): (&Quantity, &Quantity)| one.unit() != other.unit();
            if own.as_ref().zip(relative_to.as_ref()).is_some_and(differ) {
                let what = if difference { "difference" } else { "quotient" };
                let text = format!("a {what} needs two measures of the same unit");
                problems.add(place(&all, "measure"), Problem::Conflict(text));
                return None;
            }
            let divisor = relative_to.clone()?;
            if at.is_some() && baseline.is_none() {
                return None;
            }
            // A point relative to itself says nothing.
            applies &= baseline != Some(known.point);
            let place = all.get("link").unwrap_or(node).span.clone();
            match baseline {
                _ if !applies => {}
                None => control::check(&divisor, known.links, place, problems),
                Some(point) if control::is_about(&divisor) => {
                    self.other_points.push(OtherPoint { point, quantity: divisor, place });
                }
                Some(_) => {}
            }
        }
        if let (true, Some(own)) = (applies, &own) {
            control::check(own, known.links, place(table, "link"), problems);
        }
        let bound = |key, scalar: &Option<Scalar>, problems: &mut Problems| {
            let read = Bound::read(scalar.as_ref()?, unit);
            read.map_err(|error| problems.add(place(table, key), Problem::Value(error.to_string())))
                .ok()
        };
        let (min, max) =
            (bound("min", &options.min, problems), bound("max", &options.max, problems));
        match (min, max) {
            // Values that only stand in a column are not compared.
            (None, None)
                if options.min.is_none()
                    && options.max.is_none()
                    && (options.column.is_none() || options.claim.is_some()) =>
            {
                let written = table.0.contains_key("min") || table.0.contains_key("max");
                if !written {
                    problems.add(span.clone(), Problem::MissingKey { key: "min` or `max".into() });
                }
                return None;
            }
            (Some(min), Some(max)) if min.as_integer() > max.as_integer() => {
                let problem = Problem::OutOfBounds {
                    key: "min",
                    value: min.to_string(),
                    bound: format!("at most `max`, {max}"),
                };
                problems.add(place(table, "min"), problem);
            }
            _ => {}
        }
        if options.claim.as_ref().is_some_and(|claim| claim.has_wrong_control()) {
            let place = table.find(way!["claim", "control"]).map_or(span, |node| &node.span);
            let text = "a control is a point of the sweep, or \"none: \" and the reason";
            problems.add(place.clone(), Problem::Conflict(text.into()));
        }
        let control = control.and_then(|node| {
            let chosen = known.axes("control", &node, problems);
            let point = known.sweep.point_at(&chosen, known.point);
            if !chosen.is_empty() && (point.is_none() || point == Some(known.point)) {
                let text = match point {
                    None => "no point of the sweep has these values",
                    Some(_) => "a claim's control is another point of the sweep",
                };
                // Where the claim is not made, its control may be the point itself.
                if applies {
                    problems.add(node.span.clone(), Problem::Conflict(text.into()));
                }
            }
            point
        });
        let claim = options.claim.and_then(|claim| {
            let read = claim.read(unit);
            let place = || table.find(way!["claim", "number"]).map_or(span, |node| &node.span);
            read.map_err(|error| problems.add(place().clone(), Problem::Value(error.to_string())))
                .ok()
        });
        let BandOptions { why, column, .. } = options;
        let band = Band { quantity: own?, min, max, why, column, claim, relative_to, difference };
        if let (true, Some(point)) = (applies, control) {
            self.controls.push(Control { band: band.clone(), point, baseline });
        }
        match baseline {
            _ if !applies => {}
            None => self.bands.push(band),
            Some(baseline) => self.comparisons.push(Comparison { band, baseline }),
        }
        Some(())
    }
}

/// Takes the control out of a band's claim, if it is a point of the sweep.
fn take_control(band: &mut Table) -> Option<Node> {
    let Value::Table(claim) = &mut band.0.get_mut("claim")?.node.value else { return None };
    let is_point = |node: &Node| matches!(node.value, Value::Table(_));
    if !claim.get("control").is_some_and(is_point) {
        return None;
    }
    claim.0.remove("control").map(|entry| entry.node)
}

fn inherit(own: &QuantityOptions, base: &QuantityOptions) -> QuantityOptions {
    let own = own.clone();
    let (flow, flows) = match (own.flow, own.flows) {
        (None, None) => (base.flow.clone(), base.flows.clone()),
        named => named,
    };
    QuantityOptions {
        measure: own.measure,
        flow,
        flows,
        link: own.link.or(base.link.clone()),
        direction: own.direction.or(base.direction),
        statistic: own.statistic.or(base.statistic),
        from: own.from.or(base.from),
        until: own.until.or(base.until),
        reaches: own.reaches.or(base.reaches.clone()),
        stays_above: own.stays_above.or(base.stays_above.clone()),
        window: own.window.or(base.window),
    }
}
