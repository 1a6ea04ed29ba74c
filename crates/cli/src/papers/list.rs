//! `transom papers list`: which experiments there are.

use std::process::ExitCode;

use serde_json::json;
use transom_lab::scenario::{Paper, Time};

use super::catalogue::{EXPERIMENTS, find};
use crate::lab::columns::{Side, lay_out};
use crate::output;

/// List the experiments
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom papers list
      all of them
  transom papers list ltcp
      those of one paper
  transom papers list --json
      for other programs")]
pub(crate) struct Args {
    /// Papers, or experiments
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists them.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let head = ["experiment", "quick", "full", "runs", "what it shows"];
    let mut lines = vec![head.map(String::from)];
    let mut all = Vec::new();
    for experiment in find(&args.ids)? {
        let Paper { shows, takes, quick_takes, emulated, source, .. } = experiment.described()?;
        let scenario = experiment.scenario(true)?;
        let runs = scenario.points() * scenario.seeds().len();
        let real = if emulated { " (in real time)" } else { "" };
        lines.push([
            experiment.id.into(),
            quick_takes.map_or("–".into(), duration),
            duration(takes),
            runs.to_string(),
            format!("{shows}{real}"),
        ]);
        all.push(json!({
            "id": experiment.id,
            "source": source,
            "shows": shows,
            "emulated": emulated,
            "runs": runs,
            "quick_seconds": quick_takes.map(|time| time.0.as_secs_f64()),
            "full_seconds": takes.0.as_secs_f64(),
        }));
    }
    if args.json {
        output::json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (left, right) = (Side::Left, Side::Right);
    lay_out([left, right, right, right, left], &lines).iter().try_for_each(output::line)?;
    if EXPERIMENTS.len() + 1 == lines.len() {
        output::line("\nTimes are those of all runs on one core.")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A time as one says it.
pub(super) fn duration(time: Time) -> String {
    let seconds = time.0.as_secs_f64();
    if seconds < 100.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}
