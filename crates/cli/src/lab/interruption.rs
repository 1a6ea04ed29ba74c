//! Ctrl-C during runs: unfinished runs are abandoned, and finished ones stay.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// Whether runs are to end, and with which exit status.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interruption(Arc<AtomicU16>);

/// Something has failed, and nothing that is run now would be of use.
const GIVEN_UP: u16 = 0x100;

impl Interruption {
    /// Handles SIGINT and SIGTERM from now on.
    pub(crate) fn handle() -> anyhow::Result<Self> {
        let interruption = Interruption::default();
        let told = interruption.clone();
        crate::interrupt::handle(move |status| told.0.store(status.into(), Ordering::Relaxed))?;
        Ok(interruption)
    }

    /// Ends the runs because one has failed.
    pub(crate) fn give_up(&self) {
        let _ = self.0.compare_exchange(0, GIVEN_UP, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether runs are to end.
    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The exit status after a signal.
    pub(crate) fn status(&self) -> Option<u8> {
        u8::try_from(self.0.load(Ordering::Relaxed)).ok().filter(|status| *status != 0)
    }
}
