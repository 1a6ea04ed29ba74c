//! Runs: a scenario, concrete in everything, simulated with a seed.
//!
//! Theory of operation. [`simulate`] builds the network that a [`Resolved`] describes, runs it with a recorder, and returns [`Observations`]:
//! series and totals, all integers, the same on every machine. [`judge()`] compares them with the bands that the scenario expects.

pub(crate) mod build;
mod capture;
mod companion;
mod event_log;
mod judge;
mod numbers;
mod observations;
mod unfinished;

use crate::scenario::{Name, Resolved, TraceError};
use build::{KernelHosts, build};
use std::error::Error;
use std::path::{Path, PathBuf};
use transom_device::namespace::NamespaceError;
use transom_sim::measure::Recorder;
use transom_sim::network::NetworkError;
use transom_tcp::time::{Duration, Instant};
use transom_tcp::{Profile, ProfileError};

pub use judge::{Judgement, compare, course, judge};
pub(crate) use numbers::numbers;
pub use observations::{FlowObservations, LinkObservations, Observations};
pub(crate) use unfinished::Files;

/// The number of progress reports of a run.
const STEPS: u64 = 200;

/// Why a scenario cannot be run, in virtual or in real time, or broke off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It needs the kernel's TCP.
    #[error("host {0} has the kernel's TCP, which runs in real time only: use --emulate")]
    NeedsEmulation(Name),
    /// It takes safe ranges away, which only simulated hosts can.
    #[error("{0} is unconstrained, which is for the simulator only: run it without --emulate")]
    NeedsSimulation(Name),
    /// A capture or an event log cannot be created.
    #[error("{} cannot be written: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A trace cannot be read, or is another one than when the scenario was.
    #[error("{0}")]
    Trace(String),
    /// A changed profile does not work; see [`RunOptions::change`].
    #[error("flow {0}: {1}")]
    Profile(Name, ProfileError),
    /// The network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A flow from or to nowhere; reading a scenario refuses it.
    #[error("there is no host {0}")]
    Unknown(Name),
    /// More flows to one host than it has ports.
    #[error("host {0} has more flows than ports")]
    Ports(Name),
    /// The system gives no network namespace.
    #[error("cannot make a network namespace for a host with the kernel's TCP")]
    Namespace(#[from] NamespaceError),
    /// Something about an emulated flow that cannot be, such as a program that is not there or does not listen.
    #[error("flow {flow}: {what}")]
    Flow {
        /// The flow.
        flow: Name,
        /// What is wrong.
        what: String,
    },
    /// Something else that the system refused.
    #[error("{what}")]
    System {
        /// What cannot be done, and with what.
        what: String,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl From<TraceError> for RunError {
    fn from(error: TraceError) -> RunError {
        RunError::Trace(error.to_string())
    }
}

/// The surroundings of a run: its files, and what a program changes of it.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// The scenario's own directory: trace files are relative to it, and programs run in it.
    pub directory: &'a Path,
    /// An existing directory for the captures and event logs that the scenario requests, and for the output of programs. Each link has two
    /// captures, `capture-LINK@NODE.pcapng`, one for either end; an event log is `log-HOST.tlog`; a program has `FLOW.client.stdout` and
    /// the like. Without it nothing is captured or logged, and the output of programs is lost.
    pub output: Option<&'a Path>,
    /// A change of profiles: for congestion controllers and extensions that a program brings and a scenario cannot name. It gets the name
    /// of each flow and the profile of those of its connections that send the flow's data: for requests, the server's. Hosts with the
    /// kernel's TCP have none. A run with a change is not the one that its scenario and seed identify. It is `Sync`, because an emulated run
    /// is made on a thread of its own.
    pub change: &'a (dyn Fn(&Name, &mut Profile) + Sync),
}

impl<'a> RunOptions<'a> {
    /// A run without output, and without changes.
    pub fn new(directory: &'a Path) -> RunOptions<'a> {
        RunOptions { directory, output: None, change: &|_, _| () }
    }
}

/// The names of the captures and event logs that a scenario asks for. A run whose directory has not all of them lacks something.
pub fn files(scenario: &Resolved) -> impl Iterator<Item = String> {
    capture::file_names(scenario).chain(event_log::file_names(scenario))
}

/// Runs a scenario in virtual time. `progress` is called now and then with the time reached in the network, of the scenario's duration, and what has been
/// recorded. It ends the run by returning false; there are no observations then, and no captures or logs.
///
/// # Errors
/// [`RunError`] if the scenario has what cannot be simulated, a file that it needs cannot be read, or a capture or a log cannot be
/// created. One that cannot be written to its end is among [`Observations::lost`].
pub fn simulate(
    scenario: &Resolved,
    seed: u64,
    options: RunOptions<'_>,
    mut progress: impl FnMut(Duration, &Recorder) -> bool,
) -> Result<Option<Observations>, RunError> {
    let mut built = build(scenario, seed, &options, KernelHosts::Refused)?;
    let files = Files::begin(scenario, &mut built, options.output)?;
    let mut recorder = Recorder::new(scenario.scenario.sample_interval.0, built.links());
    let end = scenario.scenario.duration.0;
    for step in 1..=STEPS {
        let reached = Duration::from_nanos(
            (u128::from(end.as_nanos()) * u128::from(step) / u128::from(STEPS)) as u64,
        );
        recorder.run_until(&mut built.network, Instant::ZERO + reached)?;
        if !progress(reached, &recorder) {
            return Ok(None);
        }
    }
    let lost = files.finish();
    Ok(Some(Observations { lost, ..Observations::collect(scenario, &built, &recorder) }))
}

#[cfg(test)]
mod tests;
