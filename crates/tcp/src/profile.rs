//! Which unit a connection uses for each job, and the settings that go with them.
//!
//! A [`Profile`] is checked once, when it is built, and shared by all connections that use it. A combination that
//! cannot work is refused with the reason; it is never silently repaired.

use crate::ack_policy::AckPolicy;
use crate::ack_policy::delayed::DelayedAck;
use crate::congestion::CongestionControl;
use crate::congestion::none::NoCongestionControl;
use crate::congestion::reno::Reno;
use crate::flow::FlowControl;
use crate::flow::receive_window::{ReceiveWindow, ReceiveWindowConfig};
use crate::ordering::Ordering;
use crate::ordering::in_order::InOrder;
use crate::pacing::{Pacing, RatePacing, Unpaced};
use crate::pos::Pos;
use crate::recovery::Recovery;
use crate::recovery::newreno::NewReno;
use crate::recovery::sack::SackRecovery;
use crate::rto::RetransmissionTimer;
use crate::rto::rfc6298::{Rfc6298, Rfc6298Config};
use crate::time::Duration;
use alloc::boxed::Box;

/// The congestion controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionChoice {
    /// The receiver's window alone bounds the flight.
    None,
    /// RFC 5681.
    Reno,
}

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryChoice {
    /// RFC 6582, whatever the peer offers.
    NewReno,
    /// RFC 6675 when SACK was agreed, RFC 6582 otherwise.
    Sack,
}

/// The retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerChoice {
    /// RFC 6298.
    Rfc6298(Rfc6298Config),
}

/// In what order data reaches the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderingChoice {
    /// The byte stream of RFC 9293.
    InOrder,
}

/// What the receiver offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowChoice {
    /// A receive window, tuned between the two sizes.
    ReceiveWindow(ReceiveWindowConfig),
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckChoice {
    /// RFC 5681 section 4.2, waiting at most this long.
    Delayed(Duration),
}

/// When transmissions leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacingChoice {
    /// As soon as the windows allow.
    None,
    /// Spaced to the controller's rate.
    Rate,
}

/// The options offered in the SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedOptions {
    /// Window scale (RFC 7323 section 2).
    pub window_scale: bool,
    /// Timestamps, and with them PAWS (RFC 7323 sections 3 to 5).
    pub timestamps: bool,
    /// Selective acknowledgement (RFC 2018).
    pub sack: bool,
}

/// Keep-alive settings (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Silence before the first probe.
    pub idle: Duration,
    /// Time between probes.
    pub interval: Duration,
    /// Unanswered probes after which the connection is given up.
    pub probes: u32,
}

impl Default for KeepAlive {
    // [MUST-28] two hours.
    fn default() -> Self {
        KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}

/// Everything that can be chosen about a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// How much may be in flight.
    pub congestion: CongestionChoice,
    /// What is sent again.
    pub recovery: RecoveryChoice,
    /// How long silence is tolerated.
    pub timer: TimerChoice,
    /// The order of delivery.
    pub ordering: OrderingChoice,
    /// What the receiver offers.
    pub flow: FlowChoice,
    /// When the receiver acknowledges.
    pub ack: AckChoice,
    /// When transmissions leave.
    pub pacing: PacingChoice,
    /// Options offered to the peer.
    pub options: OfferedOptions,
    /// The largest segment announced and sent, in bytes of payload and options, if less than the interface takes
    /// (what `TCP_MAXSEG` sets); at least 64.
    pub max_segment: Option<u16>,
    /// Duplicate acknowledgements that mean loss (DupThresh of RFC 6675).
    pub dup_thresh: u32,
    /// Send buffer at the start, in bytes; it grows with the congestion window.
    pub send_buffer: usize,
    /// Send buffer at most, in bytes.
    pub max_send_buffer: usize,
    /// Send small segments at once instead of gathering them (switches Nagle's algorithm off).
    pub nodelay: bool,
    /// Keep-alive probes; off by default.
    pub keep_alive: Option<KeepAlive>,
    /// Retransmissions of one segment after which the application is told of trouble (R1 of RFC 9293).
    pub r1: u32,
    /// Retransmissions of one segment after which the connection is given up (R2 of RFC 9293); `None`: never.
    pub r2: Option<u32>,
    /// The same for a SYN; with the back-off this has to come to three minutes at least.
    pub syn_r2: u32,
    /// Give up when data stays unacknowledged for so long (RFC 9293 section 3.9.1.2, RFC 5482).
    pub user_timeout: Option<Duration>,
    /// Tell the peer of the user timeout, if one is set (RFC 5482's ENABLED).
    pub advertise_user_timeout: bool,
    /// Take over the peer's User Timeout option within these bounds (RFC 5482 section 3.1): (lower, upper).
    pub adopt_user_timeout: Option<(Duration, Duration)>,
    /// How long TIME-WAIT lasts: 2·MSL.
    pub time_wait: Duration,
    /// How long a closed connection waits for the peer's FIN (FIN-WAIT-2).
    pub fin_wait_2: Duration,
    /// Zero-window probes or retransmissions after which a connection that the application has closed is given up.
    pub orphan_retries: u32,
    /// Hop limit (time to live) of its packets.
    pub hop_limit: u8,
    /// Differentiated services code point of its packets, 0 to 63.
    pub dscp: u8,
}

