//! Which configurations of a host make sense.

use crate::harness::*;
use std::net::IpAddr;
use std::sync::Arc;
use transom_stack::{Stack, StackConfig, StackConfigError};
use transom_tcp::time::Instant;
use transom_tcp::{Profile, ProfileError};

fn refusal(change: impl FnOnce(&mut StackConfig)) -> Option<StackConfigError> {
    let mut config = StackConfig::new(vec![(HOST.into(), 24)]);
    change(&mut config);
    Stack::new(config, Instant::ZERO).err()
}

/// [RFC1122-3.2.1.3-5] [RFC1122-3.2.2.9-1] [RFC1122-3.2.2.9-2] [RFC1122-3.2.2.9-8]
#[test]
fn addresses_are_single_hosts_with_a_prefix_that_fits() {
    assert_eq!(refusal(|_| ()), None);
    assert_eq!(refusal(|config| config.addresses.clear()), Some(StackConfigError::NoAddress));
    for (address, prefix) in [("10.0.0.2", 33), ("fd00::2", 129)] {
        let address: IpAddr = address.parse().unwrap();
        let expected = StackConfigError::Prefix(address, prefix);
        assert_eq!(refusal(|config| config.addresses.push((address, prefix))), Some(expected));
        assert_eq!(refusal(|config| config.addresses.push((address, prefix - 1))), None);
    }
    for address in
        ["0.0.0.0", "255.255.255.255", "224.0.0.1", "240.0.0.1", "::", "ff02::1", "::ffff:10.0.0.2"]
    {
        let address: IpAddr = address.parse().unwrap();
        let expected = Some(StackConfigError::NotUnicast(address));
        assert_eq!(refusal(|config| config.addresses.push((address, 8))), expected);
    }
    // The broadcast address of a network, unless it has no more than two hosts (RFC 3021).
    for (prefix, allowed) in [(8, false), (24, false), (30, false), (31, true), (32, true)] {
        let address: IpAddr = "10.255.255.255".parse().unwrap();
        let expected = (!allowed).then_some(StackConfigError::NotUnicast(address));
        assert_eq!(refusal(|config| config.addresses.push((address, prefix))), expected);
    }
}

/// RFC 791 wants 68 bytes of every link, RFC 8200 1280; a length field has sixteen bits.
/// [RFC8200-5-1]
#[test]
fn the_mtu_is_what_its_version_allows() {
    for (mtu, v6, allowed) in [
        (67, false, false),
        (68, false, true),
        (65_535, false, true),
        (65_536, false, false),
        (1_279, true, false),
        (1_280, true, true),
    ] {
        let refused = refusal(|config| {
            config.mtu = mtu;
            if v6 {
                config.addresses.push((HOST6.into(), 64));
            }
        });
        let least = if v6 { 1_280 } else { 68 };
        assert_eq!(refused, (!allowed).then_some(StackConfigError::Mtu(mtu, least)));
    }
}

#[test]
fn there_are_ports_to_choose_from_and_a_profile_that_works() {
    #[expect(clippy::reversed_empty_ranges, reason = "it is what is refused")]
    let ranges = [0..=10, 10..=9];
    for range in ranges {
        assert_eq!(refusal(|config| config.ephemeral_ports = range), Some(StackConfigError::Ports));
    }
    assert_eq!(refusal(|config| config.ephemeral_ports = 65_535..=65_535), None);
    let broken = Profile::classic().with_dscp(64);
    let expected = StackConfigError::Profile(ProfileError::Dscp(64));
    assert_eq!(refusal(|config| config.profile = Arc::new(broken)), Some(expected));
}
