//! The page of an experiment: claim, figure, set-ups, verdict and finding, and the values folded.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;

use anyhow::Context;
use transom_lab::scenario::Claim;

use super::bench::Benchmarks;
use super::catalogue::EXPERIMENTS;
use super::chosen::{choose, told, told_briefly};
use super::figure::{Drawn, absent_bars, draw};
use super::findings::{Found, FoundBand, Verdict};
use super::raw::{self, escaped};
use super::sources::Sources;
use super::summary::Freshness;
use super::text::{BenchClaim, Choice, Number, PageText, Word, is_meant, texts};
use super::{commits, matrix, prose};
use crate::output::listed;

/// How many claims count, and what supports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Support {
    pub(super) claims: usize,
    /// Those with a control that their band rejects.
    pub(super) controlled: usize,
    /// Those that hold in the mean, while the interval of the mean reaches beyond the band.
    pub(super) within_scatter: usize,
}

/// A page with all that is found for it.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) text: PageText,
    pub(super) found: Vec<Rc<Found>>,
    /// The paper's benchmarks.
    pub(super) benchmarks: Rc<Benchmarks>,
    /// What is counted in the sources.
    pub(super) sources: Rc<Sources>,
}

/// All pages, with what is found.
pub(super) fn all(directory: &Path) -> anyhow::Result<Vec<Page>> {
    // A scenario of several pages is read once.
    let mut known: BTreeMap<&'static str, Rc<Found>> = BTreeMap::new();
    let mut measured: BTreeMap<String, Rc<Benchmarks>> = BTreeMap::new();
    let sources = Rc::new(Sources::read(directory)?);
    let mut pages = Vec::new();
    for text in texts()? {
        let mut found = Vec::new();
        for id in &text.scenarios {
            let experiment = EXPERIMENTS.iter().find(|one| one.id == id);
            let experiment = experiment.with_context(|| format!("there is no experiment {id}"))?;
            let own = match known.get(experiment.id) {
                Some(own) => Rc::clone(own),
                None => Rc::new(Found::new(experiment, directory)?),
            };
            known.insert(experiment.id, Rc::clone(&own));
            found.push(own);
        }
        let paper = text.id.split('/').next().unwrap_or_default().to_owned();
        let benchmarks = match measured.get(&paper) {
            Some(own) => Rc::clone(own),
            None => Rc::new(Benchmarks::read(directory, &paper)?),
        };
        measured.insert(paper, Rc::clone(&benchmarks));
        pages.push(Page { text, found, benchmarks, sources: Rc::clone(&sources) });
    }
    Ok(pages)
}

impl Page {
    /// The file's name, without what tells its kind.
    pub(super) fn name(&self) -> String {
        self.text.id.replace('/', "-")
    }

    /// The bands of claims, with their claims.
    fn claims(&self) -> impl Iterator<Item = (&FoundBand, &Claim)> {
        let points = self.found.iter().flat_map(|found| &found.points);
        points.flat_map(|point| &point.bands).filter_map(|band| Some((band, band.claim()?)))
    }

    /// What came out of a claim about a benchmark.
    pub(super) fn measured(&self, claim: &BenchClaim) -> Verdict {
        let counted = claim.sources.as_ref().and_then(|choice| self.sources.sum(choice));
        match claim.bench.as_ref().and_then(|case| self.benchmarks.value(case)).or(counted) {
            None => Verdict::NotRun,
            Some(value) if claim.accepts(value) => Verdict::Holds,
            Some(_) => Verdict::Differs,
        }
    }

    /// Whether the band of a claim about a benchmark rejects its control; `None` without one, or if it was not measured.
    pub(super) fn rejects_control(&self, claim: &BenchClaim) -> Option<bool> {
        self.benchmarks.value(claim.control.as_ref()?).map(|value| !claim.accepts(value))
    }

    /// What came out of the claims about benchmarks that count.
    fn of_benchmarks(&self) -> impl Iterator<Item = Verdict> {
        self.text.benchmark.iter().filter(|claim| !claim.ours).map(|claim| self.measured(claim))
    }

