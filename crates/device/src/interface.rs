//! Settings of network interfaces: up, MTU, queue length, addresses, routes, veth pairs.
//!
//! [`Interfaces`] holds a netlink socket and acts on the network namespace in which it was opened,
//! so it can be opened in a thread that is inside a namespace and used from any other. Nothing here
//! runs a program.

mod prefix;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, ParseableParametrized};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkHeader, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteLwEnCapType, RouteMessage, RouteMetric,
    RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::netlink::{Netlink, attributes};
pub use prefix::{IpPrefix, ParsePrefixError};

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
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl From<InterfaceError> for io::Error {
    fn from(error: InterfaceError) -> Self {
        io::Error::new(error.kind(), error)
    }
}

/// The kernel's report on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InterfaceState {
    /// The interface's number in its namespace.
    pub index: u32,
    /// The longest IP packet in bytes.
    pub mtu: u32,
    /// How many packets its transmit queue holds.
    pub queue_len: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it is up and has a carrier. A TUN interface has one while a program has it open.
    pub carrier: bool,
    /// Whether it is a TUN or TAP interface.
    pub tun: bool,
    /// Its kind: one of [`hardware`], or another of the kernel's `ARPHRD_*`.
    pub hardware: u16,
    /// Its address on an Ethernet; zeros for what has none of six bytes.
    pub station: [u8; 6],
}