impl Default for Profile {
    fn default() -> Self {
        Profile {
            congestion: CongestionChoice::Reno,
            recovery: RecoveryChoice::Sack,
            timer: TimerChoice::Rfc6298(Rfc6298Config::default()),
            ordering: OrderingChoice::InOrder,
            flow: FlowChoice::ReceiveWindow(ReceiveWindowConfig::default()),
            ack: AckChoice::Delayed(Duration::from_millis(40)),
            pacing: PacingChoice::None,
            options: OfferedOptions { window_scale: true, timestamps: true, sack: true },
            max_segment: None,
            dup_thresh: 3,
            send_buffer: 256 * 1024,
            max_send_buffer: 4 * 1024 * 1024,
            nodelay: false,
            // [MAY-5] [MUST-25] offered, and off
            keep_alive: None,
            // [SHLD-10]
            r1: 3,
            // [SHLD-11] 15 retransmissions from 200 ms on, doubled up to a minute, come to more than eight minutes
            r2: Some(15),
            syn_r2: 7,
            user_timeout: None,
            advertise_user_timeout: false,
            adopt_user_timeout: None,
            time_wait: Duration::from_secs(60),
            fin_wait_2: Duration::from_secs(60),
            orphan_retries: 8,
            hop_limit: 64,
            dscp: 0,
        }
    }
}

/// Why a profile cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// SACK recovery needs the option.
    #[error("SACK recovery needs the SACK option; offer it, or choose NewReno")]
    SackWithoutOption,
    /// A buffer of no size.
    #[error("the {0} buffer must hold at least one segment (1460 bytes), not {1} bytes")]
    BufferTooSmall(&'static str, usize),
    /// A buffer larger than a window can express.
    #[error("the {0} buffer can be at most {max} bytes (a window of 65535 scaled by 14), not {1} bytes", max = MAX_WINDOW)]
    BufferTooLarge(&'static str, usize),
    /// An initial size above the maximum.
    #[error("the {0} buffer starts at {1} bytes, above its maximum of {2}")]
    BufferOrder(&'static str, usize, usize),
    /// A window over 64 KiB needs the option.
    #[error("a receive buffer of {0} bytes needs the window scale option")]
    WindowNeedsScale(usize),
    /// RFC 9293 section 3.8.6.3.
    #[error("an acknowledgement may be delayed by less than 500 ms, not {0:?}")]
    AckDelay(Duration),
    /// The timer's bounds are the wrong way round, or zero.
    #[error(
        "the retransmission timeout needs 0 < initial and min ≤ max, not initial {initial:?}, min {min:?}, max {max:?}"
    )]
    TimerBounds {
        /// Before the first sample.
        initial: Duration,
        /// Lower bound.
        min: Duration,
        /// Upper bound.
        max: Duration,
    },
    /// A segment size that leaves no room for data.
    #[error("a maximum segment size of {0} bytes leaves no room for data; 64 is the least")]
    MaxSegment(u16),
    /// RFC 6675 needs at least one.
    #[error("a duplicate-acknowledgement threshold of zero would call everything lost")]
    DupThresh,
    /// A code point has six bits.
    #[error("a differentiated services code point has six bits: {0} is above 63")]
    Dscp(u8),
    /// A packet that expires at once.
    #[error("a hop limit of zero lets no packet leave")]
    HopLimit,
    /// The lower bound is zero, or above the upper one.
    #[error("a peer's user timeout needs bounds 0 < lower ≤ upper, not {0:?} and {1:?}")]
    UserTimeoutBounds(Duration, Duration),
    /// Both keep-alive times and the count must be positive.
    #[error("keep-alive needs positive times and at least one probe")]
    KeepAlive,
}

/// The largest window that can be advertised (RFC 7323 section 2.3).
pub const MAX_WINDOW: usize = 65_535 << 14;

