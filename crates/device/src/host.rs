//! All interfaces and addresses of a network namespace at once, and word of changes.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use crate::netlink::{Netlink, Request, find_attribute};

/// Bytes of `struct ifinfomsg`.
const LINK_BODY: usize = 16;
/// Bytes of `struct ifaddrmsg`.
const ADDRESS_BODY: usize = 8;
/// `IFLA_TUN_PERSIST` of linux/if_link.h.
const TUN_PERSIST: u16 = 6;

/// An interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLink {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The longest IP packet in bytes.
    pub mtu: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// What it carries ([`hardware`](crate::interface::hardware)).
    pub hardware: u16,
    /// For a TUN device, whether it outlives its last descriptor.
    pub persistent_tun: Option<bool>,
}

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAddress {
    /// The interface's number.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// The length of its network's prefix in bits.
    pub prefix: u8,
    /// Whether packets may be sent from it: IPv6 first looks whether somebody else has it (RFC 4862, section 5.4).
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
        Netlink::open().map(Hosts)
    }

    /// All interfaces.
    ///
    /// # Errors
    /// The system's.
    pub fn links(&mut self) -> io::Result<Vec<HostLink>> {
        let request = Request::new(libc::RTM_GETLINK, libc::NLM_F_DUMP, &[0; LINK_BODY]);
        let mut links = Vec::new();
        self.0.dump(request, |body| links.extend(link(body)))?;
        Ok(links)
    }

    /// All addresses, in the kernel's order.
    ///
    /// # Errors
    /// The system's.
    pub fn addresses(&mut self) -> io::Result<Vec<HostAddress>> {
        let request = Request::new(libc::RTM_GETADDR, libc::NLM_F_DUMP, &[0; ADDRESS_BODY]);
        let mut addresses = Vec::new();
        self.0.dump(request, |body| addresses.extend(address(body)))?;
        Ok(addresses)
    }

    /// Removes an interface. One that has gone is as good.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn remove(&mut self, index: u32) -> io::Result<()> {
        let mut body = [0; LINK_BODY];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        match self.0.execute(Request::new(libc::RTM_DELLINK, 0, &body)) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            outcome => outcome.map(drop),
        }
    }
}

/// Hears when interfaces or addresses change.
#[derive(Debug)]
pub struct Changes(Netlink);

impl Changes {
    /// Listens from now on, in the thread's network namespace.
    ///
    /// # Errors
    /// The system's.
    pub fn listen() -> io::Result<Self> {
        let groups = libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV6_IFADDR;
        Netlink::listen_to(None, groups as u32).map(Changes)
    }

    /// Whether anything has changed since the last time. When the kernel had more to say than it could keep, something has.
    ///
    /// # Errors
    /// The system's.
    pub fn any(&mut self) -> io::Result<bool> {
        let mut any = false;
        match self.0.hear(|_| any = true) {
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(true),
            outcome => outcome.map(|()| any),
        }
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|four| u32::from_ne_bytes(*four))
}

fn link(body: &[u8]) -> Option<HostLink> {
    let attributes = body.get(LINK_BODY..)?;
    let name = find_attribute(attributes, libc::IFLA_IFNAME)?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let flags = number(body.get(8..)?)?;
    Some(HostLink {
        index: number(body.get(4..)?)?,
        name: String::from_utf8_lossy(name).into_owned(),
        mtu: number(find_attribute(attributes, libc::IFLA_MTU)?)?,
        up: flags & libc::IFF_UP as u32 != 0,
        hardware: u16::from_ne_bytes(*body.get(2..)?.first_chunk()?),
        persistent_tun: persistent(attributes),
    })
}

fn persistent(attributes: &[u8]) -> Option<bool> {
    let info = find_attribute(attributes, libc::IFLA_LINKINFO)?;
    let kind = find_attribute(info, libc::IFLA_INFO_KIND)?;
    if kind.split(|byte| *byte == 0).next() != Some(b"tun") {
        return None;
    }
    let data = find_attribute(info, libc::IFLA_INFO_DATA).unwrap_or_default();
    Some(find_attribute(data, TUN_PERSIST).is_some_and(|value| value.first() == Some(&1)))
}

fn address(body: &[u8]) -> Option<HostAddress> {
    let attributes = body.get(ADDRESS_BODY..)?;
    // On a link between two IFA_ADDRESS is the other end's.
    let bytes = find_attribute(attributes, libc::IFA_LOCAL)
        .or_else(|| find_attribute(attributes, libc::IFA_ADDRESS))?;
    let address = match i32::from(*body.first()?) {
        libc::AF_INET => IpAddr::V4(Ipv4Addr::from(*bytes.first_chunk::<4>()?)),
        libc::AF_INET6 => IpAddr::V6(Ipv6Addr::from(*bytes.first_chunk::<16>()?)),
        _ => return None,
    };
    let flags = find_attribute(attributes, libc::IFA_FLAGS).and_then(number);
    let flags = flags.unwrap_or(u32::from(*body.get(2)?));
    let link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    Some(HostAddress {
        index: number(body.get(4..)?)?,
        address,
        prefix: *body.get(1)?,
        usable: flags & (libc::IFA_F_TENTATIVE | libc::IFA_F_DADFAILED) == 0,
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
    fn what_is_cut_off_is_nothing() {
        for length in 0..40 {
            assert_eq!(link(&vec![0; length]), None);
            assert_eq!(address(&vec![2; length]), None);
        }
    }
}
