//! Network namespaces of the process' own, without a name and without the `ip` program.
//!
//! A namespace belongs to threads, not to the process: a fresh thread leaves the one it was born in
//! (`unshare(CLONE_NEWNET)`), opens a descriptor that stands for the new one, and ends. The
//! descriptor keeps the namespace alive, so do the sockets, TUN devices and programs inside; when
//! the last of them is gone, by whatever way the process ended, the kernel removes it all. Nothing
//! has a name that could be left behind.
//!
//! To work inside, [`Namespace::run`] lends a thread that has entered (`setns`): a socket or TUN
//! opened there stays with that namespace, whichever thread uses it later.
//!
//! All this takes `CAP_SYS_ADMIN`. An ordinary user gets it in a user namespace of their own, which
//! [`enter_user_namespace`] makes; the kernel allows that only while the process has one thread,
//! hence at the start of `main`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::resume_unwind;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::fs::{Mode, OFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::interface::{InterfaceError, Interfaces};
use crate::open::kind_of;

mod user;

pub use user::{UserNamespaceError, enter_user_namespace};
pub(crate) use user::{enter_as_ourselves, may_make_networks};

/// Why a namespace could not be made or entered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The kernel refused a new network namespace.
    #[error("the kernel refused a network namespace (it takes CAP_SYS_ADMIN)")]
    Create(#[source] io::Error),
    /// The descriptor that stands for the namespace could not be opened.
    #[error("cannot open /proc/thread-self/ns/net")]
    Open(#[source] io::Error),
    /// The kernel did not let a thread into the namespace.
    #[error("cannot enter the network namespace")]
    Enter(#[source] io::Error),
    /// No thread could be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// The kernel gave no netlink socket.
    #[error("cannot open a netlink socket")]
    Netlink(#[source] io::Error),
    /// The loopback interface could not be brought up.
    #[error(transparent)]
    Loopback(#[from] InterfaceError),
}

impl NamespaceError {
    /// The meaning of the kernel's error number.
    pub fn kind(&self) -> io::ErrorKind {
        kind_of(self, io::ErrorKind::Other)
    }
}

impl From<NamespaceError> for io::Error {
    fn from(error: NamespaceError) -> Self {
        io::Error::new(error.kind(), error)
    }
}

/// A network namespace, alive for as long as this value or anything inside it.
#[derive(Debug)]
pub struct Namespace {
    descriptor: OwnedFd,
    interfaces: Mutex<Interfaces>,
}

impl Namespace {
    /// Makes a network namespace in which nothing exists but a loopback interface that is up.
    ///
    /// # Errors
    /// [`NamespaceError::Create`] without the right to it; see [`enter_user_namespace`].
    pub fn new() -> Result<Self, NamespaceError> {
        on_own_thread(|| {
            // SAFETY: CLONE_NEWNET alone leaves the descriptor table shared, which is the one thing
            // `unshare_unsafe` asks its caller to take care of; and the thread ends with this
            // closure.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
                .map_err(|errno| NamespaceError::Create(errno.into()))?;
            let descriptor = rustix::fs::open(
                "/proc/thread-self/ns/net",
                OFlags::RDONLY | OFlags::CLOEXEC,
                Mode::empty(),
            )
            .map_err(|errno| NamespaceError::Open(errno.into()))?;
            let mut interfaces = Interfaces::open().map_err(NamespaceError::Netlink)?;
            interfaces.set_up("lo", true)?;
            Ok(Namespace { descriptor, interfaces: Mutex::new(interfaces) })
        })?
    }

    /// One that another process has made, with its netlink socket for interfaces.
    pub(crate) fn from_parts(descriptor: OwnedFd, interfaces: Interfaces) -> Self {
        Namespace { descriptor, interfaces: Mutex::new(interfaces) }
    }

    /// Runs `work` inside the namespace, on a thread of its own, and waits for it.
    ///
    /// Sockets and TUN devices that `work` opens and returns stay in the namespace and work from
    /// any thread. If `work` panics, so does the caller.
    ///
    /// # Errors
    /// When no thread can be had or it is not let in; `work` has not run then.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        on_own_thread(|| {
            self.enter()?;
            Ok(work())
        })?
    }

    /// Moves the calling thread into the namespace for good, and with it what it opens and the
    /// threads and programs it starts from now on. For a thread that lives inside; otherwise use
    /// [`Namespace::run`].
    ///
    /// # Errors
    /// [`NamespaceError::Enter`] without the right to it.
    pub fn enter(&self) -> Result<(), NamespaceError> {
        Self::enter_descriptor(self)
    }

    /// The same, for a descriptor that stands for a network namespace.
    pub(crate) fn enter_descriptor(namespace: &impl AsFd) -> Result<(), NamespaceError> {
        let kind = Some(LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(namespace.as_fd(), kind)
            .map_err(|errno| NamespaceError::Enter(errno.into()))
    }

    /// Starts a program inside the namespace.
    ///
    /// A program that outlives its caller keeps the namespace, so the caller should wait
    /// for it or kill it.
    ///
    /// # Errors
    /// As [`Namespace::run`] and [`Command::spawn`].
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        // A child is born into the namespaces of the thread that starts it.
        self.run(|| command.spawn())?
    }

    /// The namespace's interfaces: addresses, routes, up and down.
    pub fn interfaces(&self) -> MutexGuard<'_, Interfaces> {
        // A panic in between leaves at most an unread answer, which its sequence number tells
        // apart.
        self.interfaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins two namespaces by a pair of virtual Ethernet interfaces: `name` here, `other_name` in
    /// `other`. Both are down and without addresses.
    ///
    /// # Errors
    /// The kernel's refusal: a name is taken, or it knows no veth.
    pub fn add_veth(
        &self,
        name: &str,
        other: &Namespace,
        other_name: &str,
    ) -> Result<(), InterfaceError> {
        self.add_veth_with_queues(name, other, other_name, 1)
    }

    /// The same with so many queues at either end, each for both directions.
    ///
    /// # Errors
    /// As [`Namespace::add_veth`].
    pub fn add_veth_with_queues(
        &self,
        name: &str,
        other: &Namespace,
        other_name: &str,
        queues: u32,
    ) -> Result<(), InterfaceError> {
        self.interfaces().add_veth(name, other_name, other.as_fd(), queues)
    }

    /// Sets one of the namespace's own kernel parameters below `net`, named as sysctl(8) does, for
    /// example `net.ipv4.tcp_congestion_control`.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the name does not begin with `net.` or would leave that
    /// directory, else the kernel's refusal.
    pub fn set_sysctl(&self, name: &str, value: &str) -> io::Result<()> {
        let valid = name.starts_with("net.") && !name.contains("..") && !name.contains('/');
        if !valid {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a net.* parameter"));
        }
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        self.run(|| std::fs::write(path, value))?
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Runs `work` on a thread whose namespaces may be changed, because nothing else will run on it.
fn on_own_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("in-namespace".into())
            .spawn_scoped(scope, work)
            .map_err(NamespaceError::Thread)?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
