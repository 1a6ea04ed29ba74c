//! `[paper]`: which experiment of a paper the scenario reproduces.
//!
//! It changes nothing of what is run. What the paper says stands with the bands that are to show it ([`Claim`](super::Claim)).

use super::decode::decode;
use super::error::Problems;
use super::quantity::Time;
use super::resolve::section;
use super::tree::{Table, way};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The section.
pub(super) const SECTION: &str = "paper";

/// Which experiment of a paper this is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Paper {
    /// Its id, such as "ltcp/fig5".
    pub id: String,
    /// Where it is in the paper: section, figure, table.
    pub source: String,
    /// What it shows there.
    pub shows: String,
    /// In what the set-up differs from the paper's, and what the paper leaves open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// What was found out about what its table shows, where no claim says it: why, and by which runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// How long all its runs take on one core of an ordinary machine.
    pub takes: Time,
    /// How long they take in the form "quick".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick_takes: Option<Time>,
    /// Whether it is meant to be run in real time, by the emulator.
    #[serde(default)]
    pub emulated: bool,
}

impl Paper {
    pub(super) fn read(tree: &Table, problems: &mut Problems) -> Option<Paper> {
        let table = section(tree, SECTION, problems)?;
        decode(table, &tree.span(way![SECTION]), &[], problems)
    }
}
