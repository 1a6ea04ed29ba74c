//! The layout of the nodes.
//!
//! Routers, and hosts that are not leaves, form the *spine*. It is in layers from left to right. The layer of a node is its number of
//! links from the start, the end of the spine where the first flow comes in. Leaves are in a column to the left of the first layer
//! and to the right of the last one. Leaves of inner layers are above their router if they send, and below it otherwise.

use std::collections::VecDeque;

use transom_lab::scenario::Resolved;

use super::graph::{Edge, Graph, Kind};
use super::labels;
use crate::text_width;

/// Pixels from one host of a column to the next.
const ROW: f64 = 58.0;
/// Pixels from a leaf's box to its router.
pub(super) const ACCESS: f64 = 220.0;
/// The radius of a router.
pub(super) const ROUTER: f64 = 22.0;
/// The height of a host's box.
pub(super) const BOX: f64 = 36.0;
/// Room at every side.
const EDGE: f64 = 16.0;
/// Pixels between two lines of text.
pub(super) const TEXT: f64 = 14.0;
/// The space for a leaf above its router, and below.
const LEAF_GAP: f64 = 104.0;

/// The side of its router on which a leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
    Above,
    Below,
}

/// The places of nodes and links.
#[derive(Debug)]
pub(super) struct Layout {
    /// The middle of each node.
    pub(super) at: Vec<(f64, f64)>,
    /// The width of each node.
    pub(super) width: Vec<f64>,
    /// Of each leaf.
    pub(super) side: Vec<Option<Side>>,
    /// Of the whole.
    pub(super) size: (f64, f64),
}

impl Layout {
    pub(super) fn at(&self, node: usize) -> (f64, f64) {
        self.at.get(node).copied().unwrap_or_default()
    }

    pub(super) fn width(&self, node: usize) -> f64 {
        self.width.get(node).copied().unwrap_or_default()
    }

    pub(super) fn side(&self, node: usize) -> Option<Side> {
        self.side.get(node).copied().flatten()
    }
}

/// Finds places for all nodes.
pub(super) fn layout(graph: &Graph<'_>, scenario: &Resolved) -> Layout {
    let layers = layers(graph, scenario);
    let side = sides(graph, scenario, &layers);
    let width: Vec<f64> = graph
        .nodes
        .iter()
        .map(|node| match node.kind {
            Kind::Router => 2.0 * ROUTER,
            _ => (text_width(&node.name(), 12.0) + 28.0).max(96.0),
        })
        .collect();
    let mut layout =
        Layout { at: vec![(0.0, 0.0); graph.nodes.len()], width, side, size: (0.0, 0.0) };
    // The boxes of a column are alike.
    for side in [Side::Left, Side::Right] {
        let column = |layout: &Layout, node: &usize| layout.side(*node) == Some(side);
        let nodes: Vec<usize> =
            (0..graph.nodes.len()).filter(|node| column(&layout, node)).collect();
        let widest = nodes.iter().map(|node| layout.width(*node)).fold(0.0, f64::max);
        for node in nodes {
            if let Some(width) = layout.width.get_mut(node) {
                *width = widest;
            }
        }
    }
    let heights = vertical(graph, &layers, &mut layout);
    horizontal(graph, &layers, &mut layout);
    let right = graph.nodes.iter().enumerate().map(|(n, _)| layout.at(n).0 + layout.width(n) / 2.0);
    layout.size = (right.fold(0.0, f64::max) + EDGE, heights + 2.0 * EDGE);
    layout
}

/// The spine's nodes, layer by layer.
fn layers(graph: &Graph<'_>, scenario: &Resolved) -> Vec<Vec<usize>> {
    let is_spine = |node: usize| graph.nodes.get(node).is_some_and(|node| !node.leaf);
    let spine: Vec<usize> = (0..graph.nodes.len()).filter(|node| is_spine(*node)).collect();
    let from = |name| graph.place.get(name).copied();
    let first = scenario.flows.first().and_then(|flow| from(&flow.from));
    // Where the first flow comes in.
    let first = first
        .and_then(|node| if is_spine(node) { Some(node) } else { graph.neighbours(node).next() });
    let Some(first) = first.or(spine.first().copied()) else { return Vec::new() };
    let distances = |start: usize| {
        let mut distance = vec![None; graph.nodes.len()];
        let mut waiting = VecDeque::from([start]);
        if let Some(slot) = distance.get_mut(start) {
            *slot = Some(0usize);
        }
        while let Some(node) = waiting.pop_front() {
            let next = distance.get(node).copied().flatten().unwrap_or(0) + 1;
            for neighbour in graph.neighbours(node).filter(|node| is_spine(*node)) {
                if let Some(slot @ None) = distance.get_mut(neighbour) {
                    *slot = Some(next);
                    waiting.push_back(neighbour);
                }
            }
        }
        distance
    };
    let distance = distances(first);
    let mut layers: Vec<Vec<usize>> = Vec::new();
    for node in spine {
        let layer = distance.get(node).copied().flatten().unwrap_or(0);
        if layers.len() <= layer {
            layers.resize(layer + 1, Vec::new());
        }
        if let Some(layer) = layers.get_mut(layer) {
            layer.push(node);
        }
    }
    // Within a layer, each stands where its neighbours of the layer before do, on average.
    for number in 1..layers.len() {
        let (before, rest) = layers.split_at_mut(number);
        let (Some(before), Some(layer)) = (before.last(), rest.first_mut()) else { continue };
        let height = |node: usize| {
            let above = graph.neighbours(node);
            let places: Vec<usize> =
                above.filter_map(|node| before.iter().position(|one| *one == node)).collect();
            // In thousandths, to be compared exactly.
            places.iter().sum::<usize>() * 1000 / places.len().max(1)
        };
        layer.sort_by_cached_key(|node| height(*node));
    }
    layers
}

