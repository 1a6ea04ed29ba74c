//! `transom-benches`: measures Transom beside the kernel's TCP and smoltcp.

use anyhow::Context;
use clap::{Parser, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};
use std::time::Duration;
use transom_benches::counting::CountingAllocator;
use transom_benches::environment::Environment;
use transom_benches::groups::{self, Entry, Settings};
use transom_benches::harness;
use transom_benches::placement::{Cpus, Placement};
use transom_benches::report::{GroupReport, Report};
use transom_benches::stored_results;
use transom_benches::watchdog::Watchdog;
use transom_device::namespace::enter_user_namespace;

/// Measures Transom beside the kernel's TCP and smoltcp.
///
/// All cases of a group are measured in turns. The result is the median of the ratios within a round, because
/// absolute numbers depend on the machine's other load. Groups over TUN need root or an unprivileged user
/// namespace.
#[derive(Debug, Parser)]
#[command(after_help = "\
Examples:
  transom-benches                                  everything, about seven minutes
  transom-benches --group memory --samples 11
  transom-benches --group bulk-send --group bulk-recv --cpu two --markdown bulk.md
  perf record -g transom-benches --group bulk-recv --case 'Transom over TUN' --samples 1 --seconds 5
  transom-benches --list")]
struct Arguments {
    /// Measure this group only, or all whose names begin with it and a hyphen (may be repeated)
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// Measure only cases whose name contains this, for a profiler; ratios need both cases
    #[arg(long = "case", value_name = "TEXT")]
    case: Option<String>,
    /// Samples of each case
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    samples: u16,
    /// Length of a sample in seconds
    #[arg(long, default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Which CPUs the two ends have
    #[arg(long, value_enum, default_value_t = CpuChoice::Both)]
    cpu: CpuChoice,
    /// Kilobytes (1024 bytes) per write and read in bulk transfers
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=16_384))]
    chunk: u16,
    /// Write everything that was found out to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put medians, ranges and ratios into this file as JSON, for the pages of papers; groups that are not measured stay as they are
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Write the tables to this file as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Say what groups there are
    #[arg(long)]
    list: bool,
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CpuChoice {
    /// Everything on one CPU
    One,
    /// Wherever the kernel puts threads
    Two,
    /// Each end on a CPU of its own
    Apart,
    /// First one, then two
    Both,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.01..=600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("a sample lasts 0.01 to 600 seconds".into())
    }
}

fn main() -> anyhow::Result<()> {
    if let Some(outcome) = transom_benches::roles::play() {
        return outcome;
    }
    let arguments = Arguments::parse();
    if arguments.list {
        for entry in groups::ALL {
            println!("{:12} {}", entry.name, entry.about);
        }
        return Ok(());
    }
    let chosen = choose(&arguments.groups)?;
    let outputs = [&arguments.json, &arguments.keep, &arguments.markdown];
    outputs.into_iter().flatten().try_for_each(|path| check_output(path))?;
    // Before any thread exists: afterwards the kernel does not allow it. Groups that need it say so if it failed.
    if let Err(error) = enter_user_namespace().context("no network namespaces here") {
        eprintln!("{error:#}");
    }
    let cpus = Cpus::detect().context("reading the CPU affinity")?;
    let environment = Environment::detect();
    println!("{environment}");
    let watchdog = Watchdog::start(|case| {
        eprintln!("\n{case} hangs; giving up");
        std::process::exit(1);
    })?;
    let mut report = Report { environment, seconds: arguments.seconds, groups: Vec::new() };
    for entry in chosen {
        for placement in placements(entry, arguments.cpu, cpus.count()) {
            cpus.place(placement).context("setting the CPU affinity")?;
            let group = run(entry, placement, &arguments, cpus, &watchdog);
            println!("\n{}", group.markdown());
            report.groups.push(group);
            cpus.place(Placement::Free).context("setting the CPU affinity")?;
        }
    }
    if let Some(path) = &arguments.json {
        let json = serde_json::to_string_pretty(&report)?;
        std::fs::write(path, json).with_context(|| format!("writing {}", path.display()))?;
    }
    if let Some(path) = &arguments.keep {
        stored_results::keep(&report, path)?;
    }
    if let Some(path) = &arguments.markdown {
        std::fs::write(path, report.markdown())
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Checks before the measurements that their results can be written. What exists stays as it is.
fn check_output(path: &Path) -> anyhow::Result<()> {
    let is_new = !path.exists();
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened.with_context(|| format!("cannot write {}", path.display()))?;
    if is_new {
        std::fs::remove_file(path).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn choose(names: &[String]) -> anyhow::Result<Vec<&'static Entry>> {
    if names.is_empty() {
        return Ok(groups::ALL.iter().collect());
    }
    let mut chosen = Vec::new();
    for name in names {
        let of_that_name = |entry: &&Entry| {
            let rest = entry.name.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let before = chosen.len();
        chosen.extend(groups::ALL.iter().filter(of_that_name));
        let all = || groups::ALL.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        anyhow::ensure!(chosen.len() > before, "no group named {name}; there are {}", all());
    }
    Ok(chosen)
}

fn placements(entry: &Entry, choice: CpuChoice, cpus: usize) -> Vec<Placement> {
    if entry.single_threaded || cpus == 1 {
        return vec![Placement::One];
    }
    match choice {
        CpuChoice::One => vec![Placement::One],
        CpuChoice::Two => vec![Placement::Free],
        CpuChoice::Apart => vec![Placement::Apart],
        CpuChoice::Both => vec![Placement::One, Placement::Free],
    }
}

fn run(
    entry: &Entry,
    placement: Placement,
    arguments: &Arguments,
    cpus: Cpus,
    watchdog: &Watchdog,
) -> GroupReport {
    let settings = Settings { placement, cpus, chunk: usize::from(arguments.chunk) * 1024 };
    let mut report = GroupReport {
        group: entry.name,
        about: entry.about,
        cpu: placement.describe(cpus.count()),
        unit: harness::Unit::PerSecond,
        cases: Vec::new(),
        notes: Vec::new(),
        skipped: None,
    };
    match (entry.build)(settings) {
        Ok(mut group) => {
            if let Some(text) = &arguments.case {
                group.cases.retain(|case| case.name().contains(text));
            }
            let samples = usize::from(arguments.samples);
            let rounds = samples.min(group.most_samples).max(1);
            let progress = progress_bar((rounds * group.cases.len()) as u64, entry.name);
            let span = Duration::from_secs_f64(arguments.seconds);
            report.unit = group.unit;
            report.cases = harness::measure(&mut group, rounds, span, &progress, watchdog);
            report.notes = group.notes;
            progress.finish_and_clear();
        }
        Err(error) => {
            let reason = format!("{error:#}");
            eprintln!("SKIPPED {}: {reason}", entry.name);
            report.skipped = Some(reason);
        }
    }
    report
}

fn progress_bar(samples: u64, group: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {eta} {msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(samples).with_style(style).with_prefix(group);
    // A sample lasts too long for the bar to move only between two.
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
