//! The page of a run: the expectations with their results, the network, tables and charts.
//!
//! The contents are the same during and after a run ([`Page::of_run`] and [`Page::partial`]), with more or less data. They become a
//! file, pictures, a page that follows the run, or a view in the terminal.
//!
//! ```
//! use std::path::Path;
//! use transom_lab::run::{RunOptions, judge, simulate};
//! use transom_lab::scenario::Scenario;
//! use transom_report::{Page, RunInfo};
//!
//! let text = r#"
//!     scenario = { name = "one", duration = "2s" }
//!     topology = { kind = "dumbbell", pairs = 1, bottleneck = { rate = "1Mbit/s", delay = "5ms" } }
//!     flows = [{ name = "bulk", from = "sender", to = "receiver", kind = "bulk" }]
//! "#;
//! let scenario = Scenario::parse("one.toml", text)?.point(0).ok_or("no point")?.resolved;
//! let options = RunOptions::new(Path::new(""));
//! let seen = simulate(&scenario, 1, options, |_, _| true)?.ok_or("broken off")?;
//! let about = RunInfo {
//!     scenario: &scenario,
//!     seed: 1,
//!     point: (1, 1),
//!     settings: &[],
//!     command: "transom lab run one.toml".into(),
//!     version: transom_lab::VERSION,
//! };
//! let data = Page::new(about).of_run(&seen, &judge(&scenario, &seen));
//! assert!(transom_report::render(&data).contains("<h1>one</h1>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod charts;
mod flows;
mod links;
mod seen;
mod stored;
mod tables;

use std::cell::OnceCell;

use transom_lab::run::{Judgement, Observations};
use transom_lab::scenario::{Band, Bound, Resolved, Setting, Unit};
use transom_sim::measure::Recorder;
use transom_tcp::time::Duration;

use crate::drawing::drawing;
use crate::labels::{self, spaced};
use crate::{Block, Cell, Drawing, ReportData, Table, Verdict, short};
use seen::Seen;

pub use stored::{run_command, stored_run};

/// The description of a run for its page.
#[derive(Clone, Debug)]
pub struct RunInfo<'a> {
    /// The scenario.
    pub scenario: &'a Resolved,
    /// The run's seed.
    pub seed: u64,
    /// The point of the sweep, from one, and of how many: one if nothing is swept.
    pub point: (usize, usize),
    /// The settings of the sweep.
    pub settings: &'a [Setting],
    /// The command that makes it again.
    pub command: String,
    /// The program's version.
    pub version: &'a str,
}

/// The page of a run.
#[derive(Debug)]
pub struct Page<'a> {
    about: RunInfo<'a>,
    /// The network, once it has been drawn: a page that follows a run is made many times.
    drawn: OnceCell<Option<Drawing>>,
}

