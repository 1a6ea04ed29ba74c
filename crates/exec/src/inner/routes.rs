//! The addresses and routes of the private network: they name the source that a connection has outside.

use std::io;
use std::net::IpAddr;

use transom_device::interface::{Interfaces, IpPrefix};
use transom_device::private::PrivateSettings;

use crate::destinations::Destinations;

/// Addresses that are nobody's (RFC 5737, RFC 3849): the way to them is the way to the world.
const ELSEWHERE: [&str; 2] = ["192.0.2.1", "2001:db8::1"];

/// What the kernel of the host has.
pub(super) struct Host {
    addresses: Vec<IpPrefix>,
    interfaces: Interfaces,
}

impl Host {
    /// Of the calling thread's network namespace.
    pub(super) fn look() -> io::Result<Self> {
        let mut interfaces = Interfaces::open()?;
        let addresses = interfaces.local_addresses()?.into_iter().map(|(address, _)| address);
        Ok(Host { addresses: addresses.collect(), interfaces })
    }

    /// The source of connections to an address by the kernel, if there is a way.
    fn source_to(&mut self, remote: IpAddr) -> Option<IpAddr> {
        self.interfaces.source_to(remote).ok()
    }
}

/// Adds them to what is to be opened. `own` are the addresses of Transom's host.
pub(super) fn add(
    settings: &mut PrivateSettings,
    own: &[IpPrefix],
    destinations: &Destinations,
    mut host: Host,
) {
    let usable = |at: &&IpPrefix| {
        let is_scoped = matches!(at.address(), IpAddr::V6(v6) if v6.is_unicast_link_local());
        !at.address().is_loopback() && !is_scoped
    };
    let kernels: Vec<IpPrefix> = host.addresses.iter().filter(usable).copied().collect();
    for at in &kernels {
        if own.iter().all(|one| one.address() != at.address()) {
            settings.bindable.push(*at);
        }
    }
    let mut route = |to: IpPrefix, source: Option<IpAddr>| {
        if source.is_some_and(|source| source.is_ipv4() == to.address().is_ipv4())
            && settings.routes.iter().all(|(other, _)| *other != to)
        {
            settings.routes.push((to, source));
        }
    };
    let first_own = |v4: bool| own.iter().map(IpPrefix::address).find(|at| at.is_ipv4() == v4);
    for to in destinations.not.iter().map(|network| network.prefix) {
        route(to.network(), host.source_to(to.address()));
    }
    for to in destinations.only.iter().map(|network| network.prefix) {
        route(to.network(), first_own(to.address().is_ipv4()));
    }
    // Whatever is not named goes by Transom, unless only named destinations do.
    for (v4, elsewhere) in [true, false].into_iter().zip(ELSEWHERE) {
        let everything = IpPrefix::everything(v4);
        if destinations.only.is_empty() && !own.is_empty() {
            route(everything, first_own(v4));
            continue;
        }
        for at in kernels.iter().filter(|at| at.address().is_ipv4() == v4) {
            route(at.network(), Some(at.address()));
        }
        let source = elsewhere.parse().ok().and_then(|elsewhere| host.source_to(elsewhere));
        route(everything, source);
    }
}
