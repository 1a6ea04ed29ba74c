//! `transom papers describe`: the claims of a paper, and the measurements.

use std::process::ExitCode;

use transom_lab::scenario::{Band, Claim, Paper};
use transom_report::labels;

use super::catalogue::{Experiment, find};
use super::list::duration;
use super::other_experiments::other_experiment;
use super::values::shown;
use crate::output::{self, listed};

/// Describe an experiment: the paper's claims, the set-up here, and the expected results
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom papers describe ltcp/fig5
      in words
  transom papers describe ltcp/fig5 --scenario > fig5.toml
      its scenario, to change it and run it with `transom lab run`")]
pub(crate) struct Args {
    /// The experiment
    #[arg(value_name = "ID")]
    id: String,
    /// Print the scenario
    #[arg(long)]
    scenario: bool,
}

/// Describes it.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    if !args.scenario
        && let Some(one) = other_experiment(&args.id)
    {
        let lines = [
            format!("{}: {}", one.id, one.shows),
            format!("Run: {}", one.command),
            format!("Results: {}", one.results),
        ];
        return lines.iter().try_for_each(output::line).map(|()| ExitCode::SUCCESS);
    }
    for experiment in find(&[args.id])? {
        if args.scenario {
            output::line(experiment.text.trim_end())?;
        } else {
            output::line(text(&experiment)?.trim_end())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn text(experiment: &Experiment) -> anyhow::Result<String> {
    let Paper { source, shows, setup, takes, quick_takes, emulated, .. } =
        experiment.described()?;
    let mut lines = vec![format!("{}: {source}", experiment.id), shows];
    lines.extend(setup.map(|setup| format!("Set-up: {setup}")));
    let mode = if emulated { " in real time" } else { "" };
    for (full, takes) in [(false, quick_takes), (true, Some(takes))] {
        let Some(takes) = takes else { continue };
        let scenario = experiment.scenario(full)?;
        let Some(first) = scenario.point(0) else { continue };
        lines.push(format!(
            "\n{}: {} runs of {}{mode}, about {} on one core",
            if full { "Full" } else { "Quick" },
            scenario.points() * scenario.seeds.len(),
            duration(first.resolved.scenario.duration),
            duration(takes),
        ));
        for point in scenario.sweep() {
            let at = match listed(&point.settings, "") {
                settings if settings.is_empty() => settings,
                settings => format!(" [{settings}]"),
            };
            let compared = point.comparisons.iter().map(|comparison| &comparison.band);
            for band in point.resolved.expect.iter().chain(compared) {
                let Band { claim: Some(claim), .. } = band else { continue };
                let Claim { says, number, ours, calibrated, control, .. } = claim;
                let kind = match (ours, calibrated) {
                    (true, _) => " (ours, not the paper's)",
                    (_, true) => " (calibrated: the set-up was chosen so that it holds)",
                    _ => "",
                };
                lines.push(format!("  {says}{at}{kind}"));
                let paper = number.map(|number| {
                    format!("; the paper has {}", shown(band.unit(), number.as_number()))
                });
                lines.push(format!(
                    "    {} {}{}",
                    labels::quantity(band),
                    labels::bounds(band),
                    paper.unwrap_or_default()
                ));
                let other = point.controls.iter().find(|one| one.band == *band);
                let other = other.and_then(|one| scenario.point(one.point));
                lines.extend(other.map(|other| {
                    format!("    must not hold at its control, {}", listed(&other.settings, ""))
                }));
                lines.extend(control.iter().map(|control| format!("    control: {control}")));
                lines.extend(band.why.iter().map(|why| format!("    {why}")));
            }
        }
    }
    Ok(lines.join("\n"))
}
