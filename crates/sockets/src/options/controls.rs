//! The options that shape a connection's segments and wake-ups: cork, low-water marks, quick acknowledgements, FIN-WAIT-2.

use super::values::{bool_of, int_of};
use crate::errno::Result;
use libc::{
    IPPROTO_TCP, SO_RCVLOWAT, SO_SNDLOWAT, SOL_SOCKET, TCP_CORK, TCP_LINGER2, TCP_NOTSENT_LOWAT,
    TCP_QUICKACK,
};
use transom_tcp::time::Duration;
use transom_tcp::{Connection, Profile, Setting};

/// The longest lifetime of FIN-WAIT-2 (Linux' `TCP_FIN_TIMEOUT_MAX`), in seconds.
const MAX_LINGER2: i32 = 120;

/// Those that no profile has.
pub(super) const OF_NO_PROFILE: [(i32, i32); 4] = [
    (IPPROTO_TCP, TCP_CORK),
    (IPPROTO_TCP, TCP_NOTSENT_LOWAT),
    (SOL_SOCKET, SO_RCVLOWAT),
    (IPPROTO_TCP, TCP_QUICKACK),
];

/// The settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Controls {
    cork: bool,
    /// As it was set, if it was.
    quick_ack: Option<i32>,
    notsent_low_water: u32,
    pub(crate) receive_low_water: i32,
    /// Seconds; negative: none at all; `None`: the host's.
    linger2: Option<i32>,
}

impl Default for Controls {
    fn default() -> Self {
        Controls {
            cork: false,
            quick_ack: None,
            notsent_low_water: 0,
            receive_low_water: 1,
            linger2: None,
        }
    }
}

impl Controls {
    /// How long FIN-WAIT-2 lasts.
    pub(super) fn fin_wait_2(&self, base: &Profile) -> Duration {
        match self.linger2 {
            None => base.fin_wait_2,
            Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or(0)),
        }
    }

    /// Sets an option. `Ok(false)`: there is none by that name.
    pub(super) fn set(&mut self, level: i32, name: i32, value: &[u8]) -> Result<bool> {
        match (level, name) {
            (IPPROTO_TCP, TCP_CORK) => self.cork = bool_of(value)?,
            (IPPROTO_TCP, TCP_QUICKACK) => self.quick_ack = Some(int_of(value)?),
            (IPPROTO_TCP, TCP_NOTSENT_LOWAT) => self.notsent_low_water = int_of(value)? as u32,
            (SOL_SOCKET, SO_RCVLOWAT) => {
                self.receive_low_water = match int_of(value)? {
                    negative if negative < 0 => i32::MAX,
                    bytes => bytes.max(1),
                };
            }
            (IPPROTO_TCP, TCP_LINGER2) => {
                self.linger2 = match int_of(value)? {
                    negative if negative < 0 => Some(-1),
                    0 => None,
                    seconds => Some(seconds.min(MAX_LINGER2)),
                };
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    pub(super) fn get(&self, level: i32, name: i32) -> Option<i32> {
        Some(match (level, name) {
            (IPPROTO_TCP, TCP_CORK) => self.cork.into(),
            (IPPROTO_TCP, TCP_QUICKACK) => self.quick_ack.is_none_or(|value| value != 0).into(),
            (IPPROTO_TCP, TCP_NOTSENT_LOWAT) => self.notsent_low_water as i32,
            (SOL_SOCKET, SO_SNDLOWAT) => 1,
            _ => return None,
        })
    }

    /// The value of `TCP_LINGER2`.
    pub(super) fn linger2(&self, base: &Profile) -> i32 {
        match self.fin_wait_2(base) {
            Duration::ZERO => -1,
            span => i32::try_from(span.as_millis() / 1000).unwrap_or(i32::MAX),
        }
    }

    /// What one of them means for a connection, but `TCP_QUICKACK`, whose meaning depends on the connection.
    pub(super) fn meaning(&self, level: i32, name: i32) -> Option<Setting> {
        Some(match (level, name) {
            (IPPROTO_TCP, TCP_CORK) => Setting::Cork(self.cork),
            (IPPROTO_TCP, TCP_NOTSENT_LOWAT) => Setting::NotsentLowWater(self.notsent_low_water),
            (SOL_SOCKET, SO_RCVLOWAT) => Setting::ReceiveLowWater(self.receive_low_water as usize),
            _ => return None,
        })
    }

    /// As Linux: an even number acknowledges what waits, and nothing after it at once.
    pub(super) fn apply_quick_ack(&self, connection: &mut Connection) {
        let Some(value) = self.quick_ack else { return };
        let waits = connection.has_delayed_ack();
        connection.set(Setting::QuickAck(value != 0));
        if value & 1 == 0 && waits {
            connection.set(Setting::QuickAck(false));
        }
    }
}
