//! The broker itself.
//!
//! One thread waits for requests, for the ends of processes, and for changes of interfaces and addresses. It never reads a packet. The
//! programs, their maps and their links go on without it: they are pinned in a BPF file system. It keeps no descriptor of a device that it
//! has lent.
//!
//! - `kernel`: the programs, and the contents of their maps.
//! - `requests`: the requests of clients.
//! - `maintenance`: takes over an earlier broker's state, and follows changes of the host.
//! - `serve`: the loop.
//! - `closing`: closes descriptors that clients have sent.
//! - `rate_limit`: limits how often devices are opened and refusals logged.
//! - `ending`: ends leases and ports; what becomes of their connections.
//! - `quarantine`: how long nobody gets those, and when their peers are probed. `leftover` is what a stopped broker leaves of it.
//! - `peer_probe`: resets the connections of holders that have ended.
//! - `pins`: names in the BPF file system that keep all of it when a broker has ended.
//! - `sweep`: removes the state of a broker that does not run any more.
//! - `occupied`: ports where the kernel has other sockets.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use rustix::net::{SocketAddrUnix, SocketFlags};
use transom_device::interface::{Changes, Interfaces};
use transom_device::{Diag, EventFd, namespace_of, own_file};

use crate::policy::Policy;
use crate::wire;

mod audit;
mod closing;
mod ending;
mod error;
mod host;
mod kernel;
mod layout;
mod leases;
mod leftover;
mod maintenance;
mod networks;
mod occupied;
mod peer_probe;
mod pins;
mod process;
mod quarantine;
mod rate_limit;
mod requests;
mod serve;
mod sweep;

pub use error::DaemonError;
pub use sweep::sweep;

use audit::{Audit, Event};
use closing::Closer;
use ending::Endings;
use host::HostState;
use kernel::Kernel;
use leases::Leases;
use networks::Networks;
use peer_probe::ProbeSockets;
use quarantine::Quarantine;
use rate_limit::RateLimiters;
use serve::Connection;

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
    interfaces: Interfaces,
    changes: Changes,
    diag: Diag,
    host_state: HostState,
    leases: Leases,
    networks: Networks,
    closer: Closer,
    listener: OwnedFd,
    connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    /// No connection is accepted before this time.
    paused_until: Option<std::time::Instant>,
    /// Limits how often devices are opened.
    open_rate: RateLimiters,
    /// The most sockets that are kept for ports.
    max_port_sockets: usize,
    namespace: u64,
    probe_sockets: ProbeSockets,
    quarantine: Quarantine,
    endings: Endings,
    audit: Audit,
    counters: Counters,
    /// The number of a rule's list of peers is this, plus the rule's place, counted from 1.
    peer_list_base: u32,
    /// How many ports the programs had given back to the kernel when their counter was last read.
    taken_ports: u64,
    /// How often refusals are written into the log, and how many were left out.
    refusals: (RateLimiters, u64),
    socket: PathBuf,
    stop: Arc<EventFd>,
    /// Last, so that nobody else starts before everything else is over.
    lock: std::fs::File,
}

/// The reason why [`Daemon::run`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Somebody asked for the end of all leases.
    Stopped,
    /// The [stopper](Daemon::stopper); everything goes on without a broker.
    Interrupted,
}

impl Daemon {
    /// Loads the programs, takes over what an earlier broker has left, and listens at the socket of this name; in the calling thread's network namespace, in
    /// which [`Daemon::run`] has to be called too. `pins` is the directory of pins. It is below a BPF file system, or one is mounted at the directory above it.
    ///
    /// # Errors
    /// The missing part.
    pub fn start(policy: Policy, socket: &Path, pins: &Path) -> Result<Self, DaemonError> {
        if policy.uplinks.is_empty() {
            return Err(DaemonError::NoUplink);
        }
        if !rustix::process::geteuid().is_root() {
            return Err(DaemonError::NotRoot);
        }
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            return Err(DaemonError::NoTypes);
        }
        let lock = lock(socket)?;
        let audit = Audit::open(policy.audit.as_deref());
        let mut daemon = Daemon {
            audit: audit.map_err(DaemonError::io("cannot open the audit log"))?,
            kernel: Kernel::load(pins)?,
            interfaces: Interfaces::open()
                .map_err(DaemonError::io("cannot open a netlink socket"))?,
            changes: Changes::of_addresses()
                .map_err(DaemonError::io("cannot open a netlink socket"))?,
            diag: Diag::open().map_err(DaemonError::io("cannot open a netlink socket"))?,
            host_state: HostState::default(),
            leases: Leases::new(),
            networks: Networks::default(),
            closer: Closer::default(),
            listener: listen(socket)?,
            connections: BTreeMap::new(),
            next_connection: 0,
            paused_until: None,
            open_rate: RateLimiters::default(),
            max_port_sockets: raise_descriptor_limit(),
            namespace: own_network_namespace()
                .map_err(DaemonError::io("cannot ask for the network namespace"))?,
            counters: Counters::default(),
            peer_list_base: 0,
            taken_ports: 0,
            refusals: (RateLimiters::default(), 0),
            probe_sockets: ProbeSockets::open(),
            quarantine: Quarantine::default(),
            endings: Endings::default(),
            stop: Arc::new(EventFd::new().map_err(DaemonError::io("cannot make an eventfd"))?),
            policy,
            socket: socket.to_owned(),
            lock,
        };
        daemon.take_over()?;
        daemon.audit.write(&Event { event: "start", ..Event::default() });
        Ok(daemon)
    }

    /// The file with the earlier setting of the loopback interface, beside the socket until the end.
    fn loopback_setting_path(&self) -> PathBuf {
        path_beside(&self.socket, ".lo")
    }

    /// The file with the quarantine of a broker that was stopped, until the next one has read it.
    fn leftover_path(&self) -> PathBuf {
        leftover_path(&self.socket)
    }

    fn log_error(&mut self, reason: &str) {
        self.audit.write(&Event { event: "error", reason: Some(reason), ..Event::default() });
    }
}

