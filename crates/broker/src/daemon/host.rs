//! The host as it is: uplinks, addresses, and settings that have to be made.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use transom_device::interface::{InterfaceAddress, InterfaceState, Interfaces};
use transom_device::own_file;

use crate::protocol::Address;

/// The number of the loopback interface in every network namespace.
pub(super) const LOOPBACK: u32 = 1;
/// When the host has no uplink.
const DEFAULT_MTU: u32 = 1500;
/// The usual range of ephemeral ports, if the kernel does not tell.
const DEFAULT_EPHEMERAL_PORTS: RangeInclusive<u16> = 32768..=60999;

/// The host at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct HostState {
    /// All interfaces by number.
    pub(super) links: BTreeMap<u32, InterfaceState>,
    /// The uplinks that there are.
    pub(super) uplinks: Vec<InterfaceState>,
    /// Addresses of the uplinks that can be lent.
    pub(super) addresses: Vec<Address>,
    /// All addresses of the host but those of loopback.
    pub(super) locals: Vec<IpAddr>,
}

impl HostState {
    pub(super) fn read(interfaces: &mut Interfaces, names: &[String]) -> io::Result<Self> {
        let links: BTreeMap<_, _> =
            interfaces.all()?.into_iter().map(|link| (link.index, link)).collect();
        let uplink = |name: &String| links.values().find(|link| link.name == *name).cloned();
        let uplinks: Vec<_> = names.iter().filter_map(uplink).collect();
        let found = interfaces.addresses()?;
        let to_lend = |at: &InterfaceAddress| {
            let link = uplinks.iter().find(|link| link.index == at.index)?;
            let address = at.address.address();
            // One that is valid on its own link only cannot be lent.
            let link_local = match address {
                IpAddr::V4(v4) => v4.is_link_local(),
                IpAddr::V6(v6) => v6.is_unicast_link_local(),
            };
            (at.usable && !link_local).then(|| Address {
                address,
                prefix: at.address.prefix_len(),
                interface: link.name.clone(),
                index: at.index,
                mtu: link.mtu,
            })
        };
        let addresses = found.iter().filter_map(to_lend).collect();
        let locals = found.iter().map(|at| at.address.address());
        let locals = locals.filter(|at| !at.is_loopback()).collect();
        Ok(HostState { links, uplinks, addresses, locals })
    }

    /// The largest MTU of an uplink.
    pub(super) fn mtu(&self) -> u32 {
        self.uplinks.iter().map(|link| link.mtu).max().unwrap_or(DEFAULT_MTU).min(65_535)
    }

    pub(super) fn has_address(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|found| found.address == address)
    }

    /// The addresses that a socket stands for: its own, or all of its kind.
    pub(super) fn addresses_of(&self, bound: SocketAddr, only_v6: bool) -> Vec<IpAddr> {
        let own = bound.ip().to_canonical();
        if !own.is_unspecified() {
            return vec![own];
        }
        // `::ffff:0.0.0.0` is IPv4's: the kernel has given that socket no port of IPv6.
        let both = own.is_ipv6() && !only_v6;
        let fits = |at: &IpAddr| both || at.is_ipv6() == own.is_ipv6();
        self.addresses.iter().map(|found| found.address).filter(fits).collect()
    }
}

fn write_setting(path: &str, value: &str) -> io::Result<()> {
    std::fs::write(path, value)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot write {path}: {error}")))
}

/// Settings of a device before it is up: no addresses of its own, and packets from it may be routed.
pub(super) fn prepare_device(name: &str) -> io::Result<()> {
    write_setting(&format!("/proc/sys/net/ipv4/conf/{name}/forwarding"), "1")?;
    let v6 = format!("/proc/sys/net/ipv6/conf/{name}");
    if !std::path::Path::new(&v6).exists() {
        return Ok(());
    }
    write_setting(&format!("{v6}/disable_ipv6"), "1")?;
    write_setting(&format!("{v6}/forwarding"), "1")
}

const ACCEPT_LOCAL: &str = "/proc/sys/net/ipv4/conf/lo/accept_local";

/// Sets whether the loopback interface takes packets from the host's own addresses. Returns the earlier setting.
pub(super) fn set_accept_local(value: &str) -> io::Result<String> {
    let before = std::fs::read_to_string(ACCEPT_LOCAL)?.trim().to_owned();
    if before != value {
        write_setting(ACCEPT_LOCAL, value)?;
    }
    Ok(before)
}

/// Gives the loopback interface the setting back that is in a file, and removes the file.
pub(super) fn restore_loopback(saved_setting: &std::path::Path) {
    if let Ok(Some(before)) = own_file::read(saved_setting) {
        // The setting cannot be more wrong than without the attempt.
        let _ = set_accept_local(String::from_utf8_lossy(&before).trim());
        let _ = std::fs::remove_file(saved_setting);
    }
}

/// The ports that the kernel gives out by itself.
pub(super) fn ephemeral_ports() -> RangeInclusive<u16> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let numbers: Vec<u16> = text
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect();
    match numbers[..] {
        [first, last] => first..=last,
        _ => DEFAULT_EPHEMERAL_PORTS,
    }
}
