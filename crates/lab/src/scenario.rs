//! Scenarios: one TOML file, one experiment.
//!
//! Theory of operation. A scenario is read in steps, each with its own file here. The text becomes a *tree* whose values know their
//! positions. The differences of a *form* are merged into it, if one is wanted. The *sweep* puts its values into the tree, once for
//! each of its points. The tree is *decoded*, presets and groups are expanded, and everything is cross-checked, which gives a
//! [`Resolved`]. All points are checked before anything is run, and all errors are reported at once, each with its line.
//!
//! ```
//! use transom_lab::scenario::Scenario;
//!
//! let scenario = Scenario::parse(
//!     "example.toml",
//!     r#"
//!     [scenario]
//!     name = "fairness"
//!     duration = "30s"
//!     warm-up = "10s"
//!
//!     [topology]
//!     kind = "dumbbell"
//!     pairs = 2
//!     bottleneck = { rate = "10Mbit/s", delay = "20ms", queue = "50 packets" }
//!
//!     [[flows]]
//!     name = "bulk"
//!     from = "sender"
//!     to = "receiver"
//!     kind = "bulk"
//!
//!     [sweep]
//!     topology.bottleneck.delay = ["10ms", "20ms", "40ms"]
//!
//!     [[expect]]
//!     measure = "jain"
//!     flow = "bulk"
//!     min = 0.9
//!     "#,
//! )?;
//! let points: Vec<_> = scenario.sweep().collect();
//! assert_eq!(points.len(), 3);
//! let resolved = &points[0].resolved;
//! assert_eq!(resolved.flows[1].from.as_str(), "sender2");
//! // The canonical form is a scenario too.
//! let again = Scenario::parse("canonical.toml", &resolved.to_toml())?;
//! assert_eq!(again.sweep().next().unwrap().resolved, *resolved);
//!
//! let mistaken = Scenario::parse("typo.toml", "[scenario]\nname = \"x\"\nduraton = \"3s\"");
//! assert!(mistaken.unwrap_err().to_string().contains("did you mean `duration`?"));
//! # Ok::<(), transom_lab::scenario::Errors>(())
//! ```

mod bands;
mod bound;
mod claim;
mod composition;
mod control;
mod cost;
mod decode;
mod distribution;
mod error;
mod expect;
mod extensions;
mod flow;
mod form;
mod header;
mod host;
mod known;
mod link;
mod measure;
mod name;
mod nodes;
mod old_systems;
mod open;
mod paper;
mod profile;
mod quantity;
mod rate_trace;
mod reachability;
mod render;
mod resolve;
mod resolved;
mod schema;
mod sweep;
mod template;
mod topology;
mod trace;
mod traffic;
mod tree;

use cost::Cost;
use error::{Problem, Problems};
use open::AllOpen;
use resolve::resolve;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use sweep::Sweep;
use toml::de::DeTable;
use trace::Files;
use tree::Table;

pub use bands::Comparison;
pub use bound::{Bound, Unit};
pub use claim::{Claim, Control, Judged};
pub use composition::Composition;
pub use cost::too_many_runs;
pub(crate) use distribution::{Distribution, SizeDistribution, TimeDistribution};
pub use error::{Diagnostic, Errors};
pub(crate) use expect::MeasureSource;
pub use expect::{Band, Direction, Measure, Quantity, Statistic};
pub use extensions::Extensions;
pub use flow::Flow;
pub use header::Header;
pub(crate) use host::KernelCongestion;
pub use host::{Host, HostKind, Router};
pub use link::Link;
pub use measure::{FlowSeries, LinkSeries, Series};
pub use name::Name;
pub use paper::Paper;
pub use profile::ProfileOptions;
pub(crate) use quantity::Count;
pub use quantity::{Number, Size, Time};
pub(crate) use rate_trace::RateTraces;
pub use resolved::{Resolved, RunId};
pub use schema::schema;
pub use sweep::{Setting, short_paths, short_settings};
pub use template::TEMPLATES;
pub(crate) use trace::{TraceError, read_trace};
pub use traffic::Program;
pub(crate) use traffic::{PingProtocol, Traffic};

/// A scenario that has been checked: every point of its sweep can be run.
#[derive(Clone, Debug)]
pub struct Scenario {
    tree: Table,
    sweep: Sweep,
    /// The seeds it asks for: there is a run for each, at each point of the sweep.
    pub seeds: Vec<u64>,
    /// The directory of the files that it names and of its programs; `None` if it was read from a text.
    pub directory: Option<PathBuf>,
    /// The name of its form; none for the default one.
    pub form: Option<String>,
    /// The names of the forms that it can have.
    pub forms: Vec<String>,
    /// Which experiment of a paper it is, if it is one.
    pub paper: Option<Paper>,
    /// The SHA-256 of the text that was read, even if the file has changed since.
    pub sha256: [u8; 32],
}

/// One point of a scenario's sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its number, from zero.
    pub number: usize,
    /// The settings of the sweep, in the order of its lists.
    pub settings: Vec<Setting>,
    /// The experiment.
    pub resolved: Resolved,
    /// Bands that need another point's run too.
    pub comparisons: Vec<Comparison>,
    /// Other points whose runs the bands of claims must reject.
    pub controls: Vec<Control>,
}

