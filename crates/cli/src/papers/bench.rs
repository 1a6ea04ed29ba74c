//! Values of benchmarks, which no scenario can give: `papers/results/PAPER-benchmarks.json`, one file for each paper.
//!
//! `transom-benches --keep FILE` writes the file, group by group. A text names a case ([`BenchChoice`]), and pages take the value from the file. So no
//! number of a benchmark is written twice.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::bail;
use serde::Deserialize;

use super::raw::escaped;
use super::summary::{another_summary, stored};
use super::values::number;

/// The form of the files.
const FORMAT: u32 = 1;

/// The benchmarks of a paper.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Benchmarks {
    format: u32,
    groups: Vec<Group>,
}

/// Cases that were measured in turns.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    group: String,
    /// Which CPUs its threads had.
    cpu: String,
    unit: String,
    /// Of the repository, when it was measured.
    commit: String,
    date: String,
    /// The machine, its load and the length of a sample.
    machine: String,
    cases: Vec<Case>,
}

/// A measurement.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    median: f64,
    min: Option<f64>,
    max: Option<f64>,
    ratios: Vec<Ratio>,
}

/// The median of the ratios to another case of the same round.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ratio {
    against: String,
    value: f64,
}

/// A value of a benchmark.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct BenchChoice {
    pub(super) group: String,
    /// Which CPUs, if the group was measured with several choices; the first by default.
    pub(super) cpu: Option<String>,
    /// Empty in a curve, whose points name theirs.
    #[serde(default)]
    pub(super) case: String,
    /// Which value it is.
    #[serde(default, rename = "as")]
    pub(super) which: Which,
    /// The other case of a ratio; its first one by default.
    pub(super) against: Option<String>,
    /// How many packets, or bits, a second has, for a share of the processor's time.
    pub(super) per_second: Option<f64>,
}

/// Which value of a case is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Which {
    /// The median, in the group's unit.
    #[default]
    Median,
    /// The median of the ratios to another case.
    Ratio,
    /// The share of a processor's time in per cent, at so many packets or bits a second.
    Share,
    /// The packets that are not forwarded, in per cent, as appendix A of the paper on window control has it: 1 - (1/t)/p, and not less than nothing.
    Overhead,
}

impl Benchmarks {
    /// Reads those of a paper; nothing if there are none.
    pub(super) fn read(directory: &Path, paper: &str) -> anyhow::Result<Benchmarks> {
        let path = directory.join(format!("{paper}-benchmarks.json"));
        match stored::<Benchmarks>(&path)? {
            Some(own) if own.format != FORMAT => bail!(another_summary(&path)),
            own => Ok(own.unwrap_or_default()),
        }
    }

    fn group(&self, choice: &BenchChoice) -> Option<&Group> {
        let is = |group: &&Group| {
            group.group == choice.group && choice.cpu.as_ref().is_none_or(|cpu| group.cpu == *cpu)
        };
        self.groups.iter().find(is)
    }

    /// The value; `None` if it was not measured.
    pub(super) fn value(&self, choice: &BenchChoice) -> Option<f64> {
        let group = self.group(choice)?;
        let case = group.cases.iter().find(|case| case.name == choice.case)?;
        // Seconds of the processor for one packet or bit.
        let cost = || match group.unit.as_str() {
            "ns" => Some(case.median * 1e-9),
            "µs" => Some(case.median * 1e-6),
            "Gb/s" => Some(1e-9 / case.median),
            _ => None,
        };
        match choice.which {
            Which::Median => Some(case.median),
            Which::Ratio => {
                let is = |ratio: &&Ratio| {
                    choice.against.as_ref().is_none_or(|against| ratio.against == *against)
                };
                Some(case.ratios.iter().find(is)?.value)
            }
            Which::Share => Some(100.0 * cost()? * choice.per_second?),
            Which::Overhead => {
                Some((100.0 * (1.0 - 1.0 / (cost()? * choice.per_second?))).max(0.0))
            }
        }
    }

    /// The value as a text with its unit; `None` if it was not measured.
    pub(super) fn told(&self, choice: &BenchChoice) -> Option<String> {
        let value = self.value(choice)?;
        Some(match choice.which {
            Which::Median => format!("{} {}", number(value), self.group(choice)?.unit),
            Which::Ratio => format!("{value:.3}"),
            Which::Share | Which::Overhead => format!("{} %", number(value)),
        })
    }

