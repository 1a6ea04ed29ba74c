//! The same tests for the standard library's sockets over loopback and for Transom's over a pair of memory devices: what passes
//! in one world passes in the other, or the difference is written down in `transom_net`'s documentation.

// Loading the same tests twice is the point.
#![allow(clippy::duplicate_mod)]

mod std_net;
mod transom;
