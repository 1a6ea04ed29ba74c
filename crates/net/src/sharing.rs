//! A stack on addresses that the kernel of the same machine has too.
//!
//! The kernel keeps the addresses, the ports and the routes; a thread of the stack's hears when they change and asks for them again. Nothing here is on
//! a packet's way.

use crate::runtime::Runtime;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fd::OwnedFd;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use transom_device::interface::{Changes, Interfaces};
use transom_stack::{Interface, is_unicast};

/// The machine with which a stack shares addresses, as far as the stack may use it.
pub trait HostView: Send {
    /// The addresses and the MTU as they are now. Asked when the stack starts, and whenever interfaces, addresses or routes of the network namespace have
    /// changed.
    ///
    /// # Errors
    /// At the start the stack does not start. Later it goes on with what it knows, and asks again in a second.
    fn interface(&mut self) -> io::Result<Interface>;
}

/// The addresses of some interfaces, as the kernel has them.
///
/// Link-local addresses of IPv6 are left out: without their interface they mean nothing.
#[derive(Debug)]
pub struct KernelHost {
    kernel: Interfaces,
    interfaces: Vec<String>,
}

impl KernelHost {
    /// The addresses of the interfaces with these names, in the calling thread's network namespace.
    ///
    /// # Errors
    /// The system's.
    pub fn new(interfaces: impl IntoIterator<Item = impl Into<String>>) -> io::Result<Self> {
        let interfaces = interfaces.into_iter().map(Into::into).collect();
        Ok(KernelHost { kernel: Interfaces::open()?, interfaces })
    }
}

impl HostView for KernelHost {
    fn interface(&mut self) -> io::Result<Interface> {
        let mut interface = Interface { mtu: 0, addresses: Vec::new(), address_mtus: Vec::new() };
        for (prefix, found) in self.kernel.local_addresses()? {
            let address = prefix.address();
            let link_local = matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
            if self.interfaces.contains(&found.name) && !link_local {
                interface.mtu = interface.mtu.max(found.mtu);
                interface.addresses.push((address, prefix.prefix_len()));
                interface.address_mtus.push((address, found.mtu));
            }
        }
        Ok(interface)
    }
}

/// The view of the host, for a builder.
#[derive(Clone)]
pub(crate) struct Sharing(Arc<Mutex<dyn HostView>>);

impl fmt::Debug for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharing").finish_non_exhaustive()
    }
}

impl Sharing {
    pub(crate) fn new(host: impl HostView + 'static) -> Self {
        Sharing(Arc::new(Mutex::new(host)))
    }

    /// The interface as a stack can take it, whose devices take packets of `limit` bytes.
    pub(crate) fn interface(&self, limit: u32) -> io::Result<Interface> {
        let mut host = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Interface { mtu, mut addresses, mut address_mtus } = host.interface()?;
        // Without addresses the MTU does not matter.
        let mtu = if addresses.is_empty() { limit } else { mtu.min(limit) };
        let least = |address: IpAddr| if address.is_ipv6() { 1280 } else { 68 };
        address_mtus.iter_mut().for_each(|(_, of_it)| *of_it = mtu.min(*of_it));
        // As Linux does with IPv6 where packets must be shorter than it needs (RFC 8200 section 5).
        let too_short = |address: IpAddr| {
            let its_own = address_mtus.iter().find(|(other, _)| *other == address);
            its_own.map_or(mtu, |&(_, mtu)| mtu) < least(address)
        };
        addresses.retain(|&(address, _)| is_unicast(address) && !too_short(address));
        let kept = |address: IpAddr| addresses.iter().any(|&(other, _)| other == address);
        address_mtus.retain(|&(address, _)| kept(address));
        Ok(Interface { mtu: mtu.max(68), addresses, address_mtus })
    }
}

/// The kernel's routes, and the thread that follows its addresses.
#[derive(Debug)]
pub(crate) struct Follower {
    kernel: Mutex<Interfaces>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Follows the calling thread's network namespace.
    pub(crate) fn start(
        sharing: Sharing,
        runtimes: Vec<Arc<Runtime>>,
        limit: u32,
        known: Interface,
    ) -> io::Result<Self> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let kernel = Mutex::new(Interfaces::open()?);
        let changes = Changes::of_addresses_and_routes()?;
        let stopped = Arc::clone(&stop);
        // The first look sees changes from before it listened.
        let work = move || follow(&sharing, &runtimes, limit, known, changes, &stopped);
        let thread = std::thread::Builder::new().name("transom-host".into()).spawn(work)?;
        Ok(Follower { kernel, stop, thread: Some(thread) })
    }

    /// The address from which the kernel would reach `remote`.
    pub(crate) fn source_for(&self, remote: IpAddr) -> io::Result<IpAddr> {
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner).source_to(remote)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        // It can only fail by overflowing, and then it is readable all the more.
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // If it panicked, that has been said already.
            let _ = thread.join();
        }
    }
}

fn follow(
    sharing: &Sharing,
    runtimes: &[Arc<Runtime>],
    limit: u32,
    mut known: Interface,
    mut changes: Changes,
    stop: &OwnedFd,
) {
    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
    loop {
        let now = sharing.interface(limit);
        let failed = now.is_err();
        if let Ok(now) = now
            && now != known
        {
            for runtime in runtimes {
                // It has been made to fit, so that no stack refuses it.
                let _ = runtime.with(|inner, at| inner.host.set_interface(at, now.clone()));
            }
            known = now;
        }
        loop {
            let mut fds = [PollFd::new(stop, PollFlags::IN), PollFd::new(&changes, PollFlags::IN)];
            // After a failure the second alone counts. Changes that are told meanwhile would make this ask without a pause.
            let (watched, patience) = if failed { (1, Some(&second)) } else { (2, None) };
            let _ = poll(&mut fds[..watched], patience);
            if !fds[0].revents().is_empty() {
                return;
            }
            // A socket that does not work tells nothing; to look is always right.
            let told = changes.any().unwrap_or(true);
            if failed || told {
                break;
            }
        }
    }
}
