//! A stack on the host's own addresses, with ports that a broker has packets brought for (feature `broker`).
//!
//! ```no_run
//! use transom_broker::client::{Lease, Wish, default_path};
//! use transom_net::Stack;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let lease = Lease::connect(default_path(), &Wish::default())?;
//! let stack = Stack::builder().start_leased(lease)?;
//! // On the host's address, beside the kernel's own servers.
//! let listener = stack.listen("0.0.0.0:8080")?;
//! # Ok(())
//! # }
//! ```

use crate::ports::PortRegistrar;
use crate::sharing::HostView;
use crate::stack::{Stack, StackBuilder};
use rustix::fd::OwnedFd;
use std::any::Any;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_broker::client::{Lease, Wish, default_path};
use transom_broker::protocol::MAX_QUEUES;
use transom_device::interface::IpPrefix;
use transom_device::open::{BROKER_SOCKET, OpenOptions, Opened};
use transom_device::tun::Tun;
use transom_stack::Interface;

impl StackBuilder {
    /// Starts the host on a device that a broker has lent, with the addresses that go with it: [`StackBuilder::shared`] with everything that it takes. There is
    /// a shard for each of the device's queues, unless it is said otherwise. [`KernelPorts::reuse_port`](crate::KernelPorts::reuse_port) is heeded; a registrar
    /// of the caller's is not, for it is the broker.
    ///
    /// To be called in the broker's network namespace. The lease ends with the host.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the lease's descriptors have been taken already; the operating system's for descriptors that are no TUN devices,
    /// and for threads; and as [`StackBuilder::start`].
    pub fn start_leased(self, lease: Lease) -> io::Result<Stack> {
        let (builder, device) = self.leased(lease)?;
        builder.start(device)
    }

    /// The same in two steps, for a program that wraps the device before the host starts on it.
    ///
    /// # Errors
    /// As [`start_leased`](Self::start_leased).
    pub fn leased(self, mut lease: Lease) -> io::Result<(StackBuilder, Tun)> {
        let device = device_of(&mut lease)?;
        Ok((self.with_lease(lease)?, device))
    }

    fn with_lease(self, lease: Lease) -> io::Result<StackBuilder> {
        let lease = Arc::new(Mutex::new(lease));
        let registrar = Registrar::start(Arc::clone(&lease))?;
        Ok(self.registrar(registrar).shared(LeasedHost(lease)))
    }

    /// The same for a lease that came with a device ([`open_shared`]).
    pub(crate) fn with_any_lease(self, lease: Box<dyn Any + Send>) -> io::Result<StackBuilder> {
        let lease = lease.downcast::<Lease>().map_err(|_| {
            io::Error::new(io::ErrorKind::Unsupported, "the lease is not one of this broker's")
        })?;
        self.with_lease(*lease)
    }
}

/// The device of a lease, with all its queues.
fn device_of(lease: &mut Lease) -> io::Result<Tun> {
    let opened = lease.opened();
    let (index, mtu, least) = (opened.index, opened.host.mtu, opened.min_segment);
    let queues = lease.take_descriptors().into_iter().map(|descriptor| {
        let queue = Tun::from_descriptor(descriptor, index, mtu)?;
        Ok::<_, io::Error>(queue.with_min_segment(least))
    });
    let mut queues = queues.collect::<io::Result<Vec<_>>>()?.into_iter();
    let first = queues.next().ok_or_else(|| {
        let why = "the lease has no descriptors: they were taken already";
        io::Error::new(io::ErrorKind::InvalidInput, why)
    })?;
    Ok(first.with_queues(queues))
}

/// The queues to ask a broker for: as many as are wanted, and no more than it lends.
fn queues_of(options: &OpenOptions) -> u16 {
    u16::try_from(options.queues).unwrap_or(u16::MAX).min(MAX_QUEUES)
}

