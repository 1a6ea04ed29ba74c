//! The flows, as lines along the links.

use std::collections::BTreeMap;

use transom_lab::scenario::{Flow, Resolved};

use super::graph::Graph;
use super::layout::Layout;
use super::routes::Routes;
use crate::Hue;

/// The most lines that are drawn; the rest is described as text.
const MOST_LINES: usize = 10;

/// A flow, or several flows between the same nodes of the picture that have no colours of their own.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// The flows that it represents.
    pub(super) flows: Vec<&'a Flow>,
    /// The number of the first of them in the scenario.
    pub(super) first: usize,
    /// The colour of its curves; none if its flows have no curves, or are several.
    pub(super) hue: Option<Hue>,
    /// The nodes of the picture along its way.
    pub(super) way: Vec<usize>,
}

/// All lines that are drawn, from top to bottom, and how many flows are left out.
#[derive(Debug, Default)]
pub(super) struct Lines<'a> {
    pub(super) lines: Vec<Line<'a>>,
    pub(super) left_out: usize,
}

impl Line<'_> {
    /// Its name.
    pub(super) fn name(&self) -> String {
        match self.flows[..] {
            [] => String::new(),
            [flow] => flow.name.to_string(),
            [first, .., last] => {
                format!("{} … {} ({} flows)", first.name, last.name, self.flows.len())
            }
        }
    }

    /// The colour's word in style sheets.
    pub(super) fn class(&self) -> &'static str {
        self.hue.map_or("text", Hue::name)
    }
}

/// Flows that go together.
struct Bundle<'a> {
    first: usize,
    hue: Option<Hue>,
    flows: Vec<&'a Flow>,
}

/// The lines of a scenario's flows.
pub(super) fn lines<'a>(graph: &Graph<'a>, layout: &Layout, scenario: &'a Resolved) -> Lines<'a> {
    let hues = Hue::ALL.into_iter().map(Some).chain(std::iter::repeat(None));
    let mut bundles: BTreeMap<(usize, usize, &str, usize), Bundle<'_>> = BTreeMap::new();
    let few = scenario.flows.len() <= Hue::ALL.len();
    for (number, (flow, hue)) in scenario.flows.iter().zip(hues).enumerate() {
        let ends = (graph.place.get(&flow.from), graph.place.get(&flow.to));
        let (Some(&from), Some(&to)) = ends else { continue };
        // With few flows, each has a line of its own; of many, those that go together are one.
        let stem = flow.name.as_str().trim_end_matches(|c: char| c.is_ascii_digit());
        let own = if few { number } else { 0 };
        let new = Bundle { first: number, hue, flows: Vec::new() };
        let bundle = bundles.entry((from, to, stem, own)).or_insert(new);
        bundle.flows.push(flow);
        if bundle.flows.len() > 1 {
            bundle.hue = None;
        }
    }
    let routes = Routes::new(scenario);
    let mut bundles: Vec<Bundle<'_>> = bundles.into_values().collect();
    // Those with colours first, then the larger ones.
    bundles.sort_by_key(|bundle| {
        (bundle.hue.is_none(), std::cmp::Reverse(bundle.flows.len()), bundle.first)
    });
    let left_out = bundles.iter().skip(MOST_LINES).map(|bundle| bundle.flows.len()).sum();
    bundles.truncate(MOST_LINES);
    let mut lines: Vec<Line<'_>> = bundles
        .into_iter()
        .map(|Bundle { first, hue, flows }| {
            let way = flows.first().map(|flow| routes.way(&flow.from, &flow.to));
            let way = way.unwrap_or_default();
            let way = way.iter().filter_map(|name| graph.place.get(name).copied()).collect();
            Line { flows, first, hue, way }
        })
        .filter(|line| line.way.len() > 1)
        .collect();
    // Side by side in the order in which they come from above, so that they cross as little as possible.
    let height = |node: Option<&usize>| node.map_or(0, |node| layout.at(*node).1 as i64);
    lines.sort_by_key(|line| (height(line.way.first()), height(line.way.last())));
    Lines { lines, left_out }
}
