//! Reads `[[expect]]`: from what is written to bands around quantities that exist.

use super::decode::{decode, keys_of};
use super::error::{Problem, Problems};
use super::expect::{
    Band, BandOptions, Bound, Measure, Quantity, QuantityOptions, Scalar, Statistic, Taken, Unit,
};
use super::flow::Flows;
use super::header::Header;
use super::link::Link;
use super::name::Name;
use super::resolve::split;
use super::sweep::{Sweep, wrong_type};
use super::tree::{Node, Span, Table, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What bands can be about.
pub(super) struct Known<'a> {
    pub(super) header: Option<&'a Header>,
    pub(super) flows: &'a Flows,
    pub(super) links: &'a [Link],
    pub(super) link_groups: &'a BTreeMap<Name, Vec<Name>>,
    pub(super) links_incomplete: bool,
    pub(super) sweep: &'a Sweep,
    pub(super) point: usize,
}

/// What is measured relative to another point of the sweep.
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
        let (band, mut rest) = split(table, keys_of::<BandOptions>());
        let when = rest.0.remove("when").map(|entry| entry.node);
        let relative = rest.0.remove("relative-to").map(|entry| entry.node);
        let also = [keys_of::<BandOptions>(), &["when", "relative-to"]].concat();
        let options: Option<BandOptions> = decode(&band, span, &[], problems);
        let quantity: Option<QuantityOptions> = decode(&rest, span, &also, problems);
        let mut applies = true;
        if let Some(when) = &when {
            let indices = known.sweep.indices(known.point);
            for (axis, index) in known.axes("when", when, problems) {
                applies &= indices.get(axis) == Some(&index);
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
        let mut unit = measure.unit();
        let mut relative_to = None;
        let mut baseline = None;
        if let Some(node) = &relative {
            unit = Unit::Number;
            let Value::Table(all) = &node.value else {
                problems.add(node.span.clone(), wrong_type(&node.value, "a table"));
                return None;
            };
            let mut all = all.clone();
            let at = all.0.remove("at").map(|entry| entry.node);
            let other: QuantityOptions = decode(&all, &node.span, &["at"], problems)?;
            let its_measure = other.measure.unwrap_or(measure);
            if its_measure.unit() != measure.unit() {
                let text = "a quotient needs two measures of the same unit".into();
                problems.add(place(&all, "measure"), Problem::Conflict(text));
                return None;
            }
            // What is left out is as in the band.
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
                let mut indices = known.sweep.indices(known.point);
                for (axis, index) in known.axes("at", at, problems) {
                    if let Some(slot) = indices.get_mut(axis) {
                        *slot = index;
                    }
                }
                baseline = known.sweep.point_at(&indices);
                if baseline.is_none() {
                    let text = "no point of the sweep has these values".into();
                    problems.add(at.span.clone(), Problem::Conflict(text));
                }
            }
            relative_to.as_ref()?;
            if at.is_some() && baseline.is_none() {
                return None;
            }
        }
        let bound = |key, scalar: &Option<Scalar>, problems: &mut Problems| {
            let read = Bound::read(scalar.as_ref()?, unit);
            read.map_err(|error| problems.add(place(table, key), Problem::Value(error.to_string())))
                .ok()
        };
        let (min, max) =
            (bound("min", &options.min, problems), bound("max", &options.max, problems));
        match (min, max) {
            (None, None) if options.min.is_none() && options.max.is_none() => {
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
        let band = Band { quantity: own?, min, max, why: options.why, relative_to };
        match baseline {
            _ if !applies => {}
            None => self.bands.push(band),
            // A point relative to itself says nothing.
            Some(baseline) if baseline == known.point => {}
            Some(baseline) => self.comparisons.push(Comparison { band, baseline }),
        }
        Some(())
    }
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
    }
}