impl Scenario {
    /// Reads a scenario from a file, in one of its forms if one is named. Files that it names are relative to it.
    ///
    /// # Errors
    /// [`Errors`]: everything that is wrong with it, in any of its forms.
    pub fn load(path: &Path, form: Option<&str>) -> Result<Scenario, Errors> {
        let name = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|error| Errors::unreadable(&name, &error))?;
        Self::read(&name, &text, Some(path.parent().unwrap_or(Path::new(""))), form)
    }

    /// Reads a scenario from a text. `name` is its name in errors. Files that it names are not read.
    ///
    /// # Errors
    /// [`Errors`]: everything that is wrong with it.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, Errors> {
        Self::read(name, text, None, None)
    }

    /// Reads a scenario from a text, in one of its forms if one is named; with a directory as if it were a file there. Without one, files that it
    /// names are not read.
    ///
    /// # Errors
    /// [`Errors`]: everything that is wrong with it, in any of its forms.
    pub fn read(
        name: &str,
        text: &str,
        directory: Option<&Path>,
        form: Option<&str>,
    ) -> Result<Scenario, Errors> {
        let directory = directory.map(Path::to_path_buf);
        let mut problems = Problems::default();
        let shared: Arc<str> = text.into();
        let (document, syntax) = DeTable::parse_recoverable(text);
        for error in syntax {
            let problem = Problem::Syntax(error.message().into());
            problems.add(error.span().unwrap_or(0..0), problem);
        }
        let mut too_large = Vec::new();
        let tree = Table::new(document.get_ref(), &mut too_large);
        for tree::TooLarge(span) in too_large {
            let (found, expected) = ("a larger one".into(), "a number below 2^63".into());
            problems.add(span, Problem::WrongType { found, expected });
        }
        // A text that is not understood cannot be judged.
        if !problems.is_empty() {
            return Err(problems.into_errors(name, &shared));
        }
        let paper = Paper::read(&tree, &mut problems);
        let forms = form::names(&tree, &mut problems);
        let wanted = Self::check(&tree, form, directory.clone(), &mut problems);
        // A form inherits the mistakes of the scenario, which are not to be shown twice.
        let others = std::iter::once(None).chain(forms.iter().map(|name| Some(name.as_str())));
        for other in others.filter(|other| *other != form) {
            if problems.is_empty() {
                let _ = Self::check(&tree, other, directory.clone(), &mut problems);
            }
        }
        if !problems.is_empty() {
            return Err(problems.into_errors(name, &shared));
        }
        let (tree, sweep, seeds) = wanted;
        let form = form.map(str::to_owned);
        let sha256 = Sha256::digest(text.as_bytes()).into();
        Ok(Scenario { tree, sweep, seeds, directory, form, forms, paper, sha256 })
    }

    /// Checks a form of what is written, at all points of its sweep.
    fn check(
        tree: &Table,
        form: Option<&str>,
        directory: Option<PathBuf>,
        problems: &mut Problems,
    ) -> (Table, Sweep, Vec<u64>) {
        let tree = form::apply(tree, form, problems);
        let sweep = Sweep::read(&tree, problems);
        let mut files = Files::new(directory);
        let mut seeds = Vec::new();
        let mut open = AllOpen::default();
        let mut cost = Cost::default();
        let points = if problems.is_empty() { sweep.points() } else { 1 };
        for point in 0..points {
            problems.at_point(&sweep.settings(point));
            let here = sweep.apply(&tree, point, problems);
            let outcome = resolve(&here, &sweep, point, &mut files, problems);
            if let Some(outcome) = outcome {
                seeds = outcome.seeds;
                cost.add(outcome.cost, seeds.len());
                open.add(outcome.open);
            }
            if problems.are_enough() {
                break;
            }
        }
        if problems.is_empty() {
            problems.at_point(&[]);
            cost.check(points, seeds.len(), &tree, problems);
        }
        if problems.is_empty() {
            let links = |point| {
                let mut unheard = Problems::default();
                let there = sweep.apply(&tree, point, &mut unheard);
                let outcome = resolve(&there, &sweep, point, &mut files, &mut unheard);
                (sweep.settings(point), outcome.map(|outcome| outcome.resolved.links))
            };
            open.check(links, problems);
        }
        (tree, sweep, seeds)
    }

    /// How many points the sweep has; one without a sweep.
    pub fn points(&self) -> usize {
        self.sweep.points()
    }

    /// The points of the sweep, or the scenario itself if it has none.
    pub fn sweep(&self) -> impl Iterator<Item = Variant> {
        let mut files = Files::new(self.directory.clone());
        (0..self.points()).filter_map(move |point| self.variant(point, &mut files))
    }

    /// One point of the sweep, by its number from zero.
    pub fn point(&self, number: usize) -> Option<Variant> {
        let mut files = Files::new(self.directory.clone());
        (number < self.points()).then(|| self.variant(number, &mut files))?
    }

    fn variant(&self, point: usize, files: &mut Files) -> Option<Variant> {
        // A scenario that was right when it was read is right now, unless a file that it names has gone since.
        let mut problems = Problems::default();
        let tree = self.sweep.apply(&self.tree, point, &mut problems);
        let outcome = resolve(&tree, &self.sweep, point, files, &mut problems)?;
        Some(Variant {
            number: point,
            settings: self.sweep.settings(point),
            resolved: outcome.resolved,
            comparisons: outcome.comparisons,
            controls: outcome.controls,
        })
    }
}

#[cfg(test)]
mod tests;
