//! Emulated runs: a scenario in real time, on hosts of which some have the kernel's TCP.
//!
//! Theory of operation. An emulated run is the simulator's own network ([`transom_sim::network`]), driven by the clock: everything that is due by now
//! is done now. Links, queues, routers, hosts with Transom's TCP and their applications are the same code. Real parts are outside: a host with the
//! kernel's TCP is a network namespace, and a *gateway* represents it in the network. One thread waits for packets from the kernels and for the next
//! due moment. It takes packets in, runs the network up to now, and hands out the packets that have left it. (Sleeping is imprecise, so the thread
//! stays awake for the last moment before something is due.)
//!
//! Inside the network nothing is ever late. A packet due at 10 ms is forwarded at 10 ms of the network's time, even if that is done later. Lateness
//! shows at the network's edge, as a delay of the packets to a kernel. There it is measured, packet by packet, and a run with too much of it is
//! reported as late ([`Fidelity`]).
//!
//! The applications of kernel hosts are the simulator's as well, over the kernel's sockets, with a thread for each host. Real programs can run there
//! too. The kernel's `TCP_INFO` gives the observations of their connections.
//!
//! It takes the right to make network namespaces: root's, or an ordinary user's in a user namespace of their own
//! ([`transom_device::namespace::enter_user_namespace`]).

mod beside;
mod clock;
mod delay;
mod distance;
mod driver;
mod fidelity;
mod followed;
mod host;
mod host_interface;
mod observer;
mod programs;
mod record;
mod sockets;
mod stage;
mod timers;
mod wait;
mod worker;

use std::error::Error;
use std::fmt;
use std::path::Path;

use transom_device::namespace::{Namespace, NamespaceError};
use transom_tcp::Profile;

use crate::run::{Observations, Progress, RunError};
use crate::scenario::{Name, Resolved};

pub(crate) use delay::measured_delays;
pub use fidelity::{Fidelity, Lag};
pub use programs::{ProgramEnd, ProgramReport, Role};
pub use record::Record;

/// Why a scenario cannot be emulated, or broke off.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmulateError {
    /// The scenario itself.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The system gives no network namespace.
    #[error("cannot make a network namespace for a host with the kernel's TCP")]
    Namespace(#[from] NamespaceError),
    /// Something about a flow that cannot be, such as a program that is not there or does not listen.
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

/// The error of something that the system refused. For [`Result::map_err`].
fn system<E: Into<Box<dyn Error + Send + Sync>>>(
    what: impl fmt::Display,
) -> impl FnOnce(E) -> EmulateError {
    move |source| EmulateError::System { what: what.to_string(), source: source.into() }
}

/// How to emulate.
#[derive(Clone, Copy, Debug)]
pub struct EmulateOptions<'a> {
    /// The scenario's own directory: trace files are relative to it, and programs run in it.
    pub directory: &'a Path,
    /// The directory for the output of programs: FLOW.client.stdout and the like. It must exist.
    pub output: &'a Path,
}

/// The results of an emulated run.
#[derive(Clone, Debug)]
pub struct Emulation {
    /// The observations, as of a simulated run.
    pub observations: Observations,
    /// How far it can be believed.
    pub fidelity: Fidelity,
    /// The ends of the programs.
    pub programs: Vec<ProgramReport>,
}

/// Runs a scenario in real time. `progress` is called ten times a second, and ends the run by returning false; then there is no result, and nothing
/// is left behind.
///
/// # Errors
/// [`EmulateError`]: what is needed is not there, or the system refuses it.
pub fn emulate(
    scenario: &Resolved,
    seed: u64,
    options: EmulateOptions<'_>,
    progress: impl FnMut(Progress<'_>) -> bool,
) -> Result<Option<Emulation>, EmulateError> {
    emulate_with(scenario, seed, options, &|_, _| (), progress)
}

/// Like [`emulate`], with a change of profiles as in [`simulate_with`](crate::run::simulate_with). It changes those of hosts with Transom's TCP.
///
/// # Errors
/// Those of [`emulate`], and [`RunError::Profile`] if a changed profile does not work.
pub fn emulate_with(
    scenario: &Resolved,
    seed: u64,
    options: EmulateOptions<'_>,
    change: &dyn Fn(&Name, &mut Profile),
    progress: impl FnMut(Progress<'_>) -> bool,
) -> Result<Option<Emulation>, EmulateError> {
    stage::Stage::set(scenario, seed, options, change)?.play(progress)
}

/// Says at once if this process may not make the hosts that an emulation needs.
///
/// # Errors
/// [`EmulateError::Namespace`].
pub fn permitted() -> Result<(), EmulateError> {
    Ok(Namespace::new().map(drop)?)
}

#[cfg(test)]
mod tests;
