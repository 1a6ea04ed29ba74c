//! Tests of the crate from outside in one program, which is built and linked once: `cargo test -p transom-device --test all NAME`, where the
//! name of a file, with two colons, stands for all of its tests.
//!
//! `allocations` is another, as it counts what the whole program allocates, and so is `user_namespace`, which begins with one thread.

mod support;

mod batches;
mod capture;
mod ends;
mod kernel_sockets;
mod namespace;
mod private;
mod sockets;
mod tun;
