//! The text about an experiment of a paper, written by people: one file in `papers/pages/` for each id.
//!
//! The text has the paper's claim, how our set-up differs, the finding, and which stored values are shown in which figure. It has no measured value of
//! a scenario: those come from summaries. Values of benchmarks come from `papers/results/PAPER-benchmarks.json`, in the same way.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;
use transom_lab::scenario::{Claim, Quantity, Setting};

use super::bench::BenchChoice;
use super::sources::SourceChoice;

/// The text of a page.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PageText {
    /// The experiment, such as "ltcp/fig8".
    pub(super) id: String,
    pub(super) title: String,
    /// Where it is in the paper.
    pub(super) source: String,
    /// The claim in the paper's own terms.
    pub(super) claim: String,
    /// One line for the table of results.
    pub(super) why: String,
    /// What was found, in plain words.
    pub(super) finding: String,
    /// The scenarios that measure it.
    #[serde(default)]
    pub(super) scenarios: Vec<String>,
    /// Which of their claims count, by name or by a part of what they say; all of them if there is no list.
    pub(super) claims: Option<Vec<String>>,
    /// Claims that are ours and not the paper's, beside those that are marked so in the scenario.
    #[serde(default)]
    pub(super) ours: Vec<String>,
    /// Claims that the set-up was chosen for, beside those that are marked so in the scenario.
    #[serde(default)]
    pub(super) calibrated: Vec<String>,
    /// The command that measures it, if no scenario does.
    pub(super) command: Option<String>,
    /// Claims that show the paper's statement to be wrong: ours, each with a control. If the paper's do not all hold and these do, it is refuted.
    #[serde(default)]
    pub(super) refuted_by: Vec<String>,
    /// Claims that show Transom to do better than the paper's system: ours, each with a control. If the paper's do not all hold and these do, it is better.
    #[serde(default)]
    pub(super) better_by: Vec<String>,
    /// Numbers in the prose that no stored value has: of another run, or worked out by hand. Each is written as in the prose.
    #[serde(default)]
    pub(super) typed: Vec<String>,
    /// Why it was not run.
    pub(super) not_run: Option<String>,
    /// The verdict, if no claim of a scenario gives it.
    pub(super) verdict: Option<Word>,
    /// Whether the page has the matrix of units.
    #[serde(default)]
    pub(super) matrix: bool,
    /// A table in Markdown that no scenario measures.
    pub(super) measured: Option<String>,
    #[serde(default)]
    pub(super) setup: Vec<SetupRow>,
    /// Claims about benchmarks.
    #[serde(default)]
    pub(super) benchmark: Vec<BenchClaim>,
    #[serde(default)]
    pub(super) number: Vec<Number>,
    /// Values that only the prose has.
    #[serde(default)]
    pub(super) fact: Vec<Number>,
    #[serde(default)]
    pub(super) figure: Vec<Figure>,
}

impl PageText {
    fn is_ours(&self, claim: &Claim) -> bool {
        claim.ours || is_listed(claim, &self.ours)
    }

    pub(super) fn is_calibrated(&self, claim: &Claim) -> bool {
        claim.calibrated || is_listed(claim, &self.calibrated)
    }

    /// Whether a claim of a scenario is one of this page at all.
    pub(super) fn has_claim(&self, claim: &Claim) -> bool {
        self.claims.as_ref().is_none_or(|list| is_listed(claim, list))
    }

    /// Whether a claim of a scenario counts for the verdict.
    pub(super) fn counts(&self, claim: &Claim) -> bool {
        self.has_claim(claim) && !self.is_ours(claim) && !self.is_calibrated(claim)
    }

    /// What a table says behind the verdict.
    pub(super) fn kind(&self, claim: &Claim) -> &'static str {
        match (self.is_ours(claim), self.is_calibrated(claim), self.has_claim(claim)) {
            (true, ..) => " (ours)",
            (_, true, _) => " (calibrated)",
            (.., false) => " (of another page)",
            _ => "",
        }
    }
}

/// Whether a claim is meant by a name, or by a part of what it says.
pub(super) fn is_meant(claim: &Claim, text: &str) -> bool {
    claim.name.as_deref() == Some(text) || claim.says.contains(text)
}

fn is_listed(claim: &Claim, list: &[String]) -> bool {
    list.iter().any(|text| is_meant(claim, text))
}

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Word {
    Reproduced,
    Better,
    Refuted,
    Partly,
    Not,
    Calibrated,
    Implemented,
    Ours,
    NotRun,
}

impl Word {
    /// As the tables have it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Word::Reproduced => "reproduced",
            Word::Better => "better",
            Word::Refuted => "refuted",
            Word::Partly => "partly",
            Word::Not => "not",
            Word::Calibrated => "calibrated",
            Word::Implemented => "implemented",
            Word::Ours => "ours",
            Word::NotRun => "not run",
        }
    }
}