    /// What came out, by the claims that count; as the text says, if none does.
    pub(super) fn verdict(&self) -> Word {
        if self.text.not_run.is_some() {
            return Word::NotRun;
        }
        let of = |is: &dyn Fn(&Claim) -> bool| -> Vec<Verdict> {
            let all = self.claims().filter(|(_, claim)| is(claim));
            all.map(|(band, _)| band.verdict()).filter(|one| *one != Verdict::NotRun).collect()
        };
        let mut counting = of(&|claim| self.text.counts(claim));
        counting.extend(self.of_benchmarks().filter(|one| *one != Verdict::NotRun));
        let calibrated = of(&|claim| self.text.has_claim(claim) && self.text.is_calibrated(claim));
        let holding = counting.iter().filter(|one| **one == Verdict::Holds).count();
        match (counting.len(), holding) {
            (0, _) if !calibrated.is_empty() => Word::Calibrated,
            (0, _) => self.text.verdict.unwrap_or(Word::NotRun),
            // A claim that was not run has not been reproduced.
            (_, holding) if self.score() == (holding, holding) => Word::Reproduced,
            _ if self.shown_by(&self.text.refuted_by) => Word::Refuted,
            _ if self.shown_by(&self.text.better_by) => Word::Better,
            (_, 0) => Word::Not,
            _ => Word::Partly,
        }
    }

    /// Claims that make a page "refuted" or "better" without a control that their band rejects.
    pub(super) fn without_proof(&self) -> Vec<String> {
        let proves = |name: &String| {
            let mut of_runs = self.claims().filter(|(_, claim)| is_meant(claim, name));
            let rejects = |claim: &BenchClaim| {
                claim.says.contains(name) && self.rejects_control(claim) == Some(true)
            };
            of_runs.any(|(band, _)| band.rejects_control() == Some(true))
                || self.text.benchmark.iter().any(rejects)
        };
        let names = self.text.refuted_by.iter().chain(&self.text.better_by);
        names.filter(|name| !proves(name)).cloned().collect()
    }

    /// Whether there are such claims, and all of them hold.
    fn shown_by(&self, names: &[String]) -> bool {
        let holds = |name: &String| {
            let of_runs = self.claims().filter(|(_, claim)| is_meant(claim, name));
            let measured = self.text.benchmark.iter().filter(|claim| claim.says.contains(name));
            let mut all = of_runs.map(|(band, _)| band.verdict()).collect::<Vec<_>>();
            all.extend(measured.map(|claim| self.measured(claim)));
            !all.is_empty() && all.iter().all(|verdict| *verdict == Verdict::Holds)
        };
        !names.is_empty() && names.iter().all(holds)
    }

    /// How many claims count, and how many of them hold.
    pub(super) fn score(&self) -> (usize, usize) {
        let counting = self.claims().filter(|(_, claim)| self.text.counts(claim));
        let scenarios = counting.map(|(band, _)| band.verdict());
        let all: Vec<Verdict> = scenarios.chain(self.of_benchmarks()).collect();
        (all.iter().filter(|one| **one == Verdict::Holds).count(), all.len())
    }

    /// How the claims that count are supported.
    pub(super) fn support(&self) -> Support {
        let mut support = Support::default();
        for (band, _) in self.claims().filter(|(_, claim)| self.text.counts(claim)) {
            support.claims += 1;
            support.controlled += usize::from(band.rejects_control() == Some(true));
            support.within_scatter += usize::from(band.is_within_scatter());
        }
        for claim in self.text.benchmark.iter().filter(|claim| !claim.ours) {
            support.claims += 1;
            support.controlled += usize::from(self.rejects_control(claim) == Some(true));
        }
        support
    }

    /// Whether the full form of each of its experiments is stored.
    pub(super) fn is_complete(&self) -> bool {
        self.found.iter().all(|found| found.full && found.freshness.is_some())
    }

    /// Whether any of its values are of a quick form.
    pub(super) fn is_quick(&self) -> bool {
        self.found.iter().any(|found| !found.full && found.freshness.is_some())
    }

    /// Of the oldest values; `None` without any.
    pub(super) fn freshness(&self) -> Option<Freshness> {
        self.found.iter().filter_map(|found| found.freshness).max()
    }

    /// One of the page's numbers as it was measured.
    pub(super) fn ours(&self, number: &Number) -> Option<String> {
        if let Some(text) = &number.measured {
            return Some(text.clone());
        }
        if !number.bench.is_empty() {
            let each = number.bench.iter().map(|choice| self.benchmarks.told(choice));
            return each.collect::<Option<Vec<_>>>().map(|all| all.join(", "));
        }
        if let Some(choice) = &number.sources {
            return self.sources.told(choice);
        }
        told(&choose(self.found_for(&number.choice)?, &number.choice))
    }

    /// The scenario that values are chosen from.
    pub(super) fn found_for(&self, choice: &Choice) -> Option<&Found> {
        match &choice.scenario {
            Some(id) => self.found.iter().find(|one| one.experiment.id == id).map(Rc::as_ref),
            None => self.found.first().map(Rc::as_ref),
        }
    }

