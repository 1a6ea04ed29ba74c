//! SIGINT and SIGTERM.
//!
//! A thread waits for them. The first runs what the command has registered (flush the capture, print a summary);
//! the second ends the process at once, should that hang. A command that was interrupted ends with the status a
//! shell gives a program that the signal itself has ended.

use std::process::exit;
use std::sync::OnceLock;
use std::thread;

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

static BEFORE_EXIT: OnceLock<fn()> = OnceLock::new();

/// Calls `restore` before a second signal ends the process, for state that must be restored, such as a terminal. Only the first
/// function that is given is called.
#[cfg(feature = "tui")]
pub(crate) fn before_exit(restore: fn()) {
    let _ = BEFORE_EXIT.set(restore);
}

/// Ends the process at once.
fn leave(status: i32) -> ! {
    if let Some(restore) = BEFORE_EXIT.get() {
        restore();
    }
    exit(status)
}

/// Calls `handler` when the process is asked to end, with the exit status that is due then. From now on the
/// process has a second thread.
pub(crate) fn handle(handler: impl FnOnce(u8) + Send + 'static) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot handle signals")?;
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            let mut handler = Some(handler);
            for signal in signals.forever() {
                let status = 128 + signal;
                let Some(handler) = handler.take() else { leave(status) };
                let status = u8::try_from(status).unwrap_or(u8::MAX);
                // On a thread of its own, so that a second signal is seen while it runs.
                let work = move || handler(status);
                if thread::Builder::new().name("interrupt".into()).spawn(work).is_err() {
                    leave(status.into());
                }
            }
        })
        .context("cannot start a thread")?;
    Ok(())
}
