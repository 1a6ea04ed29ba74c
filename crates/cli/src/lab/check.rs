//! `transom lab check`: checks a scenario, and shows its full meaning.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use serde_json::{Value, json};
use transom_lab::scenario::{Errors, Resolved, Scenario, Time, Variant};

use super::programs::Programs;
use crate::output;
use crate::units::counted;

/// Check a scenario, and show its contents
///
/// The command shows all errors at once, each with its line and a hint. It runs nothing. If the
/// scenario runs programs, in any of its forms, it shows every command as it will be started.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab check fairness.toml
      its errors, or the number of its runs
  transom lab check queues.toml --resolved --point 2
      the second point of its sweep with every default written down, as a scenario of its own
  transom lab check fairness.toml --json
      for other programs")]
pub(crate) struct Args {
    /// The scenario
    file: PathBuf,
    /// Show this form of the scenario, one of its [forms.NAME]; all forms are always checked
    #[arg(long, value_name = "NAME")]
    form: Option<String>,
    /// Show the scenario with presets, groups, sweeps and defaults written out
    #[arg(long)]
    resolved: bool,
    /// Only this point of the sweep, counted from one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    point: Option<u64>,
    /// Print JSON, for errors too
    #[arg(long)]
    json: bool,
}

/// Checks the scenario.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let scenario = match Scenario::load(&args.file, args.form.as_deref()) {
        Ok(scenario) => scenario,
        Err(errors) => {
            if args.json {
                output::json(&wrong(&errors))?;
            } else {
                output::note(&errors);
            }
            return Ok(ExitCode::FAILURE);
        }
    };
    let points = scenario.points();
    let chosen = |variant: &Variant| args.point.is_none_or(|n| variant.number as u64 + 1 == n);
    if args.point.is_some_and(|point| point > points as u64) {
        bail!(
            "{} has {points} points; there is no point {}",
            args.file.display(),
            args.point.unwrap_or(0)
        );
    }
    if args.json {
        let variants: Vec<Value> = scenario
            .sweep()
            .filter(chosen)
            .map(|variant| point(&variant, &scenario.seeds, args.resolved))
            .collect();
        let runs = points * scenario.seeds.len();
        let all = json!({
            "ok": true,
            "runs": runs,
            "seeds": scenario.seeds,
            "points": variants,
            "programs": programs_json(&args, &scenario)?,
        });
        output::json(&all)?;
    } else if args.resolved {
        for variant in scenario.sweep().filter(chosen) {
            if points > 1 {
                output::line(format_args!("# Point {} of {points}", variant.number + 1))?;
                for setting in &variant.settings {
                    output::line(format_args!("# {setting}"))?;
                }
            }
            output::line(variant.resolved.to_toml())?;
        }
    } else {
        summary(&args, &scenario)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn summary(args: &Args, scenario: &Scenario) -> anyhow::Result<()> {
    let Some(first) = scenario.sweep().next() else { return Ok(()) };
    let (points, seeds) = (scenario.points(), scenario.seeds.len());
    let Resolved { scenario: header, hosts, routers, links, flows, .. } = &first.resolved;
    let title = header.title.as_deref().unwrap_or(header.name.as_str());
    output::line(format_args!("{}: {title}", args.file.display()))?;
    let Time(duration) = header.duration;
    output::line(format_args!(
        "{} of {} s: {} × {}",
        counted(points * seeds, "run"),
        duration.as_secs_f64(),
        counted(points, "point"),
        counted(seeds, "seed"),
    ))?;
    let bands = first.resolved.expect.len() + first.comparisons.len();
    output::line(format_args!(
        "{}, {}, {}, {}, {}{}",
        counted(hosts.len(), "host"),
        counted(routers.len(), "router"),
        counted(links.len(), "link"),
        counted(flows.len(), "flow"),
        counted(bands, "band"),
        if points > 1 { " at the first point" } else { "" },
    ))?;
    if first.resolved.needs_emulation() {
        output::line(
            "A host has the kernel's TCP: this can only be emulated (transom lab run --emulate).",
        )?;
    }
    for (form, programs) in programs(args, scenario)? {
        let form = form.map_or(String::new(), |form| format!(", in its form {form}"));
        output::line(format_args!("It runs programs, with your rights{form}:\n{programs}"))?;
    }
    Ok(())
}

/// The programs of the chosen form of the scenario, and those of its other forms if they differ.
fn programs(args: &Args, scenario: &Scenario) -> anyhow::Result<Vec<(Option<String>, Programs)>> {
    let mut found = vec![(scenario.form.clone(), Programs::of(scenario))];
    let forms = scenario.forms.iter().map(|form| Some(form.as_str()));
    for form in std::iter::once(None).chain(forms).filter(|form| *form != scenario.form.as_deref())
    {
        let other = Scenario::load(&args.file, form);
        let programs = Programs::of(&other.map_err(|errors| anyhow!("{errors}"))?);
        if found.iter().all(|(_, one)| *one != programs) {
            found.push((form.map(str::to_owned), programs));
        }
    }
    found.retain(|(_, programs)| !programs.is_empty());
    Ok(found)
}

fn programs_json(args: &Args, scenario: &Scenario) -> anyhow::Result<Vec<Value>> {
    let each = programs(args, scenario)?.into_iter();
    Ok(each.map(|(form, programs)| json!({ "form": form, "commands": programs.json() })).collect())
}

fn point(variant: &Variant, seeds: &[u64], with_resolved: bool) -> Value {
    let Variant { number, settings, resolved, comparisons, controls } = variant;
    let runs: Vec<Value> = seeds
        .iter()
        .map(|seed| json!({ "seed": seed, "id": resolved.id(*seed, transom_lab::VERSION, false).to_string() }))
        .collect();
    let mut point = json!({
        "point": number + 1,
        "settings": settings,
        "runs": runs,
        "comparisons": comparisons.len(),
        "controls": controls.len(),
        "needs_emulation": resolved.needs_emulation(),
    });
    if with_resolved {
        point["resolved"] = json!(resolved);
    }
    point
}

fn wrong(errors: &Errors) -> Value {
    json!({ "ok": false, "file": errors.name, "errors": errors.diagnostics })
}
