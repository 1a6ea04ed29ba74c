//! A scenario in which nothing is left to be decided but the seed.
//!
//! Theory of operation. A [`Resolved`] has one text, its *canonical form*: presets, groups and sweeps are spread out, defaults written
//! down, names sorted as people count, quantities in the largest unit that divides them. It depends on nothing but the scenario, so the
//! same input gives the same bytes on every machine; and it is itself a scenario, which resolves to itself.
//!
//! A run's identity is the hash of everything that decides its outcome: this form, the seed and the program's version. The experiment's
//! title and expectations are left out, so that changing them repeats no run.

use super::expect::Band;
use super::flow::Flow;
use super::header::Header;
use super::host::{Host, HostKind, KernelCongestion, Router};
use super::link::Link;
use super::measure::Series;
use super::name::Name;
use super::profile::ProfileOptions;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A concrete experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Resolved {
    /// Its name and duration.
    pub scenario: Header,
    /// The hosts; their order decides their addresses and random streams.
    pub hosts: BTreeMap<Name, Host>,
    /// The routers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub routers: BTreeMap<Name, Router>,
    /// The links.
    pub links: Vec<Link>,
    /// The flows.
    pub flows: Vec<Flow>,
    /// The recordings of a run.
    pub measure: Series,
    /// The expectations about a run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Band>,
}

/// Which run it is: a hash of everything that decides its outcome.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId([u8; 32]);

impl Resolved {
    /// The canonical form as TOML: a scenario that resolves to this.
    pub fn to_toml(&self) -> String {
        // Texts, integers, lists and tables: there is nothing that TOML has not.
        toml::to_string(self).unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// The canonical form as JSON.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// The identity of the run with this seed by this version of the program. That of an emulated run is never that of a simulated one,
    /// for even where both do the same they need not see the same.
    pub fn id(&self, seed: u64, program_version: &str, emulated: bool) -> RunId {
        let run = match emulated {
            true => json!(["emulated", program_version, seed]),
            false => json!([program_version, seed]),
        };
        // Exhaustive, so that it has to be decided of each new field whether it decides the outcome.
        let Resolved { scenario, hosts, routers, links, flows, measure, expect: _ } = self;
        // The scenario's units are in those of its hosts.
        let Header {
            name: _,
            title: _,
            description: _,
            tcp: _,
            duration,
            warm_up,
            sample_interval,
        } = scenario;
        let Series { flows: _, links: _, capture, capture_comments, log } = measure;
        let times = (duration, warm_up, sample_interval);
        let files = (capture, capture_comments, log);
        let decides = serde_json::to_vec(&(run, times, hosts, routers, links, flows, files))
            .unwrap_or_else(|error| unreachable!("{error}"));
        RunId(Sha256::digest(&decides).into())
    }

    /// The hosts that comment on their packets: those with Transom's TCP at an end of a captured link, if comments are wanted.
    pub(crate) fn commenting(&self) -> BTreeSet<&Name> {
        let Series { capture, capture_comments, .. } = &self.measure;
        let is_captured = |link: &&Link| capture.binary_search(&link.name).is_ok();
        let links = self.links.iter().filter(|_| *capture_comments).filter(is_captured);
        let comments =
            |name: &&Name| self.hosts.get(*name).is_some_and(|host| host.kind == HostKind::Transom);
        links.flat_map(|link| [&link.from, &link.to]).filter(comments).collect()
    }

    /// The TCP of a flow's first host in few words: its units and extensions, or the kernel's congestion control.
    pub fn tcp_of(&self, flow: &Flow) -> String {
        let host = self.hosts.get(&flow.from);
        if let Some(host) = host.filter(|host| host.kind == HostKind::Kernel) {
            let control = host.congestion.unwrap_or(KernelCongestion::Cubic);
            return format!("kernel {}", control.name());
        }
        let own = host.map(|host| flow.profile.or(&host.profile));
        let ProfileOptions { tcp, extensions, .. } = own.unwrap_or_else(|| flow.profile.clone());
        let tcp = tcp.map_or_else(|| "default".to_owned(), |tcp| tcp.to_string());
        match extensions {
            Some(extensions) => format!("{tcp} with {extensions}"),
            None => tcp,
        }
    }

    /// Whether it can only be emulated: a host has the kernel's TCP.
    pub fn needs_emulation(&self) -> bool {
        self.hosts.values().any(|host| host.kind == HostKind::Kernel)
    }
}

impl RunId {
    /// The first twelve digits, for names of directories.
    pub(crate) fn short(&self) -> String {
        let mut text = self.to_string();
        text.truncate(12);
        text
    }
}

/// In hexadecimal.
impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for RunId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<RunId, &'static str> {
        const WRONG: &str = "a run's identity has 64 hexadecimal digits";
        let digits = text.chars().map(|c| c.to_digit(16)).collect::<Option<Vec<u32>>>();
        let bytes: Vec<u8> = digits
            .ok_or(WRONG)?
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8))
            .collect();
        // Without an odd digit.
        let id = RunId(bytes.try_into().map_err(|_| WRONG)?);
        if id.to_string() == text { Ok(id) } else { Err(WRONG) }
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunId({self})")
    }
}