    /// What stands in the prose for a key.
    fn value_of(&self, key: &str, all: bool) -> Option<String> {
        let mut numbers = self.text.number.iter().chain(&self.text.fact);
        let number = numbers.find(|number| number.key.as_deref() == Some(key))?;
        let is_stored = number.measured.is_some() || number.sources.is_some();
        if all || is_stored || !number.bench.is_empty() {
            return self.ours(number);
        }
        told_briefly(&choose(self.found_for(&number.choice)?, &number.choice))
    }

    /// A text with its values filled in.
    pub(super) fn filled(&self, text: &str) -> String {
        prose::filled(text, &|key, all| self.value_of(key, all)).0
    }

    /// Keys of the prose that nothing has, and numbers in it that no stored value rounds to.
    pub(super) fn strange_prose(&self) -> (Vec<String>, Vec<String>) {
        let PageText { why, finding, typed, figure, .. } = &self.text;
        let captions = figure.iter().map(|figure| figure.caption.as_str());
        let written: Vec<&str> =
            [why.as_str(), finding.as_str()].into_iter().chain(captions).collect();
        let mut unknown = Vec::new();
        let mut prose = String::new();
        for text in &written {
            // What is filled in cannot be stale.
            let (own, without) =
                prose::filled(text, &|key, all| self.value_of(key, all).map(|_| String::new()));
            unknown.extend(without);
            prose += &own;
            prose.push('\n');
        }
        let shown = [
            self.text.claim.clone(),
            self.numbers(),
            self.setups(),
            self.values(),
            self.text.measured.clone().unwrap_or_default(),
            self.papers_points(),
        ];
        (unknown, prose::strange(&prose, &shown.join("\n"), typed))
    }

    /// The points that figures have of the paper, and formulas.
    fn papers_points(&self) -> String {
        let figures = || self.text.figure.iter();
        let paper = figures().flat_map(|figure| &figure.paper).flat_map(|paper| &paper.points);
        let own = figures().flat_map(|figure| &figure.curve).flat_map(|curve| &curve.points);
        paper.chain(own).map(|(x, y)| format!("{x} {y}\n")).collect()
    }

    /// Bars that are missing in figures, and the figure's title.
    pub(super) fn absent_bars(&self) -> Vec<(String, &str)> {
        let of = |one| absent_bars(one, self).into_iter().map(|bar| (bar, one.title.as_str()));
        self.text.figure.iter().flat_map(of).collect()
    }

    /// Its figures; nothing for one without values.
    pub(super) fn drawn(&self) -> Vec<Option<Drawn>> {
        self.text.figure.iter().map(|figure| draw(figure, self)).collect()
    }

    pub(super) fn markdown(&self, drawn: &[Option<(String, Drawn)>]) -> String {
        let PageText { id, title, source, claim, finding, .. } = &self.text;
        let mut page = format!(
            "# {id}: {title}\n\n<!-- Made by `transom papers pages` from papers/pages/{}.toml and papers/results. -->\n\n\
             {source}. [All results](../../RESULTS.md)\n\n## The claim\n\n{}\n",
            self.name(),
            claim.trim()
        );
        let finding = self.filled(finding.trim());
        let _ = write!(page, "\n## The result: {}\n\n{finding}\n", self.verdict().word());
        if let Some(reason) = &self.text.not_run {
            let _ = write!(page, "\nNot run: {}\n", reason.trim());
        }
        page += &self.numbers();
        for (figure, drawn) in self.text.figure.iter().zip(drawn) {
            page.push('\n');
            match drawn {
                Some((file, drawn)) => {
                    let alternative = drawn.alternative.replace(['[', ']'], "");
                    let _ = writeln!(page, "![{alternative}]({file})");
                }
                None => {
                    let reason =
                        figure.not_stored.as_deref().unwrap_or("Nothing is stored for it.");
                    let _ = writeln!(page, "The figure \"{}\" is missing. {reason}", figure.title);
                }
            }
            let read = figure.paper.iter().filter(|one| !one.exact).map(|one| &*one.name);
            let read: Vec<&str> = read.collect();
            let mut caption = self.filled(figure.caption.trim());
            if !read.is_empty() {
                let _ = write!(
                    caption,
                    " Not printed as numbers in the paper, but read off its figure or its text: {}.",
                    read.join("; ")
                );
            }
            if !caption.trim().is_empty() {
                let _ = write!(page, "\n{}\n", caption.trim());
            }
        }
        page += &self.setups();
        if self.text.matrix {
            page += &matrix::matrix();
        }
        if let Some(measured) = &self.text.measured {
            let _ = write!(page, "\n## Measured\n\n{}\n", measured.trim());
        }
        page += &self.values();
        page += &self.again();
        page
    }

