//! The source of `list`, `show`, `watch` and `log`: each process with a host answers at a Unix socket. A question is a line, `report` or `log NUMBER`; the
//! answer is JSON.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use transom_device::own_file;
use transom_device::serving::{Deadline, UnixName};

use crate::host::{Host, Shared};
use crate::log::LogPart;
use crate::report::HostReport;

/// Where the sockets are.
pub const DIRECTORY: &str = "/run/transom/kernel";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a question may take, and how long it may be.
const QUESTION: Duration = Duration::from_millis(500);
const LONGEST_QUESTION: u64 = 64;
/// Lines of the log in one answer.
const LINES: usize = 4096;
/// The longest answer that is read.
const LONGEST: u64 = 64 << 20;

/// Answers until it is dropped.
#[derive(Debug)]
pub struct Server {
    _name: UnixName,
}

impl Server {
    /// Answers for a host at a socket in [`DIRECTORY`] that is named after this process.
    ///
    /// # Errors
    /// The system's.
    pub fn start(host: &Host) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(DIRECTORY)?;
        let name = listen(Path::new(DIRECTORY))?;
        let host = host.shared.clone();
        name.serve("kernel-status", move |stream| answer(&stream, &host))?;
        Ok(Server { _name: name })
    }
}

/// A socket for root alone, named after this process. Only a socket that a crash has left is replaced.
fn listen(directory: &Path) -> io::Result<UnixName> {
    let name = UnixName::listen(directory.join(format!("{}.sock", std::process::id())))?;
    own_file::set_socket_mode(name.path(), 0o600)?;
    Ok(name)
}

fn answer(stream: &UnixStream, host: &Shared) -> io::Result<()> {
    let mut question = String::new();
    let asked = Deadline::new(stream, QUESTION).take(LONGEST_QUESTION);
    BufReader::new(asked).read_line(&mut question)?;
    let text = match question.trim_end().split_once(' ') {
        Some(("log", number)) => {
            let number = number.parse().map_err(|_| io::ErrorKind::InvalidData)?;
            serde_json::to_vec(&host.log(number, LINES))
        }
        _ => serde_json::to_vec(&host.report()),
    };
    Deadline::new(stream, PATIENCE).write_all(&text?)
}

/// The reports of all hosts. Sockets of processes that have gone are removed.
///
/// # Errors
/// If the directory cannot be read; one that is not there has nobody in it.
pub fn reports() -> io::Result<Vec<HostReport>> {
    let mut reports = Vec::new();
    for path in sockets()? {
        reports.extend(ask::<HostReport>(&path, "report\n"));
    }
    reports.sort_by_key(|report| report.process);
    Ok(reports)
}

/// Follows the logs of all hosts, from the oldest lines on that are kept.
#[derive(Debug, Default)]
pub struct LogReader {
    /// The number of the next line of each.
    next: HashMap<PathBuf, u64>,
}

impl LogReader {
    /// The lines since the last call, host by host. There may be more already.
    ///
    /// # Errors
    /// If the directory cannot be read; one that is not there has nobody in it.
    pub fn read(&mut self) -> io::Result<Vec<LogPart>> {
        let mut parts = Vec::new();
        for path in sockets()? {
            let next = self.next.entry(path.clone()).or_default();
            if let Some(part) = ask::<LogPart>(&path, &format!("log {next}\n")) {
                *next = part.next;
                parts.push(part);
            }
        }
        Ok(parts)
    }
}

fn sockets() -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(DIRECTORY) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Asks one. It is removed if its process has gone.
fn ask<T: DeserializeOwned>(path: &Path, question: &str) -> Option<T> {
    let mut stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) => {
            if error.kind() == io::ErrorKind::ConnectionRefused {
                let _ = fs::remove_file(path);
            }
            return None;
        }
    };
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(question.as_bytes()).ok()?;
    let mut text = Vec::new();
    stream.take(LONGEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_socket_is_for_its_user_alone_and_replaces_only_what_a_crash_has_left() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().join(format!("{}.sock", std::process::id()));
        drop(UnixListener::bind(&at).unwrap());
        let name = listen(directory.path()).unwrap();
        assert_eq!(fs::metadata(&at).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(listen(directory.path()).is_err(), "somebody listens there");
        UnixStream::connect(&at).unwrap();
        drop(name);
        assert!(!at.exists());
        let precious = directory.path().join("precious");
        fs::write(&precious, "kept").unwrap();
        fs::set_permissions(&precious, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&precious, &at).unwrap();
        listen(directory.path()).unwrap_err();
        assert!(fs::symlink_metadata(&at).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
        assert_eq!(fs::metadata(&precious).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
