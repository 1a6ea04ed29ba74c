//! `transom lab flent`: a run as a file of flent.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use flate2::Compression;
use flate2::write::GzEncoder;
use transom_device::own_file;
use transom_lab::results::StoredRun;
use transom_report::FlentTest;

use crate::output;

/// Write a run as a file of flent, for its plots
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Example:
  transom lab flent results/rrul/0f3a52c1b7d9 -o rrul.flent.gz
      the goodput of each flow, and the round-trip times of pings")]
pub(crate) struct Args {
    /// The directory of a run
    run: PathBuf,
    /// The file
    #[arg(long, short, value_name = "FILE", default_value = "run.flent.gz")]
    output: PathBuf,
}

/// Writes the file.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    own_file::check_output(&args.output)?;
    let run = StoredRun::open(&args.run)?;
    let test = FlentTest::of_run(&run.scenario()?, &run.observations()?);
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(test.json(transom_lab::VERSION).as_bytes())?;
    output::file(&args.output, packed.finish()?)?;
    output::line(format_args!("{} is written.", args.output.display()))?;
    Ok(ExitCode::SUCCESS)
}
