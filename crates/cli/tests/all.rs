//! Tests of the crate from outside in one program, which is built and linked once: `cargo test -p transom-cli --test all NAME`, where the
//! name of a file, with two colons, stands for all of its tests.
//!
//! `programs` is another, which begins with one thread, and so is `papers`, which waits for nothing.

#[path = "support/browser.rs"]
mod browser;
mod support;

mod arguments;
mod broker;
mod captures;
mod classroom;
mod consent;
mod demo;
mod devices;
mod documents;
mod emulate;
mod engines;
mod exec;
mod full_disk;
mod gallery;
mod interface_gone;
mod kernel;
mod kernel_captured;
mod kernel_side;
mod lab;
mod live;
mod nice_rsync;
mod options;
mod outputs;
mod packaging;
mod pages;
mod play;
mod reports;
mod results;
mod router;
mod scenarios;
mod silent_failures;
mod tutorial;
