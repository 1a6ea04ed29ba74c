//! Tests of the crate from outside in one program, which is built and linked once: `cargo test -p transom-extensions --test all NAME`, where the
//! name of a file, with two colons, stands for all of its tests.
//!
//! `statements` is another, which writes a page too, and so is `writing`, which stands for the crate itself.

#[path = "../../tcp/tests/common/mod.rs"]
mod common;
mod rounds;

mod golden;
mod golden_background;
mod golden_controllers;
mod golden_eifel;
mod golden_macroflow;
mod golden_native;
mod golden_reordering;
mod golden_sharing;
mod observed;
mod unconstrained;
