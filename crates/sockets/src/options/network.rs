//! The options of IPv4 and of IPv6, kept apart: an IPv6 socket has both, since its connections may be IPv4's.

use super::names::*;
use super::values::{bool_of, int_in, int_of, ip_int_of};
use crate::address::Family;
use crate::errno::{EINVAL, Errno, Result};
use transom_tcp::path_mtu::PathMtuDiscovery;
use transom_tcp::profile::Profile;

/// The header fields of packets of one IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carriage {
    /// Time to live, or hop limit.
    pub(crate) hop_limit: u8,
    /// TOS, or traffic class, without the bits of ECN.
    pub(crate) traffic_class: u8,
    /// Errors that routers report are told at once.
    pub(crate) receive_errors: bool,
    /// Whether packets may be fragmented, and whom to believe about their size.
    pub(crate) discovery: PathMtuDiscovery,
}

/// The settings for both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    v4: Carriage,
    v6: Carriage,
}

impl Network {
    pub(super) fn of_profile(profile: &Profile) -> Self {
        let carriage = Carriage {
            hop_limit: profile.hop_limit,
            traffic_class: profile.dscp << 2,
            receive_errors: profile.report_soft_errors,
            discovery: profile.path_mtu_discovery,
        };
        Network { v4: carriage, v6: carriage }
    }

    /// The settings of connections of one IP version.
    pub(crate) fn of(&self, version: Family) -> Carriage {
        match version {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }

    /// Sets an option. `Ok(false)`: there is none by that name.
    pub(super) fn set(&mut self, level: i32, name: i32, value: &[u8]) -> Result<bool> {
        match (level, name) {
            (IPPROTO_IP, IP_TTL) => self.v4.hop_limit = hop_limit_of(ip_int_of(value))?,
            (IPPROTO_IPV6, IPV6_UNICAST_HOPS) => self.v6.hop_limit = hop_limit_of(int_of(value)?)?,
            // The two bits of ECN are TCP's own.
            (IPPROTO_IP, IP_TOS) => self.v4.traffic_class = (ip_int_of(value) & 0xfc) as u8,
            (IPPROTO_IPV6, IPV6_TCLASS) => {
                self.v6.traffic_class = (int_in(value, -1..=255)?.max(0) & 0xfc) as u8;
            }
            (IPPROTO_IP, IP_RECVERR) => self.v4.receive_errors = ip_int_of(value) != 0,
            (IPPROTO_IPV6, IPV6_RECVERR) => self.v6.receive_errors = bool_of(value)?,
            (IPPROTO_IP, IP_MTU_DISCOVER) => self.v4.discovery = discovery_of(ip_int_of(value))?,
            (IPPROTO_IPV6, IPV6_MTU_DISCOVER) => self.v6.discovery = discovery_of(int_of(value)?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn get(&self, level: i32, name: i32) -> Option<i32> {
        Some(match (level, name) {
            (IPPROTO_IP, IP_TTL) => self.v4.hop_limit.into(),
            (IPPROTO_IPV6, IPV6_UNICAST_HOPS) => self.v6.hop_limit.into(),
            (IPPROTO_IP, IP_TOS) => self.v4.traffic_class.into(),
            (IPPROTO_IPV6, IPV6_TCLASS) => self.v6.traffic_class.into(),
            (IPPROTO_IP, IP_RECVERR) => self.v4.receive_errors.into(),
            (IPPROTO_IPV6, IPV6_RECVERR) => self.v6.receive_errors.into(),
            (IPPROTO_IP, IP_MTU_DISCOVER) => number_of(self.v4.discovery),
            (IPPROTO_IPV6, IPV6_MTU_DISCOVER) => number_of(self.v6.discovery),
            _ => return None,
        })
    }
}

fn hop_limit_of(value: i32) -> Result<u8> {
    match value {
        -1 => Ok(64),
        1..=255 => Ok(value as u8),
        _ => Err(Errno(EINVAL)),
    }
}

/// By number.
const DISCOVERY: [PathMtuDiscovery; 6] = [
    PathMtuDiscovery::Dont,
    PathMtuDiscovery::Want,
    PathMtuDiscovery::Do,
    PathMtuDiscovery::Probe,
    PathMtuDiscovery::Interface,
    PathMtuDiscovery::Omit,
];

fn discovery_of(value: i32) -> Result<PathMtuDiscovery> {
    let number = usize::try_from(value).ok();
    number.and_then(|number| DISCOVERY.get(number)).copied().ok_or(Errno(EINVAL))
}

fn number_of(choice: PathMtuDiscovery) -> i32 {
    DISCOVERY.iter().position(|&other| other == choice).unwrap_or(0) as i32
}
