//! IPv4 through IPv6 sockets: IPv4-mapped addresses and dual-stack listeners (RFC 4291 section 2.5.5.2, RFC 3493 sections 3.7 and 5.3).
//!
//! A host knows a connection by the addresses in its packets. So an IPv4-mapped address, `::ffff:192.0.2.1`, never names a flow or a
//! listener: the stack converts it to the IPv4 address in it. Only sockets show IPv4 connections as mapped addresses; [`mapped`] makes
//! these.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The address in its form in packets: an IPv4-mapped one becomes the IPv4 address in it. Flow label and scope are dropped.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The address as an IPv6 socket shows it: an IPv4 address is mapped.
pub fn mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(v4) => SocketAddr::new(v4.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Whether the address is an IPv4 address in IPv6's clothes.
pub fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

/// The address of a bound socket, and the packets that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// Address and port, as they are in packets.
    pub address: SocketAddr,
    /// It means all addresses of both versions.
    pub is_dual: bool,
}

impl Bound {
    /// A socket at `address`. The unspecified IPv6 address includes IPv4 too, unless the socket is for IPv6 only (`IPV6_V6ONLY`).
    pub fn new(address: SocketAddr, v6_only: bool) -> Self {
        let is_dual = address.ip() == Ipv6Addr::UNSPECIFIED && !v6_only;
        Bound { address: canonical(address), is_dual }
    }

    fn v4(&self) -> Option<Ipv4Addr> {
        match self.address.ip() {
            IpAddr::V4(v4) => Some(v4),
            IpAddr::V6(_) => self.is_dual.then_some(Ipv4Addr::UNSPECIFIED),
        }
    }

    fn v6(&self) -> Option<Ipv6Addr> {
        match self.address.ip() {
            IpAddr::V4(_) => None,
            IpAddr::V6(v6) => Some(v6),
        }
    }

    /// Whether some packet could be for either. Two such sockets cannot both listen: Linux' `EADDRINUSE`.
    pub fn overlaps(&self, other: &Bound) -> bool {
        fn meet<T: PartialEq>(a: Option<T>, b: Option<T>, any: &T) -> bool {
            a.zip(b).is_some_and(|(a, b)| a == b || a == *any || b == *any)
        }
        self.address.port() == other.address.port()
            && (meet(self.v4(), other.v4(), &Ipv4Addr::UNSPECIFIED)
                || meet(self.v6(), other.v6(), &Ipv6Addr::UNSPECIFIED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().expect("an address and a port")
    }

    #[test]
    fn a_mapped_address_is_the_ipv4_address_in_it() {
        assert_eq!(canonical(at("[::ffff:192.0.2.1]:80")), at("192.0.2.1:80"));
        assert_eq!(mapped(at("192.0.2.1:80")), at("[::ffff:192.0.2.1]:80"));
        for same in ["192.0.2.1:80", "[2001:db8::1]:80", "[::]:80", "[::1]:80"] {
            assert_eq!(canonical(at(same)), at(same));
        }
        // Nor does a scope make another address.
        assert_eq!(canonical(at("[fe80::1%3]:80")), at("[fe80::1]:80"));
        assert!(is_mapped(at("[::ffff:0.0.0.0]:1").ip()));
        // The old IPv4-compatible addresses are something else (RFC 4291 section 2.5.5.1).
        assert!(!is_mapped(at("[::192.0.2.1]:1").ip()));
    }

    /// The answers of Linux 6.18 when the second is bound and listens beside the first, both with SO_REUSEADDR.
    #[test]
    fn sockets_overlap_as_on_linux() {
        let places = [
            ("0.0.0.0:80", false),
            ("127.0.0.1:80", false),
            ("[::]:80", false),
            ("[::]:80", true),
            ("[::1]:80", false),
            ("[::ffff:127.0.0.1]:80", false),
            ("[::ffff:0.0.0.0]:80", false),
        ];
        let overlap = [
            [1, 1, 1, 0, 0, 1, 1],
            [1, 1, 1, 0, 0, 1, 1],
            [1, 1, 1, 1, 1, 1, 1],
            [0, 0, 1, 1, 1, 0, 0],
            [0, 0, 1, 1, 1, 0, 0],
            [1, 1, 1, 0, 0, 1, 1],
            [1, 1, 1, 0, 0, 1, 1],
        ];
        let bound = places.map(|(address, v6_only)| Bound::new(at(address), v6_only));
        for (a, row) in bound.iter().zip(overlap) {
            for (b, expected) in bound.iter().zip(row) {
                assert_eq!(a.overlaps(b), expected == 1, "{a:?} and {b:?}");
            }
        }
        let other_port = Bound::new(at("[::]:81"), false);
        assert!(!bound[0].overlaps(&other_port));
        let other_address = Bound::new(at("127.0.0.2:80"), false);
        assert!(!bound[1].overlaps(&other_address));
    }
}
