//! Where a network is cut, so that several cores can run it.
//!
//! A cut goes through links. A packet on a cut link must be under way for a while: the *lookahead* is the shortest delay of all cut links, and for so long the
//! parts need not know of each other. So links with long delays are cut. The choice goes through the delays from the longest one down. It leaves all links
//! with shorter delays whole, and divides what hangs together then among the cores. It takes the first delay with which no core has much more than its share.
//!
//! A link can be cut if it has a delay, and if its queue drops at its tail: then it is known when a packet comes out of it as soon as it is sent. Another
//! discipline decides later. Applications that have something in common stay together; see [`Bond`].

use super::NodeId;
use crate::traffic::Bond;
use std::collections::BTreeMap;
use std::fmt;
use transom_tcp::time::Duration;

/// How a network is divided among cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Division {
    /// It runs on one core, as was asked for.
    Whole,
    /// It runs on several cores.
    Parts {
        /// How many.
        parts: usize,
        /// For how long they need not know of each other.
        lookahead: Duration,
        /// How many links are cut, both directions as one.
        cut_links: usize,
    },
    /// Several cores were asked for, but it runs on one.
    Indivisible(Indivisible),
}

/// Why a network cannot be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indivisible {
    /// It has gateways: what enters through them is decided outside.
    Gateway,
    /// An application on this host may have something in common with others. See [`Application::bonds`](crate::traffic::Application::bonds).
    Unknown(NodeId),
    /// Connections of this host have extensions, which may have something in common with others.
    Extensions(NodeId),
    /// No links that can be cut divide it: those with a delay and a drop-tail queue.
    NoCut,
}

impl fmt::Display for Indivisible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Indivisible::Gateway => f.write_str("it has a gateway"),
            Indivisible::Unknown(NodeId(node)) => {
                write!(f, "an application on node {node} may share state with others")
            }
            Indivisible::Extensions(NodeId(node)) => {
                write!(f, "extensions on node {node} may share state with others")
            }
            Indivisible::NoCut => {
                f.write_str("no links with a delay and a drop-tail queue divide it")
            }
        }
    }
}

/// Two nodes that are joined, and for how long a packet is under way at least; `None` if the link between them cannot be cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joint {
    pub(super) ends: (u32, u32),
    pub(super) lookahead: Option<Duration>,
}

/// The part of each node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) part_of: Vec<u32>,
    pub(super) parts: usize,
    pub(super) lookahead: Duration,
}

/// As many delays are tried.
const MOST_TRIES: usize = 32;

/// Puts nodes into `cores` parts at most. `bonds` are those of the applications, with their nodes.
pub(super) fn divide(
    cores: usize,
    nodes: usize,
    joints: &[Joint],
    bonds: &[(NodeId, Option<Vec<Bond>>)],
) -> Result<Cut, Indivisible> {
    let mut together = Groups::new(nodes);
    let mut first_with: BTreeMap<Bond, u32> = BTreeMap::new();
    for (node, bonds) in bonds {
        let Some(bonds) = bonds else { return Err(Indivisible::Unknown(*node)) };
        for bond in bonds {
            let first = *first_with.entry(*bond).or_insert(node.0);
            together.join(first, node.0);
        }
    }
    // A node works for each packet on its links; a host has a stack and applications besides.
    let mut weights = vec![4u64; nodes];
    for joint in joints {
        for end in [joint.ends.0, joint.ends.1] {
            if let Some(weight) = weights.get_mut(end as usize) {
                *weight += 1;
            }
        }
    }
    let mut delays: Vec<Duration> = joints.iter().filter_map(|joint| joint.lookahead).collect();
    delays.sort_unstable();
    delays.dedup();
    let step = delays.len().div_ceil(MOST_TRIES).max(1);
    let share = weights.iter().sum::<u64>().div_ceil(cores as u64);
    let mut best: Option<(u64, Cut)> = None;
    for &delay in delays.iter().rev().step_by(step) {
        let mut groups = together.clone();
        for joint in joints.iter().filter(|joint| joint.lookahead.is_none_or(|one| one < delay)) {
            groups.join(joint.ends.0, joint.ends.1);
        }
        let (part_of, parts, most) = fill(cores, share, &mut groups, joints, &weights);
        if parts < 2 {
            continue;
        }
        let across = |joint: &&Joint| {
            part_of.get(joint.ends.0 as usize) != part_of.get(joint.ends.1 as usize)
        };
        let lookahead = joints.iter().filter(across).filter_map(|joint| joint.lookahead).min();
        // Parts without a link between them need not know of each other at all.
        let cut = Cut { part_of, parts, lookahead: lookahead.unwrap_or(Duration::MAX) };
        if most <= share + share / 8 {
            return Ok(cut);
        }
        if best.as_ref().is_none_or(|(least, _)| most < *least) {
            best = Some((most, cut));
        }
    }
    best.map(|(_, cut)| cut).ok_or(Indivisible::NoCut)
}

