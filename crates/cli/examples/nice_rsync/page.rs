//! The results: as text, as a table for others to work with, and as a picture.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use transom_report::{Chart, HorizontalAxis, Hue, Section, Style};

use crate::{Beside, Measured, Plan};

/// One line of the table.
struct Line {
    name: String,
    /// The median of all transfers, the shortest and the longest, in seconds.
    median: f64,
    range: [f64; 2],
    alone: f64,
    beside: f64,
}

fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        len if len % 2 == 1 => values[len / 2],
        len => f64::midpoint(values[len / 2 - 1], values[len / 2]),
    }
}

fn lines(results: &[Vec<Measured>]) -> Vec<Line> {
    let line = |(beside, rounds): (Beside, &Vec<Measured>)| {
        let times = || rounds.iter().flat_map(|round| round.times.iter().copied());
        Line {
            name: beside.name(),
            median: median(times()),
            range: [times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max)],
            alone: median(rounds.iter().map(|round| round.alone)),
            beside: median(rounds.iter().map(|round| round.beside)),
        }
    };
    Beside::ALL.into_iter().zip(results).map(line).collect()
}

/// The table, in Markdown.
pub(crate) fn text(plan: &Plan, results: &[Vec<Measured>]) -> String {
    let lines = lines(results);
    let first = lines.first().map_or(f64::NAN, |line| line.median);
    let mut text = format!(
        "\n{} rounds of {} transfers of {} bytes over {}.\n\n",
        plan.rounds, plan.transfers, plan.bytes, plan.rate
    );
    text += "| beside | median, s | shortest – longest, s | to nothing beside | copy alone, Mbit/s | copy beside, Mbit/s |\n";
    text += "|---|---|---|---|---|---|\n";
    for Line { name, median, range: [least, most], alone, beside } in &lines {
        let ratio = median / first;
        let _ = writeln!(
            text,
            "| {name} | {median:.2} | {least:.2} – {most:.2} | {ratio:.2} | {alone:.1} | {beside:.1} |"
        );
    }
    text
}

/// Writes `nice-rsync.md`, `nice-rsync.csv` and `nice-rsync.svg`.
pub(crate) fn write(out: &Path, plan: &Plan, results: &[Vec<Measured>]) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    let mut table =
        String::from("beside,round,transfer,seconds,copy_alone_mbit,copy_beside_mbit\n");
    for (beside, rounds) in Beside::ALL.into_iter().zip(results) {
        for (round, measured) in (1..).zip(rounds) {
            for (transfer, seconds) in (1..).zip(&measured.times) {
                let (name, Measured { alone, beside, .. }) = (beside.name(), measured);
                let _ = writeln!(
                    table,
                    "{name},{round},{transfer},{seconds:.4},{alone:.3},{beside:.3}"
                );
            }
        }
    }
    let files = [
        ("nice-rsync.md", format!("# A copy in the background\n{}", text(plan, results))),
        ("nice-rsync.csv", table),
        ("nice-rsync.svg", picture(results)),
    ];
    for (name, text) in files {
        let path = out.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The time of each transfer in the foreground, and its median.
fn picture(results: &[Vec<Measured>]) -> String {
    let lines = lines(results);
    let mut dots = Vec::new();
    let mut medians = Vec::new();
    for (place, (rounds, line)) in results.iter().zip(&lines).enumerate() {
        let count = rounds.iter().map(|round| round.times.len()).sum::<usize>().max(1);
        let times = rounds.iter().flat_map(|round| &round.times).enumerate();
        // Beside each other, so that all are seen.
        dots.extend(times.map(|(number, &seconds)| {
            (place as f64 - 0.2 + 0.4 * number as f64 / count as f64, seconds)
        }));
        medians.push((place as f64, line.median));
    }
    let names = ["nothing", "rsync", "limit too low", "limit too high", "nice"];
    let section = Section {
        title: "Transfers in the foreground".into(),
        across: HorizontalAxis::Names {
            label: "in the background".into(),
            names: names.map(String::from).into(),
        },
        charts: vec![
            Chart::new("Transfers in the foreground", "time", "s")
                .series("each", Style::Dots, Hue::Grey, dots)
                .series("median", Style::Dots, Hue::Blue, medians),
        ],
    };
    section
        .charts
        .first()
        .map_or_else(String::new, |chart| transom_report::plot(&section, chart).to_string())
}
