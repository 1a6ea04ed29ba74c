//! From places to a picture.

use std::fmt::Write as _;

use super::graph::{Edge, Graph, Kind};
use super::labels;
use super::layout::{BOX, Layout, ROUTER, Side, TEXT};
use super::lines::{Line, Lines};
use crate::{Anchor, Svg, text_width};

/// Pixels between two lines that go side by side.
const LANE: f64 = 6.0;
/// How far the boxes behind one that represents several are visible.
const STACK_OFFSET: f64 = 8.0;
/// The straight part of a leaf's link, with its description.
const STRAIGHT: f64 = 150.0;

/// Draws it all.
pub(super) fn paint(graph: &Graph<'_>, layout: &Layout, lines: &Lines<'_>) -> Svg {
    let rows = lines.lines.len() + usize::from(lines.left_out > 0);
    let (width, top) = (layout.size.0, layout.size.1);
    let widest = lines.lines.iter().map(|line| text_width(&legend(graph, line), 12.0) + 70.0);
    let width = widest.fold(width, f64::max);
    let mut svg = Svg::new(width, top + rows as f64 * 20.0 + 8.0);
    for edge in &graph.edges {
        svg.path("wire", &polyline(&wire(graph, layout, edge.from, edge.to)));
    }
    for number in 0..lines.lines.len() {
        flow(&mut svg, graph, layout, lines, number);
    }
    let mut described = Vec::new();
    for edge in &graph.edges {
        let (count, _) = lane(lines, 0, (edge.from, edge.to));
        let room = count as f64 * LANE / 2.0;
        describe(&mut svg, graph, layout, edge, room, &mut described);
    }
    for number in 0..graph.nodes.len() {
        node(&mut svg, graph, layout, number);
    }
    let mut legends: Vec<&Line<'_>> = lines.lines.iter().collect();
    legends.sort_by_key(|line| line.first);
    for (row, line) in legends.into_iter().enumerate() {
        let y = top + 12.0 + row as f64 * 20.0;
        svg.line(&format!("flow s-{}", line.class()), (16.0, y - 4.0), (44.0, y - 4.0));
        head(&mut svg, line.class(), (44.0, y - 4.0), (1.0, 0.0));
        svg.text("", (56.0, y), Anchor::Start, &legend(graph, line));
    }
    if lines.left_out > 0 {
        let y = top + 12.0 + lines.lines.len() as f64 * 20.0;
        svg.text("muted", (56.0, y), Anchor::Start, &format!("and {} more flows", lines.left_out));
    }
    svg
}

fn legend(graph: &Graph<'_>, line: &Line<'_>) -> String {
    let end = |node: Option<&usize>| {
        let node = node.and_then(|node| graph.nodes.get(*node));
        node.map_or(String::new(), |node| node.name())
    };
    let what = line.flows.first().map(|flow| labels::flow(flow)).unwrap_or_default();
    // Of several flows only what they are can be told, and when each begins cannot.
    let what =
        if line.flows.len() > 1 { what.split(',').next().unwrap_or("").into() } else { what };
    format!("{}: {} → {}, {what}", line.name(), end(line.way.first()), end(line.way.last()))
}

/// The points of a link between two nodes.
fn wire(graph: &Graph<'_>, layout: &Layout, from: usize, to: usize) -> Vec<(f64, f64)> {
    let (a, b) = (layout.at(from), layout.at(to));
    let straight = |leaf: usize, (x, y): (f64, f64), side: Side| match side {
        Side::Left => Some((x + layout.width(leaf) / 2.0 + STRAIGHT, y)),
        Side::Right => Some((x - layout.width(leaf) / 2.0 - STRAIGHT, y)),
        Side::Above | Side::Below => None,
    };
    let mut points = vec![a];
    points.extend(layout.side(from).and_then(|side| straight(from, a, side)));
    points.extend(layout.side(to).and_then(|side| straight(to, b, side)));
    // A line that would run through other nodes goes around them.
    let is_free = |node: usize| node == from || node == to;
    let near = |node: usize| {
        let (x, y) = layout.at(node);
        let ((x1, y1), (x2, y2)) = (a, b);
        let length = (x2 - x1).hypot(y2 - y1).max(1.0);
        let along = ((x - x1) * (x2 - x1) + (y - y1) * (y2 - y1)) / length;
        let aside = ((x - x1) * (y2 - y1) - (y - y1) * (x2 - x1)).abs() / length;
        along > 1.0 && along < length - 1.0 && aside < ROUTER + 8.0
    };
    let spine = |node: usize| graph.nodes.get(node).is_some_and(|node| !node.leaf);
    if points.len() == 1 && (0..graph.nodes.len()).any(|n| spine(n) && !is_free(n) && near(n)) {
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let length = dx.hypot(dy).max(1.0);
        let away = 46.0;
        points
            .push((a.0 + dx * 0.3 + dy / length * away, a.1 + dy * 0.3 - dx.abs() / length * away));
        points
            .push((a.0 + dx * 0.7 + dy / length * away, a.1 + dy * 0.7 - dx.abs() / length * away));
    }
    points.push(b);
    points
}

