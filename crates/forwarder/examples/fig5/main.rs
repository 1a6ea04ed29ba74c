//! Figures 4 and 5 of the paper with the kernel's TCP. Ten transfers of 1 MB pass a router whose output is ten times slower than its input. The runs
//! are without window control and with each of the three deployments, for senders of different kinds.
//!
//! Everything is in network namespaces of its own, made anew for each run, so that nothing is remembered from one to the next. Run it as root on an
//! idle machine; it writes a report in Markdown:
//!
//! ```text
//! cargo run -p transom-forwarder --example fig5 > papers/results/router-linux.md
//! ```

#[path = "../../tests/support/mod.rs"]
mod support;

mod bed;
mod claims;
mod figures;
mod machine;
mod report;
mod senders;
mod transfers;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use bed::{Bed, Control};
use figures::Figures;
use machine::Machine;
use report::{Report, Run};
use senders::Senders;
use transfers::Failure;

const HELP: &str = "\
Ten transfers of 1 MB through a router, without window control and with it (figures 4 and 5), with the kernel's TCP.

Usage: fig5 [--turns N] [--minutes N] [--only WORD]...

  --turns N    how often everything is run [default: 5]; a turn takes about four minutes
  --minutes N  begin no run after so many [default: 40]; runs that something else on the machine has disturbed are
               put off to the end
  --only WORD  only this deployment (none, tc, nfqueue, user) or this kind of sender (cubic, reno, bbr, transom,
               mixed, cubic-32k); may be repeated
  --help       this text

Takes root. A line for each run goes to stderr, the report to stdout.";

/// How long whoever disturbs a run is left alone.
const PAUSE: Duration = Duration::from_secs(2);

/// The runs to make.
struct Plan {
    turns: usize,
    patience: Duration,
    controls: Vec<Control>,
    senders: Vec<Senders>,
}

impl Plan {
    /// Understands the command line; `None` if it asks for help.
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Plan>, String> {
        let (mut turns, mut minutes) = (5, 40u32);
        let (mut controls, mut senders) = (Vec::new(), Vec::new());
        while let Some(word) = words.next() {
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--turns" => {
                    let count = words.next().and_then(|count| count.parse().ok());
                    turns = count.filter(|count| *count > 0).ok_or("--turns takes a number")?;
                }
                "--minutes" => {
                    let count = words.next().and_then(|count| count.parse().ok());
                    minutes = count.ok_or("--minutes takes a number")?;
                }
                "--only" => {
                    let name = words.next().ok_or("--only takes a word")?;
                    let control = Control::ALL.into_iter().find(|one| one.name() == name);
                    let sender = Senders::ALL.into_iter().find(|one| one.name() == name);
                    if control.is_none() && sender.is_none() {
                        return Err(format!("there is neither a deployment nor a sender `{name}`"));
                    }
                    controls.extend(control);
                    senders.extend(sender);
                }
                _ => return Err(format!("`{word}` is not an option; see --help")),
            }
        }
        if controls.is_empty() {
            controls.extend(Control::ALL);
        }
        if senders.is_empty() {
            senders.extend(Senders::ALL);
        }
        let patience = Duration::from_secs(60 * u64::from(minutes));
        Ok(Some(Plan { turns, patience, controls, senders }))
    }
}

fn main() -> ExitCode {
    let plan = match Plan::parse(std::env::args().skip(1)) {
        Ok(Some(plan)) => plan,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("fig5: {error}");
            return ExitCode::from(2);
        }
    };
    let machine = Machine::detect();
    let begin = Instant::now();
    let mut report = Report::default();
    let mut agenda = VecDeque::new();
    for turn in 1..=plan.turns {
        for senders in &plan.senders {
            agenda.extend(plan.controls.iter().map(|control| (turn, *senders, *control)));
        }
    }
    while let Some((turn, senders, control)) = agenda.pop_front() {
        if report.skipped.contains(&control.name()) {
            continue;
        }
        let names = format!("{:<7} {:<9}", control.name(), senders.name());
        let label = format!("turn {turn} of {}: {names}", plan.turns);
        if begin.elapsed() > plan.patience {
            eprintln!("{label} not run: {:?} are over", plan.patience);
            report.unfinished += 1;
            continue;
        }
        match one(control, senders) {
            Ok(Some(figures)) => {
                eprintln!("{label} {figures}");
                report.runs.push(Run { control, senders, figures });
            }
            Ok(None) => report.skipped.push(control.name()),
            Err(Failure::Disturbed(unseen)) => {
                eprintln!("{label} put off: nobody could look for {:.0} ms", unseen * 1e3);
                report.disturbed += 1;
                agenda.push_back((turn, senders, control));
                thread::sleep(PAUSE);
            }
            Err(Failure::Other(error)) => {
                eprintln!("{label} FAILED: {error}");
                report.failed.push(format!("{} with {}: {error}", control.name(), senders.name()));
            }
        }
    }
    if report.runs.is_empty() {
        eprintln!("fig5: nothing could be measured");
        return ExitCode::FAILURE;
    }
    print!("{}", report.markdown(&machine, plan.turns, begin.elapsed()));
    ExitCode::SUCCESS
}

/// One run; `None`, and a word about it, where the system does not let us.
fn one(control: Control, senders: Senders) -> Result<Option<Figures>, Failure> {
    let Some(mut bed) = Bed::new(control, senders)? else { return Ok(None) };
    let told = transfers::run(&mut bed, senders)?;
    Ok(Some(Figures::of(&told)?))
}
