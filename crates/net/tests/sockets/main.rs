//! The same tests for the standard library's sockets over loopback and for Transom's over a pair of memory devices: what passes
//! in one world passes in the other, or the difference is written down in `transom_net`'s documentation.

mod std_net;
mod transom;
