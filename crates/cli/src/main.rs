//! The `transom` command.

// The commands that write reports are not here yet; only the tests use it.
#[cfg_attr(not(test), allow(dead_code, unused_imports))]
mod report;

fn main() {}
