//! The nodes of a scenario: presets and groups spread out, every host with its options.

use super::composition::Composition;
use super::decode::decode;
use super::error::{Problem, Problems};
use super::host::{Host, HostKind, Router};
use super::link::split_directions;
use super::name::Name;
use super::profile::ProfileOptions;
use super::resolve::{section, tagged};
use super::sweep::wrong_type;
use super::topology::{Layout, Topology};
use super::tree::{Span, Table, Value, way};
use std::collections::BTreeMap;

/// As many hosts as a scenario may have, and as many routers.
const MOST: u64 = 100_000;

/// Hosts, routers, and the groups of their names.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) hosts: BTreeMap<Name, Host>,
    pub(super) routers: BTreeMap<Name, Router>,
    /// The meaning of a name: itself, or the members of a group.
    pub(super) groups: BTreeMap<Name, Vec<Name>>,
    /// The place of each node in the text.
    pub(super) places: BTreeMap<Name, Span>,
    /// The links of the preset.
    pub(super) layout: Layout,
    /// A part could not be read: names that seem to be missing may exist.
    pub(super) incomplete: bool,
    /// The scenario's settings for the TCP of all hosts.
    common: ProfileOptions,
}

impl Nodes {
    /// Reads the nodes. `tcp` are the units of all hosts with Transom's TCP.
    pub(super) fn read(tree: &Table, tcp: Option<Composition>, problems: &mut Problems) -> Nodes {
        let common = ProfileOptions { tcp, ..ProfileOptions::default() };
        let mut nodes = Nodes { common, ..Nodes::default() };
        nodes.read_topology(tree, problems);
        nodes.read_hosts(tree, problems);
        nodes.read_routers(tree, problems);
        for (what, count) in [("hosts", nodes.hosts.len()), ("routers", nodes.routers.len())] {
            if count as u64 > MOST {
                let problem = Problem::TooMany { what, count: count as u64, limit: MOST };
                problems.add(tree.span(way![what]), problem);
            }
        }
        nodes
    }

    fn read_topology(&mut self, tree: &Table, problems: &mut Problems) {
        let Some(node) = tree.get("topology") else { return };
        let Value::Table(table) = &node.value else {
            problems.add(node.span.clone(), wrong_type(&node.value, "a table"));
            self.incomplete = true;
            return;
        };
        let mut table = table.clone();
        for key in Topology::LINKS {
            if let Some(Value::Table(link)) =
                table.0.get_mut(key).map(|entry| &mut entry.node.value)
            {
                split_directions(link, &[]);
            }
        }
        let span = &node.span;
        let kind = tagged(&mut table, span, &Topology::KINDS, problems);
        let also = &["kind"];
        let topology = match kind.as_deref() {
            Some("dumbbell") => decode(&table, span, also, problems).map(Topology::Dumbbell),
            Some("chain") => decode(&table, span, also, problems).map(Topology::Chain),
            Some("star") => decode(&table, span, also, problems).map(Topology::Star),
            _ => None,
        };
        let Some(topology) = topology else {
            self.incomplete = true;
            return;
        };
        let layout = topology.layout(span, problems);
        for (group, members) in &layout.hosts {
            for member in members {
                let host = Host { profile: self.common.clone(), ..Host::default() };
                self.add_host(member, host, span);
            }
            self.groups.insert(group.clone(), members.clone());
        }
        for router in &layout.routers {
            self.add_router(router, span);
        }
        self.layout = layout;
    }

    fn read_hosts(&mut self, tree: &Table, problems: &mut Problems) {
        let Some(table) = section(tree, "hosts", problems) else { return };
        let mut groups = Vec::new();
        let mut singles = Vec::new();
        for (key, entry) in table.as_written() {
            let span = &entry.node.span;
            let Some(name) = Name::new(key) else {
                problems.add(entry.key.clone(), Problem::BadName(key.into()));
                continue;
            };
            let Value::Table(options) = &entry.node.value else {
                problems.add(span.clone(), wrong_type(&entry.node.value, "a table"));
                continue;
            };
            let mut host: Host = decode(options, span, &[], problems).unwrap_or_default();
            if host.kind == HostKind::Transom {
                host.profile = host.profile.or(&self.common);
            }
            check_host(&host, options, &entry.key, problems);
            let preset = self.groups.get(&name).is_some_and(|members| *members != [name.clone()]);
            if host.count.is_some() || preset {
                groups.push((name, host, &entry.key, preset));
            } else {
                singles.push((name, host, &entry.key));
            }
        }
        for (name, host, key, preset) in groups {
            let one = Host { count: None, ..host.clone() };
            match host.count {
                Some(_) if preset || self.hosts.contains_key(&name) => {
                    let text = format!("the topology has said how many `{name}` there are");
                    problems.add(
                        tree.span(way!["hosts", name.as_str(), "count"]),
                        Problem::Conflict(text),
                    );
                }
                Some(count) if u64::from(count.get()) > MOST => {
                    let count = count.get().into();
                    let problem = Problem::TooMany { what: "hosts", count, limit: MOST };
                    problems.add(tree.span(way!["hosts", name.as_str(), "count"]), problem);
                    self.incomplete = true;
                }
                Some(count) => {
                    let members: Vec<Name> =
                        (1..=count.get()).map(|number| name.member(number)).collect();
                    for member in &members {
                        if self.hosts.contains_key(member) {
                            let name = member.to_string();
                            problems.add(key.clone(), Problem::Duplicate { what: "hosts", name });
                        }
                        self.add_host(member, one.clone(), key);
                    }
                    self.groups.insert(name, members);
                }
                None => {
                    for member in self.groups.get(&name).cloned().unwrap_or_default() {
                        self.hosts.insert(member, one.clone());
                    }
                }
            }
        }
        // Settings of one member of a group replace those of the group.
        for (name, host, key) in singles {
            if self.groups.get(&name).is_some_and(|members| *members != [name.clone()]) {
                let name = name.to_string();
                problems.add(key.clone(), Problem::Duplicate { what: "hosts", name });
            } else {
                self.add_host(&name, host, key);
            }
        }
    }

