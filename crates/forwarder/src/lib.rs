//! Advertised-window control on a Linux router.
//!
//! The algorithm is that of [`transom_router`]; here is what gives it packets. There are three ways, which take the same policies and
//! answer the same questions:
//!
//! - `tc`: two programs in the kernel, at the interface whose queue is the bottleneck. Packets never leave the kernel. The algorithm is
//!   written a second time there, in C. It takes the feature `bpf`, which is on by default.
//! - [`Nfqueue`]: the kernel forwards, and queues each TCP packet to this process, which may return its payload changed.
//! - [`User`]: frames from one interface to another through a queue of our own. The kernel does nothing but carry them.
//!
//! Each is a [`Deployment`] that works for as long as it lives. [`StatusSocket`] reports its status on a Unix socket and, for Prometheus, over HTTP.
//! If the system lacks something, the deployment fails before it changes anything, and names what is missing ([`Refusal`]).
//!
//! **What remains.** A deployment that ends, even by a panic of its thread, removes what it has installed, with one exception. Before Linux 6.6,
//! mode `tc` may have made the queueing discipline `clsact`, which stays. It has no effect without filters. Others may have added filters to it
//! meanwhile, and the kernel cannot remove it only if it is empty. `tc qdisc del dev DEVICE clsact` removes it by hand.
//!
//! After the process is killed: In mode `tc`, the kernel detaches the program when it closes the process's descriptor. Before Linux 6.6 it is a
//! filter, which continues to work until the next start replaces it. In mode `nfqueue`, the rules stay and the kernel bypasses them; the next
//! start at the same interface removes them. Packets that waited for a verdict are dropped. In mode `user`, no frames pass between the two
//! interfaces, and queued ones are lost. The status socket's name also stays until the next start.
#![forbid(unsafe_code)]

mod control;
mod latest;
mod metrics;
mod nfqueue;
mod policy;
mod refusal;
mod server;
mod status;
#[cfg(feature = "bpf")]
pub mod tc;
mod user;
mod worker;

pub use nfqueue::{Nfqueue, check_nfqueue_privileges};
pub use policy::PolicyFile;
pub use refusal::Refusal;
pub use server::{Shared, StatusSocket, ask, default_path};
pub use status::{Counters, Deployment, FlowStatus, PartStatus, QueueStatus, Status};
pub use user::{User, check_user_privileges};