    /// The tables of some groups, folded, with the machine and the date; nothing if none of them was measured.
    pub(super) fn tables(&self, names: &[&str]) -> String {
        let mut text = String::new();
        for group in self.groups.iter().filter(|group| names.contains(&group.group.as_str())) {
            let Group { group, cpu, unit, commit, date, machine, cases } = group;
            let _ = write!(
                text,
                "\n<details>\n<summary>All values of the benchmark {group}, {cpu}</summary>\n\n\
                 Stored on {date} with commit {commit}. {machine}.\n\n\
                 | case | median {unit} | least | most | ratio | against |\n|---|--:|--:|--:|--:|---|\n"
            );
            let shown = |value: Option<f64>| value.map(number).unwrap_or_default();
            for Case { name, median, min, max, ratios } in cases {
                let values = [Some(*median), *min, *max].map(shown).join(" | ");
                let one = ratios.first();
                let ratio = one.map(|one| format!("{:.3}", one.value)).unwrap_or_default();
                let against = one.map(|one| escaped(&one.against)).unwrap_or_default();
                let _ = writeln!(text, "| {} | {values} | {ratio} | {against} |", escaped(name));
                for Ratio { against, value } in ratios.iter().skip(1) {
                    let _ = writeln!(text, "| | | | | {value:.3} | {} |", escaped(against));
                }
            }
            text += "\n</details>\n";
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn results() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers/results")
    }

    fn choice(case: &str, which: Which, per_second: Option<f64>) -> BenchChoice {
        let (group, case) = ("window".into(), case.into());
        BenchChoice { group, cpu: None, case, which, against: None, per_second }
    }

    fn measured() -> Benchmarks {
        let ratio = Ratio { against: "few".into(), value: 4.0 };
        let case = |name: &str, median, ratios| Case {
            name: name.into(),
            median,
            min: None,
            max: None,
            ratios,
        };
        let cases = vec![case("few", 50.0, vec![]), case("many", 200.0, vec![ratio])];
        let [group, cpu, unit] = ["window", "one CPU", "ns"].map(String::from);
        let [commit, date, machine] = ["abc", "2026-11-25", "a machine"].map(String::from);
        let group = Group { group, cpu, unit, commit, date, machine, cases };
        Benchmarks { format: FORMAT, groups: vec![group] }
    }

    #[test]
    fn values_of_a_case() {
        let own = measured();
        assert_eq!(own.value(&choice("many", Which::Median, None)), Some(200.0));
        assert_eq!(own.told(&choice("many", Which::Ratio, None)).as_deref(), Some("4.000"));
        assert_eq!(own.value(&choice("few", Which::Ratio, None)), None);
        // 200 ns are five million packets a second.
        let at = |which, packets| own.value(&choice("many", which, Some(packets)));
        assert_eq!(at(Which::Share, 1e6), Some(20.0));
        assert_eq!(at(Which::Overhead, 1e6), Some(0.0));
        assert_eq!(at(Which::Overhead, 10e6), Some(50.0));
        assert_eq!(own.value(&choice("none", Which::Median, None)), None);
        assert!(own.tables(&["window"]).contains("| many | 200 |  |  | 4.000 | few |"));
        assert!(own.tables(&["other"]).is_empty());
    }

    /// Each report in Markdown that is beside the values has the same ones.
    #[test]
    fn reports_have_the_stored_values() {
        for paper in ["ictcp", "router", "tcpu"] {
            let own = Benchmarks::read(&results(), paper).unwrap();
            let path = results().join(format!("{paper}-benchmarks.md"));
            let report = std::fs::read_to_string(&path).unwrap();
            let mut compared = 0;
            for group in &own.groups {
                let heading = format!("# {}, {}\n", group.group, group.cpu);
                // Counts and wake-ups stand in tables of another form.
                let Some((_, part)) = report.split_once(&heading) else { continue };
                let part = part.split("\n#").next().unwrap();
                for case in &group.cases {
                    let row = part.lines().find(|line| {
                        line.strip_prefix("| ")
                            .and_then(|rest| rest.split('|').next())
                            .map(str::trim)
                            == Some(&case.name)
                    });
                    let row = row.unwrap_or_else(|| panic!("{paper}: {} has no row", case.name));
                    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
                    let median: f64 = cells[2].parse().unwrap();
                    // As many digits as a table has of the unit.
                    let last = if group.unit == "ns" { 0.1 } else { 0.01 };
                    assert!((median - case.median).abs() < last, "{row}");
                    if let Some(ratio) = case.ratios.first() {
                        let shown: f64 = cells[5].parse().unwrap();
                        assert!((shown - ratio.value).abs() < 0.001, "{row}");
                    }
                    compared += 1;
                }
            }
            assert!(compared > 5, "{paper}: {compared} rows");
        }
    }
}
