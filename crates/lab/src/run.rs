//! Runs: a scenario, concrete in everything, simulated with a seed.
//!
//! Theory of operation. [`simulate`] builds the network that a [`Resolved`] describes, lets it run while a recorder looks, and
//! gives back [`Observations`]: series and totals, all integers, the same on every machine. [`judge()`] compares them with the bands
//! that the scenario expects; what a run is worth is not known before.

mod build;
mod judge;
mod observations;
mod table;

use crate::scenario::{Name, Resolved};
use build::build;
use std::path::Path;
use transom_sim::measure::Recorder;
use transom_sim::network::NetworkError;
use transom_tcp::time::{Duration, Instant};

pub use judge::{Judgement, compare, judge};
pub use observations::{FlowObservations, LinkObservations, Observations};
pub use table::{flows_csv, links_csv};

/// Between two looks at how far a run is.
const STEPS: u64 = 200;

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It needs the kernel's TCP.
    #[error("host {0} has the kernel's TCP, which can only be emulated")]
    NeedsEmulation(Name),
    /// Something that scenarios can ask for and no run measures yet.
    #[error("the measure {0} is not taken yet")]
    NotMeasured(&'static str),
    /// A trace cannot be read, or is another one than when the scenario was.
    #[error(transparent)]
    Trace(#[from] crate::scenario::TraceError),
    /// The network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A flow from or to nowhere; reading a scenario refuses it.
    #[error("there is no host {0}")]
    Unknown(Name),
    /// More flows to one host than it has ports.
    #[error("host {0} has more flows than ports")]
    Ports(Name),
}

/// Runs a scenario in virtual time. `directory` is where its trace files are looked for. `progress` is called with the time reached
/// now and then, and ends the run by returning false; there are no observations then.
///
/// # Errors
/// [`RunError`] if the scenario has what cannot be simulated.
pub fn simulate(
    scenario: &Resolved,
    seed: u64,
    directory: &Path,
    mut progress: impl FnMut(Duration) -> bool,
) -> Result<Option<Observations>, RunError> {
    judge::check(scenario)?;
    let mut built = build(scenario, seed, directory)?;
    let mut recorder = Recorder::new(scenario.scenario.sample_interval.0, built.links());
    let end = scenario.scenario.duration.0;
    for step in 1..=STEPS {
        let reached = Duration::from_nanos(
            (u128::from(end.as_nanos()) * u128::from(step) / u128::from(STEPS)) as u64,
        );
        recorder.run_until(&mut built.network, Instant::ZERO + reached)?;
        if !progress(reached) {
            return Ok(None);
        }
    }
    Ok(Some(Observations::collect(scenario, &built, &recorder)))
}

#[cfg(test)]
mod tests;
