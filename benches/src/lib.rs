//! Transom's benchmarks: beside the kernel's TCP and smoltcp, in the same run.
//!
//! The program `transom-benches` measures [groups] of cases with the [harness]: in memory between two hosts of
//! one thread ([`pair`]), and over TUN against the kernel's TCP in a network namespace. The parts are a library so
//! that the allocation test and the instruction counts use the very same transfers.
// Counting allocations, memory that processes share, and a mount namespace take unsafe code; nothing else does.
#![deny(unsafe_code)]

pub mod bare;
pub mod callgrind;
pub mod clock;
pub mod counting;
pub mod delayed;
pub mod environment;
pub mod groups;
pub mod handed;
pub mod harness;
#[cfg(feature = "bpf")]
pub mod lent_address;
pub mod many_connections;
pub mod netstack;
pub mod network;
pub mod pair;
pub mod placement;
pub mod replay;
pub mod report;
pub mod roles;
pub mod sealing;
pub mod smol;
pub mod stored_results;
pub mod supervised;
pub mod transfer;
pub mod watchdog;
