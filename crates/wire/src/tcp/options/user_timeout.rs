//! The user timeout option (RFC 5482): 15 bits of seconds or minutes.

/// The user timeout option (RFC 5482 3): how long the sender keeps unacknowledged data before it
/// aborts.
///
/// Zero is kept as sent; RFC 5482 3 forbids sending it and has receivers ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserTimeout {
    in_minutes: bool,
    value: u16,
}

impl UserTimeout {
    const GRANULARITY: u16 = 0x8000;
    const MAX_VALUE: u16 = 0x7fff;

    /// The shortest timeout the option can express that is at least `seconds`: in seconds up to
    /// 32,767 of them, in minutes above, at most 32,767 minutes (22 days).
    pub const fn from_secs(seconds: u32) -> Self {
        if seconds <= Self::MAX_VALUE as u32 {
            UserTimeout { in_minutes: false, value: seconds as u16 }
        } else {
            let minutes = seconds.div_ceil(60);
            let most = Self::MAX_VALUE as u32;
            let value = if minutes < most { minutes } else { most };
            UserTimeout { in_minutes: true, value: value as u16 }
        }
    }

    /// The timeout in seconds.
    pub const fn as_secs(self) -> u32 {
        if self.in_minutes { self.value as u32 * 60 } else { self.value as u32 }
    }

    /// Whether the value travels in minutes (the granularity bit) and not in seconds.
    pub const fn in_minutes(self) -> bool {
        self.in_minutes
    }

    /// The option's 16 bits: granularity, then 15 bits of value.
    pub(super) const fn field(self) -> u16 {
        (if self.in_minutes { Self::GRANULARITY } else { 0 }) | self.value
    }

    pub(super) const fn from_field(field: u16) -> Self {
        UserTimeout { in_minutes: field & Self::GRANULARITY != 0, value: field & Self::MAX_VALUE }
    }
}
