//! The source of `list`, `show` and `watch`: each process with a host answers at a Unix socket with a report in JSON.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::host::Reporter;
use crate::report::HostReport;

/// Where the sockets are, by default.
pub const DIRECTORY: &str = "/run/transom/kernel";
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest answer that is read.
const LONGEST: u64 = 64 << 20;

/// Answers until it is dropped.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Answers at a socket in `directory` that is named after this process.
    ///
    /// # Errors
    /// The system's.
    pub fn start(directory: &Path, reporter: Reporter) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
        let path = directory.join(format!("{}.sock", std::process::id()));
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        let stop = Arc::new(AtomicBool::new(false));
        let its = stop.clone();
        let serve = move || {
            for stream in listener.incoming() {
                if its.load(Ordering::Acquire) {
                    return;
                }
                let Ok(mut stream) = stream else { continue };
                let _ = stream.set_write_timeout(Some(PATIENCE));
                if let Ok(text) = serde_json::to_vec(&reporter.report()) {
                    // Who has gone needs no answer.
                    let _ = stream.write_all(&text);
                }
            }
        };
        let thread = thread::Builder::new().name("kernel-status".into()).spawn(serve)?;
        Ok(Server { path, stop, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let woken = UnixStream::connect(&self.path).is_ok();
        let _ = fs::remove_file(&self.path);
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

/// The reports of all hosts. Sockets of processes that have gone are removed.
///
/// # Errors
/// If the directory cannot be read; one that is not there has nobody in it.
pub fn all(directory: &Path) -> io::Result<Vec<HostReport>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut reports = Vec::new();
    for entry in entries {
        let path = entry?.path();
        match ask(&path) {
            Ok(report) => reports.push(report),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _ = fs::remove_file(&path);
            }
            Err(_) => {}
        }
    }
    reports.sort_by_key(|report| report.process);
    Ok(reports)
}

fn ask(path: &Path) -> io::Result<HostReport> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    stream.take(LONGEST).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(io::Error::from)
}
