//! Files of flent (<https://flent.org/>): the course of each series of a test, in JSON, which flent packs with gzip.
//!
//! A run becomes such a file, for flent's plots. Files of flent, and runs, are put beside each other on one page. Of a file only what is drawn is read: the
//! series, their units and the title. It may be anything, so everything is checked.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde_json::{Value, json};
use transom_lab::run::{FlowObservations, Observations};
use transom_lab::scenario::Resolved;
use transom_tcp::time::Instant;

use crate::{Chart, HorizontalAxis, Hue, ReportData, Section, Style};

/// The version of the format.
const VERSION: u64 = 4;
/// The distance of values in seconds.
const STEP: f64 = 0.2;
/// So many series and values of a file are read.
const MOST_SERIES: usize = 256;
const MOST_VALUES: usize = 1_000_000;

/// A test: its title, and its series.
#[derive(Clone, Debug, PartialEq)]
pub struct FlentTest {
    /// The name of the test, or of the scenario.
    pub(crate) name: String,
    /// The heading.
    pub(crate) title: String,
    /// The series in the order of their names.
    pub(crate) series: Vec<Course>,
}

/// The course of one value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Course {
    /// Its name: "TCP upload", "Ping (ms) UDP".
    pub(crate) name: String,
    /// Its unit: "Mbits/s" or "ms" in flent's words.
    pub(crate) unit: String,
    /// Seconds from the beginning, and values. A value that is missing is not a number.
    pub(crate) points: Vec<(f64, f64)>,
}

fn seconds(at: Instant) -> f64 {
    at.since(Instant::ZERO).as_nanos() as f64 / 1e9
}

impl FlentTest {
    /// A finished run: the goodput of each flow, and the round-trip times of pings.
    pub fn of_run(scenario: &Resolved, seen: &Observations) -> FlentTest {
        let header = &scenario.scenario;
        let of_flow = |flow: &FlowObservations| {
            let written = scenario.flows.iter().find(|one| one.name == flow.name);
            let ping = written.is_some_and(|one| one.kind() == "ping");
            if ping { pings(flow) } else { goodput(flow) }
        };
        let name = header.name.to_string();
        let title = header.title.clone().unwrap_or_else(|| name.clone());
        FlentTest { name, title, series: seen.flows.iter().map(of_flow).collect() }
    }

    /// The file, before it is packed.
    pub fn json(&self, version: &str) -> String {
        let last = self.series.iter().flat_map(|one| &one.points).map(|(at, _)| *at);
        let length = last.fold(0.0, f64::max);
        let count = (length / STEP).ceil() as usize + 1;
        let places: Vec<f64> = (0..count).map(|number| number as f64 * STEP).collect();
        let mut results = BTreeMap::new();
        let (mut raw, mut meta) = (BTreeMap::new(), BTreeMap::new());
        for one in &self.series {
            // The last value up to each place, if it is not older than a step.
            let mut values: Vec<Option<f64>> = vec![None; count];
            for &(at, value) in &one.points {
                let place = (at / STEP).round() as usize;
                if let Some(slot) = values.get_mut(place).filter(|_| value.is_finite()) {
                    *slot = Some(value);
                }
            }
            results.insert(&one.name, values);
            let points = one.points.iter().filter(|(_, value)| value.is_finite());
            let points: Vec<Value> =
                points.map(|(at, value)| json!({ "t": at, "val": value })).collect();
            raw.insert(&one.name, points);
            meta.insert(&one.name, json!({ "UNITS": one.unit }));
        }
        let file = json!({
            "version": VERSION,
            "metadata": {
                "NAME": self.name,
                "TITLE": self.title,
                "NOTE": format!("made by transom {version}"),
                "LENGTH": length,
                "TOTAL_LENGTH": length,
                "STEP_SIZE": STEP,
                "HOST": "transom",
                "HOSTS": ["transom"],
                "SERIES_META": meta,
                "TEST_PARAMETERS": {},
            },
            "x_values": places,
            "results": results,
            "raw_values": raw,
        });
        file.to_string()
    }
}

/// A file, which is not packed any more. Anything else is refused, with the reason.
impl FromStr for FlentTest {
    type Err = String;

    fn from_str(text: &str) -> Result<FlentTest, String> {
        let wrong = |why: &dyn fmt::Display| format!("this is no file of flent: {why}");
        let file: Value = serde_json::from_str(text).map_err(|error| wrong(&error))?;
        let metadata = &file["metadata"];
        let places = file["x_values"].as_array().ok_or_else(|| wrong(&"it has no x_values"))?;
        let results = file["results"].as_object().ok_or_else(|| wrong(&"it has no results"))?;
        if results.len() > MOST_SERIES || results.len() * places.len() > MOST_VALUES {
            return Err(wrong(&"it has too many values"));
        }
        let places: Vec<f64> =
            places.iter().map(|place| place.as_f64().unwrap_or(f64::NAN)).collect();
        let series = results.iter().filter_map(|(name, values)| {
            let values = values.as_array()?.iter();
            let values = values.map(|value| value.as_f64().unwrap_or(f64::NAN));
            let unit = &metadata["SERIES_META"][name]["UNITS"];
            let guess = if name.starts_with("Ping") { "ms" } else { "Mbits/s" };
            Some(Course {
                name: name.clone(),
                unit: unit.as_str().unwrap_or(guess).to_owned(),
                points: places.iter().copied().zip(values).collect(),
            })
        });
        let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
        Ok(FlentTest { name: text("NAME"), title: text("TITLE"), series: series.collect() })
    }
}

