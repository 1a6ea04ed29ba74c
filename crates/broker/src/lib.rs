//! The broker lends TCP ports of the host's own addresses to processes that bring their own TCP.
//!
//! A process asks the [broker](protocol) over a Unix socket. It gets a TUN device, a descriptor, that carries the packets of its ports and of no
//! others. It binds ordinary kernel sockets and shows them to the broker, so that the kernel goes on deciding who may have which port. Two BPF
//! programs do the work: `demux` hands packets that arrive for such a port to its process, and `guard` looks at every packet that the process sends.
//!
//! - [`client`]: what a process needs. It depends on nothing but the standard library, and builds everywhere.
//! - [`Policy`]: who may hold which ports.
//! - `daemon` (feature `daemon`): the broker itself.
//! - [`protocol`]: the messages, their version, and how they are carried.
#![forbid(unsafe_code)]

pub mod client;
#[cfg(feature = "daemon")]
pub mod daemon;
mod metrics;
mod policy;
pub mod protocol;
mod wire;

pub use policy::{Policy, PolicyError, Ports, Rule, Subject};