/// A line of the table of set-ups.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct SetupRow {
    pub(super) what: String,
    pub(super) paper: String,
    pub(super) ours: String,
    /// Why they differ; empty if they do not.
    #[serde(default)]
    pub(super) why: String,
}

/// Stored values: those of a claim or a column, at some points of the sweep.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct Choice {
    /// The scenario; the page's first one by default.
    pub(super) scenario: Option<String>,
    /// A claim, by name or by a part of what it says.
    pub(super) claim: Option<String>,
    /// A column, by its heading.
    pub(super) column: Option<String>,
    /// Values of the sweep, by the end of the path. A value that ends with `*` means every value that begins so.
    pub(super) at: BTreeMap<String, String>,
}

impl Choice {
    /// Whether a point has the values.
    pub(super) fn is_at(&self, settings: &[Setting]) -> bool {
        self.at.iter().all(|(path, wanted)| {
            let own = settings.iter().find(|one| is_path(&one.path, path));
            own.is_some_and(|one| match wanted.strip_suffix('*') {
                Some(start) => one.value.starts_with(start),
                None => one.value == *wanted,
            })
        })
    }
}

/// Whether a path is meant by its end.
pub(super) fn is_path(path: &str, end: &str) -> bool {
    path == end || path.strip_suffix(end).is_some_and(|before| before.ends_with('.'))
}

/// The paper's number beside ours, for the table of results.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Number {
    #[serde(default)]
    pub(super) what: String,
    /// As the paper has it.
    #[serde(default)]
    pub(super) paper: String,
    /// By which the prose refers to it: `{{key}}`.
    pub(super) key: Option<String>,
    /// Ours, if no scenario measures it.
    pub(super) measured: Option<String>,
    /// Ours, if benchmarks measure it.
    #[serde(default)]
    pub(super) bench: Vec<BenchChoice>,
    /// Ours, if it is counted in the sources.
    pub(super) sources: Option<SourceChoice>,
    #[serde(flatten)]
    pub(super) choice: Choice,
}

/// A picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Figure {
    pub(super) title: String,
    /// How to read it.
    #[serde(default)]
    pub(super) caption: String,
    /// The swept path that is the horizontal axis, by its end. Time, if curves are courses.
    pub(super) x: Option<String>,
    #[serde(default)]
    pub(super) x_label: String,
    /// Values of the path and their names, if it is no number.
    #[serde(default)]
    pub(super) names: Vec<(String, String)>,
    pub(super) y_label: String,
    /// The unit of the vertical axis, such as "Mbit/s"; empty for none.
    #[serde(default)]
    pub(super) unit: String,
    /// Which axes are logarithmic: "x", "y" or "xy".
    #[serde(default)]
    pub(super) log: String,
    /// Whether the vertical axis may begin above zero.
    #[serde(default)]
    pub(super) floating: bool,
    #[serde(default)]
    pub(super) curve: Vec<CurveText>,
    /// Points of the paper.
    #[serde(default)]
    pub(super) paper: Vec<PaperPoints>,
    /// Why it has not been measured since its curves were chosen.
    pub(super) not_stored: Option<String>,
}

/// A curve of a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct CurveText {
    pub(super) name: String,
    /// "line", "dots", "bars" or "dashed".
    pub(super) style: Option<String>,
    /// Whether it has bars above some of the names only, for a reason that the caption gives.
    #[serde(default)]
    pub(super) some: bool,
    /// Points as they are: a formula, or a benchmark.
    #[serde(default)]
    pub(super) points: Vec<(f64, f64)>,
    /// Points of a benchmark.
    pub(super) bench: Option<BenchCurve>,
    /// Statements of the sources: where each is on the horizontal axis, and its name.
    #[serde(default)]
    pub(super) sources: Vec<(f64, String)>,
    /// A quantity over time.
    pub(super) course: Option<Quantity>,
    /// Which of the flows of the quantity, from zero.
    #[serde(default)]
    pub(super) flow: usize,
    #[serde(flatten)]
    pub(super) choice: Choice,
}

/// Cases of a benchmark as a curve.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct BenchCurve {
    /// Where each case is on the horizontal axis, and its name.
    pub(super) cases: Vec<(f64, String)>,
    /// How many bits or packets a second has at one on the horizontal axis, if they grow with it.
    pub(super) per_second_of_x: Option<f64>,
    /// What values are multiplied by, such as 0.001 for microseconds of nanoseconds.
    pub(super) times: Option<f64>,
    #[serde(flatten)]
    pub(super) choice: BenchChoice,
}

/// A claim about a benchmark, with the band that reproduces it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct BenchClaim {
    /// The statement, in a sentence.
    pub(super) says: String,
    /// The paper's own number, as it has it.
    #[serde(default)]
    pub(super) paper: String,
    /// The case that was measured; none if the claim is about the sources.
    pub(super) bench: Option<BenchChoice>,
    /// What is counted in the sources.
    pub(super) sources: Option<SourceChoice>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
    /// Where the band comes from.
    pub(super) why: String,
    /// Whether the statement is ours, and not the paper's.
    #[serde(default)]
    pub(super) ours: bool,
    /// A case that the band must reject.
    pub(super) control: Option<BenchChoice>,
    /// Why there is none.
    pub(super) no_control: Option<String>,
}

