//! A stack with a packet socket on the kernel's own address (feature `bpf`).

use crate::ports::PortRegistrar;
use crate::sharing::{HostView, KernelHost};
use crate::stack::StackBuilder;
use rustix::fd::OwnedFd;
use rustix::net::sockopt;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use transom_device::interface::IpPrefix;
use transom_device::{KernelAddress, SilentPorts};
use transom_stack::Interface;

impl StackBuilder {
    /// Prepares for the kernel's address: its ports come from the kernel, and packets for them do not reach it.
    pub(crate) fn on_kernel_address(self, address: KernelAddress) -> io::Result<StackBuilder> {
        let KernelAddress { interface, addresses, ports, .. } = address;
        let addresses: Vec<IpAddr> = addresses.iter().map(IpPrefix::address).collect();
        let kernel = KernelHost::new([interface])?;
        let registrar = Silencer { ports, addresses: addresses.clone(), held: Mutex::default() };
        Ok(self.registrar(registrar).shared(Chosen { kernel, addresses }))
    }
}

/// The interface, as far as the stack has its addresses.
struct Chosen {
    kernel: KernelHost,
    addresses: Vec<IpAddr>,
}

impl HostView for Chosen {
    fn interface(&mut self) -> io::Result<Interface> {
        let mut interface = self.kernel.interface()?;
        interface.addresses.retain(|(address, _)| self.addresses.contains(address));
        interface.address_mtus.retain(|(address, _)| self.addresses.contains(address));
        Ok(interface)
    }
}

/// Keeps the kernel silent about the ports that the stack has from it.
#[derive(Debug)]
struct Silencer {
    ports: SilentPorts,
    addresses: Vec<IpAddr>,
    /// The addresses that each bound socket stands for.
    held: Mutex<HashMap<SocketAddr, Vec<SocketAddr>>>,
}

impl Silencer {
    fn held(&self) -> MutexGuard<'_, HashMap<SocketAddr, Vec<SocketAddr>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PortRegistrar for Silencer {
    fn add(&self, socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
        let own = address.ip().to_canonical();
        let both = address.is_ipv6() && !sockopt::ipv6_v6only(socket)?;
        let fits = |ip: &&IpAddr| match own.is_unspecified() {
            true => both || ip.is_ipv6() == own.is_ipv6(),
            false => **ip == own,
        };
        let places = self.addresses.iter().filter(fits);
        let places: Vec<_> = places.map(|ip| SocketAddr::new(*ip, address.port())).collect();
        for place in &places {
            self.ports.add(*place)?;
        }
        self.held().insert(address, places);
        Ok(())
    }

    fn remove(&self, address: SocketAddr) {
        for place in self.held().remove(&address).unwrap_or_default() {
            self.ports.remove(place);
        }
    }
}
