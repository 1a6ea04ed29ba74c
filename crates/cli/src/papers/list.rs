//! `transom papers list`: which experiments there are.

use std::process::ExitCode;

use serde_json::json;
use transom_lab::scenario::{Paper, Time};

use super::catalogue::{EXPERIMENTS, find};
use super::other_experiments::other_experiments;
use crate::columns::{Side, lay_out};
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
    let others = other_experiments(&args.ids);
    let scenarios = match find(&args.ids) {
        Err(_) if others.len() == args.ids.len() && !args.ids.is_empty() => Vec::new(),
        found => found?,
    };
    let none = scenarios.is_empty();
    for experiment in scenarios {
        let Paper { shows, takes, quick_takes, emulated, source, .. } = experiment.described()?;
        let scenario = experiment.scenario(true)?;
        let runs = scenario.points() * scenario.seeds.len();
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
    all.extend(others.iter().map(|one| json!(one)));
    if args.json {
        output::json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (left, right) = (Side::Left, Side::Right);
    if !none {
        lay_out([left, right, right, right, left], &lines).iter().try_for_each(output::line)?;
    }
    if EXPERIMENTS.len() + 1 == lines.len() {
        output::line("\nTimes are those of all runs on one core.")?;
    }
    if !others.is_empty() {
        let gap = if none { "" } else { "\n" };
        output::line(format_args!("{gap}Not scenarios; commands of the repository run them:\n"))?;
        let head = ["experiment", "what it shows", "results"].map(String::from);
        let rows = others.iter().map(|one| [one.id, one.shows, one.results].map(String::from));
        let rows: Vec<[String; 3]> = std::iter::once(head).chain(rows).collect();
        lay_out([left, left, left], &rows).iter().try_for_each(output::line)?;
        output::line("\n`transom papers describe ID` has the command.")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A time as one says it.
pub(super) fn duration(time: Time) -> String {
    let seconds = time.0.as_secs_f64();
    if seconds < 100.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}
