//! The kernel's addresses and routes, for a stack that shares its addresses. [`Changes`](crate::host::Changes) tells when they change.
//!
//! The kernel is asked by rtnetlink (RFC 3549, section 3), which takes no privileges. A socket acts on the network namespace it was opened in,
//! not on its user's. Attributes are read one by one, so that one that a newer kernel writes otherwise does not spoil the others.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;

use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::io::Errno;

use crate::host::{HostLink, Hosts, ip_address, number};
use crate::netlink::attributes;

/// Bytes of `struct rtmsg`.
const ROUTE_BODY: usize = 12;

/// The way to a remote address, as the kernel would take it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// The address that packets leave from, unless the sender says otherwise (RFC 6724; `ip route … src`).
    pub source: IpAddr,
    /// The number of the interface they leave through; that of `lo` for the machine's own addresses.
    pub interface: u32,
}

/// An address of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalAddress {
    /// The address.
    pub address: IpAddr,
    /// The length of its network's prefix in bits.
    pub prefix: u8,
    /// The name of its interface.
    pub interface: String,
    /// The longest packet that the interface takes, in bytes.
    pub mtu: u32,
}

/// Asks the kernel.
#[derive(Debug)]
pub struct Routes {
    hosts: Hosts,
}

impl Routes {
    /// Opens a socket to the kernel of the calling thread's network namespace.
    ///
    /// # Errors
    /// The system's.
    pub fn open() -> io::Result<Self> {
        Ok(Routes { hosts: Hosts::open()? })
    }

    /// The way to `remote`.
    ///
    /// # Errors
    /// As connect(2) would fail: [`io::ErrorKind::NetworkUnreachable`], [`io::ErrorKind::HostUnreachable`], and what a route says that refuses (`ip route
    /// add unreachable`, `prohibit` or `blackhole`).
    pub fn to(&mut self, remote: IpAddr) -> io::Result<Route> {
        let mut message = RouteMessage::default();
        (message.header.address_family, message.header.destination_prefix_length) = match remote {
            IpAddr::V4(_) => (AddressFamily::Inet, 32),
            IpAddr::V6(_) => (AddressFamily::Inet6, 128),
        };
        message.attributes.push(RouteAttribute::Destination(remote.into()));
        let answer = self.hosts.execute(RouteNetlinkMessage::GetRoute(message))?;
        // A route without a source is to one of the machine's own addresses.
        let nowhere = || io::Error::from(Errno::NETUNREACH);
        let (source, interface) = read_route(&answer).ok_or_else(nowhere)?;
        Ok(Route { source: source.unwrap_or(remote), interface })
    }

    /// The machine's addresses that packets may leave from, in the kernel's order: usable ones of interfaces that are up.
    ///
    /// # Errors
    /// The system's.
    pub fn addresses(&mut self) -> io::Result<Vec<LocalAddress>> {
        let links = self.hosts.links()?.into_iter().filter(|link| link.up);
        let links: HashMap<u32, HostLink> = links.map(|link| (link.index, link)).collect();
        let found = self.hosts.addresses()?.into_iter().filter(|found| found.usable);
        let local = found.filter_map(|found| {
            let HostLink { name, mtu, .. } = links.get(&found.index)?;
            let (interface, mtu) = (name.clone(), *mtu);
            Some(LocalAddress { address: found.address, prefix: found.prefix, interface, mtu })
        });
        Ok(local.collect())
    }
}

/// Source and interface of an `RTM_NEWROUTE`.
fn read_route(body: &[u8]) -> Option<(Option<IpAddr>, u32)> {
    let (mut source, mut interface) = (None, None);
    for attribute in attributes(body, ROUTE_BODY) {
        let value = attribute.value();
        match attribute.kind() {
            libc::RTA_PREFSRC => source = ip_address(value),
            libc::RTA_OIF => interface = number(value),
            _ => {}
        }
    }
    Some((source, interface?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_that_does_not_fit_ends_the_walk() {
        for length in 0..40 {
            for byte in [0, 1, 4, 255] {
                let _ = read_route(&vec![byte; length]);
            }
        }
    }

    #[test]
    fn the_loopback_interface_has_its_addresses_and_routes() {
        let mut routes = Routes::open().unwrap();
        let own = IpAddr::from([127, 0, 0, 1]);
        let route = routes.to(own).unwrap();
        assert_eq!((route.source, route.interface), (own, 1));
        let found = routes.addresses().unwrap();
        let lo = found.iter().find(|found| found.address == own).expect("127.0.0.1");
        assert_eq!((lo.interface.as_str(), lo.prefix), ("lo", 8));
    }
}
