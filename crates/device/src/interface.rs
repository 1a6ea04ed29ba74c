//! The interfaces of a network namespace: what the kernel tells of them, and their settings.
//!
//! [`Interfaces`] holds a netlink socket (rtnetlink; RFC 3549, section 3) and acts on the network namespace in which it was opened,
//! so it can be opened in a thread that is inside a namespace and used from any other. To ask takes no privileges. Nothing here
//! runs a program. [`Changes`] hears when something has changed.
//!
//! Attributes are read one by one, so that one that a newer kernel writes otherwise does not spoil the others.

mod addresses;
mod changes;
mod filters;
mod prefix;
mod queue;
mod routes;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, ParseableParametrized};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkHeader, LinkInfo, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::netlink::{Netlink, attributes};
pub use addresses::InterfaceAddress;
pub use changes::Changes;
pub use prefix::{IpPrefix, ParsePrefixError};
pub use queue::RootQueue;

/// A setting that the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {interface}")]
#[non_exhaustive]
pub struct InterfaceError {
    action: &'static str,
    interface: String,
    source: io::Error,
}

impl InterfaceError {
    /// The meaning of the kernel's error number.
    pub(crate) fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl From<InterfaceError> for io::Error {
    fn from(error: InterfaceError) -> Self {
        io::Error::new(error.kind(), error)
    }
}

/// The kernel's report on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterfaceState {
    /// The interface's number in its namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The longest IP packet in bytes.
    pub mtu: u32,
    /// How many packets its transmit queue holds.
    pub queue_len: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it is up and has a carrier. A TUN interface has one while a program has it open.
    pub carrier: bool,
    /// For a TUN or TAP interface, whether it outlives its last descriptor.
    pub persistent_tun: Option<bool>,
    /// Its kind: one of the kernel's `ARPHRD_*` (linux/if_arp.h).
    pub hardware: u16,
    /// Its address on an Ethernet; zeros for what has none of six bytes.
    pub station: [u8; 6],
    /// The traffic so far.
    pub counters: InterfaceCounters,
}

impl InterfaceState {
    /// Bytes before the IP header of its packets; nothing if it carries something else than Ethernet frames and IP packets.
    pub fn link_header_len(&self) -> Option<u32> {
        match self.hardware {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(14),
            libc::ARPHRD_NONE | ARPHRD_RAWIP => Some(0),
            _ => None,
        }
    }
}

/// IP packets with nothing before them, of modems: a name that libc has not.
const ARPHRD_RAWIP: u16 = 519;

/// Packets that have passed through an interface, or have not. To the kernel, what it sends into a TUN interface is transmitted
/// and what is written to the TUN device is received. A super-segment counts as one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterfaceCounters {
    /// Packets received.
    pub received: u64,
    /// Packets transmitted.
    pub transmitted: u64,
    /// Packets dropped on reception.
    pub receive_dropped: u64,
    /// Packets dropped on transmission: a TUN device's queue was full, for one.
    pub transmit_dropped: u64,
}

/// The interfaces of one network namespace.
#[derive(Debug)]
pub struct Interfaces {
    netlink: Netlink,
}

impl AsFd for Interfaces {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
    }
}

impl Interfaces {
    /// The interfaces of the network namespace the calling thread is in.
    ///
    /// # Errors
    /// When the kernel gives no netlink socket.
    pub fn open() -> io::Result<Self> {
        Ok(Interfaces { netlink: Netlink::open(None)? })
    }

    /// With a socket that another process has opened.
    pub(crate) fn from_descriptor(socket: OwnedFd) -> io::Result<Self> {
        Ok(Interfaces { netlink: Netlink::from_descriptor(socket, libc::NETLINK_ROUTE)? })
    }

    /// Looks an interface up by its name.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] (or the system's "no such device") when there is none.
    pub fn state(&mut self, name: &str) -> Result<InterfaceState, InterfaceError> {
        let attempt = |netlink: &mut Netlink| {
            let request = RouteNetlinkMessage::GetLink(link(name)?);
            let answer = netlink.execute(0, request)?;
            parse_link(&answer).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        };
        attempt(&mut self.netlink).map_err(failed("look up", name))
    }