    fn numbers(&self) -> String {
        if self.text.number.is_empty() {
            return String::new();
        }
        let mut text = String::from("\n| | paper | ours |\n|---|---|---|\n");
        for number in &self.text.number {
            let ours = self.ours(number).unwrap_or_else(|| "not measured".into());
            let (what, paper) = (escaped(&number.what), escaped(&number.paper));
            let _ = writeln!(text, "| {what} | {paper} | {} |", escaped(&ours));
        }
        text
    }

    fn setups(&self) -> String {
        if self.text.setup.is_empty() {
            return String::new();
        }
        let mut text = String::from(
            "\n## The set-up\n\n| | paper | ours | why different |\n|---|---|---|---|\n",
        );
        for row in &self.text.setup {
            let cells =
                [&row.what, &row.paper, &row.ours, &row.why].map(|cell| escaped(cell.trim()));
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text
    }

    fn values(&self) -> String {
        let mut text = String::new();
        for found in &self.found {
            let form = if found.full { "full" } else { "quick" };
            let id = found.experiment.id;
            let (claims, points) = (raw::claims(found, &self.text), raw::points(found));
            if claims.is_empty() && points.is_empty() {
                continue;
            }
            let _ = write!(
                text,
                "\n<details>\n<summary>All values of {id}, {form} form</summary>\n\n{claims}"
            );
            if !(claims.is_empty() || points.is_empty()) {
                text.push('\n');
            }
            let _ = write!(text, "{points}\n</details>\n");
        }
        text += &self.claims_of_benchmarks();
        let curves = self.text.figure.iter().flat_map(|figure| &figure.curve);
        let numbers = self.text.number.iter().flat_map(|number| &number.bench);
        let groups = curves.filter_map(|curve| Some(curve.bench.as_ref()?.choice.group.as_str()));
        let groups: Vec<&str> = groups.chain(numbers.map(|choice| choice.group.as_str())).collect();
        text += &self.benchmarks.tables(&groups);
        if text.is_empty() { text } else { format!("\n## The values\n{text}") }
    }

    /// The table of claims about benchmarks; nothing without any.
    fn claims_of_benchmarks(&self) -> String {
        let mut text = String::new();
        for claim in &self.text.benchmark {
            let verdict = match self.measured(claim) {
                Verdict::Holds => "holds",
                Verdict::Differs => "**differs**",
                Verdict::NotRun => "not run",
            };
            let kind = if claim.ours { " (ours)" } else { "" };
            let band = raw::range(claim.min, claim.max);
            let counted = claim.sources.as_ref().and_then(|choice| self.sources.told(choice));
            let measured = claim.bench.as_ref().and_then(|case| self.benchmarks.told(case));
            let ours = measured.or(counted).unwrap_or_default();
            let control = match (&claim.control, &claim.no_control) {
                (Some(control), _) => {
                    let said = raw::said_of_control(self.rejects_control(claim));
                    let value = self.benchmarks.told(control).unwrap_or_default();
                    format!("{said}, {value} ({})", control.case)
                }
                (None, Some(reason)) => format!("none: {reason}"),
                (None, None) => String::new(),
            };
            let cells = [&claim.says, &claim.paper, &band, &claim.why, &ours];
            let cells = cells.map(|cell| escaped(cell)).join(" | ");
            let _ = writeln!(text, "| {cells} | {verdict}{kind} | {} |", escaped(&control));
        }
        if text.is_empty() {
            return text;
        }
        format!(
            "\n| claim | paper | band | why | ours | verdict | control |\n|---|---|---|---|---|---|---|\n{text}"
        )
    }

    /// The commands, and the programs that made the runs.
    fn again(&self) -> String {
        let mut text = String::from("\n## Run it\n\n```sh\n");
        for found in &self.found {
            let _ = writeln!(text, "{}", found.command());
        }
        if let Some(command) = &self.text.command {
            let _ = writeln!(text, "{}", command.trim());
        }
        if self.found.is_empty() && self.text.command.is_none() {
            return String::new();
        }
        text += "```\n";
        let mut versions: Vec<&str> =
            self.found.iter().flat_map(|found| &found.versions).map(String::as_str).collect();
        versions.dedup();
        if !versions.is_empty() {
            let versions = listed(versions.into_iter().map(commits::named), "");
            let _ = write!(text, "\nThe values are of Transom {versions}.");
            text += match self.freshness() {
                Some(Freshness::Stale) => {
                    " **The scenario has been changed since: run it again.**\n"
                }
                Some(Freshness::Unknown) => {
                    " They were stored without a fingerprint of the scenario.\n"
                }
                _ => "\n",
            };
        }
        text
    }
}
