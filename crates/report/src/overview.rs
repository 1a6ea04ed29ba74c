//! The page of a whole sweep: which runs hold what is expected, what was measured at each point, and how that depends on what is swept.

mod axis;
mod bottlenecks;
mod charts;
mod heat;
mod measured;
mod profiles;
mod stored;

use std::collections::BTreeMap;

use transom_lab::results::Point;
use transom_lab::run::Judgement;
use transom_lab::scenario::{Name, short_paths, short_settings};

use crate::labels;
use crate::run::{bounds, verdict};
use crate::statistics::Summary;
use crate::{Block, Cell, ReportData, Table, Verdict, short, short_as};
use measured::Measured;
pub use stored::{main_numbers, sweep, two_sweeps};

/// The most failed runs that are listed; the table of all has the others.
const MOST_FAILED: usize = 50;
/// As many seeds have columns of their own.
const MOST_SEEDS: usize = 40;

/// The contents of the page.
#[derive(Debug)]
struct Overview {
    title: String,
    description: String,
    /// The points of the sweep.
    points: Vec<Point>,
    seeds: Vec<u64>,
    /// The runs that there are, in the order of points and seeds.
    runs: Vec<RunOfSweep>,
    /// How many there are to be.
    planned: usize,
    /// Which part of the sweep they are, such as 2/3; none if they are all of it.
    part: Option<String>,
    /// The command that makes them again.
    command: String,
    /// The program's version.
    version: String,
    /// The path of the setting to draw over, if one was chosen.
    over: Option<String>,
}

/// A run that is there.
#[derive(Debug)]
struct RunOfSweep {
    /// The number of its point, from one.
    point: usize,
    seed: u64,
    /// Its page, seen from the overview.
    page: String,
    /// The results of its bands, or the measurements of a scenario without expectations.
    judgements: Vec<Judgement>,
    /// Whether all of it holds; none if something is not known yet.
    passed: Option<bool>,
    /// The profiles of its flows, if they differ.
    profiles: BTreeMap<Name, String>,
}

impl Overview {
    /// The page's contents.
    fn data(&self) -> ReportData {
        let measured = Measured::of(&self.runs);
        let mut blocks = Vec::new();
        blocks.extend(self.failed().map(Block::Table));
        blocks.extend(heat::maps(self, &measured).into_iter().map(Block::Drawing));
        let (done, planned, seeds) = (self.runs.len(), self.planned, self.seeds.len());
        let counted = |count: usize, what: &str| {
            format!("{count} {what}{}", if count == 1 { "" } else { "s" })
        };
        let mut lead = vec![self.description.clone()];
        lead.push(format!(
            "{} of {}: {} × {}.",
            counted(done, "run"),
            planned,
            counted(self.points.len(), "point"),
            counted(seeds, "seed")
        ));
        if let Some(part) = &self.part {
            lead.push(format!("This is part {part} of the sweep."));
        }
        lead.retain(|part| !part.is_empty());
        ReportData {
            title: self.title.clone(),
            lead: lead.join(" "),
            verdict: self.verdict(),
            blocks,
            sections: charts::sections(self, &measured),
            // The charts show what these tables have exactly.
            after: {
                let numbers = measured.iter().map(|one| Block::Table(self.numbers(one)));
                numbers.chain([Block::Table(self.all())]).collect()
            },
            command: self.command.clone(),
            command_note: format!("With transom {}.", self.version),
            ..ReportData::default()
        }
    }

    fn verdict(&self) -> Option<Verdict> {
        if self.runs.iter().all(|run| run.judgements.iter().all(|one| !is_band(one))) {
            return None;
        }
        let failed = self.runs.iter().filter(|run| run.passed == Some(false)).count();
        let (done, missing) = (self.runs.len(), self.planned.saturating_sub(self.runs.len()));
        let waiting = self.runs.iter().filter(|run| run.passed.is_none()).count();
        if failed == 0 && missing + waiting == 0 {
            let mut verdict = verdict(done, done);
            verdict.text = format!("All bands hold in all {done} runs.");
            return Some(verdict);
        }
        let mut text = format!("Bands fail in {failed} of {done} runs.");
        if missing + waiting > 0 {
            text += &format!(" {} are missing or waiting.", missing + waiting);
        }
        Some(Verdict { passed: false, text })
    }

    /// The page of a point's first run.
    fn page_of(&self, point: usize) -> Option<&str> {
        self.runs.iter().find(|run| run.point == point).map(|run| run.page.as_str())
    }

    fn settings(&self, point: usize) -> String {
        let found = self.points.iter().find(|one| one.point == point);
        found.map(|point| short_settings(&point.settings)).unwrap_or_default()
    }

    /// The names of the settings where whole paths would be in the way. The table of all runs has the paths.
    fn short_paths(&self) -> Vec<&str> {
        let settings = self.points.first().map(|point| point.settings.as_slice());
        let settings = settings.unwrap_or_default().iter();
        short_paths(&settings.map(|setting| setting.path.as_str()).collect::<Vec<_>>())
    }

