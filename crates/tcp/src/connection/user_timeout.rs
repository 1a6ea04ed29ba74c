//! The user timeout: how long data may stay unacknowledged (RFC 9293 sections 3.8.3 and 3.10.8), and the option by
//! which the two ends tell each other theirs (RFC 5482).
//!
//! Data that was written and not sent counts too: RFC 9293 section 3.9.1.2 speaks of all data submitted. So the connection ends although an
//! extension holds all data back. The timer is set when data begins to wait. Acknowledgements do not move it: when it
//! fires, it is set to what they have made of it.
//!
//! Without a user timeout, R2 counts retransmissions. With one, only time decides. The value comes from the profile or from the
//! application. The peer's is adopted only if the profile has bounds for it and the application has set none (RFC 5482's CHANGEABLE). The
//! option goes into the SYN and once more into the first segment after it, because a peer with SYN cookies forgets the SYN's options.
//! Options would take room from a full segment's payload, so that segment is an acknowledgement without data.

use super::Connection;
use super::timers::Timer;
use crate::options::user_timeout_option;
use crate::profile::Profile;
use crate::time::{Duration, Instant};
use transom_wire::{Options, UserTimeout};

/// RFC 5482's variables for one connection. [`Duration::MAX`] means none: every connection has these.
#[derive(Clone, Copy, Debug)]
pub(super) struct UserTimeouts {
    /// USER_TIMEOUT; none leaves it to R2.
    value: Duration,
    /// LOCAL_UTO and ADV_UTO: the timeout of this end, which it advertises if enabled.
    local: Duration,
    /// CHANGEABLE: the application has not set it.
    changeable: bool,
    /// The option has to leave.
    pub(super) due: bool,
}

impl UserTimeouts {
    pub(super) fn new(profile: &Profile) -> Self {
        UserTimeouts::set(profile, profile.user_timeout, true)
    }

    fn set(profile: &Profile, timeout: Option<Duration>, changeable: bool) -> Self {
        let due = profile.advertise_user_timeout && timeout.is_some();
        let value = timeout.unwrap_or(Duration::MAX);
        UserTimeouts { value, local: value, changeable, due }
    }
}

fn some(timeout: Duration) -> Option<Duration> {
    Some(timeout).filter(|&timeout| timeout != Duration::MAX)
}

impl Connection {
    /// Gives up when data stays unacknowledged for this long; `None` leaves it to R2 [MUST-21]. The peer's option is ignored from then on.
    pub(super) fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        self.user_timeout = UserTimeouts::set(&self.profile, timeout, false);
        self.on_user_timeout_changed();
    }

    /// The user timeout.
    pub(super) fn user_timeout(&self) -> Option<Duration> {
        some(self.user_timeout.value)
    }

    /// The option to send, if any.
    pub(super) fn user_timeout_option(&self) -> Option<UserTimeout> {
        let local = some(self.user_timeout.local);
        local.filter(|_| self.profile.advertise_user_timeout).and_then(user_timeout_option)
    }

    /// An acceptable segment carried the peer's (RFC 5482 section 3.1).
    pub(super) fn take_user_timeout(&mut self, options: &Options) {
        let Some(remote) = options.user_timeout else { return };
        let Some((lower, upper)) = self.profile.adopt_user_timeout else { return };
        if !self.user_timeout.changeable || remote.as_secs() == 0 {
            return;
        }
        let remote = Duration::from_secs(u64::from(remote.as_secs()));
        let local = some(self.user_timeout.local).unwrap_or(Duration::ZERO);
        self.user_timeout.value = local.max(remote).max(lower).min(upper);
        self.on_user_timeout_changed();
    }

    /// When it ends the connection, if nothing is acknowledged until then.
    pub(super) fn user_timeout_at(&self) -> Option<Instant> {
        Some(self.snd.unacked_since()? + self.user_timeout()?)
    }

    /// Data waits to be acknowledged, at `now` at the latest.
    #[inline]
    pub(super) fn note_unacked(&mut self, now: Instant) {
        if self.snd.unacked_since == Instant::FAR_FUTURE {
            self.snd.unacked_since = now;
            self.limited.begin_busy(now);
            if self.user_timeout().is_some() && !self.timers.is_set(Timer::User) {
                self.on_user_timeout_changed();
            }
        }
    }

    /// Whether there is data, or a FIN, that has not been sent yet.
    pub(super) fn has_unsent(&self) -> bool {
        self.snd.buffer.end() > self.nxt() || (self.snd.fin_queued && !self.fin_sent())
    }

    /// The timer is set anew: to when the user timeout ends the connection, if nothing happens until then.
    fn on_user_timeout_changed(&mut self) {
        match self.user_timeout_at() {
            Some(end) => self.timers.set(Timer::User, end),
            None => self.timers.clear(Timer::User),
        }
    }

    /// The timer has fired.
    pub(super) fn on_user_timeout(&mut self, now: Instant) {
        match self.user_timeout_at() {
            Some(end) if end <= now => self.time_out(),
            Some(end) => self.timers.set(Timer::User, end),
            None => {}
        }
    }

    /// The longest delay of a window probe: a peer that answers must get one before the user timeout passes.
    pub(super) fn most_between_probes(&self) -> Duration {
        some(self.user_timeout.value).map_or(Duration::MAX, |timeout| timeout.over(2))
    }
}
