//! Threads, with the error of a system that has no more of them.

use std::thread::{Builder, JoinHandle};

use anyhow::Context as _;

/// Starts a thread.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(work).context("cannot start a thread")
}