impl Known<'_> {
    /// Which values of which axes a table such as `when` names.
    fn axes(&self, key: &str, node: &Node, problems: &mut Problems) -> Vec<(usize, usize)> {
        let Value::Table(table) = &node.value else {
            problems.add(node.span.clone(), wrong_type(&node.value, "a table"));
            return Vec::new();
        };
        let mut chosen = Vec::new();
        if table.0.is_empty() {
            problems.add(node.span.clone(), Problem::Conflict(format!("`{key}` names no values")));
        }
        for (path, entry) in table.as_written() {
            let (path, entry) = flatten(path.into(), entry);
            let axis = self.sweep.axes.iter().position(|axis| axis.path == path);
            let Some((number, axis)) = axis.and_then(|n| Some((n, self.sweep.axes.get(n)?))) else {
                let known = self.sweep.axes.iter().map(|axis| axis.path.clone()).collect();
                let what = "path in the sweep";
                problems.add(entry.key.clone(), Problem::UnknownName { what, name: path, known });
                continue;
            };
            match axis.index_of(&entry.node.value) {
                Some(index) => chosen.push((number, index)),
                None => {
                    let (what, name) = ("value in the sweep", entry.node.value.to_string());
                    let problem = Problem::UnknownName { what, name, known: axis.texts() };
                    problems.add(entry.node.span.clone(), problem);
                }
            }
        }
        chosen
    }

    fn quantity(
        &self,
        measure: Measure,
        options: &QuantityOptions,
        table: &Table,
        span: &Span,
        problems: &mut Problems,
    ) -> Option<Quantity> {
        let before = problems.len();
        let place = |key: &str| match table.get(key) {
            Some(node) => node.span.clone(),
            None => span.clone(),
        };
        let taken = measure.taken();
        let unfit = |key: &str, text: &str, problems: &mut Problems| {
            problems.add(place(key), Problem::Conflict(text.into()));
        };
        let mut flows = Vec::new();
        let mut link = None;
        if taken.is_of_link() {
            for key in ["flow", "flows"] {
                if table.0.contains_key(key) {
                    unfit(key, "this measure is of a link, not of a flow", problems);
                }
            }
            link = self.link(options.link.as_ref(), &place("link"), table, problems);
        } else {
            for key in ["link", "direction"] {
                if table.0.contains_key(key) {
                    unfit(key, "this measure is of a flow, not of a link", problems);
                }
            }
            flows = self.flows_named(options, &place, table, problems);
            let udp: BTreeSet<&Name> = self
                .flows
                .flows
                .iter()
                .filter(|flow| !flow.traffic.is_tcp())
                .map(|flow| &flow.name)
                .collect();
            let any = matches!(
                measure,
                Measure::Goodput
                    | Measure::Throughput
                    | Measure::Delivered
                    | Measure::Efficiency
                    | Measure::Jain
            );
            if let (false, Some(name)) = (any, flows.iter().find(|name| udp.contains(name))) {
                let text = format!("`{name}` is UDP, which has nothing of the kind");
                problems.add(place("measure"), Problem::Conflict(text));
            }
            if taken == Taken::FromAllFlows && flows.len() == 1 {
                let key = if options.flow.is_some() { "flow" } else { "flows" };
                unfit(key, "fairness is between two flows at least", problems);
            }
        }
        let statistic = match (options.statistic, taken.usual_statistic()) {
            (Some(_), None) => {
                unfit("statistic", "this measure has a single value", problems);
                None
            }
            (Some(Statistic::Each | Statistic::Sum), Some(_)) if taken != Taken::FromEachFlow => {
                let text = "\"each\" and \"sum\" are for measures with one value for each flow";
                unfit("statistic", text, problems);
                None
            }
            (chosen, usual) => chosen.or(usual),
        };
        let header = self.header?;
        let from = options.from.unwrap_or(header.warm_up);
        let until = options.until.unwrap_or(header.duration);
        if until > header.duration {
            let problem = Problem::OutOfBounds {
                key: "until",
                value: until.to_string(),
                bound: format!("within the run, {}", header.duration),
            };
            problems.add(place("until"), problem);
        }
        if from >= until && header.warm_up < header.duration {
            let problem = Problem::OutOfBounds {
                key: "from",
                value: from.to_string(),
                bound: format!("before `until`, {until}"),
            };
            problems.add(place("from"), problem);
        }
        if problems.len() > before {
            return None;
        }
        let direction = taken.is_of_link().then(|| options.direction.unwrap_or_default());
        Some(Quantity { measure, flows, link, direction, statistic, from, until })
    }

    fn link(
        &self,
        name: Option<&Name>,
        place: &Span,
        table: &Table,
        problems: &mut Problems,
    ) -> Option<Name> {
        let Some(name) = name else {
            if !table.0.contains_key("link") {
                problems.add(place.clone(), Problem::MissingKey { key: "link".into() });
            }
            return None;
        };
        if self.links.iter().any(|link| link.name == *name) {
            return Some(name.clone());
        }
        if self.links_incomplete {
            return None;
        }
        if self.link_groups.get(name).is_some_and(|members| members.len() > 1) {
            let text = format!("`{name}` are several links, and a band is about one");
            problems.add(place.clone(), Problem::Conflict(text));
        } else {
            let known = self.links.iter().map(|link| link.name.to_string()).collect();
            let problem = Problem::UnknownName { what: "link", name: name.to_string(), known };
            problems.add(place.clone(), problem);
        }
        None
    }

    fn flows_named(
        &self,
        options: &QuantityOptions,
        place: &impl Fn(&str) -> Span,
        table: &Table,
        problems: &mut Problems,
    ) -> Vec<Name> {
        let mut names: Vec<(&Name, Span)> = Vec::new();
        match (&options.flow, &options.flows) {
            (Some(_), Some(_)) => {
                let text = "write either `flow` or `flows`".into();
                problems.add(place("flows"), Problem::Conflict(text));
            }
            (Some(flow), None) => names.push((flow, place("flow"))),
            (None, Some(flows)) => {
                let items = table.get("flows").and_then(Node::list).unwrap_or_default();
                for (index, flow) in flows.iter().enumerate() {
                    let span = items.get(index).map_or_else(|| place("flows"), |n| n.span.clone());
                    names.push((flow, span));
                }
                if flows.is_empty() && items.is_empty() {
                    problems.add(place("flows"), Problem::Nothing("flow in this list"));
                }
            }
            // All of them.
            (None, None) => return self.flows.flows.iter().map(|flow| flow.name.clone()).collect(),
        }
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        for (name, span) in names {
            match self.flows.groups.get(name) {
                Some(members) => {
                    for member in members {
                        if seen.insert(member) {
                            found.push(member.clone());
                        }
                    }
                }
                None => {
                    let known = self.flows.groups.keys().map(Name::to_string).collect();
                    let problem =
                        Problem::UnknownName { what: "flow", name: name.to_string(), known };
                    problems.add(span, problem);
                }
            }
        }
        found
    }
}

/// A path that is written as TOML's own dotted keys, in one text.
fn flatten(path: String, entry: &super::tree::Entry) -> (String, &super::tree::Entry) {
    match &entry.node.value {
        Value::Table(table) if table.0.len() == 1 => match table.0.iter().next() {
            Some((key, entry)) => flatten(format!("{path}.{key}"), entry),
            None => (path, entry),
        },
        _ => (path, entry),
    }
}
