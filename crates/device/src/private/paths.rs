//! The ways of packets inside a private network: everything that a socket sends leaves by the device, everything from the device is taken in.
//!
//! Linux looks at rules in turn, and each rule names a table of routes (ip-rule(8)). The first rule of a new namespace asks the table `local`, so that
//! a packet to one of the namespace's own addresses never leaves it. Here other rules come first:
//!
//! | order | rule | purpose |
//! |---|---|---|
//! | 3 | `fwmark MARK lookup local` | takes in what the supervisor sends over `lo` |
//! | 4 | `iif lo to 127.0.0.0/8 lookup local` | only where loopback stays inside |
//! | 5 | `iif lo lookup OWN` | own addresses and loopback: over the device |
//! | 6 | `iif lo from 127.0.0.0/8 blackhole` | `EINVAL`, as Linux answers a loopback address that would leave the host |
//! | 7 | `iif lo lookup OUTSIDE` | all other destinations: over the device |
//! | 10 | `lookup local` | takes in what comes from the device |
//!
//! "From `lo`" means to the kernel: sent by a socket of this namespace (`LOOPBACK_IFINDEX` in `ip_route_output_key_hash()` and
//! `ip6_route_output_flags()`). A rule cannot be moved, so the first one is made again further back, and deleted.
//!
//! **::1.** The kernel lets nobody but a loopback interface have it, and drops a packet to or from it that comes in elsewhere (`ipv6_add_addr()`,
//! `ip6_rcv_core()`; RFC 4291 section 2.5.3). So it cannot cross a TUN or veth interface. But a route to `::1` need not be a *local* one. One of the plain
//! kind, `::1 dev lo src ::1`, has the kernel send the packet over `lo` and then find that it would have to forward it, which is off: it drops it. A packet
//! socket on `lo` has got its copy by then. What the supervisor sends by that socket has a mark, and the rule for the mark takes it in. All names
//! are right then: both ends are `::1`. A packet *from* `::1` to another own address leaves by the device, and comes in by `lo`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::interface::{IpPrefix, family};
use crate::netlink::Netlink;

/// The tables. Any numbers will do in a namespace of our own.
const OWN: u8 = 101;
const OUTSIDE: u8 = 102;

/// The mark of packets that the supervisor sends over `lo`.
pub(super) const MARK: u32 = 0x7452_6e73;

/// The neighbour of an Ethernet that has none: a next hop saves an entry for each destination in the kernel's table of neighbours, which is limited for
/// the whole machine. 192.0.0.8 is nobody's address (RFC 7600).
const NEXT_HOP_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 0, 8);
const NEXT_HOP_V6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 8);

/// Number of the interface `lo` in every namespace.
pub(super) const LOOPBACK: u32 = 1;

/// Makes rules and routes.
#[derive(Debug)]
pub(super) struct Paths {
    netlink: Netlink,
    device: u32,
    /// Whether the device is an Ethernet, which needs a next hop.
    ethernet: bool,
}

/// The loopback network of a family.
pub(super) fn loopback_network(family: AddressFamily) -> IpPrefix {
    let (address, length) = match family {
        AddressFamily::Inet => (IpAddr::from([127, 0, 0, 0]), 8),
        _ => (IpAddr::from(Ipv6Addr::LOCALHOST), 128),
    };
    IpPrefix::new(address, length).unwrap_or_else(|| unreachable!("both lengths fit"))
}

/// A rule that asks a table.
fn rule(family: AddressFamily, order: u32, table: u8) -> RuleMessage {
    let mut rule = RuleMessage::default();
    rule.header.family = family;
    rule.header.table = table;
    rule.header.action = RuleAction::ToTable;
    rule.attributes.push(RuleAttribute::Priority(order));
    rule
}

/// The same for packets that are sent by a socket of this namespace.
fn sent(family: AddressFamily, order: u32, table: u8) -> RuleMessage {
    let mut rule = rule(family, order, table);
    rule.attributes.push(RuleAttribute::Iifname("lo".into()));
    rule
}

impl Paths {
    /// For the namespace that the calling thread is in, and its device.
    pub(super) fn open(device: u32, ethernet: bool) -> io::Result<Self> {
        Ok(Paths { netlink: Netlink::open(None)?, device, ethernet })
    }

    /// The number of the device.
    pub(super) fn device(&self) -> u32 {
        self.device
    }

    fn add_rule(&mut self, rule: RuleMessage) -> io::Result<()> {
        let request = RouteNetlinkMessage::NewRule(rule);
        self.netlink.execute(NLM_F_CREATE | NLM_F_EXCL, request).map(drop)
    }

    /// The rules of one family.
    pub(super) fn add_rules(&mut self, family: AddressFamily, loopback: bool) -> io::Result<()> {
        let local = libc::RT_TABLE_LOCAL;
        let own_host = loopback_network(family);
        let mut marked = rule(family, 3, local);
        marked.attributes.push(RuleAttribute::FwMark(MARK));
        self.add_rule(marked)?;
        if !loopback {
            let mut inside = sent(family, 4, local);
            inside.header.dst_len = own_host.prefix_len();
            inside.attributes.push(RuleAttribute::Destination(own_host.address()));
            self.add_rule(inside)?;
        }
        self.add_rule(sent(family, 5, OWN))?;
        // With IPv6, Linux lets the connection begin.
        if family == AddressFamily::Inet {
            let mut stays = sent(family, 6, RouteHeader::RT_TABLE_UNSPEC);
            stays.header.action = RuleAction::Blackhole;
            stays.header.src_len = own_host.prefix_len();
            stays.attributes.push(RuleAttribute::Source(own_host.address()));
            self.add_rule(stays)?;
        }
        self.add_rule(sent(family, 7, OUTSIDE))?;
        self.add_rule(rule(family, 10, local))?;
        // The first in order that asks this table: the kernel's own.
        let first = RouteNetlinkMessage::DelRule(rule(family, 0, local));
        self.netlink.execute(0, first).map(drop)
    }

