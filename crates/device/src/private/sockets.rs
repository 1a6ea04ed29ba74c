//! TCP sockets of a private network, to be handed to programs.
//!
//! # What the kernel writes down when a socket is made, and whose it is here
//! Each line was tried on Linux 6.18. "Made by" is the task that calls `socket(2)`.
//!
//! | what | whose at first | how it becomes the caller's |
//! |---|---|---|
//! | network namespace | the maker's | never changes; that it is the private one is the purpose. A caller in another network namespace than the host's gets no socket of ours: [`Caller::shares_network`] |
//! | owner (`sk_uid`, the inode's user; `ss -e`, `ip rule uidrange`, `SO_REUSEPORT` groups) | the maker's `fsuid` | `fchown(2)` on the socket: `sockfs_setattr()` sets both. Needs `CAP_CHOWN`, and a user that is mapped in the maker's user namespace |
//! | control group, version 2 (`sk_cgrp_data`; programs at `cgroup/connect4`, `sock_ops`, `cgroup_skb`) | the maker's, for good; accepted sockets inherit the listener's | a process that is born in the caller's group makes it (`CLONE_INTO_CGROUP`) |
//! | class and priority of `net_cls` and `net_prio` (version 1) | the maker's | of itself: `__receive_sock()` sets both to the receiver's when a descriptor is injected |
//! | memory group (`sk_memcg`) | the maker's | as the control group, with version 2 |
//! | rights at `bind(2)` and at options | are asked of the task that makes the call | of itself: these calls run in the program |
//! | credentials of the open file (`f_cred`), security label | the maker's | stays; TCP asks for neither, a security module may. Firewalls ask for `f_cred` (`owner`), but see none of these sockets |
//!
//! A connection that is accepted is made by the program's own `accept(2)`, so its inode has the right owner.
//!
//! A socket *outside*, by which the supervisor connects or listens for a caller, is seen by firewalls. So all of these are the caller's there, `f_cred` too:
//! [`Caller::socket_outside`].
//!
//! # Spare sockets
//! A thread inside the namespace keeps some ready, so that `socket(2)` costs its caller a pop and, for another user, an `fchown(2)`. For another control group,
//! a process is started once for several sockets. Where another process has [made](super::maker) the network, the thread asks it for several at once.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use rustix::fs::{Gid, Uid};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::PrivateNetwork;
use super::maker::{Maker, MakerError};
use crate::namespace::{Namespace, NamespaceError};

mod born;
mod caller;

use born::{Order, as_owner};
pub use caller::{Caller, Home, may_bind_low_ports};

/// So many spare sockets a process in another control group makes at once.
const BATCH: usize = 4;
/// So many are asked for at once where another process makes them. It takes 20 µs or so to wake it.
const BY_MAKER: usize = 16;
/// For so many other control groups spare sockets are kept.
const GROUPS: usize = 16;

/// The IP version of a socket. One for IPv6 may reach IPv4 too (`IPV6_V6ONLY`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// `AF_INET`.
    V4,
    /// `AF_INET6`.
    V6,
}

impl Family {
    /// The family with this number of `socket(2)`.
    pub fn of(domain: i32) -> Option<Family> {
        match domain {
            libc::AF_INET => Some(Family::V4),
            libc::AF_INET6 => Some(Family::V6),
            _ => None,
        }
    }

    fn number(self) -> i32 {
        match self {
            Family::V4 => libc::AF_INET,
            Family::V6 => libc::AF_INET6,
        }
    }

    fn index(self) -> usize {
        usize::from(self == Family::V6)
    }
}

/// What both sides of the stock see.
#[derive(Debug, Default)]
struct Stock {
    spare: [Vec<OwnedFd>; 2],
    /// Somebody waits for one of this kind.
    wanted: [bool; 2],
    failed: [Option<io::Error>; 2],
    /// The worker sleeps. To wake one that does not would be a system call for nothing.
    idle: bool,
    stop: bool,
}