/// Opens the device `shared`: asks the broker at `socket` for it.
pub(crate) fn open_shared(socket: &Path, options: &OpenOptions) -> io::Result<Opened> {
    // The variable TRANSOM_BROKER names another place than the usual one.
    let usual = socket == Path::new(BROKER_SOCKET);
    let path = if usual { default_path() } else { socket.to_owned() };
    let queues = queues_of(options);
    // First: without a broker, nothing that was asked for matters.
    let mut lease = Lease::connect(path, &Wish { queues, ..Wish::default() })?;
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if !options.addresses.is_empty() {
        return refused("its addresses are the machine's, and cannot be chosen");
    }
    if options.mtu.is_some() {
        return refused("its MTU is the machine's, and cannot be chosen");
    }
    if !options.offload {
        return refused("its checksums and super-segments are the kernel's to finish");
    }
    let device = device_of(&mut lease)?;
    let opened = lease.opened();
    let found = opened.host.addresses.iter();
    let addresses = found.filter_map(|found| IpPrefix::new(found.address, found.prefix));
    Ok(Opened {
        device: Box::new(device),
        addresses: addresses.collect(),
        place: format!("{}, a device of the broker's", opened.device),
        lease: Some(Box::new(lease)),
    })
}

fn lock(lease: &Mutex<Lease>) -> MutexGuard<'_, Lease> {
    lease.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The host, as the broker describes it.
struct LeasedHost(Arc<Mutex<Lease>>);

impl HostView for LeasedHost {
    fn interface(&mut self) -> io::Result<Interface> {
        let host = lock(&self.0).host()?;
        let usable = |address: &IpAddr| match address {
            // Without its interface it means nothing.
            IpAddr::V6(v6) => !v6.is_unicast_link_local(),
            IpAddr::V4(_) => true,
        };
        let found: Vec<_> = host.addresses.iter().filter(|a| usable(&a.address)).collect();
        Ok(Interface {
            mtu: host.mtu,
            addresses: found.iter().map(|found| (found.address, found.prefix)).collect(),
            address_mtus: found.iter().map(|found| (found.address, found.mtu)).collect(),
        })
    }
}

/// A command to the thread that gives ports back.
#[derive(Debug)]
enum Errand {
    /// To give a port back.
    Remove(u64),
    /// To say when it has come so far.
    Settle(SyncSender<()>),
}

/// Has the broker bring packets for ports. Ports are given back by a thread, for the stack cannot wait.
#[derive(Debug)]
struct Registrar {
    lease: Arc<Mutex<Lease>>,
    /// The broker's numbers of ports, by where their sockets are bound.
    numbers: Mutex<HashMap<SocketAddr, u64>>,
    errands: Sender<Errand>,
}

impl Registrar {
    fn start(lease: Arc<Mutex<Lease>>) -> io::Result<Self> {
        let (errands, asked) = channel();
        let of_thread = Arc::clone(&lease);
        // It ends with the registrar.
        let work = move || run_errands(&of_thread, &asked);
        std::thread::Builder::new().name("transom-ports".into()).spawn(work)?;
        Ok(Registrar { lease, numbers: Mutex::default(), errands })
    }

    fn numbers(&self) -> MutexGuard<'_, HashMap<SocketAddr, u64>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run_errands(lease: &Mutex<Lease>, asked: &Receiver<Errand>) {
    while let Ok(errand) = asked.recv() {
        match errand {
            // A broker that does not answer has nothing to give back to: it will ask for all ports when it is there again.
            Errand::Remove(number) => drop(lock(lease).remove_port(number)),
            Errand::Settle(done) => drop(done.send(())),
        }
    }
}

impl PortRegistrar for Registrar {
    fn add(&self, socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
        let port = lock(&self.lease).add_port(socket)?;
        self.numbers().insert(address, port.id);
        Ok(())
    }

    fn remove(&self, address: SocketAddr) {
        if let Some(number) = self.numbers().remove(&address) {
            // Without the thread, the lease has ended.
            let _ = self.errands.send(Errand::Remove(number));
        }
    }

    fn settle(&self) {
        let (done, settled) = sync_channel(1);
        if self.errands.send(Errand::Settle(done)).is_ok() {
            let _ = settled.recv();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_is_asked_for_as_many_queues_as_it_lends() {
        let asked = |queues| queues_of(&OpenOptions::default().with_queues(queues));
        assert_eq!([1, 8, 9, 100_000].map(asked), [1, 8, 8, 8]);
    }
}
