//! Advertised-window control on a Linux router.
//!
//! The algorithm is that of [`transom_router`]; here is what gives it packets. There are three ways, which take the same policies and
//! answer the same questions:
//!
//! - [`tc`]: two programs in the kernel, at the interface whose queue is the bottleneck. Packets never leave the kernel. The algorithm is
//!   written a second time there, in C.
//! - [`nfqueue`]: the kernel forwards and asks for each TCP packet; its payload comes up, and goes back down changed.
//! - [`user`]: frames from one interface to another through a queue of our own. The kernel does nothing but carry them.
//!
//! Each is a [`Deployment`] that works as long as it lives. [`server`] answers questions about it on a Unix socket and, for Prometheus, over
//! HTTP. What a system cannot do is refused before anything is changed, with the name of what is missing ([`Refusal`]).
//!
//! **What remains** when a deployment ends is nothing, however it ends: a program in the kernel hangs on a descriptor that the kernel closes
//! with the process (before Linux 6.6 it does not, and is removed at the next start); NFQUEUE's rules are passed over by the kernel when nobody
//! listens, and removed at the next start; frames between two interfaces stop when nobody carries them.
#![forbid(unsafe_code)]

mod control;
mod latest;
pub mod metrics;
pub mod nfqueue;
pub mod policy;
pub mod refusal;
pub mod server;
pub mod status;
pub mod tc;
pub mod user;
mod worker;

pub use refusal::Refusal;
pub use status::{Deployment, Status};
