//! All interfaces and addresses of a network namespace, and notice of changes.
//!
//! The kernel is asked by rtnetlink (RFC 3549, section 3), which takes no privileges. A socket acts on the network namespace it was opened in,
//! not on its user's.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;

use crate::netlink::{Netlink, attributes};

/// Bytes of `struct ifinfomsg`.
const LINK_BODY: usize = 16;
/// Bytes of `struct ifaddrmsg`.
const ADDRESS_BODY: usize = 8;
/// `IFLA_TUN_PERSIST` of linux/if_link.h.
const TUN_PERSIST: u16 = 6;

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostLink {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The longest IP packet in bytes.
    pub mtu: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// Its kind ([`hardware`](crate::interface::hardware)).
    pub hardware: u16,
    /// For a TUN device, whether it outlives its last descriptor.
    pub persistent_tun: Option<bool>,
}

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostAddress {
    /// The interface's number.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// The length of its network's prefix in bits.
    pub prefix: u8,
    /// Whether packets may leave from it. IPv6 first checks that no other host has it (RFC 4862, section 5.4), and an optimistic host does not wait
    /// for that (RFC 4429).
    pub usable: bool,
    /// Whether it is valid on its own link only.
    pub link_local: bool,
}

/// Asks about the network namespace that the thread was in when it was opened.
#[derive(Debug)]
pub struct Hosts(Netlink);

impl Hosts {
    /// Opens a socket to the kernel.
    ///
    /// # Errors
    /// The system's.
    pub fn open() -> io::Result<Self> {
        Netlink::open(None).map(Hosts)
    }

    /// All interfaces.
    ///
    /// # Errors
    /// The system's.
    pub fn links(&mut self) -> io::Result<Vec<HostLink>> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let mut links = Vec::new();
        self.0.dump(request, |body| links.extend(link(body)))?;
        Ok(links)
    }

    /// All addresses, in the kernel's order.
    ///
    /// # Errors
    /// The system's.
    pub fn addresses(&mut self) -> io::Result<Vec<HostAddress>> {
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let mut addresses = Vec::new();
        self.0.dump(request, |body| addresses.extend(address(body)))?;
        Ok(addresses)
    }

    /// Carries out a request and returns the body of the answer.
    pub(crate) fn execute(&mut self, request: RouteNetlinkMessage) -> io::Result<Vec<u8>> {
        self.0.execute(0, request)
    }

    /// Removes an interface. One that has gone is as good.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn remove(&mut self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        match self.execute(RouteNetlinkMessage::DelLink(link)) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            outcome => outcome.map(drop),
        }
    }
}

/// Hears when interfaces, addresses or routes change.
#[derive(Debug)]
pub struct Changes(Netlink);

/// The groups of linux/rtnetlink.h for interfaces and addresses.
const ADDRESS_GROUPS: [u32; 3] =
    [libc::RTNLGRP_LINK, libc::RTNLGRP_IPV4_IFADDR, libc::RTNLGRP_IPV6_IFADDR];
/// And those for routes.
const ROUTE_GROUPS: [u32; 4] = [
    libc::RTNLGRP_IPV4_ROUTE,
    libc::RTNLGRP_IPV4_RULE,
    libc::RTNLGRP_IPV6_ROUTE,
    libc::RTNLGRP_IPV6_RULE,
];

impl Changes {
    /// Listens for changes of interfaces and addresses from now on, in the thread's network namespace.
    ///
    /// # Errors
    /// The system's.
    pub fn of_addresses() -> io::Result<Self> {
        Self::listen(ADDRESS_GROUPS)
    }

    /// The same, and for changes of routes and routing rules.
    ///
    /// # Errors
    /// The system's.
    pub fn of_addresses_and_routes() -> io::Result<Self> {
        Self::listen(ADDRESS_GROUPS.into_iter().chain(ROUTE_GROUPS))
    }

    fn listen(groups: impl IntoIterator<Item = u32>) -> io::Result<Self> {
        let groups = groups.into_iter().fold(0, |groups, group| groups | 1 << (group - 1));
        Netlink::listen(None, groups).map(Changes)
    }