impl BenchClaim {
    /// Whether the band has the value.
    pub(super) fn accepts(&self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
    }
}

/// Points that the paper gives.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PaperPoints {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    /// Whether the text prints them. Otherwise they were read off a figure, or follow from a statement.
    #[serde(default)]
    pub(super) exact: bool,
}

/// A curve that a summary must have.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) quantity: Quantity,
    choice: Choice,
}

impl Wanted {
    /// Whether a point with these settings keeps the curve: each that is chosen, or the scenario's first if none is.
    pub(super) fn keeps(&self, settings: &[Setting], is_first: bool) -> bool {
        self.choice.is_at(settings) && (is_first || !self.choice.at.is_empty())
    }
}

macro_rules! pages {
    ($($paper:literal / $figure:literal),* $(,)?) => {
        &[$((
            concat!($paper, "/", $figure),
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"), "/papers/pages/", $paper, "-", $figure, ".toml"
            )),
        )),*]
    };
}

/// The ids of all experiments that the papers owe, and their texts.
const PAGES: &[(&str, &str)] = pages![
    "ictcp" / "table2",
    "ictcp" / "table3",
    "ictcp" / "fig3",
    "ictcp" / "fig4",
    "ictcp" / "fig5",
    "ictcp" / "fig6",
    "ictcp" / "fig7",
    "ictcp" / "fig8",
    "ictcp" / "fig9",
    "ictcp" / "fig10",
    "ictcp" / "fig11",
    "ictcp" / "fig12",
    "ictcp" / "companion",
    "ltcp" / "fig2",
    "ltcp" / "throughput",
    "ltcp" / "fig5",
    "ltcp" / "fig6",
    "ltcp" / "fig7",
    "ltcp" / "fig8",
    "ltcp" / "fig9",
    "ltcp" / "fig10",
    "ltcp" / "fig11",
    "ltcp" / "peers",
    "ltcp" / "double",
    "tcpu" / "fig6-7",
    "tcpu" / "ilp",
    "tcpu" / "demux",
    "compose" / "goodput",
    "compose" / "efficiency",
    "compose" / "units",
    "router" / "fig4",
    "router" / "fig5",
    "router" / "fig7",
    "router" / "fig8",
    "router" / "fig9",
    "router" / "fig10",
    "router" / "fig11",
    "router" / "table1",
    "router" / "table2",
    "router" / "shrink",
    "router" / "rules",
    "l4s" / "balance",
    "l4s" / "paths",
    "l4s" / "mixed",
    "l4s" / "steps",
    "l4s" / "bleached",
];

/// All texts, in the order of the papers. A test reads them all.
pub(super) fn texts() -> anyhow::Result<Vec<PageText>> {
    PAGES.iter().map(|(id, text)| read(id, text)).collect()
}

fn read(id: &str, text: &str) -> anyhow::Result<PageText> {
    toml::from_str(text).with_context(|| format!("papers/pages/{id}.toml"))
}

/// The curves over time that figures show of a scenario in a form. Quick runs have the same ones.
pub(super) fn wanted(scenario: &str) -> anyhow::Result<Vec<Wanted>> {
    let mut found: Vec<Wanted> = Vec::new();
    for page in texts()? {
        let first = page.scenarios.first();
        for curve in page.figure.iter().flat_map(|figure| &figure.curve) {
            let Some(quantity) = &curve.course else { continue };
            let own = curve.choice.scenario.as_ref().or(first);
            let known =
                |one: &Wanted| one.quantity == *quantity && one.choice.at == curve.choice.at;
            if own.is_some_and(|own| own == scenario) && !found.iter().any(known) {
                found.push(Wanted { quantity: quantity.clone(), choice: curve.choice.clone() });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that benchmarks measure.
    const BENCHMARKS: [&str; 6] = [
        "ictcp/fig4",
        "ictcp/fig5",
        "tcpu/demux",
        "router/fig11",
        "router/table1",
        "router/table2",
    ];

    #[test]
    fn no_value_of_a_benchmark_is_copied() {
        let texts = texts().unwrap();
        for id in BENCHMARKS {
            let page = texts.iter().find(|page| page.id == id).unwrap();
            let copied = |number: &&Number| number.measured.is_some() || number.bench.is_empty();
            assert_eq!(page.number.iter().find(copied).map(|number| &number.what), None, "{id}");
            assert!(page.verdict.is_none() && !page.benchmark.is_empty(), "{id}: no claims");
            for curve in page.figure.iter().flat_map(|figure| &figure.curve) {
                assert!(curve.bench.is_some(), "{id}: {} has points of its own", curve.name);
            }
        }
    }
}
