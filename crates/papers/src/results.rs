//! The page of results: tables of claims, findings, and tables of points.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use transom_lab::scenario::{Band, Claim, Setting, Unit};

use crate::summary::RunValues;
use crate::values::{number, shown};
use crate::{EXPERIMENTS, Error, Experiment, Summary};

/// The names of the papers.
const PAPERS: &[(&str, &str)] = &[
    (
        "ictcp",
        "Deploying Safe User-Level Network Services with icTCP (Gunawi, Arpaci-Dusseau, Arpaci-Dusseau)",
    ),
    (
        "compose",
        "Towards a Composable Transport Protocol: TCP without Congestion Control (Kempter, Xin, Kasera)",
    ),
    (
        "ltcp",
        "LTCP: Improving the Performance of TCP in Highspeed Networks (Bhandarkar, Jain, Reddy)",
    ),
    ("tcpu", "An Experimental User Level Implementation of TCP (Braun, Diot, Hoglander, Roca)"),
    (
        "router",
        "A TCP flow control technique for routers, based on the window that receivers advertise",
    ),
];

const HEAD: &str = "\
# Results

This page compares the claims of the papers that Transom is built from with its own measurements. `transom papers results > RESULTS.md` makes it from the
scenarios in `papers/` and the summaries of runs in `papers/results/`.

- Each scenario derives a band from the paper's text. A claim *holds* if the measurement lies within the band with every seed. Otherwise it *differs*,
  and a note below the table says what was found.
- Numbers are means over the seeds.
- `transom papers describe ID` shows the bands, and how each experiment is set up.
- A quick form is scaled down, as its scenario says. Its numbers are those of the scaled experiment.
";

/// An experiment in the form that there are results of.
struct Found {
    experiment: &'static Experiment,
    full: bool,
    unconstrained: bool,
    summary: Option<Summary>,
    claims: Vec<Row>,
    columns: Vec<Point>,
    headings: Vec<String>,
}

/// A claim at a point.
struct Row {
    says: String,
    paper: String,
    ours: String,
    ratio: String,
    verdict: Verdict,
    finding: Option<String>,
    seeds: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Holds,
    Differs,
    NotRun,
}

/// A line of a table of points.
struct Point {
    settings: Vec<Setting>,
    cells: Vec<(String, String)>,
}

/// The papers' claims and the results, as a page in Markdown, made from the experiments and the summaries in a directory.
///
/// ```
/// let directory = tempfile::tempdir()?;
/// let page = transom_papers::results(directory.path())?;
/// assert!(page.starts_with("# Results") && page.contains("| not run |"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If a summary, or a page beside the summaries, cannot be read.
pub fn results(directory: &Path) -> Result<String, Error> {
    let mut page = HEAD.to_owned();
    for (paper, title) in PAPERS {
        let found: Vec<Found> = EXPERIMENTS
            .iter()
            .filter(|one| one.paper() == *paper)
            .map(|one| Found::new(one, directory))
            .collect::<Result<_, Error>>()?;
        let _ = write!(page, "\n## {title}\n\n");
        if !found.is_empty() {
            page += &claims(&found);
        }
        for one in found.iter().filter(|one| !one.headings.is_empty()) {
            page += &points(one)?;
        }
        page += &measured(directory, paper)?;
    }
    Ok(page)
}

/// The parts of a paper that scenarios do not measure: pages beside the summaries, written by `transom-benches --markdown` and the example `fig5`
/// of `transom-forwarder`.
const MEASURED: &[(&str, &str)] =
    &[("benchmarks", "measured by benchmarks"), ("linux", "measured with the kernel's TCP")];

fn measured(directory: &Path, paper: &str) -> Result<String, Error> {
    let mut page = String::new();
    for (name, how) in MEASURED {
        let path = directory.join(format!("{paper}-{name}.md"));
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let text = text.replace("\n## ", "\n#### ");
                let _ = write!(page, "\n### {paper}: {how}\n\n{}\n", text.trim_end());
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Error::Io { action: "read", path, error });
            }
        }
    }
    Ok(page)
}

