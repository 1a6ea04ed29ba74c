//! Answers requests for the status on a Unix socket, and for Prometheus over HTTP.
//!
//! A request on the socket is one line, `status N`, and the answer is one line of JSON: a [`Status`] with at most N flows. The socket belongs
//! to the router's user, and no other user may write to it. Its name is that of the interface, so that two routers cannot work at the same one.
//! If a router listens at the socket, a second one is refused; a socket that a crash has left is replaced.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use transom_device::own_file;
use transom_device::serving::{self, Deadline, UnixName};

use crate::Refusal;
use crate::status::{Deployment, Status};

/// So long a question and its answer may take together.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest line that is read.
const MAX_LINE: u64 = 4096;
/// The most flows in an answer.
const MAX_FLOWS: usize = 10_000;

/// A deployment that several threads ask, until it is ended.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Option<Box<dyn Deployment>>>>);

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    /// Code under the lock leaves the state consistent, even if it panics.
    fn lock(&self) -> MutexGuard<'_, Option<Box<dyn Deployment>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`Deployment::status`].
    fn status(&self, flows: usize) -> Result<Status, Refusal> {
        match self.lock().as_mut() {
            Some(deployment) => deployment.status(flows),
            None => Err(Refusal::Parameter("the router is at its end".into())),
        }
    }

    /// See [`Deployment::maintain`].
    ///
    /// # Errors
    /// As there.
    pub fn maintain(&self) -> Result<(), Refusal> {
        self.lock().as_mut().map_or(Ok(()), |deployment| deployment.maintain())
    }

    /// Answers Prometheus on a separate thread. Returns its address.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn serve_metrics(&self, at: SocketAddr) -> Result<SocketAddr, Refusal> {
        let deployment = self.clone();
        let text = move || {
            let status = deployment.status(0).map_err(|refusal| refusal.to_string())?;
            Ok(status.metrics())
        };
        serving::serve_metrics(at, text).map_err(Refusal::io(format!("cannot listen at {at}")))
    }

    /// Ends the deployment, and removes what it has put into the system.
    pub fn end(&self) {
        let deployment = self.lock().take();
        drop(deployment);
    }
}

/// The default socket of the router at an interface.
pub fn default_path(device: &str) -> PathBuf {
    Path::new("/run/transom").join(format!("router-{device}.sock"))
}

/// A socket whose name exists for as long as this value lives.
#[derive(Debug)]
pub struct StatusSocket(UnixName);

impl StatusSocket {
    /// Takes the name. Does so before anything else is changed.
    ///
    /// # Errors
    /// [`Refusal::Running`] if another process listens there, or the system's refusal.
    pub fn bind(path: &Path) -> Result<Self, Refusal> {
        let refused = || Refusal::io(format!("cannot listen at {}", path.display()));
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty())
        {
            fs::create_dir_all(directory).map_err(refused())?;
        }
        let name = match UnixName::listen(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_socket(path) => {
                return Err(Refusal::Running { path: path.to_owned() });
            }
            outcome => outcome.map_err(refused())?,
        };
        own_file::set_socket_mode(path, 0o600).map_err(refused())?;
        Ok(StatusSocket(name))
    }

    /// Answers for a deployment on a separate thread until this is dropped.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn serve(&self, deployment: Box<dyn Deployment>) -> Result<Shared, Refusal> {
        let shared = Shared(Arc::new(Mutex::new(Some(deployment))));
        let asked = shared.clone();
        let serving = self.0.serve("status", move |stream| answer(&stream, &asked));
        serving.map_err(Refusal::io("cannot start a thread"))?;
        Ok(shared)
    }
}

/// Whether there is a socket with a listener.
fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

fn answer(stream: &UnixStream, deployment: &Shared) -> io::Result<()> {
    let mut stream = Deadline::new(stream, PATIENCE);
    let mut line = String::new();
    BufReader::new(&mut stream).take(MAX_LINE).read_line(&mut line)?;
    let flows =
        line.trim_end().strip_prefix("status ").and_then(|flows| flows.parse::<usize>().ok());
    let text = match flows {
        None => error("the request is unknown: write `status N`"),
        Some(flows) => match deployment.status(flows.min(MAX_FLOWS)) {
            Ok(status) => serde_json::to_string(&status)?,
            Err(refusal) => error(&refusal.to_string()),
        },
    };
    stream.write_all(text.as_bytes())?;
    stream.write_all(b"\n")
}

fn error(message: &str) -> String {
    serde_json::json!({ "error": message }).to_string()
}

/// Asks the router at a socket for its status, with at most this many flows.
///
/// # Errors
/// [`Refusal::NotRunning`] if no router answers, or the router's error.
pub fn ask(path: &Path, flows: usize) -> Result<Status, Refusal> {
    let stream = UnixStream::connect(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            Refusal::NotRunning { path: path.to_owned() }
        }
        _ => Refusal::io(format!("cannot ask at {}", path.display()))(source),
    })?;
    let failed = || Refusal::io(format!("no answer at {}", path.display()));
    stream.set_read_timeout(Some(PATIENCE * 2)).map_err(failed())?;
    writeln!(&stream, "status {flows}").map_err(failed())?;
    let mut text = String::new();
    (&stream).read_to_string(&mut text).map_err(failed())?;
    serde_json::from_str(&text).map_err(|_| {
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        Refusal::Parameter(
            value["error"].as_str().unwrap_or("the answer is not understood").to_owned(),
        )
    })
}

#[cfg(test)]
mod tests;
