//! A stack on an address that the kernel has too (feature `bpf`).
//!
//! The stack and the kernel are one station on the link. The kernel answers questions about its address, and the stack sends with the interface's
//! MAC address. Two programs (`bpf/silence.bpf.c`) know the ports that the stack uses. One gives their packets to the stack's socket, the
//! other drops them before the kernel's TCP gets them. They leave with the process.
//!
//! The caller has to say which ports the stack uses ([`SilentPorts`]), and must have them from the kernel: it holds a bound socket for each.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use transom_bpf::libbpf_rs::{MapCore, MapFlags, MapHandle};
use transom_bpf::{Aligned, BpfError, Loaded, attach_tcx, open};

use super::socket::PacketSocket;
use super::{PacketDevice, PacketError, Station, ethernet, filter};
use crate::interface::{Interfaces, IpPrefix};
use crate::link::Mac;

/// The programs, compiled. `bpf/build.sh` makes them.
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!("../../bpf/silence.bpf.o"));

/// Has the kernel look at the programs, and take them away again.
pub(crate) fn try_load() -> Result<(), PacketError> {
    load().map(drop).map_err(PacketError::Silence)
}

fn load() -> Result<Loaded, BpfError> {
    Loaded::load(open(OBJECT)?, "the kernel does not take the programs that keep it silent")
}

/// The kernel's address as a stack has it: what is needed besides the device.
#[derive(Debug)]
#[non_exhaustive]
pub struct KernelAddress {
    /// The interface.
    pub interface: String,
    /// The addresses that the stack has, with the kernel's prefix lengths.
    pub addresses: Vec<IpPrefix>,
    /// The set of ports that the stack uses; the stack keeps it up to date.
    pub ports: SilentPorts,
}

/// The ports about which the kernel is silent. It answers again when this value has gone.
#[derive(Debug)]
pub struct SilentPorts {
    ports: MapHandle,
    /// The program is at the interface for as long as this is open.
    _link: OwnedFd,
}

impl SilentPorts {
    fn attach(index: u32, socket: &PacketSocket) -> Result<Self, PacketError> {
        let silence = PacketError::Silence;
        let programs = load().map_err(silence)?;
        let pick = programs.program("pick").map_err(silence)?;
        socket.attach(pick.as_fd()).map_err(PacketError::Socket)?;
        let program = programs.program("silence").map_err(silence)?;
        let link = attach_tcx(&program, index).map_err(silence)?;
        // Programs and maps live as long as what they are attached to.
        let link = link.as_fd().try_clone_to_owned().map_err(PacketError::Socket)?;
        Ok(SilentPorts { ports: programs.map("ports").map_err(silence)?, _link: link })
    }

    /// From now on packets for this address and port are the stack's.
    ///
    /// # Errors
    /// When there are too many.
    pub fn add(&self, at: SocketAddr) -> io::Result<()> {
        let added = self.ports.update(&key(at), &[1], MapFlags::ANY);
        let added =
            added.map_err(BpfError::of("cannot keep the kernel silent about one more port"));
        added.map_err(|error| io::Error::new(error.kind(), error))
    }

    /// From now on packets for this address and port are the kernel's.
    pub fn remove(&self, at: SocketAddr) {
        // Gone already is as good.
        let _ = self.ports.delete(&key(at));
    }
}

/// `struct end` of the programs.
fn key(at: SocketAddr) -> [u8; 20] {
    let address = match at.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    let mut key = [0; 20];
    key[..16].copy_from_slice(&address);
    key[16..18].copy_from_slice(&at.port().to_be_bytes());
    key
}

impl PacketDevice {
    /// Opens the device on the kernel's own addresses at the interface, in the calling thread's network namespace: on those that were named, or on
    /// all. `None`: those that were named are not the kernel's.
    pub(crate) fn open_on_kernel_address(
        name: &str,
        wanted: &[IpPrefix],
        offload: bool,
    ) -> Result<Option<(PacketDevice, KernelAddress)>, PacketError> {
        let mut interfaces = Interfaces::open().map_err(PacketError::Netlink)?;
        let state = ethernet(&mut interfaces, name)?;
        let Some(addresses) = chosen(&mut interfaces, name, wanted)? else { return Ok(None) };
        let mac: Mac = state.station;
        let station = Station::new(name, state, interfaces, mac, addresses.clone())?;
        let index = station.place.index();
        let socket = PacketSocket::open(index, &filter::nothing()).map_err(PacketError::Socket)?;
        let ports = SilentPorts::attach(index, &socket)?;
        let device = PacketDevice::new(station, socket, offload);
        Ok(Some((device, KernelAddress { interface: name.into(), addresses, ports })))
    }
}

/// The kernel's addresses at an interface among those that are wanted, or all of them.
fn chosen(
    interfaces: &mut Interfaces,
    name: &str,
    wanted: &[IpPrefix],
) -> Result<Option<Vec<IpPrefix>>, PacketError> {
    let found = interfaces.local_addresses().map_err(PacketError::Netlink)?.into_iter();
    let link_local =
        |address: IpAddr| matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let found = found.filter(|(_, interface)| interface.name == name);
    let here = found.map(|(prefix, _)| prefix).filter(|prefix| !link_local(prefix.address()));
    let here: Vec<IpPrefix> = here.collect();
    let of_kernel =
        |wanted: &IpPrefix| here.iter().find(|at| at.address() == wanted.address()).copied();
    let chosen: Vec<_> = match wanted {
        [] => here.clone(),
        wanted => wanted.iter().filter_map(of_kernel).collect(),
    };
    match wanted.iter().find(|one| of_kernel(one).is_none()) {
        Some(other) if !chosen.is_empty() => Err(PacketError::MixedAddresses(other.address())),
        _ => Ok((!chosen.is_empty()).then_some(chosen)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_object_was_compiled_from_the_source() {
        transom_testkit::assert_unchanged(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf"));
    }
}
