//! The page of results.

use std::fmt::Write as _;

use crate::flows::Turn;
use crate::path::PathSettings;
use crate::{Case, Plan, figure_8_path};

/// The bands of the scenario `ictcp/fig8`, in kbit/s; set before the first run.
const LEAST_APART: f64 = 10.0;
const MOST_APART: f64 = 4.8;
const MEAN: [f64; 2] = [216.0, 250.0];

pub(crate) fn text(plan: &Plan, results: &[Vec<Turn>]) -> String {
    let mut text = String::new();
    let PathSettings { rate, delay, queue, .. } = figure_8_path(1);
    let (turns, span) = (plan.turns, plan.span.as_secs_f64());
    let _ = write!(
        text,
        "# Four flows of four processes (icTCP, section 5.4.2, figure 8)\n\n\
         `cargo run -p transom-cli --example cm_processes -- --turns {turns} --seconds {span}`; the top of `crates/cli/examples/cm_processes/main.rs` says \
         what to build before.\n\n\
         One host sends to another over an emulated path with {rate} and {} ms each way, and a queue of {queue}. Each flow is a process. TCP is \
         `transom send --tcp classic`; UDP is `cm_udp`. The receiver is the kernel's. Throughput is the payload that arrives in {span} s. The \
         deviation is the standard deviation over the four flows. The cases take turns.\n\n\
         In the paper, Reno's flows have 24 to 39 KB/s (192 to 312 kbit/s) with a deviation of 5.5 KB/s (44 kbit/s). Under icCM each has about 30 KB/s \
         (240 kbit/s) with 0.6 KB/s (4.8 kbit/s).\n\n\
         | case | turn | flows, kbit/s | mean, kbit/s | deviation, kbit/s |\n|---|--:|---|--:|--:|\n",
        delay.as_millis()
    );
    for (case, turns) in Case::ALL.into_iter().zip(results) {
        for (number, turn) in (1..).zip(turns) {
            let flows: Vec<_> = turn.0.iter().map(|one| format!("{one:.0}")).collect();
            let (mean, deviation) = (turn.mean(), turn.deviation());
            let name = case.name();
            let _ = writeln!(
                text,
                "| {name} | {number} | {} | {mean:.1} | {deviation:.1} |",
                flows.join(", ")
            );
        }
    }
    let _ = write!(
        text,
        "\nIn the rows with UDP, the last flow is UDP. A claim holds if each turn is within the band. The bands are of this page alone: each turn is one \
         run of {span} s, so a band is for one turn. Those of the scenario `ictcp/fig8` are for 20 runs of a minute.\n\n\
         | claim | case | band, kbit/s | turns, kbit/s | verdict |\n|---|---|---|---|---|\n"
    );
    for (case, turns) in Case::ALL.into_iter().zip(results) {
        let deviations: Vec<f64> = turns.iter().map(Turn::deviation).collect();
        let means: Vec<f64> = turns.iter().map(Turn::mean).collect();
        let name = case.name();
        if case.managed {
            row(
                &mut text,
                "throughputs are even (deviation)",
                name,
                [0.0, MOST_APART],
                &deviations,
            );
            row(&mut text, "each has about 30 KB/s (mean)", name, MEAN, &means);
        } else {
            let apart = [LEAST_APART, f64::INFINITY];
            row(&mut text, "throughputs differ (deviation)", name, apart, &deviations);
        }
    }
    text
}

fn row(text: &mut String, claim: &str, case: &str, [least, most]: [f64; 2], turns: &[f64]) {
    let held = turns.iter().filter(|one| (least..=most).contains(*one)).count();
    let verdict = match held == turns.len() {
        true => "holds".to_owned(),
        false => format!("**differs** in {} of {}", turns.len() - held, turns.len()),
    };
    let band = match most.is_finite() {
        true => format!("{least} to {most}"),
        false => format!("at least {least}"),
    };
    let turns: Vec<_> = turns.iter().map(|one| format!("{one:.1}")).collect();
    let _ = writeln!(text, "| {claim} | {case} | {band} | {} | {verdict} |", turns.join(", "));
}