fn leftover_path(socket: &Path) -> PathBuf {
    path_beside(socket, ".quarantine")
}

fn path_beside(socket: &Path, suffix: &str) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Locks a socket's name. The holder of the lock is the only broker at this socket.
fn lock(socket: &Path) -> Result<std::fs::File, DaemonError> {
    let failed = || DaemonError::io(format!("cannot use {}", socket.display()));
    if let Some(directory) = socket.parent().filter(|path| !path.as_os_str().is_empty()) {
        std::fs::create_dir_all(directory).map_err(failed())?;
    }
    let path = path_beside(socket, ".lock");
    // Others may put something there again and again, where they can.
    for _ in 0..MAX_LOCK_ATTEMPTS {
        // Its mode is 0600, so nobody else can open it, and so nobody else can lock it.
        let file = match own_file::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                // No lock of a broker of this version: somebody else's, or of a version that let everybody open it. The name goes, whatever it leads to stays.
                if serve::root_listens(socket) {
                    return Err(DaemonError::Running { path });
                }
                match std::fs::remove_file(&path) {
                    Err(gone) if gone.kind() == io::ErrorKind::NotFound => {}
                    Err(_) => return Err(failed()(error)),
                    Ok(()) => {}
                }
                continue;
            }
            Err(error) => return Err(failed()(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Err(DaemonError::Running { path }),
            Err(errno) => return Err(failed()(errno.into())),
        }
        // A broker that stopped at this moment has taken the name away, and others may lock another file.
        if is_file_at(&file, &path) {
            return Ok(file);
        }
    }
    let why = "others keep putting something else there";
    let why = format!("{}: {why}", path.display());
    Err(failed()(io::Error::new(io::ErrorKind::PermissionDenied, why)))
}

/// So often the lock file is opened anew.
const MAX_LOCK_ATTEMPTS: usize = 100;

fn is_file_at(file: &std::fs::File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |found: std::fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(own), Ok(there)) => number(own) == number(there),
        _ => false,
    }
}

/// Gives the lock up, and takes its file away before.
fn unlock(lock: std::fs::File, socket: &Path) {
    let _ = std::fs::remove_file(path_beside(socket, ".lock"));
    drop(lock);
}

/// Opens the broker's socket. Every user may connect; the policy decides about requests.
fn listen(path: &Path) -> Result<OwnedFd, DaemonError> {
    use std::os::unix::fs::FileTypeExt;
    let failed = || DaemonError::io(format!("cannot listen at {}", path.display()));
    // The lock is ours, so a socket there was left by a broker that has crashed.
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        std::fs::remove_file(path).map_err(failed())?;
    }
    let socket = wire::socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).map_err(failed())?;
    let address = SocketAddrUnix::new(path).map_err(|errno| failed()(errno.into()))?;
    rustix::net::bind(&socket, &address).map_err(|errno| failed()(errno.into()))?;
    own_file::set_socket_mode(path, 0o666).map_err(failed())?;
    rustix::net::listen(&socket, 128).map_err(|errno| failed()(errno.into()))?;
    Ok(socket)
}

/// Raises the limit on descriptors. Returns how many of them may be used for ports.
fn raise_descriptor_limit() -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Fewer ports then.
    let _ = setrlimit(Resource::Nofile, limit);
    let all = limit.maximum.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
    // A connection has two, and a lease one.
    let others = 2 * serve::ALL_CONNECTIONS + 4096 + networks::MOST_DESCRIPTORS;
    all.saturating_sub(others).max(all / 2)
}

fn own_network_namespace() -> io::Result<u64> {
    namespace_of(std::net::UdpSocket::bind("127.0.0.1:0").or_else(|_| {
        // A namespace whose loopback interface is down.
        std::net::UdpSocket::bind("0.0.0.0:0")
    })?)
}
