//! The options of IPv4 and of IPv6, kept apart: an IPv6 socket has both, since its connections may be IPv4's.

use super::names::*;
use super::values::{bool_of, int_in, int_of};
use crate::address::Family;
use crate::errno::{EINVAL, Errno, Result};
use transom_tcp::profile::Profile;

/// What a packet of one version carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Carriage {
    /// Time to live, or hop limit.
    pub(crate) hop_limit: u8,
    /// TOS, or traffic class, without the bits of ECN.
    pub(crate) traffic_class: u8,
    /// What routers report is told at once.
    pub(crate) receive_errors: bool,
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
        };
        Network { v4: carriage, v6: carriage }
    }

    /// What connections of one version have.
    pub(crate) fn of(&self, version: Family) -> Carriage {
        match version {
            Family::V4 => self.v4,
            Family::V6 => self.v6,
        }
    }

    /// Sets an option. `Ok(false)`: there is none by that name.
    pub(super) fn set(&mut self, level: i32, name: i32, value: &[u8]) -> Result<bool> {
        match (level, name) {
            (IPPROTO_IP, IP_TTL) => self.v4.hop_limit = hop_limit_of(value)?,
            (IPPROTO_IPV6, IPV6_UNICAST_HOPS) => self.v6.hop_limit = hop_limit_of(value)?,
            // The two bits of ECN are TCP's own.
            (IPPROTO_IP, IP_TOS) => self.v4.traffic_class = (int_of(value)? & 0xfc) as u8,
            (IPPROTO_IPV6, IPV6_TCLASS) => {
                self.v6.traffic_class = (int_in(value, -1..=255)?.max(0) & 0xfc) as u8;
            }
            (IPPROTO_IP, IP_RECVERR) => self.v4.receive_errors = bool_of(value)?,
            (IPPROTO_IPV6, IPV6_RECVERR) => self.v6.receive_errors = bool_of(value)?,
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
            _ => return None,
        })
    }
}

fn hop_limit_of(value: &[u8]) -> Result<u8> {
    match int_in(value, -1..=255)? {
        -1 => Ok(64),
        0 => Err(Errno(EINVAL)),
        limit => Ok(limit as u8),
    }
}