/// A line through the points.
fn polyline(points: &[(f64, f64)]) -> String {
    let mut path = String::new();
    for (number, (x, y)) in points.iter().enumerate() {
        let letter = if number == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{letter}{x:.1} {y:.1}");
    }
    path
}

/// How many lines go over a link, and the place among them of the line with this number.
fn lane(lines: &Lines<'_>, number: usize, (from, to): (usize, usize)) -> (usize, usize) {
    let uses = |line: &Line<'_>| {
        let mut hops = line.way.windows(2);
        hops.any(|hop| *hop == [from, to] || *hop == [to, from])
    };
    let before = lines.lines.iter().take(number).filter(|line| uses(line)).count();
    (lines.lines.iter().filter(|line| uses(line)).count(), before)
}

/// A flow from its source to an arrow at its destination.
fn flow(svg: &mut Svg, graph: &Graph<'_>, layout: &Layout, lines: &Lines<'_>, number: usize) {
    let Some(line) = lines.lines.get(number) else { return };
    let mut points: Vec<(f64, f64)> = Vec::new();
    for hop in line.way.windows(2) {
        let [from, to] = *hop else { continue };
        let mut piece = wire(graph, layout, from, to);
        // A link has one form, whichever way it is drawn.
        if !graph.edges.iter().any(|edge| (edge.from, edge.to) == (from, to)) {
            piece = wire(graph, layout, to, from);
            piece.reverse();
        }
        // Beside the others that take the same link: above each other where it is flat, side by side where it is steep.
        let (count, place) = lane(lines, number, (from, to));
        let aside = (place as f64 - (count as f64 - 1.0) / 2.0) * LANE;
        let (a, b) = (layout.at(from), layout.at(to));
        let leaf_beside = [from, to]
            .iter()
            .any(|node| matches!(layout.side(*node), Some(Side::Left | Side::Right)));
        let flat = leaf_beside || (b.0 - a.0).abs() >= (b.1 - a.1).abs();
        let (dx, dy) = if flat { (0.0, aside) } else { (aside, 0.0) };
        points.extend(piece.into_iter().map(|(x, y)| (x + dx, y + dy)));
    }
    // A line begins and ends at the edges of its hosts' boxes, with room for the arrow.
    let edge = |end: (f64, f64), next: (f64, f64), node: Option<&usize>, room: f64| {
        let Some(&node) = node else { return end };
        // Behind a box that stands for several there are more.
        let several = graph.nodes.get(node).is_some_and(|node| node.count().is_some());
        let room = if several { room + STACK_OFFSET } else { room };
        let (dx, dy) = (next.0 - end.0, next.1 - end.1);
        let (half_width, half_height) = (layout.width(node) / 2.0 + room, BOX / 2.0 + room);
        let scale = (half_width / dx.abs().max(0.01)).min(half_height / dy.abs().max(0.01));
        (end.0 + dx * scale.min(0.9), end.1 + dy * scale.min(0.9))
    };
    if let [first, second, ..] = points[..]
        && let Some(slot) = points.first_mut()
    {
        *slot = edge(first, second, line.way.first(), 0.0);
    }
    if let [.., before, last] = points[..]
        && let Some(slot) = points.last_mut()
    {
        let end = edge(last, before, line.way.last(), 8.0);
        *slot = end;
        let (dx, dy) = (end.0 - before.0, end.1 - before.1);
        let length = dx.hypot(dy).max(1.0);
        svg.path(&format!("flow s-{}", line.class()), &polyline(&points));
        head(svg, line.class(), end, (dx / length, dy / length));
    }
}

/// The head of an arrow, seven pixels long, whose back is at `at`.
fn head(svg: &mut Svg, class: &str, at: (f64, f64), (dx, dy): (f64, f64)) {
    let (x, y) = at;
    let (tip_x, tip_y) = (x + 7.0 * dx, y + 7.0 * dy);
    let (left_x, left_y) = (x - 4.0 * dy, y + 4.0 * dx);
    let (right_x, right_y) = (x + 4.0 * dy, y - 4.0 * dx);
    let path = format!("M{tip_x:.1} {tip_y:.1}L{left_x:.1} {left_y:.1}L{right_x:.1} {right_y:.1}Z");
    svg.path(&format!("dot f-{class}"), &path);
}