impl Profile {
    /// Checks that the choices work together.
    pub fn validate(&self) -> Result<(), ProfileError> {
        let FlowChoice::ReceiveWindow(receive) = self.flow;
        if self.recovery == RecoveryChoice::Sack && !self.options.sack {
            return Err(ProfileError::SackWithoutOption);
        }
        for (name, initial, max) in [
            ("send", self.send_buffer, self.max_send_buffer),
            ("receive", receive.initial, receive.max),
        ] {
            if initial < 1460 {
                return Err(ProfileError::BufferTooSmall(name, initial));
            }
            if max > MAX_WINDOW {
                return Err(ProfileError::BufferTooLarge(name, max));
            }
            if initial > max {
                return Err(ProfileError::BufferOrder(name, initial, max));
            }
        }
        if receive.max > 65_535 && !self.options.window_scale {
            return Err(ProfileError::WindowNeedsScale(receive.max));
        }
        let AckChoice::Delayed(delay) = self.ack;
        // [MUST-40]
        if delay >= Duration::from_millis(500) {
            return Err(ProfileError::AckDelay(delay));
        }
        let TimerChoice::Rfc6298(timer) = self.timer;
        if timer.initial.is_zero() || timer.min > timer.max || timer.max.is_zero() {
            let Rfc6298Config { initial, min, max, min_variation: _, granularity: _ } = timer;
            return Err(ProfileError::TimerBounds { initial, min, max });
        }
        if let Some(size) = self.max_segment.filter(|&size| size < 64) {
            return Err(ProfileError::MaxSegment(size));
        }
        if self.dup_thresh == 0 {
            return Err(ProfileError::DupThresh);
        }
        if self.dscp > 63 {
            return Err(ProfileError::Dscp(self.dscp));
        }
        if self.hop_limit == 0 {
            return Err(ProfileError::HopLimit);
        }
        if let Some((lower, upper)) = self.adopt_user_timeout
            && (lower.is_zero() || lower > upper)
        {
            return Err(ProfileError::UserTimeoutBounds(lower, upper));
        }
        if let Some(keep) = self.keep_alive
            && (keep.idle.is_zero() || keep.interval.is_zero() || keep.probes == 0)
        {
            return Err(ProfileError::KeepAlive);
        }
        Ok(())
    }

    pub(crate) fn congestion(&self) -> Box<dyn CongestionControl> {
        match self.congestion {
            CongestionChoice::None => Box::new(NoCongestionControl),
            CongestionChoice::Reno => Box::new(Reno::default()),
        }
    }

    pub(crate) fn recovery(&self, sack_agreed: bool) -> Box<dyn Recovery> {
        match self.recovery {
            RecoveryChoice::Sack if sack_agreed => Box::new(SackRecovery::default()),
            RecoveryChoice::Sack | RecoveryChoice::NewReno => Box::new(NewReno::default()),
        }
    }

    pub(crate) fn timer(&self) -> Box<dyn RetransmissionTimer> {
        let TimerChoice::Rfc6298(config) = self.timer;
        Box::new(Rfc6298::new(config))
    }

    pub(crate) fn ordering(&self, next: Pos) -> Box<dyn Ordering> {
        match self.ordering {
            OrderingChoice::InOrder => Box::new(InOrder::new(next)),
        }
    }

    pub(crate) fn flow(&self) -> Box<dyn FlowControl> {
        let FlowChoice::ReceiveWindow(config) = self.flow;
        Box::new(ReceiveWindow::new(config))
    }

    pub(crate) fn ack(&self) -> Box<dyn AckPolicy> {
        let AckChoice::Delayed(delay) = self.ack;
        Box::new(DelayedAck::new(delay))
    }

    pub(crate) fn pacing(&self) -> Box<dyn Pacing> {
        match self.pacing {
            PacingChoice::None => Box::new(Unpaced),
            PacingChoice::Rate => Box::new(RatePacing::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_works_and_contradictions_are_refused() {
        let good = Profile::default();
        assert_eq!(good.validate(), Ok(()));
        let no_sack = OfferedOptions { sack: false, ..good.options };
        assert_eq!(
            Profile { options: no_sack, ..good }.validate(),
            Err(ProfileError::SackWithoutOption)
        );
        assert_eq!(
            Profile { options: no_sack, recovery: RecoveryChoice::NewReno, ..good }.validate(),
            Ok(())
        );
        let unscaled = OfferedOptions { window_scale: false, ..good.options };
        assert!(matches!(
            Profile { options: unscaled, ..good }.validate(),
            Err(ProfileError::WindowNeedsScale(_))
        ));
        assert!(matches!(
            Profile { send_buffer: 9 << 20, ..good }.validate(),
            Err(ProfileError::BufferOrder("send", ..))
        ));
        let slow = AckChoice::Delayed(Duration::from_millis(500));
        assert!(matches!(Profile { ack: slow, ..good }.validate(), Err(ProfileError::AckDelay(_))));
        assert_eq!(
            Profile { max_segment: Some(63), ..good }.validate(),
            Err(ProfileError::MaxSegment(63))
        );
    }
}