/// The position of each leaf.
fn sides(graph: &Graph<'_>, scenario: &Resolved, layers: &[Vec<usize>]) -> Vec<Option<Side>> {
    let count = graph.nodes.len();
    let (mut sends, mut receives) = (vec![0usize; count], vec![0usize; count]);
    for flow in &scenario.flows {
        for (name, counts) in [(&flow.from, &mut sends), (&flow.to, &mut receives)] {
            let slot = graph.place.get(name).and_then(|node| counts.get_mut(*node));
            if let Some(slot) = slot {
                *slot += 1;
            }
        }
    }
    let layer_of = |node: usize| layers.iter().position(|layer| layer.contains(&node));
    let last = layers.len().saturating_sub(1);
    let mut sides: Vec<Option<Side>> = graph
        .nodes
        .iter()
        .enumerate()
        .map(|(number, node)| {
            let router = node.leaf.then(|| graph.neighbours(number).next()).flatten()?;
            let sending = sends.get(number) >= receives.get(number) && sends.get(number) > Some(&0);
            Some(match layer_of(router)? {
                0 if last == 0 && sending => Side::Left,
                0 if last == 0 => Side::Right,
                0 => Side::Left,
                layer if layer == last => Side::Right,
                _ if sending => Side::Above,
                _ => Side::Below,
            })
        })
        .collect();
    // Around a single router nobody stands alone on one side.
    let all = sides.iter().flatten().count();
    if last == 0
        && all > 1
        && (!sides.contains(&Some(Side::Left)) || !sides.contains(&Some(Side::Right)))
    {
        for (number, side) in sides.iter_mut().flatten().enumerate() {
            *side = if number < all.div_ceil(2) { Side::Left } else { Side::Right };
        }
    }
    sides
}

/// The leaves of a node on one side.
fn leaves(graph: &Graph<'_>, layout: &Layout, node: usize, side: Side) -> Vec<usize> {
    let leaves = graph.neighbours(node).filter(|leaf| {
        graph.nodes.get(*leaf).is_some_and(|node| node.leaf) && layout.side(*leaf) == Some(side)
    });
    let mut leaves: Vec<usize> = leaves.collect();
    leaves.sort_unstable();
    leaves.dedup();
    leaves
}

/// The height of what is written at a line.
fn text_height(edge: &Edge<'_>) -> f64 {
    labels::link_lines(&edge.links).len() as f64 * TEXT
}

/// Pixels from one leaf of a column to the next. Leaves over alike links share one description, above the first.
fn row(graph: &Graph<'_>, leaves: &[usize]) -> f64 {
    let edges = || {
        graph.edges.iter().filter(|edge| leaves.contains(&edge.from) || leaves.contains(&edge.to))
    };
    let lines: Vec<Vec<String>> = edges().map(|edge| labels::link_lines(&edge.links)).collect();
    let alike = lines.windows(2).all(|pair| pair.first() == pair.last());
    let highest = edges().map(text_height).fold(0.0, f64::max);
    if alike { ROW } else { ROW.max(highest + 40.0) }
}

