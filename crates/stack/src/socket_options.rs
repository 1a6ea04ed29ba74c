//! The options of a socket: one type for all who set them, with the checks of their values.
//!
//! A program sets an option before it has a connection or afterwards. [`SocketOptions`] keeps it until then,
//! [`SocketOption::shape`] brings it into the profile of a connection that is opened later, and [`Stack::set_option`] gives it to a live one.

use crate::stack::{ConnectionId, SocketError, Stack};
use alloc::vec::Vec;
use core::mem::discriminant;
use transom_tcp::UnitChoice;
use transom_tcp::congestion::CongestionChoice;
use transom_tcp::time::Instant;
use transom_tcp::{MAX_WINDOW, Profile, ReceiveWindowConfig, Setting};

/// An option with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketOption {
    /// A setting of the connection itself. A [user timeout](Setting::UserTimeout) of zero is not possible. The host itself sets the peer's address and
    /// the largest super-segment.
    Setting(Setting),
    /// The time to live, or hop limit, of the connection's packets, 1 to 255 (`IP_TTL`, `IPV6_UNICAST_HOPS`).
    TimeToLive(u32),
    /// The type of service of its packets, 0 to 255 (`IP_TOS`, `IPV6_TCLASS`). The code point of differentiated services is in the
    /// upper six bits. The lower two are TCP's own. Packets of different code points may overtake each other.
    TypeOfService(u32),
    /// The congestion controller (`TCP_CONGESTION`). Pacing comes with one that needs it.
    Congestion(CongestionChoice),
}

impl From<Setting> for SocketOption {
    fn from(setting: Setting) -> Self {
        SocketOption::Setting(setting)
    }
}

impl SocketOption {
    /// Checks the value.
    ///
    /// # Errors
    /// [`SocketError::BadOption`] if it is not possible.
    pub fn check(&self) -> Result<(), SocketError> {
        let wrong = match self {
            SocketOption::TimeToLive(ttl) if !(1..=255).contains(ttl) => {
                "a time to live is 1 to 255"
            }
            SocketOption::TypeOfService(256..) => "a type of service is 0 to 255",
            SocketOption::Setting(Setting::UserTimeout(Some(span))) if span.is_zero() => {
                "a timeout of zero is not possible"
            }
            SocketOption::Setting(Setting::MaxSuperSegment(_) | Setting::Remote(_)) => {
                "the host sets this by itself"
            }
            _ => return Ok(()),
        };
        Err(SocketError::BadOption(wrong))
    }

    /// Brings the option into a profile, so that a connection has it from its first packet on. Returns whether a profile has such an option.
    pub fn shape(&self, profile: &mut Profile) -> bool {
        match self {
            SocketOption::TimeToLive(ttl) => profile.hop_limit = byte(*ttl),
            SocketOption::TypeOfService(tos) => profile.dscp = byte(*tos) >> 2,
            SocketOption::Congestion(choice) => profile.choose_congestion(choice.clone()),
            SocketOption::Setting(setting) => return shape_by(*setting, profile),
        }
        true
    }

    /// Whether both are values of the same option.
    fn is_like(&self, other: &SocketOption) -> bool {
        match (self, other) {
            (SocketOption::Setting(one), SocketOption::Setting(other)) => {
                discriminant(one) == discriminant(other)
            }
            _ => discriminant(self) == discriminant(other),
        }
    }
}

/// A checked value that fits a byte.
fn byte(value: u32) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}

