//! Tests of the crate from outside in one program, which is built and linked once: `cargo test -p transom-sansio --test all NAME`, where the
//! name of a file, with two colons, stands for all of its tests.
//!
//! `header` is another, which writes the C header too.

mod support;

mod anything;
mod c_programs;
mod controls;
mod dual_stack;
mod fast_open;
mod opening;
mod options;
mod readiness;
mod soft_errors;
mod streams;
mod urgent;
