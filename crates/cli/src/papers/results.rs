//! `transom papers results`: a line for each experiment that the papers owe, and what is wrong with the stored values.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use transom_lab::scenario::{Band, Variant};

use super::catalogue::{EXPERIMENTS, Experiment, form};
use super::findings::Verdict;
use super::page::{Page, Support, all};
use super::raw::escaped;
use super::summary::{Freshness, Summary};
use super::text::{Number, Word};
use crate::output;

/// The names of the papers.
const PAPERS: &[(&str, &str)] = &[
    ("ictcp", "Deploying Safe User-Level Network Services with icTCP"),
    ("ltcp", "LTCP: Improving the Performance of TCP in Highspeed Networks"),
    ("tcpu", "An Experimental User Level Implementation of TCP"),
    ("compose", "Towards a Composable Transport Protocol: TCP without Congestion Control"),
    (
        "router",
        "A TCP flow control technique for routers, based on the window that receivers advertise",
    ),
    ("l4s", "L4S (RFC 9330, 9331 and 9332): scalable and classic flows at one link"),
];

const HEAD: &str = "\
# Results

Five papers describe what Transom is built from, and three RFCs the service L4S. This page compares their figures, tables and promises with Transom's own measurements. Each line leads to a page
with the figure, the set-up beside the paper's, the finding and all values.

- *reproduced*: every claim of the paper that counts lies in the band that was derived from its text; *partly*: some do; *not*: none does.
- *better*: the paper's system had a cost or a fault that Transom has not, and claims with controls show it. *refuted*: claims with controls show that the
  paper's statement does not hold in the set-up that it describes.
- *calibrated*: the set-up was chosen until the number came out, so it predicts nothing. *implemented*: what the paper names works, and a test shows it.
  *ours*: the paper has no number there, or no claim whose band its text gives. *not run*: the page says why.
- A claim is about the mean of the seeds, unless the paper says that something always or never happens. Bands that the text does not give are marked ours and do not count.
  A control is rejected if nine seeds of ten are outside of the claim's band.
- Ours: the mean, its 95 % interval by Student's t, and the range over the runs. Seeds whose values are all the same gave copies of one run, which counts once.

`transom papers results > RESULTS.md` makes this page, and `transom papers pages --to docs/papers` makes the others. Both read the scenarios in
`papers/`, the texts in `papers/pages/` and the stored values in `papers/results/`.
";

/// Show the table of results, as a page in Markdown
///
/// For each figure and table of the papers there is the paper's number, ours, the verdict, a reason, and a link to its page (`transom papers pages`). It
/// is made from the experiments, from texts and from summaries, which `transom papers run --keep` writes. Nothing is run.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom papers results > RESULTS.md
      from the summaries in papers/results
  transom papers results --from /tmp/summaries
      from others
  transom papers results --check
      what is missing, of an earlier scenario, or proves nothing")]
pub(crate) struct Args {
    /// The directory of the summaries
    #[arg(long, value_name = "DIR", default_value = "papers/results")]
    from: PathBuf,
    /// Check the stored values instead: each experiment has some or a reason, all are of the present scenarios, and no band accepts its control
    #[arg(long)]
    check: bool,
}