/// Gives heights to all, and returns that of the whole.
fn vertical(graph: &Graph<'_>, layers: &[Vec<usize>], layout: &mut Layout) -> f64 {
    // How much each node of the spine takes, above and below its middle.
    let takes = |layout: &Layout, node: usize| {
        let column = [Side::Left, Side::Right].map(|side| {
            let leaves = leaves(graph, layout, node, side);
            row(graph, &leaves) * leaves.len().saturating_sub(1) as f64 / 2.0
        });
        let column = column.into_iter().fold(0.0, f64::max);
        let has = |side| !leaves(graph, layout, node, side).is_empty();
        let edges = graph.edges.iter().filter(|edge| edge.from == node || edge.to == node);
        let text = edges.map(text_height).fold(0.0, f64::max) + 28.0;
        let above = if has(Side::Above) { LEAF_GAP + BOX } else { text.max(BOX) };
        let below = if has(Side::Below) { LEAF_GAP + BOX } else { BOX + 8.0 };
        (above.max(column + text), below.max(column + BOX))
    };
    let height = |layout: &Layout, layer: &[usize]| -> f64 {
        layer.iter().map(|node| takes(layout, *node)).map(|(above, below)| above + below).sum()
    };
    let whole = layers.iter().map(|layer| height(layout, layer)).fold(0.0, f64::max);
    for layer in layers {
        let spare = (whole - height(layout, layer)) / layer.len().max(1) as f64;
        let mut top = EDGE;
        for &node in layer {
            let (above, below) = takes(layout, node);
            // A single node stands where the others' middle is, whatever it has on one side only.
            let middle = if layer.len() == 1 && layers.len() > 1 && above + below < whole {
                (EDGE + whole / 2.0).clamp(EDGE + above, EDGE + whole - below)
            } else {
                top + spare / 2.0 + above
            };
            top += spare + above + below;
            let mut set = |node: usize, y: f64| {
                if let Some(at) = layout.at.get_mut(node) {
                    at.1 = y;
                }
            };
            set(node, middle);
            for side in [Side::Left, Side::Right, Side::Above, Side::Below] {
                let leaves = leaves(graph, layout, node, side);
                let (rows, pitch) = (leaves.len() as f64, row(graph, &leaves));
                for (row, leaf) in leaves.into_iter().enumerate() {
                    let y = match side {
                        Side::Left | Side::Right => {
                            middle + (row as f64 - (rows - 1.0) / 2.0) * pitch
                        }
                        Side::Above => middle - LEAF_GAP,
                        Side::Below => middle + LEAF_GAP,
                    };
                    if let Some(at) = layout.at.get_mut(leaf) {
                        at.1 = y;
                    }
                }
            }
        }
    }
    whole
}

/// Gives every node its place from left to right.
fn horizontal(graph: &Graph<'_>, layers: &[Vec<usize>], layout: &mut Layout) {
    let widest = |layout: &Layout, nodes: &mut dyn Iterator<Item = usize>| {
        nodes.map(|node| layout.width(node)).fold(0.0, f64::max)
    };
    let column = |layout: &Layout, side| {
        widest(layout, &mut (0..graph.nodes.len()).filter(|node| layout.side(*node) == Some(side)))
    };
    let (left, right) = (column(layout, Side::Left), column(layout, Side::Right));
    let mut x = EDGE;
    if left > 0.0 {
        for node in 0..graph.nodes.len() {
            if layout.side(node) == Some(Side::Left)
                && let Some(at) = layout.at.get_mut(node)
            {
                at.0 = x + left / 2.0;
            }
        }
        x += left + ACCESS;
    }
    for (number, layer) in layers.iter().enumerate() {
        let above_or_below = |node: &usize| {
            [Side::Above, Side::Below]
                .into_iter()
                .map(|side| {
                    let leaves = leaves(graph, layout, *node, side);
                    leaves.iter().map(|leaf| layout.width(*leaf) + 24.0).sum::<f64>()
                })
                .fold(0.0, f64::max)
        };
        let room = layer.iter().map(above_or_below).fold(0.0, f64::max);
        let width = widest(layout, &mut layer.iter().copied()).max(room);
        for &node in layer {
            let middle = x + width / 2.0;
            if let Some(at) = layout.at.get_mut(node) {
                at.0 = middle;
            }
            for side in [Side::Above, Side::Below] {
                let leaves = leaves(graph, layout, node, side);
                let all: f64 = leaves.iter().map(|leaf| layout.width(*leaf) + 24.0).sum();
                let mut from = middle - all / 2.0;
                for leaf in leaves {
                    let width = layout.width(leaf) + 24.0;
                    if let Some(at) = layout.at.get_mut(leaf) {
                        at.0 = from + width / 2.0;
                    }
                    from += width;
                }
            }
        }
        x += width;
        if let Some(next) = layers.get(number + 1) {
            x += gap(graph, layer, next);
        }
    }
    if right > 0.0 {
        for node in 0..graph.nodes.len() {
            if layout.side(node) == Some(Side::Right)
                && let Some(at) = layout.at.get_mut(node)
            {
                at.0 = x + ACCESS + right / 2.0;
            }
        }
    }
}

/// The distance between two layers, with room for the labels of the links between them.
fn gap(graph: &Graph<'_>, layer: &[usize], next: &[usize]) -> f64 {
    let between = graph.edges.iter().filter(|edge| {
        let has = |nodes: &[usize], node: usize| nodes.contains(&node);
        (has(layer, edge.from) && has(next, edge.to))
            || (has(layer, edge.to) && has(next, edge.from))
    });
    let lines = between.flat_map(|edge| labels::link_lines(&edge.links));
    lines.map(|line| text_width(&line, 11.0) + 28.0).fold(170.0, f64::max)
}
