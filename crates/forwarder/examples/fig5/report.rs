//! The report: a table of medians, and what was claimed before.

use std::fmt::Write as _;
use std::time::Duration;

use crate::bed::{Control, LOWER, PACKET, UPPER};
use crate::figures::{FROM, Figures, UNTIL};
use crate::machine::{Machine, load};
use crate::senders::Senders;
use crate::support::LIMIT;
use crate::transfers::FLOWS;

/// A run, and what it came to.
pub(crate) struct Run {
    pub(crate) control: Control,
    pub(crate) senders: Senders,
    pub(crate) figures: Figures,
}

/// All runs.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) runs: Vec<Run>,
    /// Deployments that the system does not let us have.
    pub(crate) skipped: Vec<&'static str>,
    /// Runs that came to nothing, and why.
    pub(crate) failed: Vec<String>,
}

/// How long the queue may get: to the upper threshold, and by one packet of each flow, which may be on its way when the threshold is passed.
const LONGEST: u64 = UPPER + FLOWS as u64 * PACKET;
const JAIN: f64 = 0.95;
const UTILISATION: f64 = 0.98;

/// A figure of a run, and where it should lie.
struct Claim {
    says: &'static str,
    band: String,
    holds: fn(&Figures) -> bool,
    shown: fn(&Figures) -> String,
}

fn controlled() -> [Claim; 4] {
    [
        Claim {
            says: "no packet is dropped after slow start",
            band: "0".into(),
            holds: |figures| figures.late == 0,
            shown: |figures| figures.late.to_string(),
        },
        Claim {
            says: "the queue stays below the upper threshold, but for a packet of each flow",
            band: format!("≤ {:.1} kB", LONGEST as f64 / 1e3),
            holds: |figures| figures.longest <= LONGEST,
            shown: |figures| format!("{:.1} kB", figures.longest as f64 / 1e3),
        },
        Claim {
            says: "all flows have the same rate",
            band: format!("Jain ≥ {JAIN}"),
            holds: |figures| figures.jain >= JAIN,
            shown: |figures| format!("{:.3}", figures.jain),
        },
        Claim {
            says: "the link stays full",
            band: format!("utilisation ≥ {UTILISATION}"),
            holds: |figures| figures.utilisation >= UTILISATION,
            shown: |figures| format!("{:.3}", figures.utilisation),
        },
    ]
}

fn uncontrolled() -> Claim {
    Claim {
        says: "the queue overflows after slow start as well",
        band: "> 0 drops".into(),
        holds: |figures| figures.late > 0,
        shown: |figures| figures.late.to_string(),
    }
}

impl Report {
    fn of(&self, control: Control, senders: Senders) -> Vec<&Figures> {
        self.runs
            .iter()
            .filter(|run| (run.control, run.senders) == (control, senders))
            .map(|run| &run.figures)
            .collect()
    }

    /// The whole page.
    pub(crate) fn markdown(&self, machine: &Machine, turns: usize, took: Duration) -> String {
        let mut round_trips: Vec<_> = self.runs.iter().map(|run| run.figures.round_trip).collect();
        round_trips.sort();
        let micros = |at: usize| round_trips.get(at).map_or(0, Duration::as_micros);
        let unseen = self.runs.iter().map(|run| run.figures.unseen).fold(0.0, f64::max);
        let mut text = format!(
            "router/fig5 on Linux: `cargo run -p transom-forwarder --example fig5`. Ten transfers of 1 MB at once, with the kernel's TCP at both ends (its senders with cubic, reno or \
             bbr, chosen for each socket; Transom as it is by default, on a host behind the sender; or all four, mixed: 3, 3, 2 and 2), through a router in network namespaces. In front of it are 100 Mbit/s, \
             behind it 10 Mbit/s and a queue of {} bytes, in the interface (tc-tbf(8)) or, in mode user, the router's own; thresholds of {UPPER} and {LOWER} bytes, which are the paper's 50, 35 and 15 packets. \
             No offloads. All connections are opened before the first one sends, and the namespaces are made anew for each run. There is no netem(8) in this: the path has no delay of its own, and the round-trip time \
             of the idle one is {} µs (median of the handshakes; {} to {} in single runs), so that all the time is the queue's.\n\n",
            LIMIT,
            micros(round_trips.len() / 2),
            micros(0),
            micros(round_trips.len().saturating_sub(1)),
        );
        let _ = write!(
            text,
            "Medians over {turns} turns, and the least and the most in brackets where they differ; deployments take turns. *Late* is after {FROM} s. The longest queue, the mean queueing delay and the utilisation are \
             those from {FROM} to {UNTIL} s, Jain's index that of what arrived from {FROM} s to the end of the first transfer. The queue is looked at every 2 ms (at worst after {:.0} ms).\n\n\
             {machine}, {} after; {:.0} minutes.\n\n",
            unseen * 1e3,
            load(),
            took.as_secs_f64() / 60.0,
        );
        for name in &self.skipped {
            let _ = write!(text, "**{name} was not measured**: the system does not let us.\n\n");
        }
        for what in &self.failed {
            let _ = write!(text, "**A run failed**: {what}.\n\n");
        }
        text += &self.table();
        text += &self.claims();
        text
    }