impl Found {
    fn new(experiment: &'static Experiment, directory: &Path) -> Result<Found, Error> {
        let of = |full| Summary::read(directory, experiment.id, full);
        let (full, summary) = match of(true)? {
            Some(summary) => (true, Some(summary)),
            None => (false, of(false)?),
        };
        let scenario = experiment.scenario(full)?;
        let points: Vec<Vec<Setting>> = scenario.sweep().map(|point| point.settings).collect();
        let axes = telling(&points);
        let told = |settings: &[Setting]| -> Vec<Setting> {
            axes.iter().filter_map(|axis| settings.get(*axis).cloned()).collect()
        };
        let (mut claims, mut columns, mut headings) = (Vec::new(), Vec::new(), Vec::new());
        for point in scenario.sweep() {
            let runs: Vec<&RunValues> = summary
                .iter()
                .flat_map(|summary| &summary.runs)
                .filter(|run| run.settings == point.settings)
                .collect();
            let mut cells = Vec::new();
            let alone = point.resolved.expect.iter().map(|band| (band, None));
            let compared = point.comparisons.iter().map(|one| (&one.band, Some(one.baseline + 1)));
            for (band, baseline) in alone.chain(compared) {
                let seen = seen(band, baseline, &runs);
                if let Some(claim) = &band.claim {
                    claims.push(row(band, claim, &told(&point.settings), &seen));
                }
                if let Some(heading) = &band.column {
                    if !headings.contains(heading) {
                        headings.push(heading.clone());
                    }
                    cells.push((heading.clone(), cell(band, &seen)));
                }
            }
            columns.push(Point { settings: told(&point.settings), cells });
        }
        let lifts =
            |setting: &Setting| setting.path.ends_with(".unconstrained") && setting.value == "true";
        let unconstrained = points.iter().flatten().any(lifts);
        Ok(Found { experiment, full, unconstrained, summary, claims, columns, headings })
    }

    fn command(&self) -> String {
        let full = if self.full { " --full" } else { "" };
        // Safe ranges can only be taken away in a build that has the feature.
        let transom = if self.unconstrained {
            "cargo run --release --features unconstrained --"
        } else {
            "transom"
        };
        format!("`{transom} papers run {}{full}`", self.experiment.id)
    }
}

/// The axes of a sweep that tell its points from each other: of lists that go side by side, the first is enough.
fn telling(points: &[Vec<Setting>]) -> Vec<usize> {
    let count = |axes: &[usize]| {
        let values = |point: &Vec<Setting>| -> Vec<String> {
            axes.iter().filter_map(|axis| Some(point.get(*axis)?.value.clone())).collect()
        };
        points.iter().map(values).collect::<BTreeSet<_>>().len()
    };
    let mut axes = Vec::new();
    for axis in 0..points.first().map_or(0, Vec::len) {
        let with: Vec<usize> = axes.iter().copied().chain([axis]).collect();
        if count(&with) > count(&axes).max(1) {
            axes = with;
        }
    }
    axes
}

/// The values of a band, seed by seed; nothing of a seed that was not run.
fn seen(band: &Band, baseline: Option<usize>, runs: &[&RunValues]) -> Vec<Vec<Option<f64>>> {
    let of = |run: &&RunValues| {
        let found = run.values.iter().find(|one| one.is_of(band, baseline))?;
        Some(found.values.clone())
    };
    runs.iter().filter_map(of).collect()
}

