//! A Unix socket with a name.
//!
//! The name stays when its process crashes, and then no process can listen there. So [`UnixName::listen`] replaces a socket
//! without a listener. It never replaces one with a listener, nor anything that is not a socket.
//!
//! Two processes that start at the same time both find the old socket, and one of them could remove the other's new one. So
//! names are checked, removed and made under a lock, flock(2) on the directory. A process that does not use the lock is detected: the
//! old name is moved away first, and then checked once more.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, RenameFlags, flock};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::{Slots, accept_next};

/// So long the lock of a directory is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
/// So many are answered at the same time; others wait.
pub const MOST_ASKING: usize = 16;

/// A Unix socket that listens, and its name. When it is dropped the name goes, and nobody is taken any more.
#[derive(Debug)]
pub struct UnixName {
    listener: UnixListener,
    path: PathBuf,
    identity: Option<Identity>,
}

/// The file behind a name: its device and its number there.
type Identity = (u64, u64);

impl UnixName {
    /// Listens at `path`, also where a process that has crashed did.
    ///
    /// # Errors
    /// [`io::ErrorKind::AddrInUse`] if a process listens there, or another kind of file has the name. Otherwise the system's.
    pub fn listen(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        // Before anything else: between bind(2) and listen(2) a socket looks like one that nobody listens at.
        let lock = lock_directory(path);
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let _held = lock
                    .as_ref()
                    .map_err(|error| io::Error::new(io::ErrorKind::AddrInUse, error.to_string()))?;
                remove_stale(path)?;
                UnixListener::bind(path)?
            }
            outcome => outcome?,
        };
        Ok(UnixName { listener, path: path.to_owned(), identity: identity(path) })
    }

    /// The socket.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Answers all who come until it is dropped, on threads of this name: as many as [`MOST_ASKING`] at a time.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn serve(
        &self,
        name: &'static str,
        answer: impl Fn(UnixStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        let (answer, slots) = (Arc::new(answer), Slots::new(MOST_ASKING));
        let work = move || {
            loop {
                let slot = slots.take();
                let Ok((stream, _)) = accept_next(|| listener.accept()) else { return };
                let answer = Arc::clone(&answer);
                let attend = move || {
                    let _slot = slot;
                    // The client may have gone without the answer.
                    let _ = answer(stream);
                };
                // Without a thread the connection is closed, which who asks will notice.
                let _ = thread::Builder::new().name(name.into()).spawn(attend);
            }
        };
        thread::Builder::new().name(name.into()).spawn(work).map(drop)
    }
}

impl Drop for UnixName {
    fn drop(&mut self) {
        // Wakes the thread that waits for somebody to come: the socket takes nobody any more.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        // Another process may have put a socket of its own there.
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The socket that has this name, if it is one.
fn identity(path: &Path) -> Option<Identity> {
    let found = fs::symlink_metadata(path).ok()?;
    found.file_type().is_socket().then(|| (found.dev(), found.ino()))
}

fn in_use(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, reason.to_owned())
}

/// As long as it lives, nobody else who knows of the lock changes names in the path's directory.
fn lock_directory(path: &Path) -> io::Result<File> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = File::open(directory)?;
    let end = Instant::now() + PATIENCE;
    loop {
        match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(directory),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(Errno::WOULDBLOCK) => return Err(in_use("somebody has locked its directory")),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Removes a socket that nobody listens at.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Some(stale) = identity(path) else {
        // Gone meanwhile is as good.
        return match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            _ => Err(in_use("there is something that is no socket")),
        };
    };
    if has_listener(path)? {
        return Err(in_use("somebody listens there already"));
    }
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".stale-{}", std::process::id()));
    let aside = PathBuf::from(aside);
    fs::rename(path, &aside)?;
    if identity(&aside) == Some(stale) && !has_listener(&aside)? {
        return fs::remove_file(&aside);
    }
    // Somebody without the lock was quicker: it gets its name back.
    let here = rustix::fs::CWD;
    let _ = rustix::fs::renameat_with(here, &aside, here, path, RenameFlags::NOREPLACE);
    Err(in_use("somebody listens there already"))
}

/// Whether a process listens at a socket. Only a clear answer of the system counts as no.
fn has_listener(path: &Path) -> io::Result<bool> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket: OwnedFd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&socket, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(false),
        // Its queue is full, or it is of another kind, or it is not for us.
        Ok(()) | Err(_) => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    fn left(path: &Path) {
        // Its name stays.
        drop(UnixListener::bind(path).unwrap());
        assert!(path.exists());
    }

    fn refused(path: &Path) {
        let before = fs::symlink_metadata(path).unwrap();
        let error = UnixName::listen(path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse, "{error}");
        let after = fs::symlink_metadata(path).unwrap();
        assert_eq!((before.ino(), before.dev()), (after.ino(), after.dev()));
        let names = fs::read_dir(path.parent().unwrap()).unwrap();
        assert!(names.flatten().all(|name| !name.path().to_string_lossy().contains("stale")));
    }

    #[test]
    fn the_socket_of_a_crashed_process_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        left(&path);
        let name = UnixName::listen(&path).unwrap();
        let visit = UnixStream::connect(&path).unwrap();
        name.listener().accept().unwrap();
        drop(visit);
        drop(name);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_process_that_listens_keeps_the_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        refused(&path);
        // Also when it takes nobody any more, as its queue is full.
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let mut waiting = Vec::new();
        loop {
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
            match connect(&socket, &SocketAddrUnix::new(&path).unwrap()) {
                Ok(()) => waiting.push(socket),
                Err(errno) => break assert_eq!(errno, Errno::AGAIN),
            }
            assert!(waiting.len() < 10_000);
        }
        refused(&path);
        drop(listener);
        let path = directory.path().join("datagrams");
        let _datagrams = UnixDatagram::bind(&path).unwrap();
        refused(&path);
    }

    #[test]
    fn only_a_socket_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "precious").unwrap();
        refused(&at("file"));
        assert_eq!(fs::read(at("file")).unwrap(), b"precious");
        fs::create_dir(at("directory")).unwrap();
        refused(&at("directory"));
        left(&at("old"));
        symlink(at("old"), at("link")).unwrap();
        refused(&at("link"));
        symlink(at("nowhere"), at("dangling")).unwrap();
        refused(&at("dangling"));
        assert!(at("old").exists());
    }

    #[test]
    fn of_many_that_start_at_once_one_listens() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        for _ in 0..50 {
            left(&path);
            let barrier = std::sync::Barrier::new(8);
            let names: Vec<_> = std::thread::scope(|scope| {
                let start = || {
                    barrier.wait();
                    UnixName::listen(&path).ok()
                };
                let started: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
                started.into_iter().filter_map(|one| one.join().unwrap()).collect()
            });
            assert_eq!(names.len(), 1);
            UnixStream::connect(&path).expect("its name leads to it");
            names[0].listener().accept().unwrap();
        }
    }

    #[test]
    fn who_waits_to_accept_is_woken_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let name = UnixName::listen(directory.path().join("socket")).unwrap();
        let listener = name.listener().try_clone().unwrap();
        let (begun, begins) = std::sync::mpsc::channel();
        let waiting = std::thread::spawn(move || {
            begun.send(()).unwrap();
            crate::serving::accept_next(|| listener.accept()).map(drop)
        });
        begins.recv().unwrap();
        drop(name);
        waiting.join().unwrap().unwrap_err();
    }

    #[test]
    fn a_name_that_is_somebody_elses_by_now_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let first = UnixName::listen(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let _second = UnixListener::bind(&path).unwrap();
        drop(first);
        assert!(path.exists());
    }
}
