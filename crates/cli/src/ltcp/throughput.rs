//! `transom ltcp throughput`: equation 18, for a path or for a loss rate.

use std::process::ExitCode;

use anyhow::bail;
use serde_json::json;
use transom_lab::scenario::Number;
use transom_sim::units::Rate;
use transom_tcp::congestion::ltcp::Layers;
use transom_tcp::time::Duration;

use super::analysis::{
    RENO_BETA, SteadyState, packets_per_loss, recovery_time, steady_state, window_at_loss,
};
use super::rule::{self, decimal, described};
use crate::columns::{Side, lay_out};
use crate::output;
use crate::units::{BitRate, parse_duration};

/// Calculate the throughput of LTCP and Reno at a loss rate, or the loss rate that fills a path
///
/// With --rate, the command calculates the loss rate at which a flow fills the path. With --loss, it calculates a flow's throughput at
/// this loss rate (equation 18: √(K'(1 − β/2)/β) / (RTT·√p)). Both show Reno at the same loss rate.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom ltcp throughput --rate 2.4Gbit/s --rtt 150ms
      the paper's example: a window of 30000 packets, and about 8 times Reno's throughput
  transom ltcp throughput --loss 0.00001 --rtt 70ms
      at a packet lost in 100000
  transom ltcp throughput --rate 10Gbit/s --rtt 100ms --mss 9000 --json
      with jumbo frames, for other programs")]
pub(crate) struct Args {
    /// The path's rate
    #[arg(long, value_name = "RATE", required_unless_present = "loss", conflicts_with = "loss")]
    rate: Option<Rate>,
    /// The share of packets that is lost
    #[arg(long, value_name = "SHARE")]
    loss: Option<Number>,
    /// The round-trip time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    rtt: std::time::Duration,
    /// The size of a packet in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u32).range(1..=65535))]
    mss: u32,
    #[command(flatten)]
    rule: rule::RuleArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result to show.
struct Answer {
    packets_per_loss: u64,
    state: SteadyState,
    reno_before: u64,
    ltcp_recovery: f64,
    reno_recovery: f64,
}

/// Works it out.
pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let layers = args.rule.layers()?;
    let rtt = Duration::from_nanos(u64::try_from(args.rtt.as_nanos()).unwrap_or(u64::MAX));
    let packets = match (args.rate, args.loss) {
        (Some(rate), _) => {
            let window = u128::from(rate.bits_per_sec()) * u128::from(rtt.as_nanos())
                / (8_000_000_000 * u128::from(args.mss));
            if window < 2 {
                bail!("the path holds less than two packets; the model needs a larger window");
            }
            loss_for(&layers, u64::try_from(window).unwrap_or(u64::MAX))
        }
        (None, Some(loss)) if (1..=1_000_000_000).contains(&loss.billionths) => {
            1_000_000_000 / loss.billionths
        }
        _ => bail!("a loss rate is above 0 and at most 1"),
    };
    let answer = answer(&layers, packets, rtt);
    let value = value(&layers, &answer, args.mss);
    output::shown(args.json, &value, || lines(&answer, args.mss).join("\n"))
}

/// How many packets there have to be for each loss, for a flow to have `window` before it.
fn loss_for(layers: &Layers, window: u64) -> u64 {
    let reached = layers.of(window);
    let beta = if reached == 1 { RENO_BETA } else { layers.beta() };
    let kept = window - beta.of(window);
    // K' of the paper: the layer in which it recovers.
    let slope = reached - u32::from(reached > 1 && kept < layers.threshold(reached));
    packets_per_loss(beta, slope, window).max(1)
}

fn answer(layers: &Layers, packets: u64, rtt: Duration) -> Answer {
    let state = steady_state(layers, packets, rtt);
    let reno_before = window_at_loss(RENO_BETA, 1, packets);
    let seconds = |rtts: f64| rtts * rtt.as_nanos() as f64 / 1e9;
    // In the layer in which it recovers, which `recovery_time` takes for the one below.
    let above = if state.layer == 1 { 1 } else { state.layer + 1 };
    let ltcp_recovery = seconds(decimal(recovery_time(layers, above, state.before)));
    let reno_recovery = seconds(reno_before as f64 / 2.0);
    Answer { packets_per_loss: packets, state, reno_before, ltcp_recovery, reno_recovery }
}

fn lines(answer: &Answer, mss: u32) -> Vec<String> {
    let Answer { packets_per_loss, state, reno_before, ltcp_recovery, reno_recovery } = answer;
    let rate = |packets: u64| BitRate(packets as f64 * f64::from(mss) * 8.0).to_string();
    let row = |what: &str, ltcp: String, reno: String| [what.to_owned(), ltcp, reno];
    let rows = [
        row("", "LTCP".into(), "Reno".into()),
        row("layer after a loss", state.layer.to_string(), "1".into()),
        row("window before a loss (packets)", state.before.to_string(), reno_before.to_string()),
        row("and after it", state.after.to_string(), (reno_before / 2).to_string()),
        row("recovery", format!("{ltcp_recovery:.1} s"), format!("{reno_recovery:.1} s")),
        row("throughput", rate(state.throughput), rate(state.reno)),
    ];
    let mut lines = vec![format!(
        "One packet lost in {packets_per_loss}, a loss rate of {:.3e}",
        1.0 / *packets_per_loss as f64
    )];
    lines.extend(lay_out([Side::Left, Side::Right, Side::Right], &rows));
    lines.push(format!("LTCP has {:.2} times Reno's throughput.", decimal(state.gain)));
    lines
}

fn value(layers: &Layers, answer: &Answer, mss: u32) -> serde_json::Value {
    let Answer { packets_per_loss, state, reno_before, ltcp_recovery, reno_recovery } = answer;
    let bits = |packets: u64| packets as f64 * f64::from(mss) * 8.0;
    json!({
        "layers": described(layers),
        "packets_per_loss": packets_per_loss,
        "ltcp": {
            "layer": state.layer,
            "before": state.before,
            "after": state.after,
            "recovery_s": ltcp_recovery,
            "bits_per_second": bits(state.throughput),
        },
        "reno": {
            "before": reno_before,
            "recovery_s": reno_recovery,
            "bits_per_second": bits(state.reno),
        },
        "gain": decimal(state.gain),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section IV-A: at 2.4 Gbit/s and 150 ms the window is 30 000 packets, LTCP is in layer 15, and has about 8 times TCP's throughput.
    #[test]
    fn the_papers_example() {
        let (layers, rtt) = (Layers::default(), Duration::from_millis(150));
        let answer = answer(&layers, loss_for(&layers, 30_000), rtt);
        let gain = decimal(answer.state.gain);
        assert!((7.3..8.0).contains(&gain), "{gain}");
        assert!((29_990..=30_010).contains(&answer.state.before), "{:?}", answer.state);
        // √(3/2 · 1/p) / RTT of Reno, by hand.
        let reno = (1.5 * answer.packets_per_loss as f64).sqrt() / 0.15;
        assert!((answer.state.reno as f64 / reno - 1.0).abs() < 0.001);
    }

    #[test]
    fn below_the_threshold_it_is_reno() {
        let (layers, rtt) = (Layers::default(), Duration::from_millis(100));
        let answer = answer(&layers, loss_for(&layers, 30), rtt);
        assert_eq!((answer.state.layer, decimal(answer.state.gain)), (1, 1.0));
        assert_eq!(answer.ltcp_recovery, answer.reno_recovery);
    }
}
