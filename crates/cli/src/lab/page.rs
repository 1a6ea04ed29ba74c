//! The page of a run: what was expected and what came of it, the network, tables and charts.
//!
//! The same contents are shown while a run goes on and after it has ended ([`Page::of_run`] and [`Page::so_far`]); what differs is how
//! much there is to be seen. They become a file, pictures, a page that follows the run, or a view in the terminal.

mod charts;
mod flows;
mod links;
mod seen;
mod tables;

use std::cell::OnceCell;

use transom_lab::run::{Judgement, Observations};
use transom_lab::scenario::{Band, Bound, Resolved, Traffic, Unit};
use transom_sim::measure::Recorder;
use transom_tcp::time::Duration;

use super::drawing::{drawing, spaced};
use super::words;
use crate::report::{Block, Cell, Drawing, ReportData, Table, Verdict, short};
use seen::Seen;

/// What the page is about.
pub(super) struct Page<'a> {
    pub(super) scenario: &'a Resolved,
    pub(super) seed: u64,
    /// The point of the sweep, from one, and of how many; none if nothing is swept.
    pub(super) point: Option<(usize, usize)>,
    /// What the sweep has set.
    pub(super) settings: &'a [String],
    /// The command that makes it again.
    pub(super) command: &'a str,
    /// The program's version.
    pub(super) version: &'a str,
    /// The network, once it has been drawn: a page that follows a run is made many times.
    pub(super) drawn: OnceCell<Option<Drawing>>,
}

impl Page<'_> {
    /// The page of a run that has ended.
    pub(super) fn of_run(&self, seen: &Observations, judgements: &[Judgement]) -> ReportData {
        let packets = format!("{} packets", grouped(seen.packets));
        let mut data = self.data(&Seen::observed(seen), Some(packets));
        let held = judgements.iter().filter(|one| one.passed).count();
        if !judgements.is_empty() {
            data.blocks.insert(0, Block::Table(bands(judgements)));
            data.verdict = Some(verdict(held, judgements.len()));
        }
        data
    }

    /// The page of a run that goes on.
    pub(super) fn so_far(&self, recorder: &Recorder) -> ReportData {
        self.data(&Seen::so_far(self.scenario, recorder), None)
    }

    fn data(&self, seen: &Seen<'_>, more: Option<String>) -> ReportData {
        let header = &self.scenario.scenario;
        let title = header.title.clone().unwrap_or_else(|| header.name.to_string());
        let mut lead = vec![header.description.clone().unwrap_or_default()];
        if let Some((point, of)) = self.point {
            lead.push(format!("Point {point} of {of}: {}.", self.settings.join(", ")));
        }
        let mut facts = vec![format!("Seed {}", self.seed), spaced(header.duration)];
        facts.extend(more);
        lead.push(format!("{}.", facts.join(", ")));
        lead.retain(|part| !part.is_empty());
        let mut notes = Vec::new();
        if header.warm_up.0 > Duration::ZERO {
            let warm_up = spaced(header.warm_up);
            notes.push(format!("The first {warm_up} count for no band and no table."));
        }
        let mut blocks = Vec::new();
        match self.drawn.get_or_init(|| drawing(self.scenario)) {
            Some(drawing) => blocks.push(Block::Drawing(drawing.clone())),
            None => notes.push(format!(
                "The network is too large to be drawn: {} hosts, {} routers and {} links.",
                self.scenario.hosts.len(),
                self.scenario.routers.len(),
                self.scenario.links.len()
            )),
        }
        blocks.extend(tables::flows(self.scenario, seen).map(Block::Table));
        blocks.extend(tables::links(self.scenario, seen).map(Block::Table));
        let sections = [flows::section(self.scenario, seen), links::section(self.scenario, seen)];
        ReportData {
            title,
            lead: lead.join(" "),
            blocks,
            sections: sections.into_iter().filter(|section| !section.charts.is_empty()).collect(),
            notes,
            command: self.command.into(),
            command_note: self.command_note(),
            ..ReportData::default()
        }
    }

    fn command_note(&self) -> String {
        let flows = &self.scenario.flows;
        let traces = flows.iter().any(|flow| matches!(flow.traffic, Traffic::Trace(_)));
        let traces = if traces { " with the trace files that it names beside it," } else { "" };
        format!(
            "Or, with the scenario.toml beside this page, which has every default and swept value written down,{traces} \
             transom lab run scenario.toml --seed {}. The same build of transom, {}, gives the same bytes on every machine.",
            self.seed, self.version
        )
    }
}

/// How many bands hold.
pub(super) fn verdict(held: usize, all: usize) -> Verdict {
    let text = match (held, all) {
        (1, 1) => "The band holds.".into(),
        (0, 1) => "The band does not hold.".into(),
        (held, all) if held == all => format!("All bands hold ({all})."),
        (held, all) => format!("{} of {all} bands do not hold.", all - held),
    };
    Verdict { passed: held == all, text }
}

/// What was expected and what came of it, failed ones first.
fn bands(judgements: &[Judgement]) -> Table {
    let mut table = Table::new("Expected", &["", "seen#", "band", "", "why"]);
    let mut judgements: Vec<&Judgement> = judgements.iter().collect();
    judgements.sort_by_key(|one| one.passed);
    for one in judgements {
        table.rows.push(vec![
            words::quantity(&one.band).into(),
            words::seen(one).into(),
            bounds(&one.band).into(),
            Cell::default().verdict(one.passed),
            one.band.why.clone().unwrap_or_default().into(),
        ]);
    }
    table
}

/// The bounds of a band, in the unit that values are shown in.
pub(super) fn bounds(band: &Band) -> String {
    let unit = band.unit();
    let (factor, name) = scale(unit);
    let one = |bound: Bound| {
        let value = bound.as_integer() as f64;
        short(if matches!(bound, Bound::Number(_)) { value / 1e9 } else { value * factor })
    };
    let text = match (band.min.map(one), band.max.map(one)) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => return String::new(),
    };
    if name.is_empty() { text } else { format!("{text} {name}") }
}

/// What values of a unit are multiplied by to be shown, and in which unit that is.
pub(super) fn scale(unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::Rate => (1e-6, "Mbit/s"),
        Unit::Time => (1e-6, "ms"),
        Unit::Size => (1.0, "B"),
        Unit::Number => (1.0, ""),
    }
}

/// A number with a space after every third digit.
pub(super) fn grouped(number: u64) -> String {
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
