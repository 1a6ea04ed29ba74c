//! The scenario as a picture: hosts, routers, links and flows.
//!
//! Theory of operation. The scenario's nodes and links become a graph. In it, similar leaves (`sender1` to `sender200`, all at the same
//! router over the same kind of link) are one node with a count ([`mod@graph`]). Its nodes are placed in layers from left to right, in the
//! direction of most of the traffic ([`layout`]). Flows follow the routes of the simulator ([`routes`]), side by side like the lines of a
//! city's map, in the colours of their curves ([`paint`]). Nothing is random and nothing depends on fonts, so the same scenario gives the
//! same picture.

mod graph;
mod labels;
mod layout;
mod lines;
mod paint;
mod routes;

use transom_lab::scenario::Resolved;

use crate::Drawing;
use graph::Graph;

pub(crate) use labels::parts;

/// A picture with more nodes shows nothing any more.
const MOST_NODES: usize = 60;

/// The drawing of a scenario's network; nothing of a network that is too large to be seen.
pub(crate) fn drawing(scenario: &Resolved) -> Option<Drawing> {
    let graph = Graph::new(scenario);
    if graph.nodes.len() > MOST_NODES {
        return None;
    }
    let layout = layout::layout(&graph, scenario);
    let lines = lines::lines(&graph, &layout, scenario);
    Some(Drawing {
        title: "Network".into(),
        caption: String::new(),
        alternative: labels::alt_text(&graph, &lines, scenario),
        picture: paint::paint(&graph, &layout, &lines),
    })
}

#[cfg(test)]
mod tests;
