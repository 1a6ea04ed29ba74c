//! The broker itself.
//!
//! One thread waits for requests, for the ends of processes, and for changes of interfaces and addresses. It never reads a packet. The
//! programs, their maps and their links go on without it: they are pinned in a BPF file system. It keeps no descriptor of a device that it
//! has lent.
//!
//! - `kernel`: the programs, and the contents of their maps.
//! - `requests`: the requests of clients.
//! - `tending`: the work without a request, and the state that a new broker finds.
//! - `serve`: the loop.
//! - `closing`: the ends of descriptors from others.
//! - `crowds`: how often something may be asked for.
//! - `sweep`: the end of a broker that does not run any more.
//! - `occupied`: ports where the kernel has other sockets.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::net::{SocketAddrUnix, SocketFlags};
use transom_device::diag::Diag;
use transom_device::host::{Changes, Hosts};
use transom_device::interface::Interfaces;
use transom_device::port_socket::namespace_of;

use crate::policy::Policy;
use crate::protocol::DEFAULT_PATH;
use crate::wire;

mod audit;
mod closing;
mod crowds;
mod error;
mod farewell;
mod host;
mod kernel;
mod layout;
mod leases;
mod occupied;
mod process;
mod requests;
mod serve;
mod sweep;
mod tending;

pub use error::DaemonError;
pub use serve::Stopper;
pub use sweep::sweep;

use audit::{Audit, Event};
use closing::Closer;
use crowds::Pace;
use farewell::{Farewell, Farewells};
use host::View;
use kernel::Kernel;
use leases::Leases;
use serve::Connection;

/// The directory of pins, by default.
pub const DEFAULT_PINS: &str = "/sys/fs/bpf/transom";

/// The settings of a broker.
#[derive(Clone, Debug)]
pub struct Options {
    /// The policy, with the interfaces.
    pub policy: Policy,
    /// The socket's name.
    pub socket: PathBuf,
    /// The directory of pins. It is below a BPF file system, or one is mounted at the directory above it.
    pub pins: PathBuf,
}

impl Options {
    /// For a policy, at the usual places.
    pub fn new(policy: Policy) -> Self {
        Options { policy, socket: DEFAULT_PATH.into(), pins: DEFAULT_PINS.into() }
    }
}

/// The broker's own counters.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    requests: u64,
    refused: u64,
    malformed: u64,
    leases: u64,
    ended: u64,
    tampered: u64,
}

/// A broker that answers while it [runs](Daemon::run).
#[derive(Debug)]
pub struct Daemon {
    policy: Policy,
    kernel: Kernel,
    hosts: Hosts,
    interfaces: Interfaces,
    changes: Changes,
    diag: Diag,
    view: View,
    leases: Leases,
    closer: Closer,
    listener: OwnedFd,
    connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    /// Nobody is let in before.
    paused_until: Option<std::time::Instant>,
    /// How often devices are made.
    pace: Pace,
    /// So many sockets of ports are kept at most.
    most_sockets: usize,
    namespace: u64,
    farewell: Farewell,
    farewells: Farewells,
    audit: Audit,
    counters: Counters,
    /// The number before that of the first list of peers.
    lists: u32,
    /// How many ports the programs had given back to the kernel at the last look.
    taken: u64,
    /// How often refusals are written into the log, and how many were left out.
    refusals: (Pace, u64),
    socket: PathBuf,
    stop: (OwnedFd, OwnedFd),
    /// Last, so that nobody else starts before everything else is over.
    lock: std::fs::File,
}

/// The reason why [`Daemon::run`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Somebody asked for the end of all leases.
    Stopped,
    /// The [`Stopper`]; everything goes on without a broker.
    Interrupted,
}

