//! The user timeout option (RFC 5482): 15 bits of seconds or minutes.

/// The user timeout option (RFC 5482 3): how long the sender keeps unacknowledged data before it
/// aborts.
///
/// Zero is kept as sent; RFC 5482 3 forbids sending it and has receivers ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserTimeout(u16);

impl UserTimeout {
    const GRANULARITY: u16 = 0x8000;
    const MAX_VALUE: u16 = 0x7fff;

    /// The shortest timeout the option can express that is at least `seconds`: in seconds up to
    /// 32,767 of them, in minutes above, at most 32,767 minutes (22 days).
    pub const fn from_secs(seconds: u32) -> Self {
        if seconds <= Self::MAX_VALUE as u32 {
            UserTimeout(seconds as u16)
        } else {
            let minutes = seconds.div_ceil(60);
            let most = Self::MAX_VALUE as u32;
            let value = if minutes < most { minutes } else { most };
            UserTimeout(Self::GRANULARITY | value as u16)
        }
    }

    /// The timeout in seconds.
    pub const fn as_secs(self) -> u32 {
        let value = (self.0 & Self::MAX_VALUE) as u32;
        if self.in_minutes() { value * 60 } else { value }
    }

    /// Whether the value travels in minutes (the granularity bit) and not in seconds.
    pub(crate) const fn in_minutes(self) -> bool {
        self.0 & Self::GRANULARITY != 0
    }

    /// The option's 16 bits: granularity, then 15 bits of value.
    pub(super) const fn field(self) -> u16 {
        self.0
    }

    pub(super) const fn from_field(field: u16) -> Self {
        UserTimeout(field)
    }
}
