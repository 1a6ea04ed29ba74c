//! The claims, written down before anything was measured, and whether they hold.

use std::fmt::Write as _;

use crate::bed::{Control, PACKET, UPPER};
use crate::figures::{FROM, Figures, SETTLED};
use crate::report::Report;
use crate::senders::Senders;
use crate::transfers::FLOWS;

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
    /// The table of claims, and what was found where one does not hold.
    pub(crate) fn claims(&self) -> String {
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
        text + &self.finding()
    }

    /// Why the queue is longer for a while than the paper's.
    fn finding(&self) -> String {
        let controlled = || self.runs.iter().filter(|run| run.control != Control::Nothing);
        let large = || controlled().filter(|run| run.senders.window().is_none());
        let long = large().filter(|run| run.figures.late > 0 || run.figures.longest > LONGEST);
        let most = large().map(|run| run.figures.settled).max().unwrap_or(0) as f64 / 1e3;
        let drops: u64 = large().map(|run| run.figures.rest).sum();
        let small = controlled().filter(|run| run.senders.window().is_some());
        let small = small.map(|run| run.figures.longest).max().map(|most| most as f64 / 1e3);
        if long.count() == 0 {
            return String::new();
        }
        let mut text = format!(
            "\nA window is never shrunk, or segments on their way would lie outside it. Each receiver grants 64 KiB with its SYN, before there is anything to control, and ten times that is \
             more than half a second of the link: until then a sender may use what it has been granted, whatever acknowledgements say. So slow start lasts longer than the {FROM} s after which the claims look, and \
             than the paper's 200 ms. From {SETTLED} s on no queue was longer than {most:.1} kB, and {drops} packets were dropped in all these runs."
        );
        if let Some(small) = small {
            let _ = write!(
                text,
                " cubic-32k has the paper's windows, 32 KiB and not scaled; there the longest queue after {FROM} s was {small:.1} kB."
            );
        }
        text + "\n"
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
