//! Which destinations are reached by Transom, and which by the kernel.

use std::net::IpAddr;
use std::str::FromStr;

use transom_device::interface::IpPrefix;

/// A destination: an address, or all with the same first bits, and one port or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    length: u8,
    port: Option<u16>,
}

impl Network {
    /// Its addresses, whatever the port.
    pub(crate) fn prefix(&self) -> Option<IpPrefix> {
        IpPrefix::new(self.address, self.length)
    }

    /// Whether an address and a port lie in it.
    fn contains(&self, address: IpAddr, port: u16) -> bool {
        if self.port.is_some_and(|own| own != port) {
            return false;
        }
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differ = u32::from(own) ^ u32::from(other);
                differ.leading_zeros() >= u32::from(self.length)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differ = u128::from(own) ^ u128::from(other);
                differ.leading_zeros() >= u32::from(self.length)
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    /// Reads `192.0.2.1`, `192.0.2.0/24`, `192.0.2.1:443`, `2001:db8::/32` or `[2001:db8::1]:443`.
    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("`{text}` is no address, ADDRESS/LENGTH or ADDRESS:PORT");
        if let Ok(socket) = text.parse::<std::net::SocketAddr>() {
            let address = socket.ip().to_canonical();
            return Ok(Network {
                address,
                length: full_length(address),
                port: Some(socket.port()),
            });
        }
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let length = match length {
            Some(length) => {
                length.parse().ok().filter(|&l| l <= full_length(address)).ok_or_else(invalid)?
            }
            None => full_length(address),
        };
        Ok(Network { address, length, port: None })
    }
}

fn full_length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
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
