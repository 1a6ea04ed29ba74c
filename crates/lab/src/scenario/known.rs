//! The possible subjects of bands, and how a written quantity is resolved.

use super::bound::{Bound, Scalar};
use super::error::{Problem, Problems};
use super::expect::{
    Measure, MeasureSource, Quantity, QuantityOptions, Requirement, Statistic, TimeCourse,
};
use super::flow::Flows;
use super::header::Header;
use super::link::Link;
use super::name::Name;
use super::quantity::Time;
use super::sweep::{Sweep, wrong_type};
use super::tree::{Node, Span, Table, Value};
use std::collections::{BTreeMap, BTreeSet};
use transom_tcp::time::Duration;

/// The window if none is written.
const WINDOW: Time = Time(Duration::from_secs(1));

/// The possible subjects of bands.
pub(super) struct Known<'a> {
    pub(super) header: Option<&'a Header>,
    pub(super) flows: &'a Flows,
    pub(super) links: &'a [Link],
    pub(super) link_groups: &'a BTreeMap<Name, Vec<Name>>,
    pub(super) links_incomplete: bool,
    pub(super) sweep: &'a Sweep,
    pub(super) point: usize,
}

impl Known<'_> {
    /// Which values of which axes a table such as `when` names.
    pub(super) fn axes(
        &self,
        key: &str,
        node: &Node,
        problems: &mut Problems,
    ) -> Vec<(usize, usize)> {
        let Value::Table(table) = &node.value else {
            problems.add(node.span.clone(), wrong_type(&node.value, "a table"));
            return Vec::new();
        };
        let mut chosen = Vec::new();
        if table.0.is_empty() {
            problems.add(node.span.clone(), Problem::Conflict(format!("`{key}` names no values")));
        }
        let is_axis = |path: &str| self.sweep.axes.iter().any(|axis| axis.path == path);
        let mut paths = Vec::new();
        for (path, entry) in table.as_written() {
            flatten(path.into(), entry, &is_axis, &mut paths);
        }
        for (path, entry) in paths {
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

    pub(super) fn quantity(
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
        let taken = measure.source();
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
            let tcp = measure.needs() == Requirement::Tcp;
            // A ping over UDP has a time from question to answer too.
            let pings = |name: &&Name| {
                let mut all = self.flows.flows.iter();
                measure == Measure::CompletionTime
                    && all.any(|flow| flow.name == **name && flow.traffic.completes())
            };
            let without = flows.iter().filter(|name| udp.contains(name)).find(|name| !pings(name));
            if let (true, Some(name)) = (tcp, without) {
                let text = format!("`{name}` is UDP, which has nothing of the kind");
                problems.add(place("measure"), Problem::Conflict(text));
            }
            if taken == MeasureSource::FromAllFlows && flows.len() == 1 {
                let key = if options.flow.is_some() { "flow" } else { "flows" };
                unfit(key, "fairness is between two flows at least", problems);
            }
        }
        let (reaches, stays_above, window) = self.moment(measure, options, &place, problems);
        let is_moment = reaches.is_some() || stays_above.is_some();
        // The time until something is so is one value of each flow, or of a link.
        let usual_statistic = match taken {
            MeasureSource::OftenFromFlows if is_moment => Some(Statistic::Each),
            MeasureSource::OftenFromLink if is_moment => None,
            _ => taken.usual_statistic(),
        };
        let of_each = taken == MeasureSource::FromEachFlow || is_moment;
        let statistic = match (options.statistic, usual_statistic) {
            (Some(_), None) => {
                unfit("statistic", "this measure has a single value", problems);
                None
            }
            (Some(Statistic::Each | Statistic::Sum), Some(_)) if !of_each => {
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
        Some(Quantity {
            measure,
            flows,
            link,
            direction,
            statistic,
            from,
            until,
            reaches,
            stays_above,
            window,
        })
    }

    /// The level and the window of a quantity that is a time until a level.
    fn moment(
        &self,
        measure: Measure,
        options: &QuantityOptions,
        place: &impl Fn(&str) -> Span,
        problems: &mut Problems,
    ) -> (Option<Bound>, Option<Bound>, Option<Time>) {
        let QuantityOptions { reaches, stays_above, window, .. } = options;
        let mut level = |key: &str, scalar: &Option<Scalar>| {
            let read = Bound::read(scalar.as_ref()?, measure.unit());
            read.map_err(|error| problems.add(place(key), Problem::Value(error.to_string()))).ok()
        };
        let levels = (level("reaches", reaches), level("stays-above", stays_above));
        let given = if reaches.is_some() { "reaches" } else { "stays-above" };
        let unfit = |key: &str, text: &str, problems: &mut Problems| {
            problems.add(place(key), Problem::Conflict(text.into()));
        };
        if reaches.is_some() && stays_above.is_some() {
            unfit("stays-above", "write either `reaches` or `stays-above`", problems);
        }
        let course = measure.course().filter(|_| reaches.is_some() || stays_above.is_some());
        if measure.course().is_none() && (reaches.is_some() || stays_above.is_some()) {
            unfit(given, "this measure has no course to look at", problems);
        }
        match (course, window) {
            (Some(TimeCourse::OverWindow), None) => (levels.0, levels.1, Some(WINDOW)),
            (Some(TimeCourse::OverWindow), Some(window)) => {
                if *window == Time::default() {
                    problems.add(place("window"), Problem::Zero { key: "window" });
                }
                (levels.0, levels.1, Some(*window))
            }
            (_, Some(_)) => {
                let text = "a window is for the course of rates, utilisation and fairness";
                unfit("window", text, problems);
                (None, None, None)
            }
            (_, None) => (levels.0, levels.1, None),
        }
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

/// The paths that are written as TOML's own dotted keys, each in one text: as far as paths of the sweep, whose values may be tables too.
fn flatten<'a>(
    path: String,
    entry: &'a super::tree::Entry,
    is_axis: &impl Fn(&str) -> bool,
    found: &mut Vec<(String, &'a super::tree::Entry)>,
) {
    match &entry.node.value {
        Value::Table(table) if !table.0.is_empty() && !is_axis(&path) => {
            for (key, entry) in table.as_written() {
                flatten(format!("{path}.{key}"), entry, is_axis, found);
            }
        }
        _ => found.push((path, entry)),
    }
}