/// The mean of everything that was seen.
fn mean(seen: &[Vec<Option<f64>>]) -> Option<f64> {
    let values: Vec<f64> = seen.iter().flatten().flatten().copied().collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn row(band: &Band, claim: &Claim, settings: &[Setting], seen: &[Vec<Option<f64>>]) -> Row {
    let accepted = |values: &Vec<Option<f64>>| {
        !values.is_empty() && values.iter().all(|one| one.is_some_and(|value| band.accepts(value)))
    };
    let verdict = match seen {
        [] => Verdict::NotRun,
        _ if seen.iter().all(accepted) => Verdict::Holds,
        _ => Verdict::Differs,
    };
    let unit = band.unit();
    let ours = mean(seen);
    let paper = claim.number.map(|number| number.as_number());
    let mut says = claim.says.clone();
    if !settings.is_empty() {
        let short = |one: &Setting| {
            format!("{} = {}", one.path.rsplit('.').next().unwrap_or_default(), one.value)
        };
        let settings: Vec<String> = settings.iter().map(short).collect();
        let _ = write!(says, " ({})", settings.join(", "));
    }
    let ratio = ours.zip(paper).filter(|(_, paper)| *paper != 0.0);
    Row {
        says,
        paper: paper.map_or_else(|| bounds(band, unit), |paper| shown(unit, paper)),
        ours: match (ours, verdict) {
            (Some(ours), _) => shown(unit, ours),
            (None, Verdict::NotRun) => String::new(),
            (None, _) => "never".into(),
        },
        ratio: ratio.map(|(ours, paper)| format!("{:.2}", ours / paper)).unwrap_or_default(),
        verdict,
        finding: claim.finding.clone().filter(|_| verdict == Verdict::Differs),
        seeds: seen.len(),
    }
}

/// The paper's claim without a number: the band.
fn bounds(band: &Band, unit: Unit) -> String {
    let shown = |bound: transom_lab::scenario::Bound| shown(unit, bound.as_number());
    match (band.min, band.max) {
        (Some(min), Some(max)) => format!("{} … {}", shown(min), shown(max)),
        (Some(min), None) => format!("≥ {}", shown(min)),
        (None, Some(max)) => format!("≤ {}", shown(max)),
        (None, None) => String::new(),
    }
}

fn cell(band: &Band, seen: &[Vec<Option<f64>>]) -> String {
    match (mean(seen), seen) {
        (Some(mean), _) if band.unit() == Unit::Number => number(mean),
        (Some(mean), _) => shown(band.unit(), mean),
        (None, []) => "not run".into(),
        (None, _) => "never".into(),
    }
}

/// The table of claims, with explanations where they do not hold.
fn claims(found: &[Found]) -> String {
    let mut text = String::from(
        "| experiment | the paper says | paper | ours | ratio | verdict | seeds | command |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    let mut notes: Vec<&str> = Vec::new();
    for one in found {
        for row in &one.claims {
            let verdict = match (row.verdict, &row.finding) {
                (Verdict::Holds, _) => "holds".to_owned(),
                (Verdict::NotRun, _) => "not run".into(),
                (Verdict::Differs, None) => "**differs**".into(),
                (Verdict::Differs, Some(finding)) => {
                    let known = notes.iter().position(|note| note == finding);
                    let note = known.unwrap_or_else(|| {
                        notes.push(finding);
                        notes.len() - 1
                    });
                    format!("**differs** ({})", note + 1)
                }
            };
            let form = if one.full { "" } else { ", quick" };
            let seeds = match row.seeds {
                0 => String::new(),
                seeds => format!("{seeds}{form}"),
            };
            let Row { says, paper, ours, ratio, .. } = row;
            let _ = writeln!(
                text,
                "| {} | {} | {paper} | {ours} | {ratio} | {verdict} | {seeds} | {} |",
                one.experiment.id,
                escaped(says),
                one.command(),
            );
        }
    }
    for (number, note) in notes.iter().enumerate() {
        let _ = write!(text, "\n({}) {}\n", number + 1, note.trim());
    }
    text
}

/// A table of an experiment's points.
fn points(one: &Found) -> Result<String, Error> {
    let paper = one.experiment.described()?;
    let mut text = format!("\n### {}: {}\n\n", one.experiment.id, paper.shows);
    if one.summary.is_none() {
        let _ = writeln!(text, "Not run: {}", one.command());
        return Ok(text);
    }
    let axes = one.columns.first().map(|point| point.settings.as_slice()).unwrap_or_default();
    let name = |one: &Setting| one.path.rsplit('.').next().unwrap_or_default().to_owned();
    let heads: Vec<String> = axes.iter().map(name).chain(one.headings.iter().cloned()).collect();
    let _ = writeln!(text, "| {} |", heads.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(heads.len()));
    for point in &one.columns {
        let settings = point.settings.iter().map(|one| one.value.clone());
        let cells = one.headings.iter().map(|heading| {
            let found = point.cells.iter().find(|(name, _)| name == heading);
            found.map(|(_, cell)| cell.clone()).unwrap_or_default()
        });
        let line: Vec<String> = settings.chain(cells).map(|cell| escaped(&cell)).collect();
        let _ = writeln!(text, "| {} |", line.join(" | "));
    }
    let seeds = one.columns.first().map_or(0, |_| {
        let runs = one.summary.iter().flat_map(|summary| &summary.runs);
        let mut seeds: Vec<u64> = runs.map(|run| run.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        seeds.len()
    });
    let _ = writeln!(text, "\nMeans over {seeds} seeds; {}.", one.command());
    if let Some(finding) = paper.finding {
        let _ = writeln!(text, "\n{}", finding.trim());
    }
    Ok(text)
}

/// A text within a table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_tells_points_from_each_other_is_said() {
        let point = |values: &[&str]| -> Vec<Setting> {
            let setting = |value: &&str| Setting { path: "a.b".into(), value: (*value).into() };
            values.iter().map(setting).collect()
        };
        let crossed = [point(&["1", "x"]), point(&["1", "y"]), point(&["2", "x"])];
        assert_eq!(telling(&crossed), [0, 1]);
        let zipped = [point(&["1", "x"]), point(&["2", "y"]), point(&["3", "y"])];
        assert_eq!(telling(&zipped), [0]);
        assert!(telling(&[point(&["1"])]).is_empty());
    }

    #[test]
    fn what_no_scenario_measures_stands_beside_the_summaries() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text);
        assert_eq!(measured(directory.path(), "router").unwrap(), "");
        write("router-linux.md", "Kernels.\n\n## A table\n\n").unwrap();
        write("ictcp-linux.md", "Of another paper.\n").unwrap();
        let kernels = "\n### router: measured with the kernel's TCP\n\nKernels.\n\n#### A table\n";
        assert_eq!(measured(directory.path(), "router").unwrap(), kernels);
        write("router-benchmarks.md", "Costs.\n").unwrap();
        let both = format!("\n### router: measured by benchmarks\n\nCosts.\n{kernels}");
        assert_eq!(measured(directory.path(), "router").unwrap(), both);
    }
}
