//! SIGINT and SIGTERM.
//!
//! A thread waits for them. The first runs what the command has registered (flush the capture, print a summary);
//! the second ends the process at once, should that hang. A command that was interrupted ends with the status a
//! shell gives a program that the signal itself has ended.

use std::process::{Child, ExitCode, exit};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, OnceLock};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::thread::{self, lock};

static BEFORE_EXIT: OnceLock<fn()> = OnceLock::new();

/// Calls `restore` before a signal ends the process at once, for state that must be restored, such as a terminal. Only the first
/// function that is given is called.
#[cfg(feature = "tui")]
pub(crate) fn before_exit(restore: fn()) {
    let _ = BEFORE_EXIT.set(restore);
}

/// Ends the process at once.
pub(crate) fn leave(status: i32) -> ! {
    if let Some(restore) = BEFORE_EXIT.get() {
        restore();
    }
    exit(status)
}

/// Calls `handler` when the process is asked to end, with the exit status that is due then. From now on the
/// process has a second thread.
pub(crate) fn handle(handler: impl FnOnce(u8) + Send + 'static) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot handle signals")?;
    let work = move || {
        let mut handler = Some(handler);
        for signal in signals.forever() {
            let status = 128 + signal;
            let Some(handler) = handler.take() else { leave(status) };
            let status = u8::try_from(status).unwrap_or(u8::MAX);
            // On a thread of its own, so that a second signal is seen while it runs.
            if thread::spawn("interrupt", move || handler(status)).is_err() {
                leave(status.into());
            }
        }
    };
    thread::spawn("signals", work).map(drop)
}

/// Gives the exit status that is due when the process is asked to end.
pub(crate) fn told() -> anyhow::Result<Receiver<u8>> {
    let (tell, told) = mpsc::channel();
    handle(move |status| {
        // If nobody listens any more, the end has come already.
        let _ = tell.send(status);
    })?;
    Ok(told)
}

/// Passes SIGTERM on to a program, also a signal that comes before there is a program. A later SIGINT is not passed on: the terminal has told the program
/// itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct PassedOn(Arc<Mutex<(Option<Pid>, bool)>>);

impl PassedOn {
    /// Handles signals from now on: to be called before the program is started, so that none is lost.
    pub(crate) fn from_now_on() -> anyhow::Result<Self> {
        let passed_on = PassedOn::default();
        let on_signal = passed_on.clone();
        handle(move |status| on_signal.ask(i32::from(status) - 128))?;
        Ok(passed_on)
    }

    /// The program has been started. It gets the signal that came before.
    pub(crate) fn to(&self, program: &Child) {
        let mut state = lock(&self.0);
        state.0 = i32::try_from(program.id()).ok().and_then(Pid::from_raw);
        if state.1 {
            terminate(state.0);
        }
    }

    fn ask(&self, signal: i32) {
        let mut state = lock(&self.0);
        if signal == SIGTERM || state.0.is_none() {
            state.1 = true;
            terminate(state.0);
        }
    }
}

fn terminate(pid: Option<Pid>) {
    if let Some(pid) = pid {
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// The signal that has stopped a server, if one has.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoppedBy(Arc<AtomicU8>);

impl StoppedBy {
    /// Calls `stop` when a signal comes.
    pub(crate) fn signal(stop: impl FnOnce() + Send + 'static) -> anyhow::Result<Self> {
        let stopped_by = StoppedBy::default();
        let told = stopped_by.clone();
        handle(move |status| {
            told.0.store(status, Ordering::Relaxed);
            stop();
        })?;
        Ok(stopped_by)
    }

    /// The exit status that is due: success without a signal.
    pub(crate) fn status(&self) -> ExitCode {
        ExitCode::from(self.0.load(Ordering::Relaxed))
    }
}