    /// The bands that do not hold.
    fn failed(&self) -> Option<Table> {
        let failed: Vec<&RunOfSweep> =
            self.runs.iter().filter(|run| run.passed == Some(false)).collect();
        let head = ["run", "", "band that fails", "seen#", "expected", "why"];
        let mut table = Table::new("Failed", &head);
        for run in failed.iter().take(MOST_FAILED) {
            for one in run.judgements.iter().filter(|one| !one.passed) {
                table.rows.push(vec![
                    Cell::from(format!("point {}, seed {}", run.point, run.seed)).link(&run.page),
                    self.settings(run.point).into(),
                    labels::quantity(&one.band).into(),
                    labels::seen(one).into(),
                    bounds(&one.band).into(),
                    one.band.why.clone().unwrap_or_default().into(),
                ]);
            }
        }
        if failed.len() > MOST_FAILED {
            table.caption = format!("The first {MOST_FAILED} of {} runs.", failed.len());
        }
        (!table.rows.is_empty()).then_some(table)
    }

    /// Every run, a line for each point and a column for each seed.
    fn all(&self) -> Table {
        let mut table = Table::new("Runs", &["point#"]);
        let settings = self.points.first().map(|point| point.settings.len()).unwrap_or(0);
        let path = |number: usize| {
            let setting = self.points.first().and_then(|point| point.settings.get(number));
            setting.map(|setting| setting.path.clone()).unwrap_or_default()
        };
        let seeds = || self.seeds.iter().take(MOST_SEEDS);
        let heads = (0..settings).map(path).chain(seeds().map(|seed| format!("seed {seed}")));
        table.head.extend(heads.map(|text| crate::block::Heading { text, number: false }));
        if self.seeds.len() > MOST_SEEDS {
            table.caption =
                format!("The first {MOST_SEEDS} of {} seeds have columns.", self.seeds.len());
        }
        let runs: BTreeMap<(usize, u64), &RunOfSweep> =
            self.runs.iter().map(|run| ((run.point, run.seed), run)).collect();
        for point in &self.points {
            let mut row: Vec<Cell> = vec![point.point.to_string().into()];
            row.extend(point.settings.iter().map(|setting| setting.value.clone().into()));
            for seed in seeds() {
                row.push(match runs.get(&(point.point, *seed)) {
                    None if self.part.is_some() => "not here".into(),
                    None => "missing".into(),
                    Some(run) => {
                        let banded = run.judgements.iter().any(is_band);
                        let cell = match run.passed {
                            Some(passed) if banded => Cell::default().verdict(passed),
                            Some(_) => "done".into(),
                            None => "waiting".into(),
                        };
                        cell.link(&run.page)
                    }
                });
            }
            table.rows.push(row);
        }
        table
    }

    /// A measure at each point.
    fn numbers(&self, measured: &Measured) -> Table {
        let mut title = measured.label.clone();
        if !measured.unit.is_empty() {
            title += &format!(" ({})", measured.unit);
        }
        let mut table = Table::new(title, &["point#"]);
        let paths = self.short_paths().into_iter();
        let head = ["seeds#", "mean#", "± 95 %#", "min#", "median#", "max#"];
        let banded = measured.points.values().any(|here| !here.bounds.is_empty());
        let bands = ["band", ""].into_iter().filter(|_| banded);
        table.head.extend(paths.chain(head).chain(bands).map(crate::block::Heading::from));
        table.caption = "Over the seeds. ± is half of the mean's 95 % confidence interval, t(0.975, n − 1) · s/√n by Student's t.".into();
        for point in &self.points {
            let Some(here) = measured.points.get(&point.point) else { continue };
            let Some(summary) = Summary::of(&here.values) else { continue };
            let mut row: Vec<Cell> = vec![point.point.to_string().into()];
            row.extend(point.settings.iter().map(|setting| setting.value.clone().into()));
            row.push(summary.count.to_string().into());
            row.push(short(summary.mean).into());
            let half_width = summary.half_width;
            let identical = summary.count > 1 && summary.min == summary.max;
            row.push(match half_width {
                _ if identical => "identical".into(),
                Some(half) => short_as(half, summary.mean).into(),
                None => "–".into(),
            });
            row.extend([summary.min, summary.median, summary.max].map(|one| short(one).into()));
            if banded {
                row.push(here.bounds.clone().into());
                row.push(match here.passed {
                    _ if here.bounds.is_empty() => Cell::default(),
                    passed if passed == here.judged => Cell::default().verdict(true),
                    passed => {
                        let failed = here.judged - passed;
                        Cell::from(format!("{failed} of {}", here.judged)).verdict(false)
                    }
                });
            }
            table.rows.push(row);
        }
        table
    }
}

/// Whether anything is expected; where nothing is, what is measured is shown all the same.
fn is_band(one: &Judgement) -> bool {
    one.band.expects()
}

#[cfg(test)]
mod tests;