    /// Sends what is for loopback addresses to the supervisor.
    pub(super) fn add_loopback(&mut self, family: AddressFamily) -> io::Result<()> {
        let network = loopback_network(family);
        let mut route = match family {
            AddressFamily::Inet => self.route(OWN, network),
            _ => plain_route(OWN, network, LOOPBACK),
        };
        let source = match family {
            AddressFamily::Inet => RouteAddress::Inet(Ipv4Addr::LOCALHOST),
            _ => RouteAddress::Inet6(Ipv6Addr::LOCALHOST),
        };
        route.attributes.push(RouteAttribute::PrefSource(source));
        self.add(route)
    }

    /// Sends what is for an own address over the device, from that address.
    pub(super) fn add_own(&mut self, address: IpAddr) -> io::Result<()> {
        let route = self.own(address);
        self.add(route)
    }

    pub(super) fn remove_own(&mut self, address: IpAddr) -> io::Result<()> {
        let route = self.own(address);
        self.netlink.execute(0, RouteNetlinkMessage::DelRoute(route)).map(drop)
    }

    fn own(&self, address: IpAddr) -> RouteMessage {
        let mut route = self.route(OWN, IpPrefix::host(address));
        route.attributes.push(RouteAttribute::PrefSource(address.into()));
        route
    }

    /// Connections to the broadcast address of a network fail at once, as on any host.
    pub(super) fn add_broadcast(&mut self, network: IpPrefix) -> io::Result<()> {
        let Some(address) = broadcast_of(network) else { return Ok(()) };
        let mut route = plain_route(OUTSIDE, IpPrefix::host(address.into()), self.device);
        route.header.kind = RouteType::Broadcast;
        route.header.scope = RouteScope::Link;
        match self.add(route) {
            // Two addresses of one network.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            outcome => outcome,
        }
    }

    /// Sends what is for other hosts over the device.
    pub(super) fn add_outside(&mut self, to: IpPrefix, source: Option<IpAddr>) -> io::Result<()> {
        let mut route = self.route(OUTSIDE, to);
        route.attributes.extend(source.map(|source| RouteAttribute::PrefSource(source.into())));
        self.add(route)
    }

    fn add(&mut self, route: RouteMessage) -> io::Result<()> {
        let request = RouteNetlinkMessage::NewRoute(route);
        self.netlink.execute(NLM_F_CREATE | NLM_F_EXCL, request).map(drop)
    }

    /// A route out of the device.
    fn route(&self, table: u8, to: IpPrefix) -> RouteMessage {
        let mut route = plain_route(table, to, self.device);
        if self.ethernet {
            let hop = match to.address() {
                IpAddr::V4(_) => RouteAddress::Inet(NEXT_HOP_V4),
                IpAddr::V6(_) => RouteAddress::Inet6(NEXT_HOP_V6),
            };
            route.attributes.push(RouteAttribute::Gateway(hop));
            // No network of the interface's need have the next hop.
            route.header.flags = RouteFlags::Onlink;
            route.header.scope = RouteScope::Universe;
        }
        route
    }
}

fn plain_route(table: u8, to: IpPrefix, interface: u32) -> RouteMessage {
    let mut route = RouteMessage::default();
    route.header.address_family = family(to.address());
    route.header.destination_prefix_length = to.prefix_len();
    route.header.table = table;
    route.header.protocol = RouteProtocol::Static;
    route.header.kind = RouteType::Unicast;
    route.header.scope = match to.address() {
        IpAddr::V4(_) => RouteScope::Link,
        IpAddr::V6(_) => RouteScope::Universe,
    };
    route.attributes.push(RouteAttribute::Destination(to.address().into()));
    route.attributes.push(RouteAttribute::Oif(interface));
    route
}

/// The last address of an IPv4 network that has one for broadcasts (RFC 3021 takes it from networks of two).
fn broadcast_of(network: IpPrefix) -> Option<Ipv4Addr> {
    let IpAddr::V4(address) = network.address() else { return None };
    let hosts = u32::MAX.checked_shr(network.prefix_len().into()).unwrap_or(0);
    (1..=30).contains(&network.prefix_len()).then(|| Ipv4Addr::from(address.to_bits() | hosts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_a_broadcast_address_from_four_addresses_on() {
        let of = |text: &str| broadcast_of(text.parse().unwrap());
        assert_eq!(of("192.0.2.1/24"), Some([192, 0, 2, 255].into()));
        assert_eq!(of("192.0.2.1/30"), Some([192, 0, 2, 3].into()));
        assert_eq!((of("192.0.2.1/31"), of("192.0.2.1/32"), of("192.0.2.1/0")), (None, None, None));
        assert_eq!(of("2001:db8::1/64"), None);
    }
}