/// Puts groups into parts, neighbours together as far as it goes. Returns the part of each node, the number of parts, and the weight of the heaviest.
fn fill(
    cores: usize,
    share: u64,
    groups: &mut Groups,
    joints: &[Joint],
    weights: &[u64],
) -> (Vec<u32>, usize, u64) {
    let nodes = weights.len();
    let group_of: Vec<u32> = (0..nodes as u32).map(|node| groups.of(node)).collect();
    let mut weight_of = vec![0u64; nodes];
    for (group, weight) in group_of.iter().zip(weights) {
        weight_of[*group as usize] += weight;
    }
    let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    for Joint { ends: (a, b), .. } in joints {
        let (Some(&a), Some(&b)) = (group_of.get(*a as usize), group_of.get(*b as usize)) else {
            continue;
        };
        if a != b {
            neighbours[a as usize].push(b);
            neighbours[b as usize].push(a);
        }
    }
    let mut part_of_group = vec![u32::MAX; nodes];
    let (mut filled, mut part) = (vec![0u64; cores], 0);
    // From one end of the network to the other, as far as it has ends.
    for start in 0..nodes {
        if group_of[start] as usize != start || part_of_group[start] != u32::MAX {
            continue;
        }
        let mut frontier = std::collections::VecDeque::from([start as u32]);
        part_of_group[start] = u32::MAX - 1;
        while let Some(group) = frontier.pop_front() {
            let weight = weight_of[group as usize];
            // The next part begins where this one comes closest to its share.
            if part + 1 < cores && filled[part] > 0 && filled[part] + weight / 2 > share {
                part += 1;
            }
            filled[part] += weight;
            part_of_group[group as usize] = part as u32;
            for &next in &neighbours[group as usize] {
                if part_of_group[next as usize] == u32::MAX {
                    part_of_group[next as usize] = u32::MAX - 1;
                    frontier.push_back(next);
                }
            }
        }
    }
    let part_of = group_of.iter().map(|group| part_of_group[*group as usize]).collect();
    (part_of, part + 1, filled.into_iter().max().unwrap_or(0))
}

/// Nodes that stay together (a forest of disjoint sets).
#[derive(Clone, Debug)]
struct Groups(Vec<u32>);

impl Groups {
    fn new(nodes: usize) -> Self {
        Groups((0..nodes as u32).collect())
    }

    /// The group of a node, by its first one.
    fn of(&mut self, mut node: u32) -> u32 {
        while let Some(&above) = self.0.get(node as usize)
            && above != node
        {
            // Halves the way for the next time.
            let top = self.0.get(above as usize).copied().unwrap_or(above);
            if let Some(slot) = self.0.get_mut(node as usize) {
                *slot = top;
            }
            node = above;
        }
        node
    }

    fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.of(one), self.of(other));
        if let Some(slot) = self.0.get_mut(one.max(other) as usize) {
            *slot = one.min(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joint(a: u32, b: u32, millis: u64) -> Joint {
        let lookahead = (millis > 0).then(|| Duration::from_millis(millis));
        Joint { ends: (a, b), lookahead }
    }

    #[test]
    fn a_row_is_cut_in_the_middle_at_the_longest_delay_that_divides_it_fairly() {
        // 0 and 5 are hosts with the longest links, which leave one side almost empty.
        let joints =
            [joint(0, 1, 50), joint(1, 2, 1), joint(2, 3, 10), joint(3, 4, 1), joint(4, 5, 50)];
        let cut = divide(2, 6, &joints, &[]).unwrap();
        assert_eq!((cut.parts, cut.lookahead), (2, Duration::from_millis(10)));
        assert_eq!(cut.part_of, [0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn bonds_keep_nodes_together() {
        let joints = [joint(0, 1, 5), joint(1, 2, 5), joint(2, 3, 5)];
        let known = |bond| Some(vec![bond]);
        let bonds = [(NodeId(0), known(Bond::State(7))), (NodeId(3), known(Bond::State(7)))];
        let cut = divide(2, 4, &joints, &bonds).unwrap();
        assert_eq!(cut.part_of[0], cut.part_of[3]);
        let unknown = [(NodeId(2), None)];
        assert_eq!(divide(2, 4, &joints, &unknown), Err(Indivisible::Unknown(NodeId(2))));
    }

    #[test]
    fn links_without_a_delay_are_not_cut() {
        assert_eq!(divide(2, 3, &[joint(0, 1, 0), joint(1, 2, 0)], &[]), Err(Indivisible::NoCut));
        let cut = divide(4, 3, &[joint(0, 1, 0), joint(1, 2, 3)], &[]).unwrap();
        assert_eq!((cut.parts, cut.part_of), (2, vec![0, 0, 1]));
    }
}