    /// All interfaces.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn all(&mut self) -> io::Result<Vec<InterfaceState>> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let mut all = Vec::new();
        self.netlink.dump(request, |link| all.extend(parse_link(link)))?;
        Ok(all)
    }

    /// Brings an interface up or takes it down.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_up(&mut self, name: &str, up: bool) -> Result<(), InterfaceError> {
        let action = if up { "bring up" } else { "take down" };
        self.change(action, name, |link| {
            link.header.flags.set(LinkFlags::Up, up);
            link.header.change_mask = LinkFlags::Up;
        })
    }

    /// Has an Ethernet interface ask for no neighbours: all frames go to its own address (`IFF_NOARP`). For a link with one station at its far end that takes
    /// everything.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_without_neighbours(&mut self, name: &str) -> Result<(), InterfaceError> {
        self.change("take the neighbours from", name, |link| {
            link.header.flags = LinkFlags::Noarp;
            link.header.change_mask = LinkFlags::Noarp;
        })
    }

    /// Sets an interface's MTU, in bytes of IP packet.
    ///
    /// # Errors
    /// The kernel's refusal; for one, IPv6 needs 1280 bytes.
    pub fn set_mtu(&mut self, name: &str, mtu: u32) -> Result<(), InterfaceError> {
        self.change("set the MTU of", name, |link| link.attributes.push(LinkAttribute::Mtu(mtu)))
    }

    /// Sets how many packets an interface's transmit queue holds.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn set_queue_len(&mut self, name: &str, packets: u32) -> Result<(), InterfaceError> {
        self.change("set the queue length of", name, |link| {
            link.attributes.push(LinkAttribute::TxQueueLen(packets));
        })
    }

    /// Makes a pair of virtual Ethernet interfaces: `name` here, `peer_name` in the namespace
    /// `peer` refers to. Both are down and without addresses, and have so many queues for each direction.
    pub(crate) fn add_veth(
        &mut self,
        name: &str,
        peer_name: &str,
        peer: BorrowedFd<'_>,
        queues: u32,
    ) -> Result<(), InterfaceError> {
        // Without these the kernel makes what one can be given more of later.
        let several = || {
            let both = [LinkAttribute::NumTxQueues(queues), LinkAttribute::NumRxQueues(queues)];
            both.into_iter().filter(|_| queues > 1)
        };
        let attempt = |netlink: &mut Netlink| {
            let mut far = link(peer_name)?;
            far.attributes.push(LinkAttribute::NetNsFd(peer.as_raw_fd()));
            far.attributes.extend(several());
            let mut near = link(name)?;
            near.attributes.extend(several());
            near.attributes.push(LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far))),
            ]));
            netlink.execute(NLM_F_CREATE | NLM_F_EXCL, RouteNetlinkMessage::NewLink(near))
        };
        attempt(&mut self.netlink).map_err(failed("create the veth pair of", name))?;
        Ok(())
    }

    /// Removes an interface. One that has gone is as good.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn remove(&mut self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        match self.netlink.execute(0, RouteNetlinkMessage::DelLink(link)) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    fn change(
        &mut self,
        action: &'static str,
        name: &str,
        set: impl FnOnce(&mut LinkMessage),
    ) -> Result<(), InterfaceError> {
        let attempt = |netlink: &mut Netlink| {
            let mut link = link(name)?;
            set(&mut link);
            netlink.execute(0, RouteNetlinkMessage::NewLink(link))
        };
        attempt(&mut self.netlink).map_err(failed(action, name))?;
        Ok(())
    }
}

/// Bytes of `struct ifinfomsg`.
const LINK_BODY_LEN: usize = 16;

/// A message about the interface of this name.
fn link(name: &str) -> io::Result<LinkMessage> {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(checked_name(name)?.to_owned()));
    Ok(message)
}

/// An interface name the kernel can hold: 1 to 15 bytes, no slash, no white space, no zero byte.
pub(crate) fn checked_name(name: &str) -> io::Result<&str> {
    let fits = (1..libc::IFNAMSIZ).contains(&name.len());
    let clean = !name.bytes().any(|b| b == 0 || b == b'/' || b.is_ascii_whitespace());
    if fits && clean && name != "." && name != ".." {
        Ok(name)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a valid interface name"))
    }
}

