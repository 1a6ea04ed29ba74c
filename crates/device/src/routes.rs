//! The kernel's addresses and routes, and reports of their changes, for a stack that shares its addresses.
//!
//! The kernel is asked by rtnetlink (RFC 3549, section 3), which takes no privileges. A socket acts on the network namespace it was opened in,
//! whoever uses it later. Attributes are read one by one, so that one that a newer kernel writes otherwise does not spoil the others.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::route::{RouteAttribute, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::io::Errno;

use crate::netlink::{Netlink, attributes};

/// Bytes of `struct rtmsg`, `struct ifaddrmsg` and `struct ifinfomsg`.
const ROUTE_BODY: usize = 12;
const ADDRESS_BODY: usize = 8;
const LINK_BODY: usize = 16;

/// The way to a remote address, as the kernel would take it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The address that packets leave from, unless the sender says otherwise (RFC 6724; `ip route … src`).
    pub source: IpAddr,
    /// The number of the interface they leave through; that of `lo` for the machine's own addresses.
    pub interface: u32,
}

/// An address of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    netlink: Netlink,
}

impl Routes {
    /// Opens a socket to the kernel of the calling thread's network namespace.
    ///
    /// # Errors
    /// The system's.
    pub fn open() -> io::Result<Self> {
        Ok(Routes { netlink: Netlink::open(None)? })
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
        let answer = self.netlink.execute(0, RouteNetlinkMessage::GetRoute(message))?;
        // A route without a source is to one of the machine's own addresses.
        let nowhere = || io::Error::from(Errno::NETUNREACH);
        let (source, interface) = read_route(&answer).ok_or_else(nowhere)?;
        Ok(Route { source: source.unwrap_or(remote), interface })
    }

    /// The machine's addresses that packets may leave from, in the kernel's order: of interfaces that are up, and not those of IPv6 of which is not
    /// known yet whether somebody else has them (RFC 4862, section 5.4).
    ///
    /// # Errors
    /// The system's.
    pub fn addresses(&mut self) -> io::Result<Vec<LocalAddress>> {
        let mut links = HashMap::new();
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        self.netlink.dump(request, |body| links.extend(read_link(body)))?;
        let mut addresses = Vec::new();
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        self.netlink.dump(request, |body| {
            let found = read_address(body).and_then(|(address, prefix, index)| {
                let (interface, mtu) = links.get(&index).cloned()?;
                Some(LocalAddress { address, prefix, interface, mtu })
            });
            addresses.extend(found);
        })?;
        Ok(addresses)
    }
}

/// Hears when interfaces, addresses, routes or rules change.
#[derive(Debug)]
pub struct RouteChanges {
    netlink: Netlink,
}

/// The groups of linux/rtnetlink.h that tell of it.
const GROUPS: [u32; 7] = [
    libc::RTNLGRP_LINK,
    libc::RTNLGRP_IPV4_IFADDR,
    libc::RTNLGRP_IPV4_ROUTE,
    libc::RTNLGRP_IPV4_RULE,
    libc::RTNLGRP_IPV6_IFADDR,
    libc::RTNLGRP_IPV6_ROUTE,
    libc::RTNLGRP_IPV6_RULE,
];

impl RouteChanges {
    /// Listens from now on, in the calling thread's network namespace.
    ///
    /// # Errors
    /// The system's.
    pub fn listen() -> io::Result<Self> {
        let groups = GROUPS.into_iter().fold(0, |groups, group| groups | 1 << (group - 1));
        Ok(RouteChanges { netlink: Netlink::listen(None, groups)? })
    }

    /// Whether anything has changed since the last time. When the kernel had more to say than it could keep, something has.
    ///
    /// # Errors
    /// The system's.
    pub fn any(&mut self) -> io::Result<bool> {
        let mut any = false;
        loop {
            match self.netlink.hear(|_| any = true) {
                Ok(()) => return Ok(any),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => any = true,
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for RouteChanges {
    /// Readable when there is something to hear.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.first_chunk()?))
}

fn address_in(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(IpAddr::from(*bytes.first_chunk::<4>()?)),
        16 => Some(IpAddr::from(*bytes.first_chunk::<16>()?)),
        _ => None,
    }
}

/// Source and interface of an `RTM_NEWROUTE`.
fn read_route(body: &[u8]) -> Option<(Option<IpAddr>, u32)> {
    let (mut source, mut interface) = (None, None);
    for attribute in attributes(body, ROUTE_BODY) {
        let value = attribute.value();
        match attribute.kind() {
            libc::RTA_PREFSRC => source = address_in(value),
            libc::RTA_OIF => interface = number(value),
            _ => {}
        }
    }
    Some((source, interface?))
}

/// Number, name and MTU of an interface that is up, from an `RTM_NEWLINK`.
fn read_link(body: &[u8]) -> Option<(u32, (String, u32))> {
    let index = number(body.get(4..)?)?;
    let flags = number(body.get(8..)?)?;
    let (mut name, mut mtu) = (None, None);
    for attribute in attributes(body, LINK_BODY) {
        let value = attribute.value();
        match attribute.kind() {
            libc::IFLA_IFNAME => {
                let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
                name = Some(String::from_utf8_lossy(text).into_owned());
            }
            libc::IFLA_MTU => mtu = number(value),
            _ => {}
        }
    }
    let up = flags & libc::IFF_UP as u32 != 0;
    Some((index, (name?, mtu?))).filter(|_| up)
}

/// Address, prefix length and number of the interface of an `RTM_NEWADDR`, if it may be used.
fn read_address(body: &[u8]) -> Option<(IpAddr, u8, u32)> {
    let (&prefix, &short_flags) = (body.get(1)?, body.get(2)?);
    let index = number(body.get(4..)?)?;
    let (mut local, mut address, mut flags) = (None, None, u32::from(short_flags));
    for attribute in attributes(body, ADDRESS_BODY) {
        let value = attribute.value();
        match attribute.kind() {
            // On a point-to-point interface the other one is the peer's.
            libc::IFA_LOCAL => local = address_in(value),
            libc::IFA_ADDRESS => address = address_in(value),
            libc::IFA_FLAGS => flags = number(value)?,
            _ => {}
        }
    }
    let unusable = libc::IFA_F_TENTATIVE | libc::IFA_F_DADFAILED;
    // One that is tentative and optimistic may be used (RFC 4429).
    let usable = flags & unusable == 0 || flags & libc::IFA_F_OPTIMISTIC != 0;
    Some((local.or(address)?, prefix, index)).filter(|_| usable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_ends_the_walk() {
        for length in 0..40 {
            for byte in [0, 1, 4, 255] {
                let body = vec![byte; length];
                let _ = (read_route(&body), read_link(&body), read_address(&body));
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
        // Others may change something at any time.
        RouteChanges::listen().unwrap().any().unwrap();
    }
}
