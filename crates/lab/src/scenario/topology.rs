//! `[topology]`: networks that are used so often that they need no more than their parameters.
//!
//! A preset makes hosts, routers and links with fixed names, as if they had been written down; `transom lab check --resolved` shows
//! them. `[hosts.NAME]` for one of its hosts, or one of its groups, then says what kind of host that is, and further hosts, routers
//! and links may be added.

use super::error::{Problem, Problems};
use super::link::Duplex;
use super::name::Name;
use super::quantity::{Count, Time};
use super::tree::Span;
use schemars::JsonSchema;
use serde::Deserialize;

/// A network by its shape, chosen by `kind`.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Topology {
    /// Pairs of hosts that share one link between two routers.
    Dumbbell(Dumbbell),
    /// Routers in a row, with a host at each end and optional cross traffic on each hop.
    Chain(Chain),
    /// Hosts around one router.
    Star(Star),
}

impl Topology {
    /// The words for `kind`.
    pub(crate) const KINDS: [&'static str; 3] = ["dumbbell", "chain", "star"];
    /// The parameters that are links.
    pub(super) const LINKS: [&'static str; 4] = ["bottleneck", "access", "hop", "link"];
}

/// `sender1`, `sender2` … at router `left`, `receiver1`, `receiver2` … at router `right`, and between the routers the link
/// `bottleneck`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Dumbbell {
    /// How many senders, and how many receivers. Without it, one, or as many as there are `access-delays`.
    #[serde(default)]
    pub(super) pairs: Option<Count>,
    /// The link from `left` to `right`.
    pub(super) bottleneck: Duplex,
    /// Every link between a host and its router.
    #[serde(default)]
    pub(super) access: Duplex,
    /// The delay of each sender's link, each way, for different round-trip times.
    #[serde(default)]
    pub(super) access_delays: Vec<Time>,
}

/// `source`, the routers `r1`, `r2` … and `sink` in a row. The links between routers are `hop1`, `hop2` …
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Chain {
    /// How many links there are between routers; the routers are one more.
    pub(super) hops: Count,
    /// Every link between two routers.
    pub(super) hop: Duplex,
    /// Every link between a host and a router.
    #[serde(default)]
    pub(super) access: Duplex,
    /// Adds two hosts for each hop, `cross-source1` and `cross-sink1` for the first, whose traffic takes just that hop: the
    /// "parking lot".
    #[serde(default)]
    pub(super) cross_traffic: bool,
}

/// `leaf1`, `leaf2` … around the router `hub`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Star {
    /// How many hosts.
    pub(super) leaves: Count,
    /// Every link, from the host to the hub.
    pub(super) link: Duplex,
}

/// The network of a preset.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Hosts, by their group's name.
    pub(super) hosts: Vec<(Name, Vec<Name>)>,
    pub(super) routers: Vec<Name>,
    /// Name, from, to and options.
    pub(super) links: Vec<(Name, Name, Name, Duplex)>,
}

impl Layout {
    fn group(&mut self, text: &'static str, count: u32) -> Vec<Name> {
        let group = Name::literal(text);
        let members: Vec<Name> = (1..=count).map(|number| group.member(number)).collect();
        self.hosts.push((group, members.clone()));
        members
    }

    fn host(&mut self, text: &'static str) -> Name {
        let name = Name::literal(text);
        self.hosts.push((name.clone(), vec![name.clone()]));
        name
    }

    fn router(&mut self, name: Name) -> Name {
        self.routers.push(name.clone());
        name
    }

    fn join(&mut self, from: &Name, to: &Name, duplex: &Duplex) {
        let name = Name::joining(from, to);
        self.links.push((name, from.clone(), to.clone(), duplex.clone()));
    }
}

/// As many as one parameter may ask for.
const MOST: u32 = 100_000;

impl Topology {
    /// The network of the preset. `span` is where it was written.
    pub(super) fn layout(&self, span: &Span, problems: &mut Problems) -> Layout {
        let mut layout = Layout::default();
        let mut at_most = |what: &'static str, count: u32| {
            if count > MOST {
                let problem = Problem::TooMany { what, count: count.into(), limit: MOST.into() };
                problems.add(span.clone(), problem);
            }
            count.min(MOST)
        };
        match self {
            Topology::Dumbbell(dumbbell) => {
                let Dumbbell { pairs, bottleneck, access, access_delays } = dumbbell;
                let delays = u32::try_from(access_delays.len()).unwrap_or(u32::MAX);
                let pairs = at_most("pairs", pairs.map_or(delays.max(1), Count::get));
                if delays > 0 && delays != pairs {
                    let problem = Problem::Conflict(format!(
                        "`access-delays` has {delays} values for {pairs} pairs"
                    ));
                    problems.add(span.clone(), problem);
                }
                let (left, right) = (layout.router(Name::literal("left")), Name::literal("right"));
                let right = layout.router(right);
                let senders = layout.group("sender", pairs);
                let receivers = layout.group("receiver", pairs);
                let name = Name::literal("bottleneck");
                layout.links.push((name, left.clone(), right.clone(), bottleneck.clone()));
                for (index, sender) in senders.iter().enumerate() {
                    let mut access = access.clone();
                    if let Some(delay) = access_delays.get(index) {
                        access.there.delay = delay.0;
                        access.back.delay = delay.0;
                    }
                    layout.join(sender, &left, &access);
                }
                for receiver in &receivers {
                    layout.join(&right, receiver, access);
                }
            }
            Topology::Chain(Chain { hops, hop, access, cross_traffic }) => {
                let hops = at_most("hops", hops.get());
                let (source, sink) = (layout.host("source"), layout.host("sink"));
                let router = Name::literal("r");
                let routers: Vec<Name> =
                    (1..=hops + 1).map(|number| layout.router(router.member(number))).collect();
                let name = Name::literal("hop");
                for (number, ends) in (1..).zip(routers.windows(2)) {
                    if let [from, to] = ends {
                        let link = (name.member(number), from.clone(), to.clone(), hop.clone());
                        layout.links.push(link);
                    }
                }
                if let [first, .., last] = &routers[..] {
                    layout.join(&source, first, access);
                    layout.join(last, &sink, access);
                }
                if *cross_traffic {
                    let sources = layout.group("cross-source", hops);
                    let sinks = layout.group("cross-sink", hops);
                    for ((source, sink), ends) in sources.iter().zip(&sinks).zip(routers.windows(2))
                    {
                        if let [from, to] = ends {
                            layout.join(source, from, access);
                            layout.join(to, sink, access);
                        }
                    }
                }
            }
            Topology::Star(Star { leaves, link }) => {
                let hub = layout.router(Name::literal("hub"));
                let leaves = at_most("leaves", leaves.get());
                for leaf in layout.group("leaf", leaves) {
                    layout.join(&leaf, &hub, link);
                }
            }
        }
        layout
    }
}
