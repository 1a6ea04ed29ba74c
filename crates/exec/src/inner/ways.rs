//! The addresses and routes of the private network: they name the source that a connection has outside.

use std::io;
use std::net::IpAddr;

use transom_device::interface::IpPrefix;
use transom_device::private::PrivateBuilder;
use transom_device::routes::{LocalAddress, Routes};

use crate::destinations::Destinations;

/// Addresses that are nobody's (RFC 5737, RFC 3849): the way to them is the way to the world.
const ELSEWHERE: [&str; 2] = ["192.0.2.1", "2001:db8::1"];

/// What the kernel of the host has.
pub(super) struct Host {
    addresses: Vec<LocalAddress>,
    routes: Routes,
}

impl Host {
    /// Of the calling thread's network namespace.
    pub(super) fn look() -> io::Result<Self> {
        let mut routes = Routes::open()?;
        Ok(Host { addresses: routes.addresses()?, routes })
    }

    /// The source of connections to an address by the kernel, if there is a way.
    fn source_to(&mut self, remote: IpAddr) -> Option<IpAddr> {
        self.routes.to(remote).ok().map(|route| route.source)
    }
}

fn prefix(address: IpAddr, length: u8) -> Option<IpPrefix> {
    IpPrefix::new(address, length)
}

/// A network without the bits that name a host in it.
fn network(address: IpAddr, length: u8) -> Option<IpPrefix> {
    let masked: IpAddr = match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            (u32::from(v4) & mask).to_be_bytes().into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            (u128::from(v6) & mask).to_be_bytes().into()
        }
    };
    prefix(masked, length)
}

/// Adds them to what is to be opened. `own` are the addresses of Transom's host.
pub(super) fn add(
    mut builder: PrivateBuilder,
    own: &[IpPrefix],
    destinations: &Destinations,
    mut host: Host,
) -> PrivateBuilder {
    let usable = |at: &&LocalAddress| {
        let is_scoped = matches!(at.address, IpAddr::V6(v6) if v6.is_unicast_link_local());
        !at.address.is_loopback() && !is_scoped
    };
    let kernels: Vec<LocalAddress> = host.addresses.iter().filter(usable).cloned().collect();
    for at in &kernels {
        let is_own = own.iter().any(|one| one.address() == at.address);
        if let Some(bindable) = prefix(at.address, at.prefix).filter(|_| !is_own) {
            builder = builder.bindable(bindable);
        }
    }
    let mut routes: Vec<(IpPrefix, Option<IpAddr>)> = Vec::new();
    let mut route = |to: Option<IpPrefix>, source: Option<IpAddr>| {
        if let (Some(to), Some(_)) = (to, source)
            && to.address().is_ipv4() == source.is_some_and(|source| source.is_ipv4())
            && routes.iter().all(|(other, _)| *other != to)
        {
            routes.push((to, source));
        }
    };
    let first_own = |v4: bool| own.iter().map(IpPrefix::address).find(|at| at.is_ipv4() == v4);
    for one in &destinations.not {
        let (address, length) = one.prefix();
        route(network(address, length), host.source_to(address));
    }
    for one in &destinations.only {
        let (address, length) = one.prefix();
        route(network(address, length), first_own(address.is_ipv4()));
    }
    // Whatever is not named goes by Transom, unless only named destinations do.
    for (v4, elsewhere) in [true, false].into_iter().zip(ELSEWHERE) {
        let everywhere = || {
            let any: IpAddr = if v4 { [0; 4].into() } else { [0; 16].into() };
            prefix(any, 0)
        };
        if destinations.only.is_empty() && !own.is_empty() {
            route(everywhere(), first_own(v4));
            continue;
        }
        for at in kernels.iter().filter(|at| at.address.is_ipv4() == v4) {
            route(network(at.address, at.prefix), Some(at.address));
        }
        let source = elsewhere.parse().ok().and_then(|elsewhere| host.source_to(elsewhere));
        route(everywhere(), source);
    }
    routes.into_iter().fold(builder, |builder, (to, source)| builder.route(to, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_no_bits_of_a_host() {
        let of = |text: &str, length| network(text.parse().unwrap(), length).unwrap().address();
        assert_eq!(of("10.9.8.7", 24), "10.9.8.0".parse::<IpAddr>().unwrap());
        assert_eq!(of("10.9.8.7", 32), "10.9.8.7".parse::<IpAddr>().unwrap());
        assert_eq!(of("10.9.8.7", 0), "0.0.0.0".parse::<IpAddr>().unwrap());
        assert_eq!(of("2001:db8:1::7", 32), "2001:db8::".parse::<IpAddr>().unwrap());
        assert_eq!(of("2001:db8:1::7", 0), "::".parse::<IpAddr>().unwrap());
    }
}
