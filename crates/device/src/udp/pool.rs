//! The addresses inside a tunnel, and the peers that have them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::datagram::{Addresses, Refusal};
use crate::interface::IpPrefix;

/// The networks of the one who listens: its own addresses, of which the others are given away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Networks {
    v4: Option<(Ipv4Addr, u8)>,
    v6: Option<(Ipv6Addr, u8)>,
}

impl Networks {
    /// `None` if there are none, or two of the same version.
    pub(super) fn of(addresses: &[IpPrefix]) -> Option<Self> {
        let mut networks = Networks::default();
        for prefix in addresses {
            let length = prefix.prefix_len();
            let before = match prefix.address() {
                IpAddr::V4(v4) => networks.v4.replace((v4, length)).is_some(),
                IpAddr::V6(v6) => networks.v6.replace((v6, length)).is_some(),
            };
            if before {
                return None;
            }
        }
        (!addresses.is_empty()).then_some(networks)
    }

    /// The addresses without their networks.
    pub(super) fn own(&self) -> Addresses {
        Addresses { v4: self.v4.map(|(v4, _)| v4), v6: self.v6.map(|(v6, _)| v6) }
    }

    /// The lengths of the networks; zero for one that does not exist.
    pub(super) fn lengths(&self) -> [u8; 2] {
        [self.v4.map_or(0, |(_, length)| length), self.v6.map_or(0, |(_, length)| length)]
    }

    /// Addresses for one more, who has wishes; `taken` says which are not to be had.
    pub(super) fn give(
        &self,
        wanted: Addresses,
        mut taken: impl FnMut(IpAddr) -> bool,
    ) -> Result<Addresses, Refusal> {
        let v4 = match (self.v4, wanted.v4) {
            (None, None) => None,
            (None, Some(_)) => return Err(Refusal::Address),
            (Some((own, length)), wanted) => {
                let (own, bits) = (u128::from(own.to_bits()), 32);
                let wanted = wanted.map(|v4| u128::from(v4.to_bits()));
                let to_v4 = |bits: u128| Ipv4Addr::from_bits(bits as u32);
                // The last address of an IPv4 network is its broadcast address (RFC 919), but for two hosts (RFC 3021).
                let last_is_host = length >= 31;
                let hosts = Hosts { own, length, bits, last_is_host };
                Some(to_v4(hosts.choose(wanted, |bits| taken(to_v4(bits).into()))?))
            }
        };
        let v6 = match (self.v6, wanted.v6) {
            (None, None) => None,
            (None, Some(_)) => return Err(Refusal::Address),
            (Some((own, length)), wanted) => {
                let hosts = Hosts { own: own.to_bits(), length, bits: 128, last_is_host: true };
                let wanted = wanted.map(Ipv6Addr::to_bits);
                let taken = |bits| taken(Ipv6Addr::from_bits(bits).into());
                Some(Ipv6Addr::from_bits(hosts.choose(wanted, taken)?))
            }
        };
        Ok(Addresses { v4, v6 })
    }
}

/// The hosts of one network, as numbers.
struct Hosts {
    own: u128,
    length: u8,
    bits: u8,
    last_is_host: bool,
}

impl Hosts {
    /// The bits of an address that name the host.
    fn mask(&self) -> u128 {
        let free = u32::from(self.bits.saturating_sub(self.length));
        1u128.checked_shl(free).map_or(u128::MAX, |end| end - 1)
    }

    fn is_host(&self, address: u128) -> bool {
        let mask = self.mask();
        let host = address & mask;
        // The first address stands for the network, or for any of its routers (RFC 4291 section 2.6.1).
        let first = host == 0 && mask > 1;
        let last = host == mask && !self.last_is_host;
        address & !mask == self.own & !mask && address != self.own && !first && !last
    }

    fn choose(
        &self,
        wanted: Option<u128>,
        mut taken: impl FnMut(u128) -> bool,
    ) -> Result<u128, Refusal> {
        if let Some(wanted) = wanted {
            let free = self.is_host(wanted) && !taken(wanted);
            return if free { Ok(wanted) } else { Err(Refusal::Address) };
        }
        let network = self.own & !self.mask();
        // More than there can be peers, and no more than that.
        let most = self.mask().min(super::peers::MOST as u128 + 4);
        let mut hosts = (0..=most).map(|host| network | host);
        hosts.find(|host| self.is_host(*host) && !taken(*host)).ok_or(Refusal::Full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(addresses: &[&str]) -> Option<Networks> {
        let parsed: Vec<IpPrefix> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        Networks::of(&parsed)
    }

    fn give(own: &[&str], wanted: &[&str], taken: &[&str]) -> Result<Vec<String>, Refusal> {
        let mut wishes = Addresses::default();
        for wanted in wanted {
            match wanted.parse().unwrap() {
                IpAddr::V4(v4) => wishes.v4 = Some(v4),
                IpAddr::V6(v6) => wishes.v6 = Some(v6),
            }
        }
        let taken: Vec<IpAddr> = taken.iter().map(|text| text.parse().unwrap()).collect();
        let given = networks(own).unwrap().give(wishes, |address| taken.contains(&address))?;
        let texts = [given.v4.map(|v4| v4.to_string()), given.v6.map(|v6| v6.to_string())];
        Ok(texts.into_iter().flatten().collect())
    }

    #[test]
    fn the_lowest_free_address_is_given() {
        let own = ["10.9.0.1/24", "fd09::1/64"];
        assert_eq!(give(&own, &[], &[]).unwrap(), ["10.9.0.2", "fd09::2"]);
        assert_eq!(give(&own, &[], &["10.9.0.2"]).unwrap(), ["10.9.0.3", "fd09::2"]);
        assert_eq!(give(&["10.9.0.7/24"], &[], &[]).unwrap(), ["10.9.0.1"]);
        assert_eq!(give(&["10.9.0.0/31"], &[], &[]).unwrap(), ["10.9.0.1"]);
        assert_eq!(give(&["10.9.0.1/30"], &[], &["10.9.0.2"]), Err(Refusal::Full));
        assert_eq!(give(&["10.9.0.1/32"], &[], &[]), Err(Refusal::Full));
        assert_eq!(give(&["fd09::1/128"], &[], &[]), Err(Refusal::Full));
        assert_eq!(give(&["0.0.0.1/0"], &[], &[]).unwrap(), ["0.0.0.2"]);
    }

    #[test]
    fn wishes_are_granted_or_refused() {
        let own = ["10.9.0.1/24"];
        assert_eq!(give(&own, &["10.9.0.77"], &[]).unwrap(), ["10.9.0.77"]);
        for wanted in ["10.9.0.1", "10.9.0.0", "10.9.0.255", "10.9.1.2", "192.0.2.1", "fd09::2"] {
            assert_eq!(give(&own, &[wanted], &[]), Err(Refusal::Address), "{wanted}");
        }
        assert_eq!(give(&own, &["10.9.0.7"], &["10.9.0.7"]), Err(Refusal::Address));
    }

    #[test]
    fn two_of_a_version_are_one_too_many() {
        assert!(networks(&["10.9.0.1/24", "10.8.0.1/24"]).is_none());
        assert!(networks(&[]).is_none());
    }
}
