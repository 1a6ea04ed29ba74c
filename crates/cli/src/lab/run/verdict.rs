//! The results of the runs, for people and for programs.

use std::fmt::Write as _;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use transom_lab::emulate::Record;
use transom_lab::results::{
    Compared, Found, Line, Manifest, PlannedRun, Store, StoredRun, Summary,
};
use transom_lab::run::Judgement;
use transom_lab::scenario::short_settings;
use transom_report::{labels, main_numbers};

use super::super::emulation;
use super::super::list::outcome_json;
use crate::columns::{Side, lay_out};
use crate::output;

/// Of so many runs without expectations the main numbers are shown. The page has those of more.
const MOST_NUMBERS: usize = 24;

/// How it is shown.
pub(super) struct Shown {
    /// For programs.
    pub(super) json: bool,
    /// Whether there are several points.
    pub(super) points: bool,
    /// How many of the runs were there already.
    pub(super) already: usize,
}

/// Shows the results of the finished runs, of `all`. Returns whether all expectations hold.
pub(super) fn show(
    store: &Store,
    runs: &[&PlannedRun],
    all: usize,
    shown: &Shown,
    summary: &Summary,
) -> anyhow::Result<bool> {
    let seeds = runs.iter().any(|run| run.seed != runs.first().map_or(run.seed, |one| one.seed));
    let mut all_hold = true;
    let mut listed = Vec::new();
    let mut waiting = 0;
    for run in runs {
        let stored = match store.find(run) {
            Found::Finished(stored) => stored,
            Found::Damaged(error) => return Err(error.into()),
            Found::Missing => {
                bail!(
                    "{} was removed during the command",
                    store.directory().join(&run.directory).display()
                )
            }
        };
        let manifest = &stored.manifest;
        all_hold &= manifest.passed() != Some(false);
        let record = Record::read(&stored.directory).context("cannot read emulation.json")?;
        all_hold &= record.as_ref().is_none_or(|record| record.failed().next().is_none());
        waiting += manifest.waiting();
        if shown.json {
            listed.push(as_json(&stored, record.as_ref()));
        } else {
            output::line(report(manifest, shown.points, seeds))?;
            if manifest.judgements().next().is_none() && runs.len() <= MOST_NUMBERS {
                for number in main_numbers(&stored.scenario()?, &stored.observations()?) {
                    output::line(format_args!("  {}", described(&number)))?;
                }
            }
            for line in record.iter().flat_map(emulation::lines) {
                output::line(format_args!("  {line}"))?;
            }
        }
    }
    if shown.json {
        let already = shown.already;
        output::json(&json!({ "passed": all_hold, "already": already, "runs": listed }))?;
        return Ok(all_hold);
    }
    if shown.already > 0 {
        let runs = if all == 1 { "run was" } else { "runs were" };
        output::line(format_args!("{} of {all} {runs} there already.", shown.already))?;
    }
    if waiting > 0 {
        let bands = if waiting == 1 { "band waits" } else { "bands wait" };
        output::line(format_args!("{waiting} {bands} for runs that are not here."))?;
    }
    if shown.points {
        for line in main_table(summary) {
            output::line(line)?;
        }
    }
    if !runs.is_empty() {
        let directory = store.directory().display();
        output::line(format_args!("Every measure of every run is in {directory}/summary.csv."))?;
        output::line(format_args!("Results are in {directory}."))?;
    }
    Ok(all_hold)
}

fn as_json(stored: &StoredRun, emulation: Option<&Record>) -> Value {
    let mut run = outcome_json(&stored.manifest);
    run["departures"] = json!(stored.manifest.departures);
    run["directory"] = json!(stored.directory);
    if let Some(record) = emulation {
        run["emulation"] = json!(record);
    }
    run
}

/// The columns of the table at the end: a number of the summary, its heading, and how it is scaled.
const MAIN: [(&str, &str, f64); 6] = [
    ("goodput_bps", "goodput Mbit/s", 1e-6),
    ("jain", "fairness", 1.0),
    ("rtt_mean_s", "RTT ms", 1e3),
    ("rtt_p95_s", "RTT p95 ms", 1e3),
    ("retransmissions", "sent again", 1.0),
    ("timeouts", "timeouts", 1.0),
];
/// So many points are shown at the end. The summary has all.
const MOST_POINTS: usize = 40;

/// The main numbers of each point: means over its seeds.
fn main_table(summary: &Summary) -> Vec<String> {
    let mut points: Vec<(usize, Vec<&Line>)> = Vec::new();
    for line in &summary.lines {
        match points.iter_mut().find(|(point, _)| *point == line.point) {
            Some((_, lines)) => lines.push(line),
            None => points.push((line.point, vec![line])),
        }
    }
    let mean = |lines: &[&Line], name: &str| {
        let numbers = lines.iter().flat_map(|line| &line.numbers).filter(|(own, _)| own == name);
        let values: Vec<f64> = numbers.filter_map(|(_, value)| *value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let heads = MAIN.map(|(_, head, _)| head.to_owned());
    let [a, b, c, d, e, f] = heads;
    let mut table = vec![["point".into(), a, b, c, d, e, f, "settings".into()]];
    for (point, lines) in points.iter().take(MOST_POINTS) {
        let cells = MAIN.map(|(name, _, factor)| {
            mean(lines, name).map(|value| transom_report::short(value * factor)).unwrap_or_default()
        });
        let settings = lines.first().map(|line| line.settings.as_slice()).unwrap_or_default();
        let [a, b, c, d, e, f] = cells;
        table.push([point.to_string(), a, b, c, d, e, f, short_settings(settings)]);
    }
    let right = Side::Right;
    let mut lines = lay_out([right, right, right, right, right, right, right, Side::Left], &table);
    if points.len() > MOST_POINTS {
        lines.push(format!("The first {MOST_POINTS} of {} points.", points.len()));
    }
    lines
}

/// The report on one run for people.
fn report(manifest: &Manifest, points: bool, seeds: bool) -> String {
    let mut text = String::new();
    if points {
        let settings = output::listed(&manifest.settings, "");
        let _ = write!(text, "point {} ({settings})  ", manifest.point);
    }
    if seeds {
        let _ = write!(text, "seed {}  ", manifest.seed);
    }
    let held = manifest.judgements().filter(|one| one.passed && one.band.expects()).count();
    let bands = manifest.bands.iter().map(|one| &one.band);
    let all = bands.chain(manifest.comparisons.iter().map(|one| &one.band));
    let _ = match all.filter(|band| band.expects()).count() {
        0 => write!(text, "{}", manifest.state()),
        all => write!(text, "{held} of {all} bands hold"),
    };
    for judgement in manifest.judgements() {
        let _ = write!(text, "\n  {}", described(judgement));
    }
    for line in labels::departures(manifest) {
        let _ = write!(text, "\n  {line}");
    }
    for Compared { baseline, band, judgement, .. } in &manifest.comparisons {
        if judgement.is_none() {
            let (quantity, point) = (labels::quantity(band), baseline.point);
            let _ =
                write!(text, "\n  waits  {quantity}: for point {point}, seed {}", baseline.seed);
        }
    }
    text
}

fn described(judgement: &Judgement) -> String {
    let Judgement { band, values: _, passed } = judgement;
    let why = band.why.as_ref().filter(|_| !passed).map(|why| format!(": {why}"));
    let mark = match passed {
        true if !band.expects() => "      ",
        true => "ok    ",
        false => "FAILED",
    };
    format!(
        "{mark} {}: {}  {}{}",
        labels::quantity(band),
        labels::seen(judgement),
        labels::bounds(band),
        why.unwrap_or_default(),
    )
}
