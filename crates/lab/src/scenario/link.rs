//! `[[links]]`: the links between nodes.
//!
//! A link's options beside `from` and `to` apply to both directions; those in its tables `there` and `back` apply to one direction and
//! win. They are the options of [`LinkConfig`], which reads and checks them; nothing here knows their meaning.

use super::name::Name;
use super::tree::{Entry, Node, Table, Value};
use serde::{Deserialize, Serialize};
use transom_sim::link::LinkConfig;

/// A link, or with a group's name at an end several links, after its options have been separated by direction.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct LinkOptions {
    pub(super) name: Option<Name>,
    pub(super) from: Name,
    pub(super) to: Name,
    #[serde(default)]
    pub(super) there: LinkConfig,
    #[serde(default)]
    pub(super) back: LinkConfig,
}

/// The keys of a link that are no options.
pub(super) const OWN_KEYS: [&str; 5] = ["name", "from", "to", "there", "back"];

/// A link between two nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Link {
    /// Its name.
    pub name: Name,
    /// The first node, where `there` begins.
    pub from: Name,
    /// The second node, where `there` ends.
    pub to: Name,
    /// From `from` to `to`.
    pub there: LinkConfig,
    /// From `to` to `from`.
    pub back: LinkConfig,
}

/// Both directions of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Duplex {
    /// The way there.
    pub(super) there: LinkConfig,
    /// The way back.
    pub(super) back: LinkConfig,
}

/// The options that say how fast a link is.
const RATES: [&str; 3] = ["rate", "rate-trace", "rate-trace-sha256"];

/// Copies the options of a table to its tables `there` and `back`, unless these have them already. The keys in `keep` stay.
pub(super) fn split_directions(table: &mut Table, keep: &[&str]) {
    let all = std::mem::take(&mut table.0);
    let (kept, options): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(key, _)| keep.contains(&key.as_str()) || key == "there" || key == "back");
    table.0.extend(kept);
    for way in ["there", "back"] {
        let place = options.first().map_or(0..0, |(_, option)| option.key.clone());
        let entry = table.0.entry(way.into()).or_insert_with(|| Entry {
            key: place.clone(),
            node: Node { span: place, value: Value::Table(Table::default()) },
        });
        // Anything else than a table is reported when it is read.
        if let Value::Table(own) = &mut entry.node.value {
            let has_rate = own.0.contains_key("rate") || own.0.contains_key("rate-trace");
            for (key, option) in &options {
                // The one way's own rate, constant or not, is instead of both ways'.
                if has_rate && RATES.contains(&key.as_str()) {
                    continue;
                }
                own.0.entry(key.clone()).or_insert_with(|| option.clone());
            }
        }
    }
}
