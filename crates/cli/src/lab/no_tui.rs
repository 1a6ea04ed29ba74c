//! A build without `--tui`.

use std::sync::Arc;

use super::live::Live;
use crate::features::Feature;

/// A view in the terminal, of which there is none.
pub(super) enum Tui {}

/// Refuses.
pub(super) fn check() -> anyhow::Result<()> {
    Feature::TUI.need()
}

impl Tui {
    pub(super) fn start(_: Arc<Live>, _: impl FnOnce() + Send + 'static) -> anyhow::Result<Tui> {
        Err(Feature::TUI.missing())
    }

    pub(super) fn finish(self, _: impl Fn() -> bool) -> anyhow::Result<()> {
        match self {}
    }
}
