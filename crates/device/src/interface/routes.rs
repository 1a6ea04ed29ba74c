//! Routes, and what the kernel answers about them.

use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, ParseableParametrized};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteLwEnCapType, RouteMessage, RouteMetric,
    RouteProtocol, RouteScope, RouteType,
};
use rustix::io::Errno;

use super::{InterfaceError, Interfaces, IpPrefix, failed, family};
use crate::netlink::attributes;

/// Bytes of `struct rtmsg`.
const BODY_LEN: usize = 12;

impl Interfaces {
    /// Whether packets to `address` are taken in as the machine's own.
    pub(crate) fn is_local(&mut self, address: IpAddr) -> Result<bool, InterfaceError> {
        self.wait_until_local(address, Duration::ZERO)
    }

    /// The address that packets to `remote` leave from, unless the sender says otherwise (RFC 6724; `ip route … src`), by the way that the kernel would take now.
    ///
    /// # Errors
    /// As connect(2) would fail: [`io::ErrorKind::NetworkUnreachable`], [`io::ErrorKind::HostUnreachable`], and what a route says that refuses (`ip route
    /// add unreachable`, `prohibit` or `blackhole`).
    pub fn source_to(&mut self, remote: IpAddr) -> io::Result<IpAddr> {
        let request = RouteNetlinkMessage::GetRoute(route_to(IpPrefix::host(remote)));
        let found = Found::parse(&self.netlink.execute(0, request)?);
        let found = found.filter(|found| found.leaves_by.is_some());
        // A route without a source is to one of the machine's own addresses.
        Ok(found.ok_or(Errno::NETUNREACH)?.source.unwrap_or(remote))
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
        let found = Found::parse(&answer).filter(|found| found.leaves_by == Some(index));
        Ok(found.and_then(|found| found.gateway))
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
                Ok(answer) if Found::parse(&answer).is_some_and(|found| found.is_local) => {
                    return Ok(true);
                }
                Ok(_) => {}
                Err(error) if is_no_route(&error) => {}
                Err(error) => return Err(failed("find the way to", &address.to_string())(error)),
            }
            if start.elapsed() >= patience {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(1));
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

/// What an `RTM_NEWROUTE` says of a way.
#[derive(Debug, Default)]
struct Found {
    is_local: bool,
    source: Option<IpAddr>,
    gateway: Option<IpAddr>,
    leaves_by: Option<u32>,
}

impl Found {
    fn parse(answer: &[u8]) -> Option<Self> {
        let header = RouteHeader::parse(answer).ok()?;
        let mut found = Found { is_local: header.kind == RouteType::Local, ..Found::default() };
        for attribute in attributes(answer, BODY_LEN) {
            let context = (header.address_family, header.kind, RouteLwEnCapType::None);
            match RouteAttribute::parse_with_param(&attribute, context) {
                Ok(RouteAttribute::Oif(number)) => found.leaves_by = Some(number),
                Ok(RouteAttribute::Gateway(address)) => found.gateway = plain(&address),
                Ok(RouteAttribute::PrefSource(address)) => found.source = plain(&address),
                _ => {}
            }
        }
        Some(found)
    }
}

fn plain(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

fn is_no_route(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_that_does_not_fit_ends_the_walk() {
        for length in 0..40 {
            for byte in [0, 1, 4, 255] {
                let _ = Found::parse(&vec![byte; length]);
            }
        }
    }

    #[test]
    fn the_machine_reaches_itself_from_its_own_address() {
        let own = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(Interfaces::open().unwrap().source_to(own).unwrap(), own);
    }
}
