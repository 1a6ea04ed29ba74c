//! Tests of the crate from outside in one program, which is built and linked once: `cargo test -p transom-remote --test all NAME`, where the
//! name of a file, with two colons, stands for all of its tests.

#[allow(dead_code)] // each target uses its part
#[path = "../../../fuzz/sequences/bytes.rs"]
mod bytes;
#[path = "../../../fuzz/sequences/seeds.rs"]
mod seeds;

mod support;

mod cm;
mod peers;
mod python;
mod sequences;
