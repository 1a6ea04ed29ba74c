//! Which options both ends agreed on, and the timestamp state that PAWS needs.

use crate::profile::Profile;
use crate::segment::timestamp_value;
use crate::time::{Duration, Instant};
use transom_wire::{Options, PartialReliability, Timestamps, UserTimeout};

/// RFC 7323 section 2.3: a larger shift is used as 14.
const MAX_WINDOW_SCALE: u8 = 14;

/// The send MSS without an MSS option from the peer [MUST-15], by IP version.
const fn default_mss(ip_header: u32) -> u32 {
    if ip_header >= 40 { 1220 } else { 536 }
}

/// The window scale for windows of up to `max_window` bytes.
fn scale_for(max_window: usize) -> u8 {
    (0..MAX_WINDOW_SCALE).find(|&scale| max_window >> scale <= 65_535).unwrap_or(MAX_WINDOW_SCALE)
}

/// A user timeout as its option says it: rounded up to what that can express (RFC 5482 section 3).
pub(crate) fn user_timeout_option(timeout: Duration) -> Option<UserTimeout> {
    let secs = timeout.as_millis().div_ceil(1000);
    // Zero must not be sent.
    (secs > 0).then(|| UserTimeout::from_secs(u32::try_from(secs).unwrap_or(u32::MAX)))
}

/// The options that the handshake agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Agreed {
    /// The MSS the peer announced, or the default.
    pub peer_mss: u32,
    /// Shift for windows the peer sends; `None` when scaling was not agreed.
    pub send_scale: Option<u8>,
    /// Shift for windows we send.
    pub receive_scale: u8,
    /// Timestamps on every segment.
    pub timestamps: bool,
    /// Selective acknowledgements both ways.
    pub sack: bool,
    /// Data may be given up, both ways.
    pub partial: bool,
    /// ECN with the flags of RFC 3168, which flags and not options agree on.
    pub ecn: bool,
    /// Accurate ECN (RFC 9768), which flags agree on too.
    pub accurate: bool,
}

/// The options of our SYN or SYN-ACK, the only segments with an MSS option [MUST-65]. `answer_to` is the peer's SYN:
/// options that it did not offer are not sent.
pub(crate) fn syn_options(
    profile: &Profile,
    our_mss: u16,
    max_window: usize,
    timestamps: Timestamps,
    answer_to: Option<&Options>,
) -> Options {
    let offered = profile.options;
    let answers = |has: fn(&Options) -> bool| answer_to.is_none_or(has);
    Options {
        // [MUST-14] [SHLD-5] [MAY-3] always sent
        mss: Some(our_mss),
        window_scale: (offered.window_scale && answers(|o| o.window_scale.is_some()))
            .then(|| scale_for(max_window)),
        user_timeout: profile
            .user_timeout
            .filter(|_| profile.advertise_user_timeout)
            .and_then(user_timeout_option),
        sack_permitted: offered.sack && answers(|o| o.sack_permitted),
        timestamps: (offered.timestamps && answers(|o| o.timestamps.is_some()))
            .then_some(timestamps),
        partial: (profile.offers_partial() && answers(permits_partial))
            .then_some(PartialReliability::Permitted),
        ..Options::default()
    }
}

fn permits_partial(options: &Options) -> bool {
    options.partial == Some(PartialReliability::Permitted)
}

impl Agreed {
    /// Combines what we sent in our SYN with what the peer sent in its own.
    pub(crate) fn new(ours: &Options, theirs: &Options, ip_header: u32) -> Self {
        let scaled = ours.window_scale.zip(theirs.window_scale);
        Agreed {
            // An MSS below 64 serves only to make us send crumbs.
            peer_mss: theirs.mss.map_or(default_mss(ip_header), |mss| u32::from(mss).max(64)),
            send_scale: scaled.map(|(_, shift)| shift.min(MAX_WINDOW_SCALE)),
            receive_scale: scaled.map_or(0, |(shift, _)| shift),
            timestamps: ours.timestamps.is_some() && theirs.timestamps.is_some(),
            sack: ours.sack_permitted && theirs.sack_permitted,
            partial: permits_partial(ours) && permits_partial(theirs),
            ecn: false,
            accurate: false,
        }
    }

