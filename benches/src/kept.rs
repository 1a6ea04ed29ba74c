//! Results that are kept in the repository: medians, ranges and ratios of groups, as JSON, for the pages of papers.
//!
//! A file has the groups of one paper. A run replaces those that it has measured, and leaves the others, which may need another machine. Each group
//! says when it was measured, on what, and with which commit of the repository.

use crate::harness::CaseResult;
use crate::report::{GroupReport, Report};
use anyhow::Context;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The form of the file.
const FORMAT: u64 = 1;
/// The keys of a group, in their order.
const KEYS: [&str; 6] = ["group", "cpu", "unit", "commit", "date", "machine"];

/// Puts the report's groups into the file.
///
/// # Errors
/// When the file cannot be read or written, or is something else.
pub fn keep(report: &Report, path: &Path) -> anyhow::Result<()> {
    let place = || path.display().to_string();
    let mut groups = if path.exists() { read(path).with_context(place)? } else { Vec::new() };
    let measured = report.groups.iter().filter(|group| group.skipped.is_none());
    for group in measured {
        let fresh = of(report, group);
        let same = |one: &Value| one["group"] == fresh["group"] && one["cpu"] == fresh["cpu"];
        match groups.iter().position(same) {
            Some(old) => groups[old] = fresh,
            None => groups.push(fresh),
        }
    }
    std::fs::write(path, written(&groups)?).with_context(place)
}

fn read(path: &Path) -> anyhow::Result<Vec<Value>> {
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    anyhow::ensure!(file["format"] == FORMAT, "the file has another form");
    file["groups"].as_array().cloned().context("it has no groups")
}

fn of(report: &Report, group: &GroupReport) -> Value {
    let samples = group.cases.iter().map(|case| case.samples.len()).max().unwrap_or_default();
    let machine = format!("{}; {samples} samples of {} s", report.environment, report.seconds);
    json!({
        "group": group.group,
        "cpu": group.cpu,
        "unit": group.unit.symbol(),
        "commit": commit(),
        "date": today(),
        "machine": machine,
        "cases": group.cases.iter().filter_map(case).collect::<Vec<_>>(),
    })
}

/// Nothing of a case that failed each time.
fn case(case: &CaseResult) -> Option<Value> {
    // More digits than a table shows, and fewer than a clock gives.
    let rounded = |value: Option<f64>| -> Option<f64> { format!("{:.5e}", value?).parse().ok() };
    let ratios = case.ratios.iter().filter_map(|ratio| {
        Some(json!({ "against": ratio.against?, "value": rounded(ratio.value)? }))
    });
    Some(json!({
        "name": case.name,
        "median": rounded(case.median)?,
        "min": rounded(case.min),
        "max": rounded(case.max),
        "ratios": ratios.collect::<Vec<_>>(),
    }))
}

/// A line for each case, so that a change can be read.
fn written(groups: &[Value]) -> anyhow::Result<String> {
    let mut text = format!("{{\n  \"format\": {FORMAT},\n  \"groups\": [");
    for (number, group) in groups.iter().enumerate() {
        text += if number == 0 { "\n    {\n" } else { ",\n    {\n" };
        for key in KEYS {
            let _ = writeln!(text, "      \"{key}\": {},", group[key]);
        }
        let cases = group["cases"].as_array().context("a group has no cases")?;
        let cases: Vec<String> = cases.iter().map(|case| format!("        {case}")).collect();
        let _ = write!(text, "      \"cases\": [\n{}\n      ]\n    }}", cases.join(",\n"));
    }
    text += "\n  ]\n}\n";
    Ok(text)
}

/// The repository's commit, if this is one.
fn commit() -> String {
    let out = Command::new("git").args(["rev-parse", "--short=8", "HEAD"]).output();
    let text = out.ok().filter(|out| out.status.success()).map(|out| out.stdout);
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    if text.trim().is_empty() { "unknown".into() } else { text.trim().into() }
}

/// The day, in UTC, such as `2026-11-25`.
fn today() -> String {
    time::OffsetDateTime::now_utc().date().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::harness::{Ratio, Unit};

    fn report(name: &'static str, median: f64) -> Report {
        let ratio =
            Ratio { against: Some("base"), value: Some(1.234_567), bound: None, reached: None };
        let case = |name, ratios| CaseResult {
            name,
            samples: vec![Some(median)],
            median: Some(median),
            min: Some(median),
            max: Some(median),
            ratios,
            failure: None,
        };
        let group = GroupReport {
            group: name,
            about: "",
            cpu: "one CPU".into(),
            unit: Unit::Nanoseconds,
            cases: vec![case("base", vec![]), case("ours", vec![ratio])],
            notes: Vec::new(),
            skipped: None,
        };
        Report { environment: Environment::detect(), seconds: 0.1, groups: vec![group] }
    }

    #[test]
    fn groups_are_replaced_one_by_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept.json");
        keep(&report("first", 1.0), &path).unwrap();
        keep(&report("second", 2.0), &path).unwrap();
        keep(&report("first", 3.0), &path).unwrap();
        let groups = read(&path).unwrap();
        let medians: Vec<_> = groups.iter().map(|one| &one["cases"][0]["median"]).collect();
        assert_eq!(medians, [&json!(3.0), &json!(2.0)]);
        assert_eq!(
            groups[0]["cases"][1]["ratios"][0],
            json!({"against": "base", "value": 1.23457})
        );
        std::fs::write(&path, "{}").unwrap();
        assert!(keep(&report("first", 1.0), &path).is_err());
    }
}
