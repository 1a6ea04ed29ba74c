//! `transom ltcp table`: the paper's figure 2.

use std::process::ExitCode;

use serde_json::{Value, json};
use transom_tcp::congestion::ltcp::Layers;

use super::analysis::{Row, table};
use super::rule::{self, decimal, described};
use crate::columns::{Side, lay_out};
use crate::output;

/// Show the layers, their windows, and how much faster than Reno they are
///
/// This is the paper's figure 2. For each layer K it shows: the window W_K where the layer begins, the round trips from W_T to W_K (equation 14), and
/// the round trips to recover from a loss there. For both it shows the ratio to Reno. Layers with which flows would not converge (equations 2, 8 and
/// 12) are refused, with the numbers that violate the conditions.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom ltcp table
      the paper's design: W_T = 50 packets, β = 0.15
  transom ltcp table --rule double --beta 0.3 --layers 10
      its alternate, W_K = 2 W_(K-1)
  transom ltcp table --thresholds 50,150,400,1000
      your own thresholds
  transom ltcp table --json
      for other programs")]
pub(crate) struct Args {
    #[command(flatten)]
    rule: rule::RuleArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows the table.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let layers = args.rule.layers()?;
    if args.json {
        let rows: Vec<Value> = table(&layers).map(|row| value(&row)).collect();
        output::json(&json!({ "layers": described(&layers), "rows": rows }))?;
        return Ok(ExitCode::SUCCESS);
    }
    lines(&layers).iter().try_for_each(output::line)?;
    output::line(format_args!(
        "\nW_K and δ_K = W_(K+1) − W_K in packets, times in round trips; β = {}. Flows converge: equations 2, 8 and 12 hold.",
        layers.beta(),
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn lines(layers: &Layers) -> Vec<String> {
    let head = ["K", "W_K", "δ_K", "until W_K", "× Reno", "recovery", "× Reno"];
    let mut lines = vec![head.map(String::from)];
    lines.extend(table(layers).map(|row| {
        let Row { layer, window, step, claim, claim_speedup, recovery, recovery_speedup, .. } = row;
        [
            layer.to_string(),
            window.to_string(),
            step.map_or("–".into(), |step| step.to_string()),
            format!("{:.0}", decimal(claim)),
            format!("{:.2}", decimal(claim_speedup)),
            format!("{:.1}", decimal(recovery)),
            format!("{:.2}", decimal(recovery_speedup)),
        ]
    }));
    lay_out([Side::Right; 7], &lines)
}

fn value(row: &Row) -> Value {
    json!({
        "layer": row.layer,
        "window": row.window,
        "step": row.step,
        "claim_rtts": decimal(row.claim),
        "claim_speedup": decimal(row.claim_speedup),
        "recovery_rtts": decimal(row.recovery),
        "recovery_speedup": decimal(row.recovery_speedup),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that the paper's text has: W_15 = 28 000, and ten times as fast as a flow of Reno (9.6); 3.33 · (K − 1) in recovery.
    #[test]
    fn the_table_has_the_papers_numbers() {
        let lines = lines(&Layers::default());
        let row = |layer: &str| -> Vec<String> {
            let words = |line: &String| line.split_whitespace().map(String::from).collect();
            let rows: Vec<Vec<String>> = lines.iter().map(words).collect();
            rows.into_iter().find(|row| row[0] == layer).unwrap()
        };
        assert_eq!(row("2"), ["2", "50", "150", "0", "1.00", "7.5", "3.33"]);
        assert_eq!(row("3")[1], "200");
        assert_eq!(row("4")[1], "500");
        assert_eq!(row("15"), ["15", "28000", "6000", "2925", "9.56", "300.0", "46.67"]);
        assert_eq!(lines.len(), 18);
    }
}
