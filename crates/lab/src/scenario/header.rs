//! `[scenario]`: the name and the duration of the experiment.

use super::composition::Composition;
use super::error::{Problem, Problems};
use super::name::Name;
use super::quantity::Time;
use super::tree::{Table, way};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transom_tcp::time::Duration;

/// The name and the duration of the experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Header {
    /// A short name, which names files and directories too.
    #[schemars(with = "super::schema::NameText")]
    pub name: Name,
    /// The title of the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The subject of the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The units of every host with Transom's TCP. A host's own choice of a unit wins over it, and a flow's choice wins over
    /// both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<Composition>,
    /// How long it runs, in the network's time.
    pub duration: Time,
    /// The beginning that counts for no total and no band, until the flows have settled.
    #[serde(default)]
    pub warm_up: Time,
    /// The time between two points of a series.
    #[serde(default = "tenth_of_a_second")]
    pub sample_interval: Time,
}

fn tenth_of_a_second() -> Time {
    Time(Duration::from_millis(100))
}

impl Header {
    pub(super) fn check(&self, tree: &Table, problems: &mut Problems) {
        let zero = |key: &'static str| (tree.span(way!["scenario", key]), Problem::Zero { key });
        if self.duration.0 == Duration::ZERO {
            let (span, problem) = zero("duration");
            problems.add(span, problem);
        } else if self.warm_up >= self.duration {
            let problem = Problem::OutOfBounds {
                key: "warm-up",
                value: self.warm_up.to_string(),
                bound: format!("shorter than the duration, {}", self.duration),
            };
            problems.add(tree.span(way!["scenario", "warm-up"]), problem);
        }
        if self.sample_interval.0 == Duration::ZERO {
            let (span, problem) = zero("sample-interval");
            problems.add(span, problem);
        }
    }
}

/// The seeds, which are of the scenario and not of a single run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Seeds {
    /// Each decides all that is random about a run; there is a run for each.
    pub(super) seeds: Vec<u64>,
}

impl Default for Seeds {
    fn default() -> Self {
        Seeds { seeds: vec![1] }
    }
}
