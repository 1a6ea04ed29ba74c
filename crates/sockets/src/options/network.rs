//! The options of IPv4 and of IPv6, kept apart: an IPv6 socket has both, since its connections may be IPv4's.

use super::values::{bool_of, int_in, int_of, ip_int_of};
use crate::address::Family;
use crate::errno::{Errno, Result};
use libc::{
    EINVAL, IP_MTU_DISCOVER, IP_RECVERR, IP_TOS, IP_TTL, IPPROTO_IP, IPPROTO_IPV6,
    IPV6_MTU_DISCOVER, IPV6_RECVERR, IPV6_TCLASS, IPV6_UNICAST_HOPS,
};
use transom_stack::SocketOption;
use transom_tcp::{PathMtuDiscovery, Profile, Setting};

/// The options of one IP version.
pub(super) fn options_of(version: Family) -> [(i32, i32); 4] {
    match version {
        Family::V4 => [IP_TTL, IP_TOS, IP_RECVERR, IP_MTU_DISCOVER].map(|name| (IPPROTO_IP, name)),
        Family::V6 => [IPV6_UNICAST_HOPS, IPV6_TCLASS, IPV6_RECVERR, IPV6_MTU_DISCOVER]
            .map(|name| (IPPROTO_IPV6, name)),
    }
}

/// The header fields of packets of one IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Carriage {
    /// Time to live, or hop limit.
    hop_limit: u8,
    /// TOS, or traffic class, without the bits of ECN.
    traffic_class: u8,
    /// Errors that routers report are told at once.
    receive_errors: bool,
    /// Whether packets may be fragmented, and whom to believe about their size.
    discovery: PathMtuDiscovery,
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

    /// What an option means for connections of one IP version: those of the other version have no such option.
    pub(super) fn meaning(&self, level: i32, name: i32, version: Family) -> Option<SocketOption> {
        let carriage = match (level, version) {
            (IPPROTO_IP, Family::V4) => self.v4,
            (IPPROTO_IPV6, Family::V6) => self.v6,
            _ => return None,
        };
        Some(match (level, name) {
            (IPPROTO_IP, IP_TTL) | (IPPROTO_IPV6, IPV6_UNICAST_HOPS) => {
                SocketOption::TimeToLive(carriage.hop_limit.into())
            }
            (IPPROTO_IP, IP_TOS) | (IPPROTO_IPV6, IPV6_TCLASS) => {
                SocketOption::TypeOfService(carriage.traffic_class.into())
            }
            (IPPROTO_IP, IP_RECVERR) | (IPPROTO_IPV6, IPV6_RECVERR) => {
                Setting::SoftErrors(carriage.receive_errors).into()
            }
            (IPPROTO_IP, IP_MTU_DISCOVER) | (IPPROTO_IPV6, IPV6_MTU_DISCOVER) => {
                Setting::PathMtuDiscovery(carriage.discovery).into()
            }
            _ => return None,
        })
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