#[derive(Debug, Default)]
struct Shared {
    stock: Mutex<Stock>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where sockets come from.
#[derive(Clone, Debug)]
enum Source {
    /// The worker is in the namespace, for which this descriptor stands.
    Inside(Arc<OwnedFd>),
    /// The process that has made the network makes them.
    Maker(Arc<Maker>),
}

impl Source {
    /// Called by the worker before anything else.
    fn enter(&self) -> Result<(), NamespaceError> {
        match self {
            Source::Inside(namespace) => Namespace::enter_descriptor(&**namespace),
            Source::Maker(_) => Ok(()),
        }
    }

    /// Up to `count` sockets, and at least one. With a `group`, any thread may call it; without one, only the worker.
    fn make(&self, family: Family, count: usize, group: Option<&str>) -> io::Result<Vec<OwnedFd>> {
        match (self, group) {
            (Source::Inside(_), None) => several(count, || make(family)),
            (Source::Inside(namespace), Some(group)) => {
                make_in_group(group, namespace.as_fd(), family, count)
            }
            (Source::Maker(maker), group) => {
                maker.sockets(family, count, group).map_err(MakerError::into_numbered)
            }
        }
    }
}

/// Makes TCP sockets in a private network.
#[derive(Debug)]
pub struct SocketMaker {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
    source: Source,
    /// Our own user and group, which sockets have at first.
    own: (u32, u32),
    spares: usize,
    elsewhere: HashMap<(String, Family), Vec<OwnedFd>>,
}

/// Makes one in the calling thread's namespace. It blocks, and is closed on exec in this process.
pub(super) fn make(family: Family) -> io::Result<OwnedFd> {
    let domain = AddressFamily::from_raw(family.number() as u16);
    Ok(rustix::net::socket_with(domain, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// Up to `count`, and at least one. If there are no more, the next who asks is told so.
pub(super) fn several(
    count: usize,
    make: impl Fn() -> io::Result<OwnedFd>,
) -> io::Result<Vec<OwnedFd>> {
    let first = make()?;
    Ok(std::iter::once(first).chain((1..count).map_while(|_| make().ok())).collect())
}

/// Makes a user and a group the socket's owner.
pub(super) fn give(socket: &OwnedFd, user: u32, group: u32) -> io::Result<()> {
    Ok(rustix::fs::fchown(socket, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?)
}

/// Makes up to `count` in a namespace and a control group, by a process that is born there.
pub(super) fn make_in_group(
    group: &str,
    namespace: BorrowedFd<'_>,
    family: Family,
    count: usize,
) -> io::Result<Vec<OwnedFd>> {
    let domain = family.number();
    Order { group, namespace: Some(namespace), owner: None, domain, count }.carry_out()
}

impl Caller {
    /// A TCP socket of the network that the calling thread is in, as the caller would have made it: its user, its group and its control group are the
    /// caller's. For firewalls, routes and programs at control groups it is the caller's own. It blocks.
    ///
    /// # Errors
    /// The kernel's. Without the rights to act for the caller there is no socket.
    pub fn socket_outside(&self, family: Family) -> io::Result<OwnedFd> {
        let owner = (self.user, self.group);
        let Some(group) = &self.other_group else { return as_owner(owner, || make(family)) };
        let domain = family.number();
        let order = Order { group, namespace: None, owner: Some(owner), domain, count: 1 };
        order.carry_out()?.pop().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    /// Does something while files that the calling thread makes are the caller's, such as the socket that `accept(2)` gives.
    ///
    /// # Errors
    /// Those of `act`, and the kernel's without the rights to act for the caller.
    pub fn as_owner<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        as_owner((self.user, self.group), act)
    }
}

impl SocketMaker {
    /// Starts the thread, which keeps `spares` sockets of each family ready.
    ///
    /// # Errors
    /// When no thread can be had, or the kernel does not let it in.
    pub fn new(network: &PrivateNetwork, spares: usize) -> Result<Self, NamespaceError> {
        let source = match network.maker() {
            Some(maker) => Source::Maker(maker),
            None => {
                let namespace = network.as_fd().try_clone_to_owned();
                Source::Inside(Arc::new(namespace.map_err(NamespaceError::Open)?))
            }
        };
        let shared = Arc::new(Shared::default());
        let (entered, outcome) = mpsc::channel();
        let (theirs, inside) = (Arc::clone(&shared), source.clone());
        let worker = thread::Builder::new().name("sockets".into()).spawn(move || {
            let result = inside.enter();
            let ready = result.is_ok();
            if entered.send(result).is_ok() && ready {
                keep_stock(&theirs, &inside, spares);
            }
        });
        let worker = worker.map_err(NamespaceError::Thread)?;
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let worker = Some(worker);
        let elsewhere = HashMap::new();
        let maker = SocketMaker { shared, worker, source, own, spares, elsewhere };
        let ended = || NamespaceError::Thread(io::ErrorKind::BrokenPipe.into());
        outcome.recv().map_err(|_| ended())??;
        Ok(maker)
    }

    /// A socket for this caller: with its owner and its control group. It blocks.
    ///
    /// # Errors
    /// The error number that the program's call is to fail with: the kernel's, as it may refuse any program a socket, or `EACCES` if it cannot be given to the
    /// caller's user or made in its control group. Nothing else is handed out instead.
    pub fn take(&mut self, family: Family, caller: &Caller) -> io::Result<OwnedFd> {
        let not_for_caller = |_| io::Error::from_raw_os_error(libc::EACCES);
        let socket = match &caller.other_group {
            None => self.take_spare(family)?,
            Some(group) => self.take_in_group(family, group).map_err(not_for_caller)?,
        };
        let (user, group) = (caller.user, caller.group);
        if (user, group) != self.own {
            give(&socket, user, group).map_err(not_for_caller)?;
        }
        Ok(socket)
    }

    /// How many sockets of a family are ready.
    pub fn ready(&self, family: Family) -> usize {
        self.shared.lock().spare[family.index()].len()
    }

    fn take_spare(&self, family: Family) -> io::Result<OwnedFd> {
        let at = family.index();
        let mut stock = self.shared.lock();
        loop {
            if let Some(socket) = stock.spare[at].pop() {
                // Half of it is enough to go on with meanwhile.
                if stock.idle && stock.spare[at].len() * 2 < self.spares {
                    stock.idle = false;
                    self.shared.changed.notify_all();
                }
                return Ok(socket);
            }
            if let Some(error) = stock.failed[at].take() {
                return Err(error);
            }
            if self.worker.as_ref().is_none_or(JoinHandle::is_finished) {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            stock.wanted[at] = true;
            self.shared.changed.notify_all();
            let waited = self.shared.changed.wait(stock);
            stock = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn take_in_group(&mut self, family: Family, group: &str) -> io::Result<OwnedFd> {
        let key = (group.to_owned(), family);
        if let Some(socket) = self.elsewhere.get_mut(&key).and_then(Vec::pop) {
            return Ok(socket);
        }
        let count = if self.spares == 0 { 1 } else { BATCH };
        let mut made = self.source.make(family, count, Some(group))?;
        let socket = made.pop().ok_or(io::ErrorKind::BrokenPipe)?;
        if self.elsewhere.len() >= GROUPS {
            self.elsewhere.clear();
        }
        self.elsewhere.insert(key, made);
        Ok(socket)
    }
}

/// The worker's life.
fn keep_stock(shared: &Shared, source: &Source, spares: usize) {
    let mut stock = shared.lock();
    while !stock.stop {
        let missing = [Family::V4, Family::V6].into_iter().find(|family| {
            let at = family.index();
            let enough = stock.spare[at].len() >= spares.max(usize::from(stock.wanted[at]));
            // After a failure nobody is in need until somebody asks again.
            !enough && (stock.wanted[at] || stock.failed[at].is_none())
        });
        let Some(family) = missing else {
            stock.idle = true;
            stock = shared.changed.wait(stock).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let at = family.index();
        let missing = spares.saturating_sub(stock.spare[at].len());
        drop(stock);
        let made = source.make(family, missing.clamp(1, BY_MAKER), None);
        stock = shared.lock();
        stock.idle = false;
        let is_awaited = std::mem::take(&mut stock.wanted[at]);
        match made {
            Ok(sockets) => {
                stock.failed[at] = None;
                stock.spare[at].extend(sockets);
            }
            Err(error) => stock.failed[at] = Some(error),
        }
        if is_awaited {
            shared.changed.notify_all();
        }
    }
}

impl Drop for SocketMaker {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.changed.notify_all();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}