impl<'a> Page<'a> {
    /// The page of this run.
    pub fn new(about: RunInfo<'a>) -> Page<'a> {
        Page { about, drawn: OnceCell::new() }
    }

    /// The page of a finished run, with its observations and the results of its bands.
    pub fn of_run(&self, seen: &Observations, judgements: &[Judgement]) -> ReportData {
        let packets = format!("{} packets", grouped(seen.packets));
        let mut data = self.data(&Seen::observed(seen), Some(packets));
        let held = judgements.iter().filter(|one| one.passed).count();
        if !judgements.is_empty() {
            data.blocks.insert(0, Block::Table(bands(judgements)));
            data.verdict = Some(verdict(held, judgements.len()));
        }
        data
    }

    /// The page of a run in progress, with the data recorded so far.
    pub fn partial(&self, recorder: &Recorder) -> ReportData {
        self.data(&Seen::partial(self.about.scenario, recorder), None)
    }

    fn data(&self, seen: &Seen<'_>, more: Option<String>) -> ReportData {
        let RunInfo { scenario, seed, point: (point, of), settings, command, .. } = &self.about;
        let header = &scenario.scenario;
        let title = header.title.clone().unwrap_or_else(|| header.name.to_string());
        let mut lead = vec![header.description.clone().unwrap_or_default()];
        if *of > 1 {
            let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
            lead.push(format!("Point {point} of {of}: {}.", settings.join(", ")));
        }
        let mut facts = vec![format!("Seed {seed}"), spaced(header.duration)];
        facts.extend(more);
        lead.push(format!("{}.", facts.join(", ")));
        lead.retain(|part| !part.is_empty());
        let mut notes = Vec::new();
        if header.warm_up.0 > Duration::ZERO {
            let warm_up = spaced(header.warm_up);
            notes.push(format!("The first {warm_up} count for no band and no table."));
        }
        let mut blocks = Vec::new();
        match self.drawn.get_or_init(|| drawing(scenario)) {
            Some(drawing) => blocks.push(Block::Drawing(drawing.clone())),
            None => notes.push(format!(
                "The network is too large to be drawn: {} hosts, {} routers and {} links.",
                scenario.hosts.len(),
                scenario.routers.len(),
                scenario.links.len()
            )),
        }
        blocks.extend(tables::flows(scenario, seen).map(Block::Table));
        blocks.extend(tables::links(scenario, seen).map(Block::Table));
        let sections = [flows::section(scenario, seen), links::section(scenario, seen)];
        ReportData {
            title,
            lead: lead.join(" "),
            blocks,
            sections: sections.into_iter().filter(|section| !section.charts.is_empty()).collect(),
            notes,
            command: command.clone(),
            command_note: self.command_note(),
            ..ReportData::default()
        }
    }

    fn command_note(&self) -> String {
        let RunInfo { scenario, seed, version, .. } = &self.about;
        let flows = &scenario.flows;
        let traces = flows.iter().any(|flow| flow.kind() == "trace");
        let traces = if traces { " with the trace files that it names beside it," } else { "" };
        format!(
            "Or, with the scenario.toml beside this page, which has every default and swept value written down,{traces} \
             transom lab run scenario.toml --seed {seed}. The same build of transom, {version}, gives the same bytes on every machine."
        )
    }
}

/// How many bands hold.
pub(crate) fn verdict(held: usize, all: usize) -> Verdict {
    let text = match (held, all) {
        (1, 1) => "The band holds.".into(),
        (0, 1) => "The band does not hold.".into(),
        (held, all) if held == all => format!("All bands hold ({all})."),
        (held, all) => format!("{} of {all} bands do not hold.", all - held),
    };
    Verdict { passed: held == all, text }
}

/// The expectations with their results, failed ones first.
fn bands(judgements: &[Judgement]) -> Table {
    let mut table = Table::new("Expected", &["", "seen#", "band", "", "why"]);
    let mut judgements: Vec<&Judgement> = judgements.iter().collect();
    judgements.sort_by_key(|one| one.passed);
    for one in judgements {
        table.rows.push(vec![
            labels::quantity(&one.band).into(),
            labels::seen(one).into(),
            bounds(&one.band).into(),
            Cell::default().verdict(one.passed),
            one.band.why.clone().unwrap_or_default().into(),
        ]);
    }
    table
}

/// The bounds of a band, in the unit that values are shown in.
pub(crate) fn bounds(band: &Band) -> String {
    let unit = band.unit();
    let (factor, name) = scale(unit);
    let one = |bound: Bound| short(bound.as_number() * factor);
    let text = match (band.min.map(one), band.max.map(one)) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => return String::new(),
    };
    if name.is_empty() { text } else { format!("{text} {name}") }
}

/// The factor for values of a unit, and the unit in which they are shown.
pub(crate) fn scale(unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::Rate => (1e-6, "Mbit/s"),
        Unit::Time => (1e-6, "ms"),
        Unit::Size => (1.0, "B"),
        Unit::Number => (1.0, ""),
    }
}

/// A number with a space after every third digit.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;
