//! `transom lab report`: the pages of results that are there.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use transom_device::own_file;
use transom_lab::results::{PlannedRun, Store};
use transom_report::{INDEX, REPORT};

use super::finish::{self, Pages};
use super::interruption::Interruption;
use crate::features::Feature;
use crate::output;

/// Write the pages of results again
///
/// Every run has its own page, report.html in its directory. It shows the network, tables, charts, the expectations and their results.
/// Several runs share index.html: every point of the sweep with its means over the seeds and their confidence, and how each measure
/// depends on the swept values. `transom lab run` writes both. This command writes them again from stored results and runs nothing.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab report results/fairness
      all pages of these results
  transom lab report results/fairness --png
      and every chart as a PNG file beside them
  transom lab report results/queues --over topology.bottleneck.queue
      the charts of the sweep over this setting")]
pub(crate) struct Args {
    /// A results directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Write every chart, and the drawing of the network, as a PNG file too (feature `png`)
    #[arg(long)]
    png: bool,
    /// Draw the page of the sweep over this setting, by its path, such as topology.bottleneck.delay
    #[arg(long, value_name = "PATH")]
    over: Option<String>,
}

/// Writes the pages.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { directory, png, over } = args;
    if png {
        Feature::PNG.need()?;
    }
    let store = Store::open(&directory)?;
    own_file::check_output_directory(&directory)?;
    let plan = store.plan()?;
    let stored = store.runs()?;
    if stored.is_empty() {
        bail!("no run in {} is finished", directory.display());
    }
    let swept = |path: &String| {
        let points = plan.iter().flat_map(|plan| &plan.points);
        points.flat_map(|point| &point.settings).any(|setting| setting.path == *path)
    };
    if let Some(path) = over.as_ref().filter(|path| !swept(path)) {
        bail!("{path} is not swept in {}", directory.display());
    }
    let interruption = Interruption::handle()?;
    let runs: Vec<PlannedRun> = stored
        .iter()
        .map(|run| {
            let manifest = &run.manifest;
            let name = run.directory.file_name().unwrap_or_default();
            PlannedRun {
                id: manifest.id,
                directory: name.to_string_lossy().into_owned(),
                point: manifest.point,
                seed: manifest.seed,
            }
        })
        .collect();
    let runs: Vec<&PlannedRun> = runs.iter().collect();
    let pages = Pages { png, anew: true, live: None };
    finish::all(&store, plan.as_ref(), &runs, pages, &interruption, || {})?;
    if let Some(status) = interruption.status() {
        output::note("interrupted: not all pages are written");
        return Ok(ExitCode::from(status));
    }
    finish::summary(&store)?;
    let page = match (finish::index(&store, png, over.as_deref())?, stored.first()) {
        (false, Some(run)) => run.directory.join(REPORT),
        _ => directory.join(INDEX),
    };
    output::line(format_args!("The report is {}.", page.display()))?;
    Ok(ExitCode::SUCCESS)
}
