//! Which runs there are to be: every point of a sweep with every seed.
//!
//! A plan describes a results directory, and is stored in it as `results.json`. Runs are numbered from zero, point by point and within a
//! point seed by seed. With a [`Shard`], the directory gets only some of them: run *n* goes to shard *n* mod *N*, like dealt cards. So the
//! shards take about the same time even if later points take longer.

use crate::scenario::{RunId, Scenario, Setting, Variant};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The file that holds a plan.
pub(super) const FILE: &str = "results.json";

/// The contents planned for a results directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Plan {
    /// The form in which results are stored.
    pub(super) format: u32,
    /// Which program: see [`VERSION`](crate::VERSION).
    pub version: String,
    /// The scenario's name.
    pub name: String,
    /// The name of the scenario's file when the plan was made: the relative path, else its last part.
    pub file: String,
    /// The form of the scenario, if not the default one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub form: Option<String>,
    /// Units of a program's own, such as controllers in Python, with digests of their sources: they decide the runs too.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub units: Option<String>,
    /// The SHA-256 of everything that the scenario says, and of whether it is emulated, in hexadecimal.
    pub scenario: String,
    /// The points of the sweep.
    pub points: Vec<Point>,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Which of the runs this directory is to get; all of them if none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shard: Option<Shard>,
    /// All runs, those of other shards too.
    pub runs: Vec<PlannedRun>,
}

/// A point of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Point {
    /// Its number in the scenario, from one.
    pub point: usize,
    /// The settings of the sweep at its point.
    pub settings: Vec<Setting>,
}

/// A planned run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlannedRun {
    /// Which run it is.
    pub id: RunId,
    /// The name of its directory: the first digits of `id`. Where the sweep makes the same experiment twice, the second has
    /// its point's number behind them.
    pub directory: String,
    /// The point's number, from one.
    pub point: usize,
    /// Its seed.
    pub seed: u64,
}

/// Which part of the runs: the `number`th of `of`, from one. Written "2/3".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    pub(super) number: usize,
    pub(super) of: usize,
}

/// The inputs of a plan, besides the scenario.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The name of the scenario's file.
    pub file: String,
    /// The seeds; those of the scenario if none.
    pub seeds: Option<Vec<u64>>,
    /// Which part of the runs.
    pub shard: Option<Shard>,
    /// Whether the runs are made in real time; see [`emulate`](crate::emulate).
    pub emulated: bool,
    /// Units that are not the scenario's, in words that change when they do.
    pub units: Option<String>,
}

/// What makes runs: a version of this program, and what is added to it.
fn program(version: &str, units: Option<&str>) -> String {
    match units {
        None => version.to_owned(),
        Some(units) => format!("{version} with {units}"),
    }
}

impl Plan {
    /// The plan of a scenario's runs. A file that a scenario names may have gone since the scenario was read; its points are left out.
    pub fn new(scenario: &Scenario, choice: Choice) -> Plan {
        let Choice { file, seeds, shard, emulated, units } = choice;
        let seeds = seeds.unwrap_or_else(|| scenario.seeds.clone());
        let mut digest = Sha256::new();
        if emulated {
            digest.update("emulated");
        }
        let program = program(crate::VERSION, units.as_deref());
        if units.is_some() {
            digest.update(&program);
        }
        let mut name = String::new();
        let (mut points, mut runs, mut directories) = (Vec::new(), Vec::new(), BTreeSet::new());
        for variant in scenario.sweep() {
            let Variant { number, settings, resolved, comparisons, controls: _ } = variant;
            name = resolved.scenario.name.to_string();
            let point = number + 1;
            for text in [resolved.to_json(), format!("{comparisons:?}")] {
                digest.update((text.len() as u64).to_le_bytes());
                digest.update(text);
            }
            for &seed in &seeds {
                let id = resolved.id(seed, &program, emulated);
                let mut directory = id.short();
                if !directories.insert(directory.clone()) {
                    directory = format!("{directory}-{point}");
                    directories.insert(directory.clone());
                }
                runs.push(PlannedRun { id, directory, point, seed });
            }
            points.push(Point { point, settings });
        }
        let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Plan {
            format: super::FORMAT,
            version: crate::VERSION.into(),
            name,
            file,
            form: scenario.form.clone(),
            units,
            scenario: digest,
            points,
            seeds,
            shard,
            runs,
        }
    }

    /// What makes the runs.
    pub(super) fn program(&self) -> String {
        program(&self.version, self.units.as_deref())
    }

    /// How the scenario's file is named to a command: with its form.
    pub fn file_and_form(&self) -> String {
        match &self.form {
            Some(form) => format!("{} --form {form}", self.file),
            None => self.file.clone(),
        }
    }

    /// The runs that this directory is to get.
    pub fn own(&self) -> impl Iterator<Item = &PlannedRun> {
        let shard = self.shard;
        let runs = self.runs.iter().enumerate();
        runs.filter(move |(number, _)| shard.is_none_or(|shard| shard.has(*number)))
            .map(|(_, run)| run)
    }

    /// The run of a point, by its number from one, with a seed.
    pub fn run(&self, point: usize, seed: u64) -> Option<&PlannedRun> {
        // In the order of their points.
        let first = self.runs.partition_point(|run| run.point < point);
        let here = self.runs.get(first..)?.iter().take_while(|run| run.point == point);
        here.into_iter().find(|run| run.seed == seed)
    }

    /// Whether this plan has all that another asks for, of the same scenario by the same program.
    pub fn includes(&self, other: &Plan) -> bool {
        self.version == other.version
            && self.scenario == other.scenario
            && self.units == other.units
            && self.shard == other.shard
            && other.seeds.iter().all(|seed| self.seeds.contains(seed))
    }

    /// Whether another plan is of the same runs of the same scenario by the same program; it may be of another shard of them.
    pub(crate) fn is_of_the_same_runs(&self, other: &Plan) -> bool {
        let own = Plan { file: other.file.clone(), shard: other.shard, ..self.clone() };
        own == *other
    }
}

impl Shard {
    /// Whether it has the run of this number, from zero.
    pub(crate) fn has(self, run: usize) -> bool {
        run % self.of == self.number - 1
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts = || {
            let (number, of) = text.split_once('/')?;
            let shard = Shard { number: number.parse().ok()?, of: of.parse().ok()? };
            (1..=shard.of).contains(&shard.number).then_some(shard)
        };
        parts().ok_or_else(|| {
            format!(
                "`{text}` is not a share of the runs: write I/N, such as 2/3, with I from 1 to N"
            )
        })
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Shard, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}