/// [`SocketOption::shape`] for the settings.
fn shape_by(setting: Setting, profile: &mut Profile) -> bool {
    match setting {
        Setting::NoDelay(on) => profile.nodelay = on,
        Setting::KeepAlive(choice) => profile.keep_alive = choice,
        Setting::UserTimeout(span) => profile.user_timeout = span,
        Setting::FinWait2(span) => profile.fin_wait_2 = span,
        Setting::PathMtuDiscovery(choice) => profile.path_mtu_discovery = choice,
        Setting::SoftErrors(on) => profile.report_soft_errors = on,
        Setting::SendBuffer(bytes) => {
            (profile.send_buffer, profile.max_send_buffer) = (bytes, bytes);
        }
        Setting::ReceiveBuffer(bytes) => {
            let most = if profile.options.window_scale { MAX_WINDOW } else { 65_535 };
            let bytes = bytes.min(most);
            profile.flow = profile.flow.with_buffer(ReceiveWindowConfig::new(bytes, bytes));
        }
        _ => return false,
    }
    true
}

/// The options that a socket has before it has a connection, and that a listener's connections inherit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions(Vec<SocketOption>);

impl SocketOptions {
    /// Sets an option. It takes the place of an earlier value.
    pub fn set(&mut self, option: impl Into<SocketOption>) {
        let option = option.into();
        self.0.retain(|other| !other.is_like(&option));
        self.0.push(option);
    }

    /// The options that are set, in the order in which they were.
    pub fn iter(&self) -> core::slice::Iter<'_, SocketOption> {
        self.0.iter()
    }
}

impl Stack {
    /// Sets an option of a connection.
    ///
    /// # Errors
    /// [`SocketError::BadOption`] for a value that is not possible, and [`SocketError::NotFound`] if there is no such connection.
    pub fn set_option(
        &mut self,
        id: ConnectionId,
        now: Instant,
        option: &SocketOption,
    ) -> Result<(), SocketError> {
        option.check()?;
        match option {
            SocketOption::TimeToLive(ttl) => self.set_hop_limit(id, byte(*ttl)),
            SocketOption::TypeOfService(tos) => self.set_dscp(id, byte(*tos) >> 2),
            SocketOption::Setting(setting) => {
                self.with_connection(id, now, |connection| connection.set(*setting))
            }
            SocketOption::Congestion(choice) => self.with_connection(id, now, |connection| {
                // Any controller works with the other units: pacing comes with one that needs it.
                let mut profile = connection.profile().clone();
                profile.choose_congestion(choice.clone());
                let start = UnitChoice::SlowStart(profile.slow_start);
                for unit in [UnitChoice::Congestion(profile.congestion), start] {
                    let exchanged = connection.exchange(now, unit);
                    debug_assert_eq!(exchanged, Ok(()));
                }
            }),
        }
    }

    /// Sets options of a connection, in their order.
    ///
    /// # Errors
    /// As [`Stack::set_option`]; the options before the one that fails are set.
    pub fn set_options(
        &mut self,
        id: ConnectionId,
        now: Instant,
        options: &SocketOptions,
    ) -> Result<(), SocketError> {
        options.iter().try_for_each(|option| self.set_option(id, now, option))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transom_tcp::SlowStartChoice;

    #[test]
    fn settings_of_the_host_are_refused() {
        let here = core::net::IpAddr::from([127, 0, 0, 1]);
        for setting in [Setting::MaxSuperSegment(Some(100_000)), Setting::Remote(here)] {
            assert!(matches!(SocketOption::from(setting).check(), Err(SocketError::BadOption(_))));
        }
    }

    #[test]
    fn a_controller_brings_its_slow_start_and_pacing() {
        let shaped = |text: &str| {
            let mut profile = Profile::default();
            let choice = transom_tcp::compose::compose(text).unwrap().congestion;
            assert!(SocketOption::Congestion(choice).shape(&mut profile));
            profile
        };
        assert_eq!(shaped("cubic").slow_start, SlowStartChoice::HyStart);
        assert_eq!(
            shaped("reno").slow_start,
            transom_tcp::compose::compose("reno").unwrap().slow_start
        );
        assert_ne!(shaped("reno").slow_start, SlowStartChoice::HyStart);
        assert_eq!(shaped("bbr").pacing, transom_tcp::PacingChoice::Rate);
    }
}
