//! Addresses with the length of a prefix.

use std::fmt;
use std::net::{AddrParseError, IpAddr, Ipv4Addr, Ipv6Addr};
use std::num::ParseIntError;
use std::str::FromStr;

/// An address with the length of the network prefix it lies in, as in `192.0.2.1/24` (RFC 4632,
/// section 3.1; RFC 4291, section 2.3). For an interface address the host bits say which host; for
/// a route they are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpPrefix {
    address: IpAddr,
    length: u8,
}

impl IpPrefix {
    /// `address` in a network of `length` prefix bits; `None` if the family has fewer bits than
    /// that.
    pub const fn new(address: IpAddr, length: u8) -> Option<Self> {
        if length > bits(address) { None } else { Some(IpPrefix { address, length }) }
    }

    /// One address alone.
    pub(crate) const fn host(address: IpAddr) -> Self {
        IpPrefix { address, length: bits(address) }
    }

    /// All addresses of IPv4, or of IPv6.
    pub const fn everything(v4: bool) -> Self {
        let address =
            if v4 { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        IpPrefix { address, length: 0 }
    }

    /// The network itself: its host bits are zero.
    pub fn network(self) -> Self {
        let host_bits = u32::from(bits(self.address) - self.length);
        let address = match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::from(Ipv4Addr::from_bits(v4.to_bits() & mask))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::from(Ipv6Addr::from_bits(v6.to_bits() & mask))
            }
        };
        IpPrefix { address, length: self.length }
    }

    /// The first address of the network that a host may have and nobody has yet, with the network's length. The network's own address is no
    /// host's, and with IPv4 neither is the last one, but where there are only two (RFC 3021).
    pub(crate) fn first_host(self, is_taken: impl Fn(IpAddr) -> bool) -> Option<Self> {
        let host_bits = u32::from(bits(self.address) - self.length);
        let last = u128::MAX.checked_shl(host_bits).map_or(u128::MAX, |mask| !mask);
        let (first, last) = match self.address {
            _ if host_bits == 1 => (0, 1),
            IpAddr::V4(_) => (1, last.saturating_sub(1)),
            IpAddr::V6(_) => (1, last),
        };
        // Few addresses are taken, so few are tried.
        (first..=last).take(256).find_map(|host| {
            let address = match self.network().address {
                IpAddr::V4(v4) => {
                    IpAddr::from(Ipv4Addr::from_bits(v4.to_bits() | u32::try_from(host).ok()?))
                }
                IpAddr::V6(v6) => IpAddr::from(Ipv6Addr::from_bits(v6.to_bits() | host)),
            };
            (!is_taken(address)).then_some(IpPrefix { address, length: self.length })
        })
    }

    /// Whether an address is one of the network's.
    pub fn contains(&self, address: IpAddr) -> bool {
        let other = IpPrefix::new(address, self.length);
        other.is_some_and(|other| other.network() == self.network())
    }

    /// The address, host bits included.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// The number of leading bits that name the network.
    pub const fn prefix_len(&self) -> u8 {
        self.length
    }
}

const fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

impl fmt::Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Why a text is not an address with a prefix length.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParsePrefixError {
    /// There is no `/`.
    #[error("an address needs a prefix length, as in 192.0.2.1/24")]
    NoLength,
    /// The text before the `/` is not an IP address.
    #[error(transparent)]
    Address(#[from] AddrParseError),
    /// The text after the `/` is not a prefix length.
    #[error("the prefix length is not a number from 0 to 128")]
    Length(#[from] ParseIntError),
    /// The prefix is longer than the address.
    #[error("the prefix length {0} is more than the address has bits")]
    TooLong(u8),
}

impl FromStr for IpPrefix {
    type Err = ParsePrefixError;

    fn from_str(text: &str) -> Result<Self, ParsePrefixError> {
        let (address, length) = text.split_once('/').ok_or(ParsePrefixError::NoLength)?;
        let length = length.parse()?;
        IpPrefix::new(address.parse()?, length).ok_or(ParsePrefixError::TooLong(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_parsed_and_shown() {
        let prefix: IpPrefix = "192.0.2.1/24".parse().unwrap();
        assert_eq!(prefix.address(), IpAddr::from([192, 0, 2, 1]));
        assert_eq!(prefix.prefix_len(), 24);
        assert_eq!(prefix.to_string(), "192.0.2.1/24");
        assert_eq!("2001:db8::1/64".parse::<IpPrefix>().unwrap().to_string(), "2001:db8::1/64");
    }

    #[test]
    fn a_network_has_its_own_addresses() {
        let contains = |prefix: &str, address: &str| {
            prefix.parse::<IpPrefix>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("192.0.2.1/24", "192.0.2.255") && !contains("192.0.2.1/24", "192.0.3.0"));
        assert!(contains("192.0.2.1/32", "192.0.2.1") && !contains("192.0.2.1/32", "192.0.2.2"));
        assert!(contains("192.0.2.1/0", "10.0.0.1") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("2001:db8::1/64", "2001:db8::ffff") && contains("::/0", "2001:db8::1"));
        assert!(!contains("2001:db8::1/128", "2001:db8::2"));
    }

    #[test]
    fn a_network_has_no_bits_of_a_host() {
        let network = |prefix: &str| prefix.parse::<IpPrefix>().unwrap().network().to_string();
        assert_eq!(network("10.9.8.7/24"), "10.9.8.0/24");
        assert_eq!(network("10.9.8.7/32"), "10.9.8.7/32");
        assert_eq!(network("10.9.8.7/0"), IpPrefix::everything(true).to_string());
        assert_eq!(network("2001:db8:1::7/32"), "2001:db8::/32");
        assert_eq!(network("2001:db8:1::7/0"), IpPrefix::everything(false).to_string());
    }

    #[test]
    fn wrong_prefixes_say_why() {
        let parse = |text: &str| text.parse::<IpPrefix>().unwrap_err();
        assert_eq!(parse("192.0.2.1"), ParsePrefixError::NoLength);
        assert_eq!(parse("192.0.2.1/33"), ParsePrefixError::TooLong(33));
        assert_eq!(parse("2001:db8::1/129"), ParsePrefixError::TooLong(129));
        assert!(matches!(parse("192.0.2/24"), ParsePrefixError::Address(_)));
        assert!(matches!(parse("192.0.2.1/x"), ParsePrefixError::Length(_)));
    }
}
