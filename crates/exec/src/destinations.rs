//! Which destinations are reached by Transom, and which by the kernel.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use transom_device::interface::IpPrefix;

/// A destination: an address, or all with the same first bits, and one port or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    pub(crate) prefix: IpPrefix,
    port: Option<u16>,
}

impl Network {
    /// Whether an address and a port lie in it.
    fn contains(&self, address: IpAddr, port: u16) -> bool {
        self.port.is_none_or(|own| own == port) && self.prefix.contains(address.to_canonical())
    }
}

impl FromStr for Network {
    type Err = String;

    /// Reads `192.0.2.1`, `192.0.2.0/24`, `192.0.2.1:443`, `2001:db8::/32` or `[2001:db8::1]:443`.
    fn from_str(text: &str) -> Result<Self, String> {
        let alone = |at: IpAddr| IpPrefix::new(at, if at.is_ipv4() { 32 } else { 128 });
        let (prefix, port) = match text.parse::<SocketAddr>() {
            Ok(socket) => (alone(socket.ip().to_canonical()), Some(socket.port())),
            Err(_) => (text.parse().ok().or_else(|| alone(text.parse().ok()?)), None),
        };
        match prefix {
            Some(prefix) => Ok(Network { prefix, port }),
            None => Err(format!("`{text}` is no address, ADDRESS/LENGTH or ADDRESS:PORT")),
        }
    }
}

/// The choice between Transom and the kernel. Loopback addresses are always the kernel's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destinations {
    /// If there are any, only these are reached by Transom.
    pub only: Vec<Network>,
    /// These are reached by the kernel.
    pub not: Vec<Network>,
}

impl Destinations {
    /// Whether the destination is reached by Transom.
    pub(crate) fn by_transom(&self, address: IpAddr, port: u16) -> bool {
        let any = |list: &[Network]| list.iter().any(|network| network.contains(address, port));
        !address.to_canonical().is_loopback()
            && (self.only.is_empty() || any(&self.only))
            && !any(&self.not)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_transom(only: &[&str], not: &[&str], address: &str, port: u16) -> bool {
        let list = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let destinations = Destinations { only: list(only), not: list(not) };
        destinations.by_transom(address.parse().unwrap(), port)
    }

    #[test]
    fn loopback_addresses_are_reached_by_the_kernel() {
        for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(!by_transom(&[], &[], address, 80), "{address}");
            assert!(!by_transom(&[address], &[], address, 80), "{address}");
        }
        assert!(by_transom(&[], &[], "192.0.2.1", 80));
        assert!(by_transom(&[], &[], "2001:db8::1", 80));
    }

    #[test]
    fn the_lists_only_and_not_choose_the_destinations() {
        let only = ["192.0.2.0/24", "2001:db8::/32"];
        assert!(by_transom(&only, &[], "192.0.2.9", 1));
        assert!(by_transom(&only, &[], "::ffff:192.0.2.9", 1));
        assert!(by_transom(&only, &[], "2001:db8:1::1", 1));
        assert!(!by_transom(&only, &[], "192.0.3.9", 1));
        assert!(!by_transom(&only, &["192.0.2.9"], "192.0.2.9", 1));
        assert!(by_transom(&only, &["192.0.2.9:22"], "192.0.2.9", 80));
        assert!(!by_transom(&only, &["192.0.2.9:22"], "192.0.2.9", 22));
        assert!(!by_transom(&[], &["[2001:db8::1]:443"], "2001:db8::1", 443));
        assert!(!by_transom(&[], &["0.0.0.0/0"], "198.51.100.1", 443));
        assert!(by_transom(&[], &["0.0.0.0/0"], "2001:db8::1", 443));
    }

    #[test]
    fn malformed_destinations_are_refused() {
        for text in
            ["", "example", "192.0.2.1/33", "2001:db8::/129", "192.0.2.1/", "192.0.2.1:99999"]
        {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
