//! The addresses inside a tunnel, and the peers that have them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::datagram::{Addresses, Refusal};
use crate::interface::IpPrefix;

/// The networks of the one who listens: its own addresses, of which the others are given away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Networks {
    pub(super) own: Addresses,
    /// The lengths of the networks; zero for one that does not exist.
    pub(super) lengths: [u8; 2],
}

impl Networks {
    /// `None` if there are none, or two of the same version.
    pub(super) fn of(addresses: &[IpPrefix]) -> Option<Self> {
        let own = Addresses::of(addresses.iter().map(IpPrefix::address))?;
        let lengths = [true, false].map(|v4| {
            let mut all = addresses.iter();
            all.find(|prefix| prefix.address().is_ipv4() == v4).map_or(0, IpPrefix::prefix_len)
        });
        (!addresses.is_empty()).then_some(Networks { own, lengths })
    }

    /// Addresses for one more, who has wishes; `taken` says which are not to be had.
    pub(super) fn give(
        &self,
        wanted: Addresses,
        mut taken: impl FnMut(IpAddr) -> bool,
    ) -> Result<Addresses, Refusal> {
        let [v4, v6] = self.lengths;
        let to_v4 = |bits: u128| Ipv4Addr::from_bits(bits as u32);
        let of_v4 = |address: Ipv4Addr| u128::from(address.to_bits());
        // The last address of an IPv4 network is its broadcast address (RFC 919), but for two hosts (RFC 3021).
        let hosts = |own| Hosts { own: of_v4(own), length: v4, bits: 32, last_is_host: v4 >= 31 };
        let v4 =
            choose(self.own.v4.map(hosts), wanted.v4.map(of_v4), |bits| taken(to_v4(bits).into()))?;
        let hosts = |own| Hosts { own, length: v6, bits: 128, last_is_host: true };
        let own = self.own.v6.map(Ipv6Addr::to_bits);
        let v6 = choose(own.map(hosts), wanted.v6.map(Ipv6Addr::to_bits), |bits| {
            taken(Ipv6Addr::from_bits(bits).into())
        })?;
        Ok(Addresses { v4: v4.map(to_v4), v6: v6.map(Ipv6Addr::from_bits) })
    }
}

/// One of these hosts, the one that is wanted if there is a wish. `None` where there is neither a network nor a wish.
fn choose(
    hosts: Option<Hosts>,
    wanted: Option<u128>,
    mut taken: impl FnMut(u128) -> bool,
) -> Result<Option<u128>, Refusal> {
    match (hosts, wanted) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Refusal::Address),
        (Some(hosts), Some(wanted)) => {
            let free = hosts.is_host(wanted) && !taken(wanted);
            if free { Ok(Some(wanted)) } else { Err(Refusal::Address) }
        }
        (Some(hosts), None) => {
            let free = hosts.all().find(|host| !taken(*host));
            free.map(Some).ok_or(Refusal::Full)
        }
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

    /// The first of them: more than there can be peers, and no more than that.
    fn all(&self) -> impl Iterator<Item = u128> {
        let mask = self.mask();
        let most = mask.min(super::peers::MOST as u128 + 4);
        let hosts = (0..=most).map(move |host| self.own & !mask | host);
        hosts.filter(|host| self.is_host(*host))
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
        let wishes = Addresses::of(wanted.iter().map(|text| text.parse().unwrap())).unwrap();
        let taken: Vec<IpAddr> = taken.iter().map(|text| text.parse().unwrap()).collect();
        let given = networks(own).unwrap().give(wishes, |address| taken.contains(&address))?;
        Ok(given.each().map(|address| address.to_string()).collect())
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
