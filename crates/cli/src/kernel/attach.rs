//! Extensions on the sockets of a control group: one that is there, or one of its own for a program.

use std::ffi::OsString;
use std::io::{self, PipeWriter, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context as _, bail};
use transom_kernel::{Cgroup, Host, KernelError, Options, status};
use transom_tcp::extension::ExtensionChoice;

use super::Choice;
use super::shown::summary;
use crate::interrupt::{self, PassedOn};
use crate::network::{cannot_run, exit_code};
use crate::output::note;

/// How long processes that the program has left behind may keep the group from being removed at once. The guard waits longer.
const MOMENT: Duration = Duration::from_millis(200);
/// How often the guard looks.
const LOOK: Duration = Duration::from_millis(500);

fn choices(choice: &Choice) -> anyhow::Result<Vec<ExtensionChoice>> {
    let choices = transom_extensions::stack(&choice.extension)?;
    if choices.is_empty() {
        bail!("no extension is named");
    }
    Ok(choices)
}

/// Attaches, with what to do about a refusal.
fn attached(
    cgroup: &Cgroup,
    choices: &[ExtensionChoice],
    choice: &Choice,
    existing: bool,
) -> anyhow::Result<Host> {
    let options =
        Options { existing, connections: choice.connections, in_kernel: choice.in_kernel };
    Host::attach(cgroup, choices, options).map_err(|error| match error {
        KernelError::Refused(reason) => {
            anyhow::anyhow!("{reason}\n`transom kernel check` lists what this kernel can bound")
        }
        error => error.into(),
    })
}

fn served(host: &Host) -> Option<status::Server> {
    match status::Server::start(host) {
        Ok(server) => Some(server),
        Err(error) => {
            note(format_args!("`transom kernel list` will not show it: {error}"));
            None
        }
    }
}

/// Runs a program.
pub(super) fn run(choice: &Choice, program: &[OsString]) -> anyhow::Result<ExitCode> {
    let (name, arguments) = program.split_first().context("no program is named")?;
    let choices = choices(choice)?;
    // Before there is anything that a signal could leave behind.
    let passed_on = PassedOn::from_now_on()?;
    let cgroup = Cgroup::create("transom-kernel")?;
    let guard = start_guard(&cgroup).context("cannot start the guard")?;
    let host = match attached(&cgroup, &choices, choice, false) {
        Ok(host) => host,
        Err(error) => {
            let _ = cgroup.remove(MOMENT);
            return Err(error);
        }
    };
    let server = served(&host);
    let started = cgroup.within(|| Command::new(name).args(arguments).spawn());
    let mut child = match started? {
        Ok(child) => child,
        Err(error) => {
            drop((server, host, guard));
            let _ = cgroup.remove(MOMENT);
            return Err(cannot_run(name, error.kind(), error));
        }
    };
    passed_on.to(&child);
    let status = child.wait().context("cannot wait for the program")?;
    let report = host.report();
    let failure = host.failure();
    drop(server);
    drop(host);
    let left = cgroup.remove(MOMENT).is_err();
    drop(guard);
    if choice.verbose {
        note(summary(&report));
    }
    if let Some(failure) = failure {
        note(format_args!("the sockets were not followed to the end: {failure}"));
    }
    if left {
        note("processes that the program has started go on, without extensions");
    }
    Ok(exit_code(status))
}

/// Attaches to a group that is there, until a signal comes.
pub(super) fn attach(
    choice: &Choice,
    directory: &Path,
    existing: bool,
) -> anyhow::Result<ExitCode> {
    let choices = choices(choice)?;
    let cgroup = Cgroup::open(directory)?;
    let told = interrupt::told()?;
    let host = attached(&cgroup, &choices, choice, existing)?;
    let server = served(&host);
    note(format_args!("extensions are on the connections of {}", directory.display()));
    let mut full = false;
    let status = loop {
        match told.recv_timeout(LOOK) {
            Ok(status) => break Some(status),
            Err(_) => {
                if !full && host.without_room() > 0 {
                    full = true;
                    note(format_args!(
                        "there are more than {} connections: the others are plain TCP; --connections takes more",
                        choice.connections
                    ));
                }
                if let Some(failure) = host.failure() {
                    note(format_args!("the sockets are not followed any more: {failure}"));
                    break None;
                }
                if !directory.exists() {
                    note("the control group has gone");
                    break None;
                }
            }
        }
    };
    let report = host.report();
    drop(server);
    drop(host);
    if choice.verbose {
        note(summary(&report));
    }
    Ok(status.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Starts the process that removes the control group should this one be killed. It begins when the returned value is dropped.
fn start_guard(cgroup: &Cgroup) -> io::Result<PipeWriter> {
    let (watched, held) = io::pipe()?;
    // The group may lie below a mount that only this process has.
    let place = std::fs::canonicalize(cgroup.path()).unwrap_or_else(|_| cgroup.path().into());
    let mut command = Command::new("/proc/self/exe");
    command
        .arg("kernel-guard")
        .arg(place.file_name().unwrap_or(place.as_os_str()))
        .stdin(watched)
        // A signal of the terminal's is not for it.
        .process_group(0);
    command.spawn()?;
    Ok(held)
}

/// The guard: waits for the command's end, and removes the group when it is empty.
pub(super) fn guard(name: &Path) -> anyhow::Result<ExitCode> {
    // Its other end is closed when the command has gone.
    let _ = io::stdin().read_to_end(&mut Vec::new());
    // Asking who is there removes the sockets of those who have gone.
    let _ = status::reports();
    let Ok(cgroup) = Cgroup::beside(name) else { return Ok(ExitCode::SUCCESS) };
    while cgroup.path().exists() {
        if cgroup.remove(LOOK).is_ok() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}