    /// Bytes that options take from every data segment.
    pub(crate) fn data_option_len(&self) -> u32 {
        if self.timestamps { 12 } else { 0 }
    }
}

/// RFC 7323's TS.Recent, with the clock of our own values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimestampState {
    /// Our clock's starting point.
    pub(crate) offset: u32,
    recent: u32,
    recent_at: Instant,
}

impl TimestampState {
    /// No value received yet.
    pub(crate) fn new(offset: u32) -> Self {
        TimestampState { offset, recent: 0, recent_at: Instant::ZERO }
    }

    /// TS.Recent.
    pub(crate) fn recent(&self) -> u32 {
        self.recent
    }

    /// The option for a segment leaving at `now`.
    pub(crate) fn option(&self, now: Instant) -> Timestamps {
        Timestamps { value: timestamp_value(now, self.offset), echo: self.recent }
    }

    /// Takes the value of the peer's SYN.
    pub(crate) fn start(&mut self, value: u32, now: Instant) {
        self.recent = value;
        self.recent_at = now;
    }

    /// PAWS (RFC 7323 section 5.3 R1): whether a segment with `value` is an old duplicate. After 24 days of silence
    /// TS.Recent means nothing any more (section 5.5).
    pub(crate) fn is_old(&self, value: u32, now: Instant) -> bool {
        const OUTDATED: Duration = Duration::from_secs(24 * 86_400);
        (value.wrapping_sub(self.recent) as i32) < 0 && now.since(self.recent_at) < OUTDATED
    }

    /// An acceptable segment at the left edge of the window carried `value` (section 4.3 step 2).
    pub(crate) fn update(&mut self, value: u32, now: Instant) {
        if !self.is_old(value, now) {
            self.recent = value;
            self.recent_at = now;
        }
    }

    /// The round-trip time that an echo of one of our values shows, in whole milliseconds of our clock.
    pub(crate) fn echo_rtt(&self, echo: u32, now: Instant) -> Option<Duration> {
        let elapsed = timestamp_value(now, self.offset).wrapping_sub(echo);
        // Nothing of ours is older than the timer allows; anything else is not an echo.
        (echo != 0 && elapsed < 600_000).then(|| Duration::from_millis(u64::from(elapsed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_fits_the_buffer() {
        assert_eq!(scale_for(65_535), 0);
        assert_eq!(scale_for(65_536), 1);
        assert_eq!(scale_for(6 << 20), 7);
        assert_eq!(scale_for(usize::MAX), 14);
    }

    #[test]
    fn an_option_counts_only_when_both_sent_it() {
        let full = Options {
            mss: Some(1460),
            window_scale: Some(20),
            sack_permitted: true,
            timestamps: Some(Timestamps::default()),
            ..Options::default()
        };
        let ours = Options { window_scale: Some(7), ..full };
        let agreed = Agreed::new(&ours, &full, 20);
        assert_eq!((agreed.send_scale, agreed.receive_scale), (Some(14), 7), "20 is used as 14");
        assert!(agreed.timestamps && agreed.sack);
        let agreed = Agreed::new(&ours, &Options::default(), 20);
        assert_eq!((agreed.send_scale, agreed.receive_scale, agreed.peer_mss), (None, 0, 536));
        assert!(!agreed.timestamps && !agreed.sack);
        assert_eq!(Agreed::new(&ours, &Options::default(), 40).peer_mss, 1220);
    }

    #[test]
    fn old_timestamps_wrap_and_expire() {
        let mut state = TimestampState::new(0);
        let t = Instant::from_secs(1);
        state.start(u32::MAX - 1, t);
        assert!(!state.is_old(5, t), "5 comes after the wrap");
        state.update(5, t);
        assert!(state.is_old(u32::MAX, t));
        assert!(!state.is_old(u32::MAX, t + Duration::from_secs(25 * 86_400)));
    }
}
