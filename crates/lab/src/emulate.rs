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

use transom_device::namespace::Namespace;
use transom_sim::measure::Recorder;
use transom_tcp::time::Duration;

use crate::run::{Observations, RunError, RunOptions};
use crate::scenario::Resolved;

pub(crate) use delay::measured_delays;
pub use fidelity::Fidelity;
pub use programs::{ProgramEnd, ProgramReport, Role};
pub use record::Record;

/// The error of something that the system refused. For [`Result::map_err`].
fn system<E: Into<Box<dyn Error + Send + Sync>>>(
    what: impl fmt::Display,
) -> impl FnOnce(E) -> RunError {
    move |source| RunError::System { what: what.to_string(), source: source.into() }
}

/// Runs a scenario in real time. `progress` is called ten times a second, and ends the run by returning false; then there is no result, and nothing
/// is left behind.
///
/// # Errors
/// [`RunError`]: what is needed is not there, or the system refuses it.
pub fn emulate(
    scenario: &Resolved,
    seed: u64,
    options: RunOptions<'_>,
    progress: impl FnMut(Duration, &Recorder) -> bool,
) -> Result<Option<(Observations, Record)>, RunError> {
    stage::Stage::set(scenario, seed, &options)?.play(progress)
}

/// Says at once if this process may not make the hosts that an emulation needs.
///
/// # Errors
/// [`RunError::Namespace`].
pub fn permitted() -> Result<(), RunError> {
    Ok(Namespace::new().map(drop)?)
}

#[cfg(test)]
mod tests;