/// Bits that arrived in each step.
fn goodput(flow: &FlowObservations) -> Course {
    let mut points = Vec::new();
    let mut from: Option<(f64, u64)> = None;
    for sample in &flow.samples {
        let at = seconds(sample.at);
        let Some((began, before)) = from else {
            from = Some((at, sample.delivered));
            continue;
        };
        // A sample that is nearly a step later is one.
        if at - began >= STEP * 0.999 {
            let bits = sample.delivered.saturating_sub(before) as f64 * 8.0;
            points.push((at, bits / (at - began) / 1e6));
            from = Some((at, sample.delivered));
        }
    }
    Course { name: format!("TCP {}", flow.name), unit: "Mbits/s".into(), points }
}

fn pings(flow: &FlowObservations) -> Course {
    let mut points: Vec<(f64, f64)> = flow
        .completions
        .iter()
        .map(|(at, took)| (seconds(*at), took.as_nanos() as f64 / 1e6))
        .collect();
    points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Course { name: format!("Ping (ms) {}", flow.name), unit: "ms".into(), points }
}

/// A page with tests beside each other: a chart for each unit, with the series of all of them. Each test has a name.
pub fn compared_tests(tests: &[(String, FlentTest)]) -> ReportData {
    let mut units: Vec<&str> = Vec::new();
    for unit in tests.iter().flat_map(|(_, test)| &test.series).map(|one| one.unit.as_str()) {
        if !units.contains(&unit) {
            units.push(unit);
        }
    }
    let mut charts = Vec::new();
    for unit in units {
        let of_unit = tests.iter().flat_map(|(name, test)| {
            let series = test.series.iter().filter(|one| one.unit == unit);
            series.map(move |one| (format!("{name}: {}", one.name), &one.points))
        });
        let (title, label) = match unit {
            "ms" => ("Round-trip times", "took"),
            "Mbits/s" => ("Rates", "rate"),
            other => (other, "value"),
        };
        let shown = if unit == "Mbits/s" { "Mbit/s" } else { unit };
        let all: Vec<(String, &Vec<(f64, f64)>)> = of_unit.collect();
        let several = all.len().div_ceil(Hue::ALL.len());
        for (number, some) in all.chunks(Hue::ALL.len()).enumerate() {
            let title = match several {
                1 => title.to_owned(),
                _ => format!("{title} ({} of {several})", number + 1),
            };
            let mut chart = Chart::new(title, label, shown);
            for (hue, (name, points)) in Hue::ALL.into_iter().zip(some) {
                let style = if unit == "ms" { Style::Dots } else { Style::Line };
                chart = chart.series(name.clone(), style, hue, (*points).clone());
            }
            charts.push(chart);
        }
    }
    let names: Vec<&str> = tests.iter().map(|(name, _)| name.as_str()).collect();
    let titles = tests.iter().map(|(name, test)| format!("{name} is {}.", test.title));
    ReportData {
        title: names.join(" and "),
        lead: titles.collect::<Vec<_>>().join(" "),
        sections: vec![Section { title: "Over time".into(), across: HorizontalAxis::Time, charts }],
        ..ReportData::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test() -> FlentTest {
        let points = vec![(0.0, 1.0), (0.2, 2.0), (0.6, 4.0)];
        let course = |name: &str, unit: &str| Course {
            name: name.into(),
            unit: unit.into(),
            points: points.clone(),
        };
        let series = vec![course("Ping (ms) UDP", "ms"), course("TCP upload", "Mbits/s")];
        FlentTest { name: "rrul".into(), title: "under load".into(), series }
    }

    #[test]
    fn a_file_comes_back() {
        let back = test().json("1").parse::<FlentTest>().unwrap();
        assert_eq!((&*back.name, &*back.title), ("rrul", "under load"));
        let values: Vec<f64> = back.series[0].points.iter().map(|(_, value)| *value).collect();
        assert_eq!(values[..2], [1.0, 2.0]);
        assert!(values[2].is_nan() && values[3] == 4.0, "a value that is missing is a gap");
        assert_eq!(back.series[1].unit, "Mbits/s");
    }

    #[test]
    fn a_wrong_file_is_refused() {
        for text in ["", "[]", "{}", r#"{"x_values": [1]}"#, r#"{"x_values": 1, "results": {}}"#] {
            assert!(text.parse::<FlentTest>().is_err(), "{text}");
        }
        let odd = r#"{"x_values": [0, "a"], "results": {"a": [null, {}], "b": 7}, "metadata": 1}"#;
        assert_eq!(odd.parse::<FlentTest>().unwrap().series.len(), 1);
    }

    #[test]
    fn two_tests_share_charts() {
        let data = compared_tests(&[("a".into(), test()), ("b".into(), test())]);
        let charts = &data.sections[0].charts;
        assert_eq!(charts.len(), 2);
        assert_eq!(charts[0].series.len(), 2);
        assert_eq!(charts[1].series[1].name, "b: TCP upload");
    }
}
