//! `transom lab compare`: two results on one page.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use flate2::read::GzDecoder;
use transom_device::own_file;
use transom_lab::results::{Store, StoredRun};
use transom_report::{FlentTest, compared_tests, two_sweeps};

use crate::output;

/// A file of flent is no longer than this when it is unpacked.
const LONGEST: u64 = 256 << 20;

/// Put two results on one page
///
/// Of two results directories, each measure of both is drawn over what is swept. Of two runs, two files of flent, or one of each, the rates and the
/// round-trip times are drawn over time.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab compare results/before results/after
      two sweeps, in compare.html
  transom lab compare rrul.flent.gz results/rrul/0f3a52c1b7d9 -o rrul.html
      a measurement by flent, and a run")]
pub(crate) struct Args {
    /// A results directory, a run in one, or a file of flent
    first: PathBuf,
    /// Another
    second: PathBuf,
    /// The page
    #[arg(long, short, value_name = "FILE", default_value = "compare.html")]
    output: PathBuf,
}

/// Writes the page.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args { first, second, output: page } = args;
    own_file::check_output(&page)?;
    let names = [&first, &second].map(|path| name(path));
    let names = if names[0] == names[1] {
        [&first, &second].map(|path| path.display().to_string())
    } else {
        names
    };
    let data = if is_sweep(&first) && is_sweep(&second) {
        let stores = [Store::open(&first)?, Store::open(&second)?];
        let data = two_sweeps([&names[0], &names[1]], [&stores[0], &stores[1]])?;
        data.context("no run in them is finished")?
    } else {
        let [one, other] = names;
        compared_tests(&[(one, test(&first)?), (other, test(&second)?)])
    };
    output::file(&page, transom_report::render(&data))?;
    output::line(format_args!("The page is {}.", page.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    name.trim_end_matches(".gz").trim_end_matches(".flent").to_owned()
}

/// Whether it is a results directory, and not one of its runs.
fn is_sweep(path: &Path) -> bool {
    path.is_dir() && !path.join("run.json").is_file()
}

/// The course of a run, or of a file of flent.
fn test(path: &Path) -> anyhow::Result<FlentTest> {
    if is_sweep(path) {
        bail!("{} has several runs, and the other is one: name one of its runs", path.display());
    }
    if path.is_dir() {
        let run = StoredRun::open(path)?;
        return Ok(FlentTest::of_run(&run.scenario()?, &run.observations()?));
    }
    let shown = path.display();
    let mut file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let mut bytes = Vec::new();
    let is_packed = path.extension().is_some_and(|extension| extension == "gz");
    let read = if is_packed {
        GzDecoder::new(file).take(LONGEST).read_to_end(&mut bytes)
    } else {
        file.by_ref().take(LONGEST).read_to_end(&mut bytes)
    };
    read.with_context(|| format!("cannot read {shown}"))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{shown} is no text"))?;
    text.parse().map_err(|error: String| anyhow!(error).context(shown.to_string()))
}
