//! `[paper]`: which experiment of a paper the scenario reproduces.
//!
//! It does not affect the run. The paper's claims are with the bands that reproduce them ([`Claim`](super::Claim)).

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
    /// The place in the paper: section, figure, table.
    pub source: String,
    /// The result that it shows there.
    pub shows: String,
    /// The differences from the paper's set-up, and choices that the paper leaves open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// The explanation of the results in its table, if no claim has it: the reason, and the runs that show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
    /// How long all its runs take on one core of an ordinary machine.
    pub takes: Time,
    /// How long they take in the form "quick".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quick_takes: Option<Time>,
    /// Whether it is meant for real time, by the emulator.
    #[serde(default)]
    pub emulated: bool,
}

impl Paper {
    pub(super) fn read(tree: &Table, problems: &mut Problems) -> Option<Paper> {
        let table = section(tree, SECTION, problems)?;
        decode(table, &tree.span(way![SECTION]), &[], problems)
    }
}
