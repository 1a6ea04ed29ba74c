//! The arguments of `transom lab run`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::bail;
use transom_lab::results::Shard;

use super::super::programs::Consent;
use super::engine::{Engaged, Engine};

/// Run a scenario, in the simulator or in real time
///
/// Every point of the sweep is run with each seed, on all processors, in virtual time. The same scenario and seed give the same result on every
/// machine. Each run gets a directory with its results: tables as Parquet and CSV, the resolved scenario, and a page with charts, report.html. The
/// command judges the expectations. It does not repeat stored runs, so an interrupted command continues where it stopped. Several runs share a page,
/// index.html in the results directory. The command succeeds if all expectations hold.
///
/// With --emulate, the runs are made one after the other in real time, with the same links, queues and hosts. Hosts of kind "kernel" then use the
/// kernel's TCP, each in a network namespace, and can run real programs. That needs root or user namespaces. A run fails if the emulator fell
/// behind.
///
/// With --engine, HyperQueue, Ray or Slurm makes the missing runs, on all machines that it has. All machines must see the scenario, this program and the
/// results directory under the same paths. Failed runs are named, and the same command again makes them. The results are the same, byte for byte.
///
/// Programs run with your rights: a namespace isolates only their network. So before the first run of a scenario with programs, the command shows
/// them and asks you. If it cannot ask, it fails unless --allow-programs is given. It asks again when a file has changed.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  transom lab run fairness.toml
      run it, with results in results/fairness
  transom lab run papers/ltcp/fig5.toml --form quick
      in the form that the scenario calls quick
  transom lab run fairness.toml --seeds 20
      with the seeds from 1 to 20 instead of the scenario's own
  transom lab run queues.toml --point 2 --seed 7
      one run only of a sweep
  transom lab run fairness.toml --shard 2/3 -o part2
      the second of three parts, on one of three machines; see `transom lab merge`
  transom lab run fairness.toml --engine hyperqueue -o /shared/fairness
      on all workers of a HyperQueue server; --engine ray does the same with Ray
  transom lab run fairness.toml --engine slurm -o /shared/fairness
      write a script for sbatch; --submit submits it and waits
  transom lab run fairness.toml --watch
      look at the runs in a browser while they go on
  transom lab run fairness.toml --tui
      the same in the terminal
  transom lab run kernel-cubic.toml --emulate
      in real time, with the kernel's TCP
  transom lab run iperf.toml --emulate --allow-programs
      a scenario with programs, in a script without a terminal
  transom lab run fairness.toml -o /tmp/fairness --json
      for other programs")]
pub(crate) struct Args {
    /// The scenario
    pub(super) file: PathBuf,
    /// Run this form of the scenario, one of its [forms.NAME]
    #[arg(long, value_name = "NAME")]
    pub(super) form: Option<String>,
    /// Run with the seeds from 1 to N instead of the scenario's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// Run with this seed instead of the scenario's; can be given several times
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    seed: Vec<u64>,
    /// Run only this point of the sweep, counted from one; can be given several times
    #[arg(long, value_name = "N", value_parser = point)]
    pub(super) point: Vec<usize>,
    /// Run only a part of the runs: of N parts, the Ith. Run number n, from zero, belongs to part n mod N + 1; runs are numbered point by
    /// point and within a point seed by seed
    #[arg(long, value_name = "I/N")]
    pub(super) shard: Option<Shard>,
    /// Repeat stored runs too
    #[arg(long)]
    pub(super) fresh: bool,
    /// Run in real time, with the kernel's TCP on hosts of kind "kernel"
    #[arg(long)]
    pub(super) emulate: bool,
    /// Keep runs in which the emulator fell behind real time, and judge them
    #[arg(long, requires = "emulate")]
    pub(super) allow_late: bool,
    /// Let the scenario's programs run without being asked about them, this time
    #[arg(long, requires = "emulate", conflicts_with = "no_programs")]
    allow_programs: bool,
    /// Refuse a scenario that runs programs, even one that has been run before
    #[arg(long)]
    no_programs: bool,
    /// Runs at a time; by default as many as there are processors
    #[arg(long, short, value_name = "N", value_parser = point, conflicts_with = "emulate")]
    jobs: Option<usize>,
    /// What makes the runs. hyperqueue and ray need a Python with the module of that name: python3, or the one that the environment
    /// variable TRANSOM_PYTHON names
    #[arg(
        long,
        value_enum,
        default_value_t = Engine::Local,
        value_name = "ENGINE",
    )]
    engine: Engine,
    /// Submit the script for Slurm, and wait until its runs are made
    #[arg(long)]
    submit: bool,
    /// The directory for results; by default results/NAME
    #[arg(long, short, value_name = "DIR")]
    pub(super) output: Option<PathBuf>,
    #[command(flatten)]
    pub(super) shown: Shown,
}