fn parse_link(answer: &[u8]) -> Option<InterfaceState> {
    let header = LinkHeader::parse(answer).ok()?;
    let (mut name, mut mtu, mut queue_len, mut stats) = (None, None, None, None);
    let (mut station, mut persistent_tun) = (None, None);
    for attribute in attributes(answer, LINK_BODY_LEN) {
        if attribute.kind() == libc::IFLA_LINKINFO {
            persistent_tun = persistent_tun_of(attribute.value());
            continue;
        }
        match LinkAttribute::parse_with_param(&attribute, header.interface_family) {
            Ok(LinkAttribute::IfName(text)) => name = Some(text),
            Ok(LinkAttribute::Mtu(bytes)) => mtu = Some(bytes),
            Ok(LinkAttribute::TxQueueLen(packets)) => queue_len = Some(packets),
            Ok(LinkAttribute::Address(address)) => station = address.try_into().ok(),
            Ok(LinkAttribute::Stats64(counts)) => stats = Some(counts),
            _ => {}
        }
    }
    let stats = stats?;
    Some(InterfaceState {
        index: header.index,
        name: name?,
        mtu: mtu?,
        queue_len: queue_len?,
        up: header.flags.contains(LinkFlags::Up),
        carrier: header.flags.contains(LinkFlags::LowerUp),
        persistent_tun,
        hardware: header.link_layer_type.into(),
        station: station.unwrap_or_default(),
        counters: InterfaceCounters {
            received: stats.rx_packets,
            transmitted: stats.tx_packets,
            receive_dropped: stats.rx_dropped,
            transmit_dropped: stats.tx_dropped,
        },
    })
}

/// Whether a TUN interface outlives its last descriptor (`IFLA_TUN_PERSIST` of linux/if_link.h); nothing if this is of another kind of interface.
fn persistent_tun_of(info: &[u8]) -> Option<bool> {
    const PERSIST: u16 = 6;
    let find = |bytes, kind| attributes(bytes, 0).find(|attribute| attribute.kind() == kind);
    let kind = find(info, libc::IFLA_INFO_KIND)?;
    if kind.value().split(|byte| *byte == 0).next() != Some(b"tun") {
        return None;
    }
    let Some(data) = find(info, libc::IFLA_INFO_DATA) else { return Some(false) };
    Some(find(data.value(), PERSIST).is_some_and(|attribute| attribute.value() == [1]))
}

fn failed(action: &'static str, name: &str) -> impl FnOnce(io::Error) -> InterfaceError {
    let interface = name.to_owned();
    move |source| InterfaceError { action, interface, source }
}

pub(crate) fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn names_the_kernel_cannot_hold_are_refused() {
        assert!(checked_name("transom0").is_ok());
        assert!(checked_name("fifteen-letters").is_ok());
        for bad in ["", "sixteen-letters-", "a b", "a/b", "a\0b", ".", ".."] {
            assert!(checked_name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_message_that_is_cut_off_is_ignored() {
        for length in 0..40 {
            assert_eq!(parse_link(&vec![0; length]), None);
            for byte in [1, 4, 255] {
                let _ = parse_link(&vec![byte; length]);
            }
        }
    }

    #[test]
    fn the_loopback_interface_is_found() {
        let mut interfaces = Interfaces::open().unwrap();
        assert_eq!(interfaces.state("lo").unwrap().index, 1);
        let all = interfaces.all().unwrap();
        let loopback = all.iter().find(|state| state.index == 1).unwrap();
        assert_eq!((loopback.name.as_str(), loopback.persistent_tun), ("lo", None));
        assert_eq!(loopback.hardware, libc::ARPHRD_LOOPBACK);
        let error = interfaces.state("no-such-iface").unwrap_err();
        assert_eq!(error.to_string(), "cannot look up no-such-iface");
        let cause = error.source().expect("what the kernel answered");
        assert!(cause.to_string().starts_with("No such device"), "{cause}");
    }
}