    /// Whether anything has changed since the last time. When the kernel had more to say than it could keep, something has.
    ///
    /// # Errors
    /// The system's.
    pub fn any(&mut self) -> io::Result<bool> {
        let mut any = false;
        loop {
            match self.0.hear(|_| any = true) {
                Ok(()) => return Ok(any),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => any = true,
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Changes {
    /// Readable when there is something to hear.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(crate) fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|four| u32::from_ne_bytes(*four))
}

pub(crate) fn ip_address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(IpAddr::from(*bytes.first_chunk::<4>()?)),
        16 => Some(IpAddr::from(*bytes.first_chunk::<16>()?)),
        _ => None,
    }
}

/// The value of the first attribute of a kind behind so many bytes.
fn find(body: &[u8], fixed: usize, kind: u16) -> Option<Vec<u8>> {
    let mut found = attributes(body, fixed).filter(|attribute| attribute.kind() == kind);
    found.next().map(|attribute| attribute.value().to_vec())
}

fn link(body: &[u8]) -> Option<HostLink> {
    let name = find(body, LINK_BODY, libc::IFLA_IFNAME)?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let flags = number(body.get(8..)?)?;
    Some(HostLink {
        index: number(body.get(4..)?)?,
        name: String::from_utf8_lossy(name).into_owned(),
        mtu: number(&find(body, LINK_BODY, libc::IFLA_MTU)?)?,
        up: flags & libc::IFF_UP as u32 != 0,
        hardware: u16::from_ne_bytes(*body.get(2..)?.first_chunk()?),
        persistent_tun: persistent(body),
    })
}

fn persistent(body: &[u8]) -> Option<bool> {
    let info = find(body, LINK_BODY, libc::IFLA_LINKINFO)?;
    let kind = find(&info, 0, libc::IFLA_INFO_KIND)?;
    if kind.split(|byte| *byte == 0).next() != Some(b"tun") {
        return None;
    }
    let data = find(&info, 0, libc::IFLA_INFO_DATA).unwrap_or_default();
    Some(find(&data, 0, TUN_PERSIST).is_some_and(|value| value.first() == Some(&1)))
}

fn address(body: &[u8]) -> Option<HostAddress> {
    // On a link between two IFA_ADDRESS is the other end's.
    let bytes = find(body, ADDRESS_BODY, libc::IFA_LOCAL)
        .or_else(|| find(body, ADDRESS_BODY, libc::IFA_ADDRESS))?;
    let address = ip_address(&bytes)?;
    let flags = find(body, ADDRESS_BODY, libc::IFA_FLAGS).and_then(|value| number(&value));
    let flags = flags.unwrap_or(u32::from(*body.get(2)?));
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    Some(HostAddress {
        index: number(body.get(4..)?)?,
        address,
        prefix: *body.get(1)?,
        usable: flags & (libc::IFA_F_TENTATIVE | libc::IFA_F_DADFAILED) == 0
            || flags & libc::IFA_F_OPTIMISTIC != 0,
        link_local,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_among_them() {
        let mut hosts = Hosts::open().unwrap();
        let links = hosts.links().unwrap();
        let loopback = links.iter().find(|link| link.index == 1).unwrap();
        assert_eq!((loopback.name.as_str(), loopback.persistent_tun), ("lo", None));
        assert_eq!(loopback.hardware, crate::interface::hardware::LOOPBACK);
    }

    #[test]
    fn a_message_that_is_cut_off_is_ignored() {
        for length in 0..40 {
            assert_eq!(link(&vec![0; length]), None);
            assert_eq!(address(&vec![2; length]), None);
            for byte in [0, 1, 4, 255] {
                let _ = (link(&vec![byte; length]), address(&vec![byte; length]));
            }
        }
    }

    #[test]
    fn changes_can_be_heard() {
        // Others may change something at any time.
        Changes::of_addresses().unwrap().any().unwrap();
        Changes::of_addresses_and_routes().unwrap().any().unwrap();
    }
}
