//! Links and flows in words.

use serde_json::Value;
use transom_lab::scenario::{Flow, Link, Resolved, Time};
use transom_sim::link::LinkConfig;

use super::graph::{Graph, Kind};
use super::lines::Lines;
use crate::labels::spaced;

/// The description of a link without an effect on packets.
pub(super) const NOTHING: &str = "no delay, any rate";
/// As many letters as a line of a link's description has.
const LINE: usize = 34;

/// The description of links that are drawn as one, line by line. A property of one direction only has an arrow.
pub(super) fn link_lines(links: &[&Link]) -> Vec<String> {
    let there: Vec<&LinkConfig> = links.iter().map(|link| &link.there).collect();
    let back: Vec<&LinkConfig> = links.iter().map(|link| &link.back).collect();
    let (there, back) = (parts_of_all(&there), parts_of_all(&back));
    let (both, there): (Vec<String>, Vec<String>) =
        there.into_iter().partition(|part| back.contains(part));
    let back: Vec<String> = back.into_iter().filter(|part| !both.contains(part)).collect();
    let mut lines = wrapped(&both, "");
    lines.extend(wrapped(&there, "→ "));
    lines.extend(wrapped(&back, "← "));
    lines
}

/// The common properties of all of these, and the range of their delays.
fn parts_of_all(ways: &[&LinkConfig]) -> Vec<String> {
    let Some((first, others)) = ways.split_first() else { return Vec::new() };
    let mut options = options(first);
    let others: Vec<Vec<(String, String)>> = others.iter().map(|way| self::options(way)).collect();
    options.retain(|option| option.0 == "delay" || others.iter().all(|own| own.contains(option)));
    let delays = || ways.iter().map(|way| Time(way.delay));
    if let (Some(low), Some(high)) = (delays().min(), delays().max())
        && low != high
    {
        options.retain(|(key, _)| key != "delay");
        options.push(("delay".into(), format!("{} to {}", spaced(low), spaced(high))));
    }
    written(options)
}

/// The properties of one direction of a link, as written in a scenario: rate and delay together, then each other option.
/// Defaults are left out.
pub(crate) fn parts(link: &LinkConfig) -> Vec<String> {
    written(options(link))
}

/// The options that are not as by default.
fn options(link: &LinkConfig) -> Vec<(String, String)> {
    let options = |link: &LinkConfig| serde_json::to_value(link).unwrap_or_default();
    let (own, default) = (options(link), options(&LinkConfig::default()));
    let own = own.as_object().into_iter().flatten();
    let differing = own.filter(|(key, value)| default.get(key) != Some(value));
    differing
        .map(|(key, value)| match value {
            Value::String(text) => (key.clone(), text.clone()),
            other => (key.clone(), other.to_string()),
        })
        .collect()
}

fn written(options: Vec<(String, String)>) -> Vec<String> {
    let speed: Vec<String> = ["rate", "delay"]
        .iter()
        .filter_map(|wanted| options.iter().find(|(key, _)| key == wanted))
        .map(|(_, text)| spaced(text))
        .collect();
    let mut parts = if speed.is_empty() { Vec::new() } else { vec![speed.join(" · ")] };
    let others = options.iter().filter(|(key, _)| key != "rate" && key != "delay");
    parts.extend(others.map(|(key, text)| format!("{key} {text}")));
    if parts.is_empty() {
        parts.push(NOTHING.into());
    }
    parts
}

/// Parts on separate lines; a long one has several.
fn wrapped(parts: &[String], prefix: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let part = format!("{prefix}{part}");
        let mut rest = part.as_str();
        while rest.chars().count() > LINE {
            let end = rest.char_indices().nth(LINE).map_or(rest.len(), |(at, _)| at);
            let head = rest.get(..end).unwrap_or(rest);
            let cut = head.rfind(' ').filter(|cut| *cut > 0).unwrap_or(end);
            lines.push(rest.get(..cut).unwrap_or(rest).trim().into());
            rest = rest.get(cut..).unwrap_or("").trim();
        }
        if !rest.is_empty() {
            lines.push(rest.into());
        }
    }
    lines
}

/// The description of a flow: "bulk, from 3 s".
pub(super) fn flow(flow: &Flow) -> String {
    let kind = flow.kind();
    match (flow.late_start().map(spaced), flow.stop) {
        (None, Some(stop)) => format!("{kind}, until {}", spaced(stop)),
        (None, None) => kind.into(),
        (Some(start), None) => format!("{kind}, from {start}"),
        (Some(start), Some(stop)) => format!("{kind}, from {start} to {}", spaced(stop)),
    }
}

/// The picture as text, for readers who cannot see it.
pub(super) fn alt_text(graph: &Graph<'_>, lines: &Lines<'_>, scenario: &Resolved) -> String {
    let counted =
        |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let mut sentences = vec![format!(
        "{}, {}, {} and {}.",
        counted(scenario.hosts.len(), "host"),
        counted(scenario.routers.len(), "router"),
        counted(scenario.links.len(), "link"),
        counted(scenario.flows.len(), "flow"),
    )];
    let name = |node: usize| match graph.nodes.get(node) {
        Some(node) => {
            let kernel = if node.kind == Kind::Kernel { " (kernel)" } else { "" };
            format!("{}{kernel}", node.name())
        }
        None => String::new(),
    };
    for edge in &graph.edges {
        let what = link_lines(&edge.links).join(", ");
        sentences.push(format!("{} to {}: {what}.", name(edge.from), name(edge.to)));
    }
    for line in &lines.lines {
        let way: Vec<String> = line.way.iter().map(|node| name(*node)).collect();
        sentences.push(format!("Flow {} goes {}.", line.name(), way.join(", ")));
    }
    sentences.join(" ")
}