/// Kinds of interfaces (`linux/if_arp.h`).
pub mod hardware {
    /// Ethernet frames.
    pub const ETHER: u16 = libc::ARPHRD_ETHER;
    /// Ethernet frames that stay on this host.
    pub const LOOPBACK: u16 = libc::ARPHRD_LOOPBACK;
    /// IP packets with nothing before them: TUN.
    pub const NONE: u16 = libc::ARPHRD_NONE;
    /// IP packets with nothing before them: modems.
    pub const RAW_IP: u16 = 519;
}

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
        Ok(self.look_up(name)?.0)
    }

    /// The names of all interfaces.
    ///
    /// # Errors
    /// When the kernel does not answer.
    pub fn names(&mut self) -> io::Result<Vec<String>> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let mut names = Vec::new();
        self.netlink.dump(request, |link| {
            for attribute in attributes(link, LINK_BODY_LEN) {
                if let Ok(LinkAttribute::IfName(name)) =
                    LinkAttribute::parse_with_param(&attribute, AddressFamily::Unspec)
                {
                    names.push(name);
                }
            }
        })?;
        Ok(names)
    }

    /// The traffic of an interface so far.
    ///
    /// # Errors
    /// As [`Interfaces::state`].
    pub fn counters(&mut self, name: &str) -> Result<InterfaceCounters, InterfaceError> {
        Ok(self.look_up(name)?.1)
    }

    fn look_up(
        &mut self,
        name: &str,
    ) -> Result<(InterfaceState, InterfaceCounters), InterfaceError> {
        let attempt = |netlink: &mut Netlink| {
            let request = RouteNetlinkMessage::GetLink(link(name)?);
            let answer = netlink.execute(0, request)?;
            parse_link(&answer).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        };
        attempt(&mut self.netlink).map_err(failed("look up", name))
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

    /// Gives an interface an address and, with it, a route to the address' network.
    ///
    /// Duplicate address detection (RFC 4862, section 5.4) is skipped, as no other program configures
    /// addresses on our own interface. So packets may be sent from the address at
    /// once; for those to it, see [`Interfaces::wait_until_local`].
    ///
    /// # Errors
    /// The kernel's refusal, [`io::ErrorKind::AlreadyExists`] for one.
    pub fn add_address(&mut self, name: &str, address: IpPrefix) -> Result<(), InterfaceError> {
        let mut message = self.address_message(name, address)?;
        message.header.flags = AddressHeaderFlags::Nodad;
        let request = RouteNetlinkMessage::NewAddress(message);
        let executed = self.netlink.execute(NLM_F_CREATE | NLM_F_EXCL, request);
        executed.map_err(failed("add an address to", name))?;
        Ok(())
    }

    /// Takes an address away from an interface, and with it the route to its network.
    pub(crate) fn remove_address(
        &mut self,
        name: &str,
        address: IpPrefix,
    ) -> Result<(), InterfaceError> {
        let message = self.address_message(name, address)?;
        let executed = self.netlink.execute(0, RouteNetlinkMessage::DelAddress(message));
        executed.map_err(failed("remove an address from", name))?;
        Ok(())
    }

    fn address_message(
        &mut self,
        name: &str,
        address: IpPrefix,
    ) -> Result<AddressMessage, InterfaceError> {
        let index = self.state(name)?.index;
        let mut message = AddressMessage::default();
        message.header.family = family(address.address());
        message.header.prefix_len = address.prefix_len();
        message.header.index = index;
        message.attributes = vec![
            AddressAttribute::Local(address.address()),
            AddressAttribute::Address(address.address()),
        ];
        Ok(message)
    }

    /// Whether packets to `address` are taken in as the machine's own.
    pub(crate) fn is_local(&mut self, address: IpAddr) -> Result<bool, InterfaceError> {
        self.wait_until_local(address, Duration::ZERO)
    }

    /// The gateway by which packets to `destination` leave the interface with this number, if there is one.
    pub(crate) fn gateway(
        &mut self,
        index: u32,
        destination: IpAddr,
    ) -> io::Result<Option<IpAddr>> {
        let mut route = route_to(IpPrefix::host(destination));
        route.attributes.push(RouteAttribute::Oif(index));
        let answer = match self.netlink.execute(0, RouteNetlinkMessage::GetRoute(route)) {
            Err(error) if is_no_route(&error) => return Ok(None),
            answer => answer?,
        };
        let Ok(header) = RouteHeader::parse(&answer[..]) else { return Ok(None) };
        let (mut leaves_by, mut gateway) = (None, None);
        for attribute in attributes(&answer, ROUTE_BODY_LEN) {
            let context = (header.address_family, header.kind, RouteLwEnCapType::None);
            match RouteAttribute::parse_with_param(&attribute, context) {
                Ok(RouteAttribute::Oif(number)) => leaves_by = Some(number),
                Ok(RouteAttribute::Gateway(RouteAddress::Inet(address))) => {
                    gateway = Some(address.into());
                }
                Ok(RouteAttribute::Gateway(RouteAddress::Inet6(address))) => {
                    gateway = Some(address.into());
                }
                _ => {}
            }
        }
        Ok(gateway.filter(|_| leaves_by == Some(index)))
    }

    /// Waits until packets to `address` are taken in as the namespace's own, and says whether that
    /// came to be within `patience`.
    ///
    /// The kernel puts an IPv6 address in its routing table later than it says it has added it, on
    /// a thread of its own, and only when the interface is up. A packet that comes in between is
    /// lost.
    ///
    /// # Errors
    /// The kernel's errors, but for a route that does not exist.
    pub fn wait_until_local(
        &mut self,
        address: IpAddr,
        patience: Duration,
    ) -> Result<bool, InterfaceError> {
        self.wait_until_taken_in(address, None, patience)
    }

    /// The same for packets with a mark, where rules of routing ask for it.
    pub(crate) fn wait_until_taken_in(
        &mut self,
        address: IpAddr,
        mark: Option<u32>,
        patience: Duration,
    ) -> Result<bool, InterfaceError> {
        let start = Instant::now();
        loop {
            let mut request = route_to(IpPrefix::host(address));
            request.attributes.extend(mark.map(RouteAttribute::Mark));
            match self.netlink.execute(0, RouteNetlinkMessage::GetRoute(request)) {
                Ok(answer) if is_local(&answer) => return Ok(true),
                Ok(_) => {}
                Err(error) if is_no_route(&error) => {}
                Err(error) => return Err(failed("find the way to", &address.to_string())(error)),
            }
            if start.elapsed() >= patience {
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Routes `destination` out of an interface, through `gateway` if there is one.
    ///
    /// # Errors
    /// The kernel's refusal: the interface is down, the gateway is out of reach, or the route
    /// exists.
    pub fn add_route(
        &mut self,
        name: &str,
        destination: IpPrefix,
        gateway: Option<IpAddr>,
    ) -> Result<(), InterfaceError> {
        self.route(name, destination, gateway, None)
    }

    /// Routes `destination` out of an interface, and gives all TCP connections that take this route a congestion control
    /// of the kernel's: `reno`, `cubic`, `bbr`.
    ///
    /// Other than the parameter `net.ipv4.tcp_congestion_control`, a route may name one that the system does not let ordinary
    /// users choose. A program cannot choose another then.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the kernel has no such congestion control, and those of [`Interfaces::add_route`].
    pub fn add_route_with_congestion(
        &mut self,
        name: &str,
        destination: IpPrefix,
        congestion: &str,
    ) -> Result<(), InterfaceError> {
        let metrics = vec![RouteMetric::CcAlgo(congestion.to_owned())];
        self.route(name, destination, None, Some(RouteAttribute::Metrics(metrics)))
    }

    fn route(
        &mut self,
        name: &str,
        destination: IpPrefix,
        gateway: Option<IpAddr>,
        more: Option<RouteAttribute>,
    ) -> Result<(), InterfaceError> {
        let index = self.state(name)?.index;
        let mut route = route_to(destination);
        route.header.table = RouteHeader::RT_TABLE_MAIN;
        route.header.protocol = RouteProtocol::Static;
        route.header.scope = match (gateway, destination.address()) {
            (None, IpAddr::V4(_)) => RouteScope::Link,
            _ => RouteScope::Universe,
        };
        route.header.kind = RouteType::Unicast;
        let gateway = gateway.map(|address| RouteAttribute::Gateway(RouteAddress::from(address)));
        route.attributes.push(RouteAttribute::Oif(index));
        route.attributes.extend(gateway.into_iter().chain(more));
        let request = RouteNetlinkMessage::NewRoute(route);
        let executed = self.netlink.execute(NLM_F_CREATE | NLM_F_EXCL, request);
        executed.map_err(failed("add a route through", name))?;
        Ok(())
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

/// Bytes of `struct rtmsg`.
const ROUTE_BODY_LEN: usize = 12;
/// Bytes of `struct ifinfomsg`.
const LINK_BODY_LEN: usize = 16;

/// A message about the interface of this name.
fn link(name: &str) -> io::Result<LinkMessage> {
    let mut message = LinkMessage::default();
    message.attributes.push(LinkAttribute::IfName(checked_name(name)?.to_owned()));
    Ok(message)
}

/// A message about a route to this network.
fn route_to(destination: IpPrefix) -> RouteMessage {
    let mut route = RouteMessage::default();
    route.header.address_family = family(destination.address());
    route.header.destination_prefix_length = destination.prefix_len();
    let address = RouteAddress::from(destination.address());
    route.attributes.push(RouteAttribute::Destination(address));
    route
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

fn parse_link(answer: &[u8]) -> Option<(InterfaceState, InterfaceCounters)> {
    let header = LinkHeader::parse(answer).ok()?;
    let (mut mtu, mut queue_len, mut stats) = (None, None, None);
    let (mut station, mut tun) = (None, false);
    for attribute in attributes(answer, LINK_BODY_LEN) {
        match LinkAttribute::parse_with_param(&attribute, header.interface_family) {
            Ok(LinkAttribute::Mtu(bytes)) => mtu = Some(bytes),
            Ok(LinkAttribute::TxQueueLen(packets)) => queue_len = Some(packets),
            Ok(LinkAttribute::Address(address)) => station = address.try_into().ok(),
            Ok(LinkAttribute::Stats64(counts)) => stats = Some(counts),
            Ok(LinkAttribute::LinkInfo(told)) => {
                tun = told.contains(&LinkInfo::Kind(InfoKind::Tun))
            }
            _ => {}
        }
    }
    let stats = stats?;
    let state = InterfaceState {
        index: header.index,
        mtu: mtu?,
        queue_len: queue_len?,
        up: header.flags.contains(LinkFlags::Up),
        carrier: header.flags.contains(LinkFlags::LowerUp),
        tun,
        hardware: header.link_layer_type.into(),
        station: station.unwrap_or_default(),
    };
    let counters = InterfaceCounters {
        received: stats.rx_packets,
        transmitted: stats.tx_packets,
        receive_dropped: stats.rx_dropped,
        transmit_dropped: stats.tx_dropped,
    };
    Some((state, counters))
}

fn is_local(route: &[u8]) -> bool {
    RouteHeader::parse(route).is_ok_and(|header| header.kind == RouteType::Local)
}

fn is_no_route(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable)
}

fn failed(action: &'static str, name: &str) -> impl FnOnce(io::Error) -> InterfaceError {
    let interface = name.to_owned();
    move |source| InterfaceError { action, interface, source }
}

fn family(address: IpAddr) -> AddressFamily {
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
    fn the_loopback_interface_is_found() {
        let mut interfaces = Interfaces::open().unwrap();
        assert_eq!(interfaces.state("lo").unwrap().index, 1);
        assert!(interfaces.names().unwrap().contains(&"lo".to_owned()));
        let error = interfaces.state("no-such-iface").unwrap_err();
        assert_eq!(error.to_string(), "cannot look up no-such-iface");
        let cause = error.source().expect("what the kernel answered");
        assert!(cause.to_string().starts_with("No such device"), "{cause}");
    }
}