/// How runs are shown.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Shown {
    /// Write every chart, and the drawing of the network, as a PNG file too (feature `png`)
    #[arg(long)]
    pub(crate) png: bool,
    /// Serve the runs' pages while they go on, for a browser; the address is printed. ADDR is an address, a port, or both; without it, any
    /// port that is free on the loopback interface, which only this machine can reach (feature `web`)
    #[arg(
        long,
        value_name = "ADDR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:0",
        value_parser = crate::address::parse,
    )]
    pub(crate) watch: Option<SocketAddr>,
    /// Show the runs in the terminal while they go on (feature `tui`)
    #[arg(long, conflicts_with = "json")]
    pub(crate) tui: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl Args {
    /// The seeds, if they are not the scenario's.
    pub(super) fn seeds(&self) -> Option<Vec<u64>> {
        if let Some(count) = self.seeds {
            return Some((1..=count).collect());
        }
        let mut seeds = Vec::new();
        for seed in &self.seed {
            if !seeds.contains(seed) {
                seeds.push(*seed);
            }
        }
        (!seeds.is_empty()).then_some(seeds)
    }

    /// What makes the runs.
    pub(super) fn engaged(&self) -> Engaged {
        let (engine, submit) = (self.engine, self.submit);
        Engaged { engine, submit, file: self.file.clone(), form: self.form.clone() }
    }

    /// Refuses options that an engine cannot follow.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        if self.submit && self.engine != Engine::Slurm {
            bail!("--submit is for --engine slurm");
        }
        if self.engine == Engine::Local {
            return Ok(());
        }
        let unfit = [
            ("--emulate", self.emulate),
            ("--watch", self.shown.watch.is_some()),
            ("--tui", self.shown.tui),
            ("--jobs", self.jobs.is_some()),
        ];
        match unfit.iter().find(|(_, given)| *given) {
            Some(("--emulate", _)) => bail!(
                "--emulate is for --engine local: runs in real time that share a machine disturb each other"
            ),
            Some((option, _)) => bail!("{option} is for --engine local"),
            None => Ok(()),
        }
    }

    /// The decision about programs.
    pub(super) fn consent(&self) -> Consent {
        match (self.no_programs, self.allow_programs) {
            (true, _) => Consent::Refused,
            (false, true) => Consent::Given,
            (false, false) => Consent::Seen,
        }
    }

    /// Runs at a time; zero for as many as there are processors.
    pub(super) fn jobs(&self) -> usize {
        // There is only one real time.
        if self.emulate { 1 } else { self.jobs.unwrap_or(0) }
    }

    /// The name of the scenario's file in results: the same on every machine.
    pub(super) fn file_name(&self) -> String {
        let name = if self.file.is_absolute() {
            self.file.file_name().map_or(self.file.as_path(), std::path::Path::new)
        } else {
            &self.file
        };
        name.to_string_lossy().into_owned()
    }
}

/// A number from one.
fn point(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err("a number from 1 is needed".into()),
    }
}
