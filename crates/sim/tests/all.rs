//! Tests of the crate from outside in one program, which is built and linked once: `cargo test -p transom-sim --test all NAME`, where the
//! name of a file, with two colons, stands for all of its tests.
//!
//! `adversarial` is a program of its own as it runs for as long as it is told, `hostile` as it counts what the whole program allocates.

mod accurate_ecn;
mod delivery;
mod partial;
mod queueing;
mod sent;
mod slow_start;
mod timestamps;
mod traffic;
mod validation;