impl Daemon {
    /// Loads the programs, takes over what an earlier broker has left, and listens; in the calling thread's network namespace, in which
    /// [`Daemon::run`] has to be called too.
    ///
    /// # Errors
    /// The missing part.
    pub fn start(options: Options) -> Result<Self, DaemonError> {
        let Options { policy, socket, pins } = options;
        if policy.uplinks.is_empty() {
            return Err(DaemonError::NoUplink);
        }
        if !rustix::process::geteuid().is_root() {
            return Err(DaemonError::NotRoot);
        }
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(DaemonError::NoTypes);
        }
        let lock = lock(&socket)?;
        let audit = Audit::open(policy.audit.as_deref());
        let mut daemon = Daemon {
            audit: audit.map_err(DaemonError::io("cannot open the audit log"))?,
            kernel: Kernel::load(&pins)?,
            hosts: Hosts::open().map_err(DaemonError::io("cannot open a netlink socket"))?,
            interfaces: Interfaces::open()
                .map_err(DaemonError::io("cannot open a netlink socket"))?,
            changes: Changes::of_addresses()
                .map_err(DaemonError::io("cannot open a netlink socket"))?,
            diag: Diag::open().map_err(DaemonError::io("cannot open a netlink socket"))?,
            view: View::default(),
            leases: Leases::new(),
            closer: Closer::default(),
            listener: listen(&socket)?,
            connections: BTreeMap::new(),
            next_connection: 0,
            paused_until: None,
            pace: Pace::default(),
            most_sockets: raise_descriptors(),
            namespace: own_namespace()
                .map_err(DaemonError::io("cannot ask for the network namespace"))?,
            counters: Counters::default(),
            lists: 0,
            taken: 0,
            refusals: (Pace::default(), 0),
            farewell: Farewell::open(),
            farewells: Farewells::default(),
            stop: rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                .map_err(|errno| DaemonError::io("cannot make a pipe")(errno.into()))?,
            policy,
            socket,
            lock,
        };
        daemon.take_over()?;
        daemon.audit.write(&Event { event: "start", ..Event::default() });
        Ok(daemon)
    }

    /// The file with the earlier setting of the loopback interface, beside the socket until the end.
    fn note_path(&self) -> PathBuf {
        beside(&self.socket, ".lo")
    }
}

fn beside(socket: &Path, suffix: &str) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Its holder is the only broker at this socket.
fn lock(socket: &Path) -> Result<std::fs::File, DaemonError> {
    let failed = || DaemonError::io(format!("cannot use {}", socket.display()));
    if let Some(directory) = socket.parent().filter(|path| !path.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory).map_err(failed())?;
    }
    let path = beside(socket, ".lock");
    loop {
        let file = std::fs::File::create(&path).map_err(failed())?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(DaemonError::Running { path }),
            Err(errno) => return Err(failed()(errno.into())),
        }
        // A broker that stopped at this moment has taken the name away, and others may lock another file.
        if is_named(&file, &path) {
            return Ok(file);
        }
    }
}

fn is_named(file: &std::fs::File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |found: std::fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(own), Ok(there)) => number(own) == number(there),
        _ => false,
    }
}

/// Gives the lock up, and takes its file away before.
fn unlock(lock: std::fs::File, socket: &Path) {
    let _ = std::fs::remove_file(beside(socket, ".lock"));
    drop(lock);
}

/// Everybody may ask; the policy says who gets something.
fn listen(path: &Path) -> Result<OwnedFd, DaemonError> {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let failed = || DaemonError::io(format!("cannot listen at {}", path.display()));
    // The lock is ours, so a socket there was left by a broker that has crashed.
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        std::fs::remove_file(path).map_err(failed())?;
    }
    let socket = wire::socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).map_err(failed())?;
    let address = SocketAddrUnix::new(path).map_err(|errno| failed()(errno.into()))?;
    rustix::net::bind(&socket, &address).map_err(|errno| failed()(errno.into()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).map_err(failed())?;
    rustix::net::listen(&socket, 128).map_err(|errno| failed()(errno.into()))?;
    Ok(socket)
}

/// Each port costs a descriptor, and so does much else: the number for ports.
fn raise_descriptors() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Fewer ports then.
    let _ = setrlimit(Resource::Nofile, limit);
    let all = limit.maximum.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    // A connection has two, and a lease one.
    let others = 2 * (serve::MOST + serve::RESERVED) + 4096;
    all.saturating_sub(others).max(all / 2)
}

fn own_namespace() -> io::Result<u64> {
    namespace_of(std::net::UdpSocket::bind("127.0.0.1:0").or_else(|_| {
        // A namespace whose loopback interface is down.
        std::net::UdpSocket::bind("0.0.0.0:0")
    })?)
}
