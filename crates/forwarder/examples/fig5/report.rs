//! The report: a table of medians, and what was claimed before.

use std::fmt::Write as _;
use std::time::Duration;

use crate::bed::{Control, LOWER, UPPER};
use crate::figures::{BLIND, FROM, Figures, UNTIL};
use crate::machine::{Machine, load};
use crate::senders::Senders;
use crate::support::LIMIT;

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
    /// How many runs there was no time for.
    pub(crate) unfinished: usize,
    /// How many runs were thrown away because the machine had something else to do.
    pub(crate) disturbed: usize,
    /// Runs that came to nothing, and why.
    pub(crate) failed: Vec<String>,
}

impl Report {
    pub(crate) fn of(&self, control: Control, senders: Senders) -> Vec<&Figures> {
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
            "router/fig5 on Linux, `cargo run -p transom-forwarder --example fig5`: ten transfers of 1 MB at once through a router between network namespaces, with the kernel's TCP at both ends. \
             Senders are the kernel's with cubic, reno or bbr, Transom as it is by default, on a host of its own behind the sender, or *mixed*, 3, 3, 2 and 2 of these; *cubic-32k* has receivers with windows of 32 KiB, \
             not scaled, as Linux 2.0 had. In front of the router are 100 Mbit/s, behind it 10 Mbit/s and a queue of {LIMIT} bytes: the interface's (tc-tbf(8)), or in mode user the router's own. The thresholds are {UPPER} and \
             {LOWER} bytes; these are the paper's 50, 35 and 15 packets. There are no offloads. All connections are open before the first one sends. The path has no delay of its own: the round-trip time of its \
             handshakes is {} µs (median; up to {} µs in a run), so what a packet takes is what it waits.\n\n",
            micros(round_trips.len() / 2),
            micros(round_trips.len().saturating_sub(1)),
        );
        let _ = write!(
            text,
            "Medians of {turns} turns, with the least and the most where they differ; deployments take turns within each. *Late* is after {FROM} s. The longest queue, the queueing delay (of the mean queue) and \
             the utilisation are those from {FROM} to {UNTIL} s; Jain's index is that of what arrived between {FROM} s and the end of the first transfer. *Sent again* is what the senders counted. Somebody looked every 2 ms, \
             at worst after {:.0} ms; {} runs in which nobody could for more than {:.0} ms were thrown away and repeated: then the machine did something else, and the router stood still as well.\n\n\
             {machine}, {} after; {:.0} minutes.\n\n",
            unseen * 1e3,
            self.disturbed,
            BLIND * 1e3,
            load(),
            took.as_secs_f64() / 60.0,
        );
        for name in &self.skipped {
            let _ = write!(text, "**{name} was not measured**: the system does not let us.\n\n");
        }
        if self.unfinished > 0 {
            let _ = write!(text, "**There was no time for {} runs**.\n\n", self.unfinished);
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
            "| senders | control | drops | late | longest queue, kB | from 1 s, kB | queueing delay, ms | Jain | first, s | last, s | utilisation | sent again |\n\
             |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
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
                    "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                    senders.name(),
                    control.name(),
                    whole(|figures| figures.drops),
                    whole(|figures| figures.late),
                    part(|figures| figures.longest as f64 / 1e3, 1),
                    part(|figures| figures.settled as f64 / 1e3, 1),
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
}

/// The median, and the least and the most if they are others.
fn spread(mut values: Vec<f64>, digits: usize) -> String {
    values.sort_by(f64::total_cmp);
    let shown = |at: usize| format!("{:.digits$}", values[at]);
    let middle = (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0;
    let (least, median, most) = (shown(0), format!("{middle:.digits$}"), shown(values.len() - 1));
    if least == most { median } else { format!("{median} ({least}–{most})") }
}
