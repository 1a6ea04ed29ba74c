//! Tests of the crate from outside in one program, which is built and linked once: `cargo test -p transom-live --test all NAME`, where the
//! name of a file, with two colons, stands for all of its tests.

mod attacks;
mod outputs;
mod sockets;
