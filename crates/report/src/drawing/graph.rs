//! The graph: nodes, some of which represent many similar ones, and the edges between them.

use std::collections::BTreeMap;

use transom_lab::scenario::{HostKind, Link, Name, Resolved};

/// As many alike are drawn one by one.
const MOST_ALIKE: usize = 6;

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A host with Transom's TCP.
    Host,
    /// A host with the kernel's TCP.
    Kernel,
    /// A router.
    Router,
}

/// A node of the picture.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) kind: Kind,
    /// The nodes of the scenario that it represents: one, or all similar ones.
    pub(super) members: Vec<&'a Name>,
    /// A host at the end of a single link, to a router.
    pub(super) leaf: bool,
}

/// A line between two nodes of the picture, and the links that it represents. All of them lead from `from` to `to`.
#[derive(Debug)]
pub(super) struct Edge<'a> {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) links: Vec<&'a Link>,
}

/// The picture's nodes and lines.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) edges: Vec<Edge<'a>>,
    /// Which node of the picture a node of the scenario is.
    pub(super) place: BTreeMap<&'a Name, usize>,
}

/// The common properties of similar hosts: their kind, the word before their number, their neighbour and the direction of
/// their link.
type GroupKey<'a> = (bool, &'a str, &'a Name, bool);

impl<'a> Graph<'a> {
    pub(super) fn new(scenario: &'a Resolved) -> Graph<'a> {
        let mut degree: BTreeMap<&Name, usize> = BTreeMap::new();
        let mut link_of: BTreeMap<&Name, &Link> = BTreeMap::new();
        for link in &scenario.links {
            for end in [&link.from, &link.to] {
                *degree.entry(end).or_default() += 1;
                link_of.insert(end, link);
            }
        }
        let leaf = |host: &Name| {
            let link = link_of.get(host)?;
            let outward = link.from == *host;
            let neighbour = if outward { &link.to } else { &link.from };
            let single = degree.get(host) == Some(&1) && scenario.routers.contains_key(neighbour);
            single.then_some((neighbour, outward))
        };
        let mut alike: BTreeMap<GroupKey<'a>, Vec<&'a Name>> = BTreeMap::new();
        let likeness = |name: &'a Name| {
            let host = scenario.hosts.get(name)?;
            let (neighbour, outward) = leaf(name)?;
            let stem = name.as_str().trim_end_matches(|c: char| c.is_ascii_digit());
            Some((host.kind == HostKind::Kernel, stem, neighbour, outward))
        };
        for name in scenario.hosts.keys() {
            if let Some(likeness) = likeness(name) {
                alike.entry(likeness).or_default().push(name);
            }
        }
        let mut graph = Graph { nodes: Vec::new(), edges: Vec::new(), place: BTreeMap::new() };
        for (name, host) in &scenario.hosts {
            if graph.place.contains_key(name) {
                continue;
            }
            let kind = if host.kind == HostKind::Kernel { Kind::Kernel } else { Kind::Host };
            let group = likeness(name).and_then(|likeness| alike.get(&likeness));
            let members = match group {
                Some(group) if group.len() > MOST_ALIKE => group.clone(),
                _ => vec![name],
            };
            graph.add(Node { kind, members, leaf: group.is_some() });
        }
        for name in scenario.routers.keys() {
            graph.add(Node { kind: Kind::Router, members: vec![name], leaf: false });
        }
        let mut edges: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for link in &scenario.links {
            let ends = (graph.place.get(&link.from), graph.place.get(&link.to));
            let (Some(&from), Some(&to)) = ends else { continue };
            let next = graph.edges.len();
            let edge = *edges.entry((from, to)).or_insert(next);
            match graph.edges.get_mut(edge) {
                Some(edge) => edge.links.push(link),
                None => graph.edges.push(Edge { from, to, links: vec![link] }),
            }
        }
        graph
    }

    fn add(&mut self, node: Node<'a>) {
        for name in &node.members {
            self.place.insert(name, self.nodes.len());
        }
        self.nodes.push(node);
    }

    /// The other ends of a node's lines, in their order.
    pub(super) fn neighbours(&self, node: usize) -> impl Iterator<Item = usize> {
        self.edges.iter().filter_map(move |edge| match edge {
            Edge { from, to, .. } if *from == node => Some(*to),
            Edge { from, to, .. } if *to == node => Some(*from),
            _ => None,
        })
    }
}

impl Node<'_> {
    /// Its name, or the first and the last of its members.
    pub(super) fn name(&self) -> String {
        match self.members[..] {
            [] => String::new(),
            [name] => name.to_string(),
            [first, .., last] => format!("{first} … {last}"),
        }
    }

    /// How many it represents, if more than one.
    pub(super) fn count(&self) -> Option<usize> {
        (self.members.len() > 1).then_some(self.members.len())
    }
}