    fn table(&self) -> String {
        let mut text = String::from(
            "| senders | control | drops | late | longest queue, kB | queueing delay, ms | Jain | first, s | last, s | utilisation | sent again |\n\
             |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        );
        for senders in Senders::ALL {
            for control in Control::ALL {
                let runs = self.of(control, senders);
                if runs.is_empty() {
                    continue;
                }
                let whole = |value: fn(&Figures) -> u64| {
                    spread(runs.iter().map(|figures| value(figures) as f64).collect(), 0)
                };
                let part = |value: fn(&Figures) -> f64, digits| {
                    spread(runs.iter().map(|figures| value(figures)).collect(), digits)
                };
                let _ = writeln!(
                    text,
                    "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                    senders.name(),
                    control.name(),
                    whole(|figures| figures.drops),
                    whole(|figures| figures.late),
                    part(|figures| figures.longest as f64 / 1e3, 1),
                    part(|figures| figures.delay * 1e3, 1),
                    part(|figures| figures.jain, 3),
                    part(|figures| figures.first, 2),
                    part(|figures| figures.last, 2),
                    part(|figures| figures.utilisation, 3),
                    whole(|figures| figures.resent),
                );
            }
        }
        text + "\n"
    }

    fn claims(&self) -> String {
        let mut text = String::from(
            "A claim holds if each run is within the band, which was set before the first.\n\n\
             | claim | control | band | seen | runs | verdict |\n|---|---|---|---|--:|---|\n",
        );
        for claim in controlled() {
            for control in Control::ALL.into_iter().skip(1) {
                text += &self.judged(&claim, control, &Senders::ALL);
            }
        }
        let overflows = uncontrolled();
        for senders in [Senders::Cubic, Senders::Reno] {
            text += &self.judged(&overflows, Control::Nothing, &[senders]);
        }
        text
    }

    /// A claim's line: what was seen, and with which senders it was missed.
    fn judged(&self, claim: &Claim, control: Control, senders: &[Senders]) -> String {
        let of = |one: &Senders| self.of(control, *one);
        let mut runs: Vec<&Figures> = senders.iter().flat_map(of).collect();
        if runs.is_empty() {
            return String::new();
        }
        let missed: Vec<String> = senders
            .iter()
            .filter_map(|one| {
                let runs = of(one);
                let bad: Vec<String> = runs
                    .iter()
                    .filter(|figures| !(claim.holds)(figures))
                    .map(|figures| (claim.shown)(figures))
                    .collect();
                let what = format!("{} in {} of {}", one.name(), bad.len(), runs.len());
                (!bad.is_empty()).then(|| format!("{what} ({})", bad.join(", ")))
            })
            .collect();
        // Sorted as they are shown, so that the least and the most are.
        let number = |figures: &&Figures| -> f64 {
            let shown = (claim.shown)(figures);
            shown.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(f64::NAN)
        };
        runs.sort_by(|one, other| number(one).total_cmp(&number(other)));
        let ends = [runs[0], runs[runs.len() - 1]].map(|figures| (claim.shown)(figures));
        let seen = if ends[0] == ends[1] { ends[0].clone() } else { ends.join(" … ") };
        let names = match senders {
            [one] => format!(", {}", one.name()),
            _ => String::new(),
        };
        let verdict = match missed.is_empty() {
            true => "holds".to_owned(),
            false => format!("**missed**: {}", missed.join("; ")),
        };
        format!(
            "| {} | {}{names} | {} | {seen} | {} | {verdict} |\n",
            claim.says,
            control.name(),
            claim.band,
            runs.len()
        )
    }
}

/// The median, and the least and the most if they are others.
fn spread(mut values: Vec<f64>, digits: usize) -> String {
    values.sort_by(f64::total_cmp);
    let shown = |at: usize| format!("{:.digits$}", values[at]);
    let (least, median, most) = (shown(0), shown(values.len() / 2), shown(values.len() - 1));
    if least == most { median } else { format!("{median} ({least}–{most})") }
}