/// Shows them.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    super::check_summaries(&args.from)?;
    if !args.check {
        output::line(table(&args.from)?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let defects = defects(&args.from)?;
    defects.iter().try_for_each(output::line)?;
    output::line(format_args!("{} defects", defects.len()))?;
    Ok(if defects.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The table of results in Markdown, made from the experiments and the summaries in a directory.
fn table(directory: &Path) -> anyhow::Result<String> {
    let pages = all(directory)?;
    let mut text = HEAD.to_owned();
    let count = |word: Word| pages.iter().filter(|page| page.verdict() == word).count();
    let words = [
        Word::Reproduced,
        Word::Better,
        Word::Refuted,
        Word::Partly,
        Word::Not,
        Word::Calibrated,
        Word::Implemented,
        Word::Ours,
        Word::NotRun,
    ];
    let counts = words.map(|word| format!("{} {}", count(word), word.word())).join(", ");
    let _ = write!(text, "\n{} experiments: {counts}.\n\n", pages.len());
    text += &support(&pages);
    for (paper, title) in PAPERS {
        let _ = write!(
            text,
            "\n## {title}\n\n| experiment | figure | the paper | ours | verdict | why |\n|---|---|---|---|---|---|\n"
        );
        for page in pages.iter().filter(|page| page.text.id.split('/').next() == Some(paper)) {
            text += &line(page);
        }
    }
    Ok(text)
}

/// How many claims count, how many of them have a control, and in how many lines all of them have one.
fn support(pages: &[Page]) -> String {
    let mut all = Support::default();
    let (mut decided, mut with_all) = (0, 0);
    for page in pages {
        let Support { claims, controlled, within_scatter } = page.support();
        all.claims += claims;
        all.controlled += controlled;
        all.within_scatter += within_scatter;
        if matches!(page.verdict(), Word::Reproduced | Word::Better | Word::Refuted) {
            decided += 1;
            with_all += usize::from(controlled == claims);
        }
    }
    let Support { claims, controlled, within_scatter } = all;
    format!(
        "{claims} claims count. {controlled} of them have a control that their band rejects; the pages say of the other {} why they have none. \
         {decided} lines are reproduced, better or refuted, and {with_all} of these have a control for each claim that counts.\n\
         {within_scatter} claims hold in the mean, while the 95 % interval of the mean reaches beyond the band: the pages say \"within the scatter\".\n",
        claims - controlled
    )
}

fn line(page: &Page) -> String {
    let cells = |of: &dyn Fn(&Number) -> String| {
        page.text.number.iter().map(|one| escaped(&of(one))).collect::<Vec<_>>().join("<br>")
    };
    let paper = cells(&|number| format!("{}: {}", number.what, number.paper));
    let ours = cells(&|number| page.ours(number).unwrap_or_else(|| "not measured".into()));
    let verdict = match (page.verdict(), page.score()) {
        (Word::Partly, (holding, all)) if all > 0 => format!("partly, {holding} of {all} claims"),
        (word, _) => word.word().to_owned(),
    };
    // Numbers of a form that is scaled down are not to be taken for the paper's.
    let form = if page.is_quick() { ", quick form" } else { "" };
    let stale = match page.freshness() {
        Some(Freshness::Stale) => " (values of an earlier scenario)",
        _ => "",
    };
    format!(
        "| [{}](docs/papers/{}.md) | {} | {paper} | {ours} | {verdict}{form}{stale} | {} |\n",
        page.text.id,
        page.name(),
        escaped(&page.text.title),
        escaped(&page.filled(page.text.why.trim()))
    )
}

/// The defects of an experiment in a form: in its stored file, and bands that count and do not say why.
fn of_form(experiment: &Experiment, full: bool, directory: &Path) -> anyhow::Result<Vec<String>> {
    let id = experiment.id;
    let scenario = experiment.scenario(full)?;
    let points: Vec<Variant> = scenario.sweep().collect();
    let emulated = scenario.paper.as_ref().is_some_and(|paper| paper.emulated);
    let mut defects = match Summary::read(directory, id, full)? {
        Some(summary) => summary.defects(&points, emulated),
        None => Vec::new(),
    };
    for Variant { resolved, comparisons, .. } in points {
        let bands = resolved.expect.iter().chain(comparisons.iter().map(|one| &one.band));
        for Band { why, claim, .. } in bands {
            let Some(claim) = claim.as_ref().filter(|claim| !claim.ours) else { continue };
            if why.as_ref().is_none_or(|why| why.trim().is_empty()) {
                defects.push(format!("\"{}\" counts, and its band does not say why", claim.says));
            }
        }
    }
    let form = form(full);
    let mut defects: Vec<String> =
        defects.into_iter().map(|text| format!("{id}, {form}: {text}")).collect();
    defects.sort();
    defects.dedup();
    Ok(defects)
}

/// Checks what is stored against the scenarios and the texts, and returns the defects to mend, a line each.
///
/// Each page has values or says why not, and no values are of an earlier scenario or without a fingerprint. Each claim names a control or says why it has
/// none, and its band rejects the control. Each band that counts says why. Each number and figure has values, and each course has points.
fn defects(directory: &Path) -> anyhow::Result<Vec<String>> {
    let mut all_defects = Vec::new();
    for experiment in EXPERIMENTS {
        for full in [false, true] {
            all_defects.extend(of_form(experiment, full, directory)?);
        }
    }
    for page in all(directory)? {
        let id = &page.text.id;
        let mut defects = Vec::new();
        if page.verdict() == Word::NotRun && page.text.not_run.is_none() {
            defects.push("has no values, and no reason".to_owned());
        }
        for number in &page.text.number {
            if page.text.not_run.is_none() && page.ours(number).is_none() {
                defects.push(format!("nothing is stored for \"{}\"", number.what));
            }
        }
        for (figure, drawn) in page.text.figure.iter().zip(page.drawn()) {
            if drawn.is_none() && figure.not_stored.is_none() {
                defects.push(format!("nothing is stored for the figure \"{}\"", figure.title));
            }
        }
        for (bar, figure) in page.absent_bars() {
            defects.push(format!("the figure \"{figure}\" has no bar {bar}"));
        }
        // The prose is about the full forms of all its experiments.
        let (unknown, strange) = match page.is_complete() {
            true => page.strange_prose(),
            false => (Vec::new(), Vec::new()),
        };
        defects.extend(unknown.iter().map(|key| format!("no value has the key `{key}`")));
        if !strange.is_empty() {
            let numbers = strange.join(", ");
            defects
                .push(format!("no stored value rounds to these numbers in the prose: {numbers}"));
        }
        for name in page.without_proof() {
            defects.push(format!("\"{name}\" decides the verdict and rejects no control"));
        }
        for claim in &page.text.benchmark {
            let rejects = page.rejects_control(claim);
            if rejects == Some(false) {
                let says = &claim.says;
                defects.push(format!("\"{says}\" holds at its control too, so it proves nothing"));
            }
            if page.text.not_run.is_none() && page.measured(claim) == Verdict::NotRun {
                defects.push(format!("nothing is stored for \"{}\"", claim.says));
            }
            if page.text.not_run.is_none() && claim.control.is_some() && rejects.is_none() {
                defects.push(format!("nothing is stored for the control of \"{}\"", claim.says));
            }
            if claim.control.is_none() && claim.no_control.is_none() && !claim.ours {
                defects.push(format!("\"{}\" has no control, and no reason for that", claim.says));
            }
        }
        for found in &page.found {
            let bands = found.points.iter().flat_map(|point| &point.bands);
            for (band, claim) in bands.filter_map(|band| Some((band, band.claim()?))) {
                let says = &claim.says;
                if band.control.is_none() && claim.control.is_none() && !claim.calibrated {
                    defects.push(format!("\"{says}\" has no control, and no reason for that"));
                }
                if band.rejects_control() == Some(false) {
                    let text = format!("\"{says}\" holds at its control too, so it proves nothing");
                    defects.push(text);
                }
            }
        }
        all_defects.extend(defects.into_iter().map(|text| format!("{id}: {text}")));
    }
    all_defects.dedup();
    Ok(all_defects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_without_values_have_lines() {
        let nothing = tempfile::tempdir().unwrap();
        let table = table(nothing.path()).unwrap();
        assert!(table.starts_with("# Results") && table.contains("| not run |"));
    }
}
