//! What a run prints: a Markdown table per group, and the same as JSON with every sample in it.

use crate::environment::Environment;
use crate::harness::{Bound, CaseResult, Ratio, Unit};
use serde::Serialize;
use std::fmt::Write;

/// Everything a run found out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Where it ran.
    pub environment: Environment,
    /// Seconds per sample.
    pub seconds: f64,
    /// The groups in the order in which they ran.
    pub groups: Vec<GroupReport>,
}

/// A group's part of the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupReport {
    /// The group's name.
    pub group: &'static str,
    /// What is measured, in a sentence.
    pub about: &'static str,
    /// Which CPUs its threads had.
    pub cpu: String,
    /// What a sample counts.
    pub unit: Unit,
    /// The cases.
    pub cases: Vec<CaseResult>,
    /// What was left out, and why.
    pub notes: Vec<String>,
    /// Why nothing was measured.
    pub skipped: Option<String>,
}

impl Report {
    /// The whole report as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("{}; samples of {} s\n", self.environment, self.seconds);
        for group in &self.groups {
            text.push('\n');
            text.push_str(&group.markdown());
        }
        text
    }
}

impl GroupReport {
    /// The group as a Markdown section.
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}, {}\n\n{}\n\n", self.group, self.cpu, self.about);
        if let Some(reason) = &self.skipped {
            let _ = writeln!(text, "SKIPPED: {reason}");
            return text;
        }
        let unit = self.unit.symbol();
        let width = self.cases.iter().map(|case| case.name.chars().count()).max().unwrap_or(0);
        let _ = writeln!(
            text,
            "| {:width$} | median {unit} | min | max | ratio | against | figure |",
            "case"
        );
        let _ = writeln!(text, "|-{:-<width$}-|--:|--:|--:|--:|---|---|", "");
        for case in &self.cases {
            let show =
                |value: Option<f64>| value.map_or("–".into(), |value| self.unit.show(value));
            let values = [case.median, case.min, case.max].map(show).join(" | ");
            if case.ratios.is_empty() {
                let _ = writeln!(text, "| {:width$} | {values} |  |  |  |", case.name);
            }
            for (index, ratio) in case.ratios.iter().enumerate() {
                let start = if index == 0 {
                    format!("| {:width$} | {values} |", case.name)
                } else {
                    format!("| {:width$} |  |  |  |", "")
                };
                let _ = writeln!(text, "{start} {} |", self.ratio(ratio));
            }
        }
        for case in &self.cases {
            if let Some(failure) = &case.failure {
                let failed = case.samples.iter().filter(|sample| sample.is_none()).count();
                let _ = writeln!(
                    text,
                    "\n**{} failed in {failed} of {}: {failure}**",
                    case.name,
                    case.samples.len()
                );
            }
        }
        for note in &self.notes {
            let _ = writeln!(text, "\n{note}");
        }
        text
    }

    fn ratio(&self, ratio: &Ratio) -> String {
        let value = match (ratio.against, ratio.value) {
            (Some(_), Some(value)) => format!("{value:.3}"),
            _ => String::new(),
        };
        let number = |bound: f64| match ratio.against {
            Some(_) => bound.to_string(),
            None => format!("{} {}", self.unit.show(bound), self.unit.symbol()),
        };
        let figure = match ratio.bound {
            Some(Bound::AtLeast(bound)) => format!("≥ {}", number(bound)),
            Some(Bound::AtMost(bound)) => format!("≤ {}", number(bound)),
            None => String::new(),
        };
        let verdict = match ratio.reached {
            Some(true) => ": reached",
            Some(false) => ": **missed**",
            None => "",
        };
        format!("{value} | {} | {figure}{verdict}", ratio.against.unwrap_or(""))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn case(name: &'static str, median: f64, ratios: Vec<Ratio>) -> CaseResult {
        CaseResult {
            name,
            samples: vec![Some(median)],
            median: Some(median),
            min: Some(median),
            max: Some(median),
            ratios,
            failure: None,
        }
    }

    fn report(cases: Vec<CaseResult>) -> GroupReport {
        GroupReport {
            group: "group",
            about: "What it is.",
            cpu: "one CPU".into(),
            unit: Unit::GigabitsPerSecond,
            cases,
            notes: vec!["A note.".into()],
            skipped: None,
        }
    }

    #[test]
    fn a_table_has_a_row_per_comparison() {
        let ratio = |bound, reached| Ratio {
            against: Some("base"),
            value: Some(1.25),
            bound: Some(bound),
            reached: Some(reached),
        };
        let ratios = vec![ratio(Bound::AtLeast(1.1), true), ratio(Bound::AtMost(1.0), false)];
        let text = report(vec![case("base", 4.0, vec![]), case("ours", 5.0, ratios)]).markdown();
        let expected = "\
## group, one CPU

What it is.

| case | median Gb/s | min | max | ratio | against | figure |
|------|--:|--:|--:|--:|---|---|
| base | 4.00 | 4.00 | 4.00 |  |  |  |
| ours | 5.00 | 5.00 | 5.00 | 1.250 | base | ≥ 1.1: reached |
|      |  |  |  | 1.250 | base | ≤ 1: **missed** |

A note.
";
        assert_eq!(text, expected);
    }

    #[test]
    fn failures_and_skips_are_told() {
        let mut failed = case("ours", 5.0, vec![]);
        failed.samples.push(None);
        failed.failure = Some("no route".into());
        assert!(report(vec![failed]).markdown().contains("**ours failed in 1 of 2: no route**"));
        let skipped = GroupReport { skipped: Some("no TUN".into()), ..report(vec![]) };
        assert!(skipped.markdown().ends_with("SKIPPED: no TUN\n"));
    }
}