/// Writes at a link what it can do; at alike ones of a column only once.
fn describe(
    svg: &mut Svg,
    graph: &Graph<'_>,
    layout: &Layout,
    edge: &Edge<'_>,
    room: f64,
    described: &mut Vec<(usize, Side, Vec<String>)>,
) {
    let lines = labels::link_lines(&edge.links);
    let leaf = [edge.from, edge.to].into_iter().find_map(|node| {
        let side = layout.side(node)?;
        let router = if node == edge.from { edge.to } else { edge.from };
        Some((node, router, side))
    });
    let Some((leaf, router, side)) = leaf else {
        let ((x1, y1), (x2, y2)) = (layout.at(edge.from), layout.at(edge.to));
        let (x, y) = ((x1 + x2) / 2.0, (y1 + y2) / 2.0);
        // Beside a steep link, above a flat one.
        let steep = (y2 - y1).abs() > (x2 - x1).abs();
        let (anchor, x) = if steep { (Anchor::Start, x + room + 8.0) } else { (Anchor::Middle, x) };
        let bottom = if steep { y + lines.len() as f64 * TEXT / 2.0 } else { y - room - 9.0 };
        write_lines(svg, &lines, (x, bottom), anchor);
        return;
    };
    let siblings = graph.edges.iter().filter(|edge| {
        [(edge.from, edge.to), (edge.to, edge.from)]
            .into_iter()
            .any(|(one, other)| other == router && layout.side(one) == Some(side))
    });
    let alike: Vec<&Edge<'_>> =
        siblings.filter(|one| labels::link_lines(&one.links) == lines).collect();
    let key = (router, side, lines.clone());
    if described.contains(&key) {
        return;
    }
    described.push(key);
    let mut lines = lines;
    let several = alike.len() > 1 || edge.links.len() > 1;
    if let (true, Some(first)) = (several, lines.first_mut())
        && first != labels::NOTHING
    {
        *first = format!("each {first}");
    }
    // At the uppermost of those that are alike.
    let ends = alike.iter().flat_map(|edge| [edge.from, edge.to]);
    let ends = ends.filter(|node| layout.side(*node) == Some(side));
    let leaf = ends.min_by_key(|node| layout.at(*node).1 as i64).unwrap_or(leaf);
    let (x, y) = layout.at(leaf);
    let behind = graph.nodes.get(leaf).and_then(|node| node.count()).map_or(0.0, |_| STACK_OFFSET);
    let half = layout.width(leaf) / 2.0 + 8.0;
    let below = y + BOX / 2.0 + 16.0 + (lines.len() - 1) as f64 * TEXT;
    let (place, anchor) = match side {
        Side::Left => ((x + half, y - room - 7.0), Anchor::Start),
        Side::Right => ((x - half - behind, y - room - 7.0), Anchor::End),
        Side::Above => ((x + room + 8.0, below), Anchor::Start),
        Side::Below => ((x + room + 8.0, y - BOX / 2.0 - 8.0), Anchor::Start),
    };
    write_lines(svg, &lines, place, anchor);
}

/// Lines of text, the last one at this place.
fn write_lines(svg: &mut Svg, lines: &[String], (x, bottom): (f64, f64), anchor: Anchor) {
    for (number, line) in lines.iter().enumerate() {
        let y = bottom - (lines.len() - 1 - number) as f64 * TEXT;
        svg.text("small muted halo", (x, y), anchor, line);
    }
}

fn node(svg: &mut Svg, graph: &Graph<'_>, layout: &Layout, number: usize) {
    let Some(node) = graph.nodes.get(number) else { return };
    let ((x, y), width) = (layout.at(number), layout.width(number));
    if node.kind == Kind::Router {
        svg.circle("router", (x, y), ROUTER * 0.6);
        // Beside a link that leads down.
        let below = graph.neighbours(number).any(|leaf| layout.side(leaf) == Some(Side::Below));
        let (x, anchor) = if below { (x - 12.0, Anchor::End) } else { (x, Anchor::Middle) };
        svg.text("name", (x, y + ROUTER + 8.0), anchor, &node.name());
        return;
    }
    let corner = (x - width / 2.0, y - BOX / 2.0);
    if node.count().is_some() {
        for behind in [STACK_OFFSET, STACK_OFFSET / 2.0] {
            svg.rect("node", (corner.0 - behind, corner.1 - behind), (width, BOX), 5.0);
        }
    }
    svg.rect("node", corner, (width, BOX), 5.0);
    let below = match (node.count(), node.kind) {
        (Some(count), Kind::Kernel) => Some(format!("{count} hosts, kernel")),
        (Some(count), _) => Some(format!("{count} hosts")),
        (None, Kind::Kernel) => Some("kernel".into()),
        (None, _) => None,
    };
    match below {
        Some(below) => {
            svg.text("name", (x, y - 2.0), Anchor::Middle, &node.name());
            svg.text("small muted", (x, y + 12.0), Anchor::Middle, &below);
        }
        None => svg.text("name", (x, y + 4.0), Anchor::Middle, &node.name()),
    }
}
