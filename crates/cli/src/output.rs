//! Everything that is printed.
//!
//! Results go to standard output; progress, announcements and errors go to standard error. If the reader of standard
//! output closes it, as `head` does, the command ends without a message and with the status that a shell shows for
//! SIGPIPE.

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use transom_device::own_file;

/// The status of a program that SIGPIPE has ended: 128 + 13.
const BROKEN_PIPE: u8 = 141;

/// The reader of standard output has closed it.
#[derive(Debug, thiserror::Error)]
#[error("standard output is closed")]
struct OutputClosed;

/// A failure with its own exit status.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    /// The exit status.
    pub(crate) status: u8,
    /// The error message.
    pub(crate) message: String,
}

/// Prints one line on standard output.
pub(crate) fn line(text: impl fmt::Display) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(stdout_error)
}

/// Prints lines on standard output, which have their ends already.
pub(crate) fn raw_lines(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(stdout_error)
}

/// Prints a view that is shown again and again. On a terminal it replaces what was there.
fn view(text: impl fmt::Display) -> anyhow::Result<()> {
    // To the upper left, and all below is cleared.
    let before = if io::stdout().is_terminal() { "\u{1b}[H\u{1b}[J" } else { "" };
    line(format_args!("{before}{text}"))
}

/// Standard output for data, without buffering.
pub(crate) fn raw_stdout() -> anyhow::Result<File> {
    let descriptor = io::stdout().as_fd().try_clone_to_owned();
    Ok(File::from(descriptor.context("cannot use standard output")?))
}

/// Prints a value as one line of JSON on standard output.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string(value)?)
}

/// Prints a value: as JSON for programs, or as text for people.
pub(crate) fn shown(
    as_json: bool,
    value: &impl Serialize,
    text: impl FnOnce() -> String,
) -> anyhow::Result<ExitCode> {
    if as_json {
        json(value)?
    } else {
        line(text())?
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints what there is every second, until a signal ends the command.
pub(crate) fn watch<T: Serialize>(
    as_json: bool,
    look: impl Fn() -> anyhow::Result<T>,
    text: impl Fn(&T) -> String,
) -> anyhow::Result<ExitCode> {
    loop {
        let value = look()?;
        if as_json {
            json(&value)?
        } else {
            view(text(&value))?
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// Writes a file of the user's, replacing what was there.
pub(crate) fn file(path: &Path, contents: impl AsRef<[u8]>) -> anyhow::Result<()> {
    own_file::write_output(path, contents.as_ref())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Says something on standard error, where it does not matter whether anybody listens.
pub(crate) fn note(text: impl fmt::Display) {
    // One write: other programs, which `--run` starts, write to the same terminal or file, and must not come between the words.
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// Items with commas between them, or a word for none.
pub(crate) fn listed(items: impl IntoIterator<Item = impl ToString>, none: &str) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() { none.to_owned() } else { items.join(", ") }
}

/// The meaning of an error of standard output.
pub(crate) fn stdout_error(error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::BrokenPipe {
        OutputClosed.into()
    } else {
        anyhow::Error::new(error).context("cannot write to standard output")
    }
}

/// Reports the error that ended the command, with its causes, and gives the exit status.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<OutputClosed>().is_some() {
        return ExitCode::from(BROKEN_PIPE);
    }
    note(format_args!("transom: {error:#}"));
    error.downcast_ref::<Failure>().map_or(ExitCode::FAILURE, |f| ExitCode::from(f.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_broken_pipe_is_silent() {
        let broken = stdout_error(io::ErrorKind::BrokenPipe.into());
        assert_eq!(report(&broken), ExitCode::from(141));
        let full = stdout_error(io::ErrorKind::StorageFull.into());
        assert_eq!(report(&full), ExitCode::from(1));
    }

    #[test]
    fn a_failure_has_its_own_status_below_any_context() {
        let error = anyhow::Error::new(Failure { status: 4, message: "404 Not Found".into() });
        assert_eq!(report(&error.context("http://x/")), ExitCode::from(4));
    }
}
