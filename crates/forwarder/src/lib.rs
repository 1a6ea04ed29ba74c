//! Advertised-window control on a Linux router.
//!
//! The algorithm is that of [`transom_router`]; here is what gives it packets. There are three ways, which take the same policies and
//! answer the same questions:
//!
//! - `tc`: two programs in the kernel, at the interface whose queue is the bottleneck. Packets never leave the kernel. The algorithm is
//!   written a second time there, in C. It takes the feature `bpf`, which is on by default.
//! - [`nfqueue`]: the kernel forwards and asks for each TCP packet; its payload comes up, and goes back down changed.
//! - [`user`]: frames from one interface to another through a queue of our own. The kernel does nothing but carry them.
//!
//! Each is a [`Deployment`] that works as long as it lives. [`server`] answers questions about it on a Unix socket and, for Prometheus, over
//! HTTP. What a system cannot do is refused before anything is changed, with the name of what is missing ([`Refusal`]).
//!
//! **What remains.** A deployment that ends, also by a panic of its thread, removes what it has put into the system, but for one thing: before
//! Linux 6.6, mode `tc` may have made the queueing discipline `clsact`, which stays. It does nothing without filters, others may have put theirs
//! below it meanwhile, and the kernel has no way to remove it only if nobody has; `tc qdisc del dev DEVICE clsact` does it by hand.
//!
//! When the process is killed, what happens is this. Mode `tc`: a program in the kernel hangs on a descriptor that the kernel closes with the
//! process; before Linux 6.6 it is a filter, which goes on working and is replaced at the next start. Mode `nfqueue`: the rules stay, are passed
//! over by the kernel as nobody listens, and are removed at the next start at the same interface; packets that waited for a verdict are dropped.
//! Mode `user`: frames between the two interfaces stop, and those that waited in the queue are gone. The status socket's name stays as well,
//! until the next start.
#![forbid(unsafe_code)]

mod control;
mod latest;
pub mod metrics;
pub mod nfqueue;
pub mod policy;
pub mod refusal;
pub mod server;
pub mod status;
#[cfg(feature = "bpf")]
pub mod tc;
pub mod user;
mod worker;

pub use refusal::Refusal;
pub use status::{Deployment, Status};
