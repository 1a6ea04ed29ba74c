//! The cost of a background copy to a foreground transfer, with real programs. Run it with
//!
//! ```sh
//! cargo build --release -p transom-cli && cargo run --release -p transom-cli --example nice_rsync
//! ```
//!
//! Two network namespaces have an emulated path between them, with a bottleneck. In the foreground, the kernel's TCP sends files of one size one after the
//! other, and each is timed. Beside it, `rsync` pushes a large file the same way: not at all, plainly, with `--bwlimit` guessed too low and too high, and under
//! `transom exec --extension nice`. The rounds take turns. It takes no privileges where the system lets ordinary users make namespaces.

mod copying;
mod foreground;
mod page;
#[path = "../namespaces/path.rs"]
mod path;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use copying::Copying;
use path::{Network, PathSettings};

/// How it is done; the options are in [`Plan::from_arguments`].
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    rounds: usize,
    /// Transfers of the foreground in each round, and the bytes of each.
    transfers: usize,
    bytes: usize,
    /// How long the copy has the path for itself before.
    alone: Duration,
    rate: String,
    /// The file for the results.
    out: Option<PathBuf>,
    /// The command `transom`.
    transom: PathBuf,
}

/// The traffic beside the foreground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    Nothing,
    Plain,
    /// `--bwlimit` in KiB per second.
    Limited(u32),
    Nice,
}

impl Beside {
    const ALL: [Beside; 5] =
        [Beside::Nothing, Beside::Plain, Beside::Limited(400), Beside::Limited(2000), Beside::Nice];

    fn name(self) -> String {
        match self {
            Beside::Nothing => "nothing".into(),
            Beside::Plain => "rsync".into(),
            Beside::Limited(rate) => format!("rsync --bwlimit={rate}"),
            Beside::Nice => "transom exec --extension nice -- rsync".into(),
        }
    }
}

/// The results of one round beside one of them.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Seconds of each transfer.
    times: Vec<f64>,
    /// Mbit/s of the copy while it was alone, and beside the foreground.
    alone: f64,
    beside: f64,
}

impl Plan {
    fn from_arguments() -> Result<Plan> {
        let mut plan = Plan {
            rounds: 5,
            transfers: 6,
            bytes: 4_000_000,
            alone: Duration::from_secs(8),
            rate: "20Mbit/s".into(),
            out: None,
            transom: beside_this_program()?,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{name} needs a value"));
            match name.as_str() {
                "--rounds" => plan.rounds = value()?.parse()?,
                "--transfers" => plan.transfers = value()?.parse()?,
                "--bytes" => plan.bytes = value()?.parse()?,
                "--alone" => plan.alone = Duration::from_secs_f64(value()?.parse()?),
                "--rate" => plan.rate = value()?,
                "--out" => plan.out = Some(value()?.into()),
                "--transom" => plan.transom = value()?.into(),
                _ => anyhow::bail!(
                    "{name} is none of --rounds, --transfers, --bytes, --alone, --rate, --out, --transom"
                ),
            }
        }
        Ok(plan)
    }
}

/// The command is built into the same directory.
fn beside_this_program() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let target = here.parent().and_then(Path::parent).context("this program is nowhere")?;
    Ok(target.join("transom"))
}

fn main() -> Result<ExitCode> {
    let plan = Plan::from_arguments()?;
    if !plan.transom.is_file() {
        anyhow::bail!("{} is not there: cargo build -p transom-cli", plan.transom.display());
    }
    // While there is one thread.
    transom_device::namespace::enter_user_namespace().context("no network of our own")?;
    let delay = transom_tcp::time::Duration::from_millis(10);
    // The queue is as long as two round-trip times.
    let path = PathSettings {
        rate: &plan.rate,
        delay,
        queue: "100kB",
        congestion: Some("cubic"),
        seed: 1,
    };
    let network = Network::build(&path)?;
    let mut results: Vec<Vec<Measured>> = vec![Vec::new(); Beside::ALL.len()];
    for round in 1..=plan.rounds {
        for (beside, results) in Beside::ALL.into_iter().zip(&mut results) {
            let measured = once(&plan, &network, beside)?;
            println!(
                "round {round}, beside {}: {:.2?} s, the copy {:.1} Mbit/s alone and {:.1} beside it",
                beside.name(),
                measured.times,
                measured.alone,
                measured.beside
            );
            results.push(measured);
        }
    }
    print!("{}", page::text(&plan, &results));
    if let Some(out) = &plan.out {
        page::write(out, &plan, &results)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn once(plan: &Plan, network: &Network, beside: Beside) -> Result<Measured> {
    let copying = Copying::start(plan, network, beside)?;
    std::thread::sleep(plan.alone);
    let first = copying.received();
    let began = std::time::Instant::now();
    let times = foreground::transfers(network, plan.transfers, plan.bytes)?;
    let span = began.elapsed().as_secs_f64();
    let second = copying.received();
    copying.end()?;
    // The first second is for rsync to begin.
    let alone = plan.alone.as_secs_f64();
    let megabits = |bytes: u64, seconds: f64| bytes as f64 * 8.0 / 1e6 / seconds.max(1e-9);
    Ok(Measured {
        times,
        alone: megabits(first, alone),
        beside: megabits(second.saturating_sub(first), span),
    })
}
