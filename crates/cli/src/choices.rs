//! `transom units`: the units that a TCP is composed of, and the choices for each.

use std::fmt::Write as _;
use std::process::ExitCode;

use serde_json::json;
use transom_tcp::compose::{PRESETS, Unit, WORDS};
use transom_tcp::congestion::ALGORITHMS;

use crate::output;

/// List the units that a TCP is composed of
///
/// Use these words with --tcp, and with `tcp` in the profiles of scenarios. Join them by " + ". A unit without a word keeps its
/// default.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom units
      all units
  transom send --tcp 'cubic + rack-tlp + prr' FILE 10.9.0.1:9000
      use some of it
  transom units --json
      for other programs")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A word, its unit, and its meaning.
struct Line {
    unit: Unit,
    word: &'static str,
    meaning: String,
}

fn lines() -> Vec<Line> {
    let words = WORDS.iter().map(|word| Line {
        unit: word.unit,
        word: word.name,
        meaning: word.summary.into(),
    });
    let algorithms = ALGORITHMS.iter().filter(|entry| entry.name != "none").map(|entry| Line {
        unit: Unit::Congestion,
        word: entry.name,
        meaning: format!("{} ({})", entry.summary, entry.source),
    });
    words.chain(algorithms).collect()
}

/// Lists them.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let lines = lines();
    if args.json {
        let words: Vec<_> = lines
            .iter()
            .map(|line| json!({ "word": line.word, "unit": line.unit.to_string(), "meaning": line.meaning }))
            .collect();
        let presets: Vec<_> = PRESETS
            .iter()
            .map(|one| json!({ "name": one.name, "words": one.text, "meaning": one.summary }))
            .collect();
        output::json(&json!({ "words": words, "presets": presets }))?;
    } else {
        output::line(text(&lines).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(lines: &[Line]) -> String {
    let mut text = String::new();
    let mut units: Vec<Unit> = Vec::new();
    for line in lines {
        if !units.contains(&line.unit) {
            units.push(line.unit);
        }
    }
    let width = lines.iter().map(|line| line.word.len()).max().unwrap_or(0);
    for unit in units {
        let _ = writeln!(text, "{unit}");
        for line in lines.iter().filter(|line| line.unit == unit) {
            let _ = writeln!(text, "  {:width$}  {}", line.word, line.meaning);
        }
        text.push('\n');
    }
    let _ = writeln!(text, "presets");
    for preset in PRESETS {
        let _ = writeln!(text, "  {:width$}  {}: {}", preset.name, preset.text, preset.summary);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_listed_under_its_unit() {
        let text = text(&lines());
        for word in WORDS {
            assert!(text.contains(&format!("\n  {}", word.name)), "{}", word.name);
        }
        let recovery = text.split("\n\n").find(|part| part.starts_with("loss recovery")).unwrap();
        assert!(recovery.contains("rack-tlp") && !recovery.contains("cubic"));
        assert!(text.contains("sackexp"));
    }
}
