//! The program that `--run` starts inside the lab.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use transom_device::namespace::Namespace;

use crate::output::Failure;

/// How long a program may take to end when it is asked to, before it is killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// A running program. It is ended when this value is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    ended: Option<ExitStatus>,
}

impl Program {
    /// Starts a program in `namespace` with additional environment variables.
    pub(crate) fn start(
        namespace: &Namespace,
        name: &OsStr,
        arguments: &[OsString],
        variables: Vec<(&str, String)>,
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(name);
        command.args(arguments).envs(variables);
        let child = namespace
            .spawn(&mut command)
            .with_context(|| format!("cannot run {}", name.to_string_lossy()))?;
        Ok(Program { child, ended: None })
    }

    /// Waits until it ends by itself.
    pub(crate) fn wait(&mut self) -> anyhow::Result<ExitCode> {
        let status = self.child.wait().context("cannot wait for the program")?;
        self.ended = Some(status);
        Ok(exit_code(status))
    }

    /// How it has ended, if it has.
    pub(crate) fn poll(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// A descriptor of this process; it never refers to another process with the same number.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        // Until it has been waited for, the number is its own.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or(io::ErrorKind::NotFound)?;
        Ok(pidfd_open(pid, PidfdFlags::empty())?)
    }

    /// Asks it to end and, if it does not, kills it.
    fn end(&mut self) {
        if self.poll().is_some() {
            return;
        }
        if let Ok(descriptor) = self.descriptor() {
            let _ = pidfd_send_signal(&descriptor, Signal::TERM);
        }
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if self.poll().is_some() {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}

/// The exit codes of a shell for a program that does not exist, and for one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// The error about a program that cannot be run.
pub(crate) fn cannot_run(name: &OsStr, kind: io::ErrorKind, why: impl Display) -> anyhow::Error {
    let status = if kind == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN };
    let message = format!("cannot run {}: {why}", name.to_string_lossy());
    Failure { status, message }.into()
}

/// A program's status as a shell shows it: 128 and the number of the signal that ended it.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