    fn read_routers(&mut self, tree: &Table, problems: &mut Problems) {
        let Some(table) = section(tree, "routers", problems) else { return };
        for (key, entry) in table.as_written() {
            let Some(name) = Name::new(key) else {
                problems.add(entry.key.clone(), Problem::BadName(key.into()));
                continue;
            };
            let span = &entry.node.span;
            match &entry.node.value {
                Value::Table(options) => {
                    let _: Option<Router> = decode(options, span, &[], problems);
                }
                other => problems.add(span.clone(), wrong_type(other, "a table")),
            }
            if self.groups.contains_key(&name) {
                let problem = Problem::Duplicate { what: "nodes", name: key.into() };
                problems.add(entry.key.clone(), problem);
            } else {
                self.add_router(&name, &entry.key);
            }
        }
    }

    fn add_host(&mut self, name: &Name, host: Host, place: &Span) {
        self.hosts.insert(name.clone(), host);
        self.groups.insert(name.clone(), vec![name.clone()]);
        self.places.insert(name.clone(), place.clone());
    }

    fn add_router(&mut self, name: &Name, place: &Span) {
        self.routers.insert(name.clone(), Router {});
        self.groups.insert(name.clone(), vec![name.clone()]);
        self.places.insert(name.clone(), place.clone());
    }

    /// The members of a name, and whether it is a group.
    pub(super) fn members(
        &self,
        what: &'static str,
        name: &Name,
        place: Span,
        problems: &mut Problems,
    ) -> Option<(&[Name], bool)> {
        if let Some(members) = self.groups.get(name) {
            return Some((members, *members != [name.clone()]));
        }
        if !self.incomplete {
            // Members of groups are too many to be listed, and their groups are.
            let in_group = |one: &Name| {
                self.groups.iter().any(|(group, members)| group != one && members.contains(one))
            };
            let few = self.groups.len() < 1000;
            let known = self.groups.keys().filter(|one| few && !in_group(one));
            let known = known.map(Name::to_string).collect();
            problems.add(place, Problem::UnknownName { what, name: name.to_string(), known });
        }
        None
    }

    /// The ends of what leads from `from` to `to`, and whether one of them is a group.
    pub(super) fn pairs(
        &self,
        what: &'static str,
        from: (&Name, Span),
        to: (&Name, Span),
        problems: &mut Problems,
    ) -> Option<(Vec<(Name, Name)>, bool)> {
        let ends_at = if what == "link" { "node" } else { "host" };
        let froms = self.members(ends_at, from.0, from.1, problems);
        let tos = self.members(ends_at, to.0, to.1.clone(), problems);
        let ((froms, many_from), (tos, many_to)) = (froms?, tos?);
        let pairs: Vec<(Name, Name)> = match (froms, tos) {
            ([from], tos) => tos.iter().map(|to| (from.clone(), to.clone())).collect(),
            (froms, [to]) => froms.iter().map(|from| (from.clone(), to.clone())).collect(),
            (froms, tos) if froms.len() == tos.len() => {
                froms.iter().cloned().zip(tos.iter().cloned()).collect()
            }
            (froms, tos) => {
                let problem = Problem::UnequalGroups {
                    from: from.0.to_string(),
                    from_count: froms.len(),
                    to: to.0.to_string(),
                    to_count: tos.len(),
                };
                problems.add(to.1, problem);
                return None;
            }
        };
        if let Some((node, _)) = pairs.iter().find(|(from, to)| from == to) {
            problems.add(to.1, Problem::ToItself { what, node: node.to_string() });
            return None;
        }
        Some((pairs, many_from || many_to))
    }
}

fn check_host(host: &Host, options: &Table, key: &Span, problems: &mut Problems) {
    let at = |name: &str| match options.get(name) {
        Some(node) => node.span.clone(),
        None => key.clone(),
    };
    match host.kind {
        HostKind::Transom => {
            if host.congestion.is_some() {
                let text = "`congestion` is for a host of kind \"kernel\"; for Transom's TCP, write profile.tcp";
                problems.add(at("congestion"), Problem::Conflict(text.into()));
            }
            if host.ecn.is_some() {
                let text = "`ecn` is for a host of kind \"kernel\"";
                problems.add(at("ecn"), Problem::Conflict(text.into()));
            }
            if let Err(error) = host.profile.profile() {
                problems.add(at("profile"), Problem::Value(error.to_string()));
            }
        }
        HostKind::Kernel if !host.profile.is_empty() => {
            let text = "`profile` is for Transom's TCP, and this host has the kernel's";
            problems.add(at("profile"), Problem::Conflict(text.into()));
        }
        HostKind::Kernel => {}
    }
    if !(576..=65_535).contains(&host.mtu) {
        let (value, bound) = (host.mtu.to_string(), "from 576 to 65535 bytes".into());
        problems.add(at("mtu"), Problem::OutOfBounds { key: "mtu", value, bound });
    }
}
