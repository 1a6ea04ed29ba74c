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

/// A group as the file has it. A program that measures without the harness makes it itself.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptGroup {
    /// The group's name.
    pub group: String,
    /// Which CPUs its threads had.
    pub cpu: String,
    /// The unit of its values, as it is written.
    pub unit: String,
    /// The machine, its load before, and how many samples of which length there are.
    pub machine: String,
    /// The cases, in their order.
    pub cases: Vec<KeptCase>,
}

/// A case as the file has it.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptCase {
    /// Its name.
    pub name: String,
    /// The value of the case: the median of its samples, or a count.
    pub median: f64,
    /// The smallest sample, if there are several.
    pub min: Option<f64>,
    /// The largest sample, if there are several.
    pub max: Option<f64>,
    /// The names of other cases, and the medians of the ratios to them.
    pub ratios: Vec<(String, f64)>,
}

/// Puts the report's groups into the file.
///
/// # Errors
/// When the file cannot be read or written, or is something else.
pub fn keep(report: &Report, path: &Path) -> anyhow::Result<()> {
    let measured = report.groups.iter().filter(|group| group.skipped.is_none());
    let groups: Vec<KeptGroup> = measured.map(|group| of(report, group)).collect();
    keep_groups(&groups, path)
}

/// Puts these groups into the file. A group of the same name and the same CPUs is replaced.
///
/// # Errors
/// When the file cannot be read or written, or is something else.
pub fn keep_groups(measured: &[KeptGroup], path: &Path) -> anyhow::Result<()> {
    let place = || path.display().to_string();
    let mut groups = if path.exists() { read(path).with_context(place)? } else { Vec::new() };
    for group in measured {
        let fresh = value(group);
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

fn of(report: &Report, group: &GroupReport) -> KeptGroup {
    let samples = group.cases.iter().map(|case| case.samples.len()).max().unwrap_or_default();
    KeptGroup {
        group: group.group.into(),
        cpu: group.cpu.clone(),
        unit: group.unit.symbol().into(),
        machine: format!("{}; {samples} samples of {} s", report.environment, report.seconds),
        cases: group.cases.iter().filter_map(case).collect(),
    }
}

/// Nothing of a case that failed each time.
fn case(case: &CaseResult) -> Option<KeptCase> {
    let ratios = case.ratios.iter().filter_map(|ratio| Some((ratio.against?.into(), ratio.value?)));
    Some(KeptCase {
        name: case.name.into(),
        median: case.median?,
        min: case.min,
        max: case.max,
        ratios: ratios.collect(),
    })
}

/// A group as JSON.
fn value(group: &KeptGroup) -> Value {
    let KeptGroup { group, cpu, unit, machine, cases } = group;
    // More digits than a table shows, and fewer than a clock gives.
    let rounded = |value: f64| -> Option<f64> { format!("{value:.5e}").parse().ok() };
    let cases = cases.iter().map(|case| {
        let ratios = case.ratios.iter();
        let ratios =
            ratios.map(|(against, ratio)| json!({ "against": against, "value": rounded(*ratio) }));
        json!({
            "name": case.name,
            "median": rounded(case.median),
            "min": case.min.and_then(rounded),
            "max": case.max.and_then(rounded),
            "ratios": ratios.collect::<Vec<_>>(),
        })
    });
    json!({
        "group": group,
        "cpu": cpu,
        "unit": unit,
        "commit": commit(),
        "date": today(),
        "machine": machine,
        "cases": cases.collect::<Vec<_>>(),
    })
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
    use crate::report::tests::case;

    fn report(name: &'static str, median: f64) -> Report {
        let ratio =
            Ratio { against: Some("base"), value: Some(1.234_567), bound: None, reached: None };
        let group = GroupReport {
            group: name,
            about: "",
            cpu: "one CPU".into(),
            unit: Unit::Nanoseconds,
            cases: vec![case("base", median, vec![]), case("ours", median, vec![ratio])],
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

    /// Programs that measure without the harness keep their groups beside its own.
    #[test]
    fn groups_of_other_programs() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kept.json");
        keep(&report("first", 1.0), &path).unwrap();
        let case = |name: &str, median, ratios| KeptCase {
            name: name.into(),
            median,
            min: None,
            max: Some(3.0),
            ratios,
        };
        let mut group = KeptGroup {
            group: "counted".into(),
            cpu: "one CPU".into(),
            unit: "instructions per segment".into(),
            machine: "a machine".into(),
            cases: vec![
                case("plain", 2.0, vec![]),
                case("per ack", 2.5, vec![("plain".into(), 1.25)]),
            ],
        };
        keep_groups(std::slice::from_ref(&group), &path).unwrap();
        group.cases.remove(1);
        group.cpu = "2 CPUs".into();
        keep_groups(&[group], &path).unwrap();
        let groups = read(&path).unwrap();
        let names: Vec<_> = groups.iter().map(|one| (&one["group"], &one["cpu"])).collect();
        let of_one = (&json!("counted"), &json!("one CPU"));
        assert_eq!(names[1..], [of_one, (&json!("counted"), &json!("2 CPUs"))]);
        assert_eq!(
            groups[1]["cases"][1],
            json!({
                "name": "per ack", "median": 2.5, "min": null, "max": 3.0,
                "ratios": [{ "against": "plain", "value": 1.25 }],
            })
        );
    }
}
