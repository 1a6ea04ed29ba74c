//! A run in real time.
//!
//! Work in the emulator's thread during a run makes packets late. So the run has its own thread. That thread only reports progress and, now and
//! then, copies the data so far for viewers.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration as Pause;

use anyhow::Context;
use transom_device::namespace::enter_user_namespace;
use transom_lab::emulate::{self, Fidelity, Record, emulate};
use transom_lab::run::{Observations, RunOptions};
use transom_lab::scenario::{Resolved, Scenario};
use transom_sim::measure::Recorder;
use transom_tcp::time::Duration;

use super::super::interruption::Interruption;
use crate::output;

/// The interval between two progress reports.
const LOOK: Pause = Pause::from_millis(50);

/// Sees to it that the process may make hosts with the kernel's TCP, if the scenario has any. To be called while there is one thread.
pub(super) fn prepare(scenario: &Scenario) -> anyhow::Result<()> {
    if !scenario.sweep().any(|variant| variant.resolved.needs_emulation()) {
        return Ok(());
    }
    prepare_hosts()
}

/// The same for commands that always need such hosts.
pub(in super::super) fn prepare_hosts() -> anyhow::Result<()> {
    let hint = "hosts with the kernel's TCP need network namespaces of their own, which this system refuses to ordinary \
                users: run it as root";
    enter_user_namespace().context(hint)?;
    emulate::permitted().context(hint)?;
    let tun = "/dev/net/tun";
    let open = std::fs::File::options().read(true).write(true).open(tun);
    let hint = "hosts with the kernel's TCP need TUN interfaces: the system has no TUN driver (`modprobe tun`), or keeps it \
                to root (`chmod 666 /dev/net/tun` is what most systems have)";
    open.with_context(|| format!("cannot open {tun}")).context(hint).map(drop)
}

/// Emulates a run. Calls `look` with its progress and, if it is `watched`, with the data so far.
pub(super) fn run(
    scenario: &Resolved,
    seed: u64,
    options: RunOptions<'_>,
    interruption: &Interruption,
    watched: bool,
    mut look: impl FnMut(Duration, Option<&Recorder>),
) -> anyhow::Result<Option<(Observations, Record)>> {
    let reached = AtomicU64::new(0);
    let copy: Mutex<Option<Recorder>> = Mutex::new(None);
    let emulation = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            emulate(scenario, seed, options, |now, recorder| {
                reached.store(now.as_nanos(), Ordering::Relaxed);
                if watched && let Ok(mut copy) = copy.try_lock() {
                    copy.get_or_insert_with(|| recorder.clone());
                }
                !interruption.is_requested()
            })
        });
        while !run.is_finished() {
            std::thread::sleep(LOOK);
            let seen = copy.lock().unwrap_or_else(PoisonError::into_inner).take();
            look(Duration::from_nanos(reached.load(Ordering::Relaxed)), seen.as_ref());
        }
        run.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    Ok(emulation?)
}

/// Says loudly that a run fell behind.
pub(super) fn warn(what: &str, fidelity: &Fidelity, directory: Option<&Path>) {
    output::note(format_args!(
        "{what}: THE EMULATOR FELL BEHIND, and its numbers are not to be believed:"
    ));
    for reason in &fidelity.late {
        output::note(format_args!("  {reason}"));
    }
    output::note(format_args!("  {fidelity}"));
    match directory {
        Some(directory) => output::note(format_args!("  kept in {}", directory.display())),
        None => output::note(
            "  It is not kept. Lower rates, longer delays, fewer hosts or less other work on this machine help; \
             --allow-late keeps it all the same.",
        ),
    }
}
