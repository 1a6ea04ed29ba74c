//! Figure 8 of icTCP with real processes: four flows from one host to another, each for itself and under a Congestion Manager. Run it with
//!
//! ```sh
//! cargo build -p transom-cli && cargo build -p transom-remote --example cm_udp && cargo run -p transom-cli --example cm_processes
//! ```
//!
//! Two network namespaces have an emulated path between them: 1 Mbit/s and 120 ms each way. In the one are the senders, each a process: `transom send`, and
//! in half of the cases a sender of UDP (`crates/remote/examples/cm_udp.rs`) in place of the fourth. With the Congestion Manager, one more process is
//! `transom cm run`. In the other namespace the kernel's TCP receives. Throughput is the payload that arrives in half a minute from the start. The cases
//! take turns. It takes no privileges where the system lets ordinary users make namespaces.

mod flows;
mod page;
#[path = "../namespaces/path.rs"]
mod path;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use flows::Turn;

/// How it is done; the options are in [`Plan::from_arguments`].
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) turns: usize,
    pub(crate) span: Duration,
    /// The file for the results.
    out: Option<PathBuf>,
    /// The command `transom`, and the sender of UDP.
    pub(crate) transom: PathBuf,
    pub(crate) udp: PathBuf,
}

/// Which flows there are, and whether they are managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) udp: bool,
    pub(crate) managed: bool,
}

impl Case {
    pub(crate) const ALL: [Case; 4] = [
        Case { udp: false, managed: false },
        Case { udp: false, managed: true },
        Case { udp: true, managed: false },
        Case { udp: true, managed: true },
    ];

    pub(crate) fn name(self) -> &'static str {
        match (self.udp, self.managed) {
            (false, false) => "4 TCP, each for itself",
            (false, true) => "4 TCP, `transom cm`",
            (true, false) => "3 TCP and 1 UDP, each for itself",
            (true, true) => "3 TCP and 1 UDP, `transom cm`",
        }
    }
}

impl Plan {
    fn from_arguments() -> Result<Plan> {
        let target = target()?;
        let mut plan = Plan {
            turns: 3,
            span: Duration::from_secs(30),
            out: None,
            transom: target.join("transom"),
            udp: target.join("examples/cm_udp"),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{name} needs a value"));
            match name.as_str() {
                "--turns" => plan.turns = value()?.parse()?,
                "--seconds" => plan.span = Duration::try_from_secs_f64(value()?.parse()?)?,
                "--out" => plan.out = Some(value()?.into()),
                "--transom" => plan.transom = value()?.into(),
                "--udp" => plan.udp = value()?.into(),
                _ => bail!("{name} is none of --turns, --seconds, --out, --transom, --udp"),
            }
        }
        for program in [&plan.transom, &plan.udp] {
            if !program.is_file() {
                bail!(
                    "{} is not there; the top of this file says how to build it",
                    program.display()
                );
            }
        }
        Ok(plan)
    }
}

/// The directory where cargo puts programs of this profile.
fn target() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let target = here.parent().and_then(Path::parent).context("this program is nowhere")?;
    Ok(target.to_owned())
}

/// The path of figure 8. The queue is that of the scenario `ictcp/fig8`.
pub(crate) fn figure_8_path(seed: u64) -> path::PathSettings<'static> {
    let delay = transom_tcp::time::Duration::from_millis(120);
    path::PathSettings { rate: "1Mbit/s", delay, queue: "40 packets", congestion: None, seed }
}

fn main() -> Result<ExitCode> {
    let plan = Plan::from_arguments()?;
    // While there is one thread.
    transom_device::namespace::enter_user_namespace().context("no network of our own")?;
    let mut results: Vec<Vec<Turn>> = vec![Vec::new(); Case::ALL.len()];
    for number in 1..=plan.turns {
        for (case, results) in Case::ALL.into_iter().zip(&mut results) {
            // A path of its own, so that nothing is left of the last one.
            let network = path::Network::build(&figure_8_path(number as u64))?;
            let turn = flows::run(&plan, &network, case)?;
            println!("turn {number}, {}: {turn}", case.name());
            results.push(turn);
        }
    }
    let page = page::text(&plan, &results);
    print!("{page}");
    if let Some(out) = &plan.out {
        std::fs::write(out, page).with_context(|| format!("cannot write {}", out.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}
