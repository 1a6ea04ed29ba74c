//! Safe extensions on the kernel's own TCP sockets, of programs that know nothing of it.
//!
//! A congestion controller in BPF keeps TCP's own window, and lets the kernel use a narrower one wherever it transmits. It tells this crate of the
//! events that extensions wait for. [`Host`] runs the extensions, the very ones that run on Transom's TCP, by
//! [`ObservedLayers`](transom_tcp::extension::ObservedLayers), and writes what comes of them back for each socket. The safe range is enforced in the
//! kernel too. Requests expire when nobody renews them, and sockets go back to the algorithm that they had.
//!
//! [`variable_forms()`] says which variables a stock kernel can bound, and which not, each with the reason.

mod own_socket;
mod variable_forms;

#[cfg(feature = "bpf")]
mod cgroup;
#[cfg(feature = "bpf")]
mod connection;
#[cfg(feature = "bpf")]
mod error;
#[cfg(feature = "bpf")]
mod host;
#[cfg(feature = "bpf")]
mod layout;
#[cfg(feature = "bpf")]
mod log;
#[cfg(feature = "bpf")]
mod namespaces;
#[cfg(feature = "bpf")]
mod programs;
#[cfg(feature = "bpf")]
mod report;
#[cfg(feature = "bpf")]
mod state;
#[cfg(feature = "bpf")]
pub mod status;

pub use own_socket::{ControlError, Controlled};
pub use variable_forms::{Form, refusal, variable_forms};

#[cfg(feature = "bpf")]
pub use cgroup::Cgroup;
#[cfg(feature = "bpf")]
pub use error::KernelError;
#[cfg(feature = "bpf")]
pub use host::{Host, MOST_CONNECTIONS, Options};
#[cfg(feature = "bpf")]
pub use log::{LogEvent, LogLine, LogPart, Windows};
#[cfg(feature = "bpf")]
pub use programs::check;
#[cfg(feature = "bpf")]
pub use report::{ConnectionReport, HostReport, LayerReport, Limit};
