//! The user timeout: how long data may stay unacknowledged (RFC 9293 sections 3.8.3 and 3.10.8), and the option by
//! which the two ends tell each other theirs (RFC 5482).
//!
//! Without a user timeout, R2 counts retransmissions. With one, time alone decides. The value comes from the profile or
//! from the application; the peer's is adopted only if the profile gives bounds for it and the application has not
//! spoken (RFC 5482's CHANGEABLE). What is advertised goes into the SYN and once more into the first segment after it,
//! because a peer that answers with SYN cookies forgets what the SYN said. As options would take room from a full
//! segment's payload, that segment is an acknowledgement without data.

use super::Connection;
use super::timers::Timer;
use crate::options::user_timeout_option;
use crate::profile::Profile;
use crate::time::{Duration, Instant};
use transom_wire::{Options, UserTimeout};

/// RFC 5482's variables for one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct UserTimeouts {
    /// USER_TIMEOUT; `None` leaves it to R2.
    value: Option<Duration>,
    /// LOCAL_UTO and ADV_UTO: what this end wants and, if enabled, advertises.
    local: Option<Duration>,
    /// CHANGEABLE: the application has not set it.
    changeable: bool,
    /// The option has to leave.
    pub(super) due: bool,
}

impl UserTimeouts {
    pub(super) fn new(profile: &Profile) -> Self {
        let Profile { user_timeout: value, advertise_user_timeout, .. } = *profile;
        let due = advertise_user_timeout && value.is_some();
        UserTimeouts { value, local: value, changeable: true, due }
    }
}

impl Connection {
    /// Gives up when data stays unacknowledged for so long; `None` leaves it to R2 [MUST-21]. The peer's wish is not
    /// heard any more.
    pub fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        let due = self.profile.advertise_user_timeout && timeout.is_some();
        self.user_timeout = UserTimeouts { value: timeout, local: timeout, changeable: false, due };
        self.on_user_timeout_changed();
    }

    /// The user timeout.
    pub fn user_timeout(&self) -> Option<Duration> {
        self.user_timeout.value
    }

    /// The option to send, if it is to be.
    pub(super) fn user_timeout_option(&self) -> Option<UserTimeout> {
        let local = self.user_timeout.local.filter(|_| self.profile.advertise_user_timeout);
        local.and_then(user_timeout_option)
    }

    /// An acceptable segment carried the peer's (RFC 5482 section 3.1).
    pub(super) fn take_user_timeout(&mut self, options: &Options) {
        let Some(remote) = options.user_timeout else { return };
        let Some((lower, upper)) = self.profile.adopt_user_timeout else { return };
        if !self.user_timeout.changeable || remote.as_secs() == 0 {
            return;
        }
        let remote = Duration::from_secs(u64::from(remote.as_secs()));
        let local = self.user_timeout.local.unwrap_or(Duration::ZERO);
        self.user_timeout.value = Some(local.max(remote).max(lower).min(upper));
        self.on_user_timeout_changed();
    }

    /// When it ends the connection, if nothing is acknowledged until then.
    pub(super) fn user_timeout_at(&self) -> Option<Instant> {
        Some(self.snd.unacked_since()? + self.user_timeout.value?)
    }

    /// Timers that run may have to end earlier.
    fn on_user_timeout_changed(&mut self) {
        let Some(end) = self.user_timeout_at() else { return };
        for timer in [Timer::Retransmit, Timer::Persist] {
            if let Some(at) = self.timers.get(timer) {
                self.timers.set(timer, at.min(end));
            }
        }
    }
}
