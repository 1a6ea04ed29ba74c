//! Checks which choices are compatible, with errors for those that are not.

use super::{
    AckChoice, HoleChoice, MAX_WINDOW, OrderingChoice, PacingChoice, Profile, RecoveryChoice,
};
use crate::arguments::Fraction;
use crate::time::Duration;

/// Why a profile cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// SACK recovery needs the option.
    #[error(
        "SACK and RACK-TLP recovery need the SACK option; offer it, or choose NewReno or go-back-N"
    )]
    SackWithoutOption,
    /// Two ideas of when something is lost.
    #[error(
        "early retransmit counts duplicates, but RACK-TLP goes by time; choose another loss recovery, or leave out early retransmit"
    )]
    EarlyRetransmitWithRack,
    /// The same, where the path reorders.
    #[error(
        "rr counts duplicates, but RACK-TLP goes by time; choose another loss recovery, or leave out rr"
    )]
    RrWithRack,
    /// Robustness against reordering needs DSACK reports.
    #[error("rr learns from DSACKs and needs the SACK option; offer it, or leave rr out")]
    RrWithoutSack,
    /// It would not be a share.
    #[error("rr's cap must be at most 1, which is the whole window, not {0}")]
    RrCap(Fraction),
    /// The controller sends at its own rate.
    #[error("{0} needs pacing; turn pacing on, or choose another congestion control")]
    NeedsPacing(&'static str),
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
    /// A unit has to fit where it waits.
    #[error(
        "application data units of up to {max} bytes need a {buffer} buffer of {least} bytes at least, not {has}"
    )]
    UnitTooLarge {
        /// The largest unit.
        max: usize,
        /// Which buffer.
        buffer: &'static str,
        /// Its size.
        has: usize,
        /// The minimum.
        least: usize,
    },
    /// See [`Profile::carries_bytes`].
    #[error(
        "adu is for programs that call send_adu and recv_adu, but this one writes bytes; leave out adu, so that data is in order"
    )]
    NotBytes,
    /// See [`Profile::carries_a_stream`].
    #[error(
        "unordered is for programs that call read_unordered, but this one reads a stream; leave out unordered, so that data is in order"
    )]
    NotAStream,
    /// RFC 9293 section 3.8.6.3.
    #[error("acknowledgements must be delayed by less than 500 ms, not by {0:?}")]
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
    #[error("the duplicate-acknowledgement threshold must be at least 1, not 0")]
    DupThresh,
    /// A code point has six bits.
    #[error("a differentiated services code point has six bits: {0} is above 63")]
    Dscp(u8),
    /// A packet that expires at once.
    #[error("the hop limit must be at least 1, not 0")]
    HopLimit,
    /// The lower bound is zero, or above the upper one.
    #[error("a peer's user timeout needs bounds 0 < lower ≤ upper, not {0:?} and {1:?}")]
    UserTimeoutBounds(Duration, Duration),
    /// Data that is given up before it can be lost.
    #[error("the lifetime of data must be above zero")]
    Lifetime,
    /// A receiver without any patience would take the least reordering for a loss.
    #[error("the time before a receiver skips missing data must be above zero")]
    Patience,
    /// Both keep-alive times and the count must be positive.
    #[error("keep-alive needs positive times and at least one probe")]
    KeepAlive,
}

impl Profile {
    /// Checks that the choices work together.
    pub fn validate(&self) -> Result<(), ProfileError> {
        let receive = self.flow.buffer();
        let needs_sack = matches!(self.recovery, RecoveryChoice::Sack | RecoveryChoice::RackTlp);
        if needs_sack && !self.options.sack {
            return Err(ProfileError::SackWithoutOption);
        }
        if self.early_retransmit && self.recovery == RecoveryChoice::RackTlp {
            return Err(ProfileError::EarlyRetransmitWithRack);
        }
        if let Some(cap) = self.reordering {
            if self.recovery == RecoveryChoice::RackTlp {
                return Err(ProfileError::RrWithRack);
            }
            if !self.options.sack {
                return Err(ProfileError::RrWithoutSack);
            }
            if cap > Fraction::ONE {
                return Err(ProfileError::RrCap(cap));
            }
        }
        if self.congestion.needs_pacing() && self.pacing == PacingChoice::None {
            return Err(ProfileError::NeedsPacing(self.congestion.name()));
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
        if let Some(window) = self.flow.needs_scale().filter(|_| !self.options.window_scale) {
            return Err(ProfileError::WindowNeedsScale(window));
        }
        if let Some(units) = self.ordering.units() {
            units.check(self.send_buffer, receive.initial)?;
        }
        // [MUST-40]
        if let AckChoice::Delayed(delay) | AckChoice::Quick(delay) = self.ack
            && delay >= Duration::from_millis(500)
        {
            return Err(ProfileError::AckDelay(delay));
        }
        self.timer.validate()?;
        if let Some(size) = self.max_segment.filter(|&size| size < 64) {
            return Err(ProfileError::MaxSegment(size));
        }
        if self.dup_thresh == 0 {
            return Err(ProfileError::DupThresh);
        }
        if self.persistence.is_some_and(|it| it.lifetime == Some(Duration::ZERO)) {
            return Err(ProfileError::Lifetime);
        }
        if let HoleChoice::Skip(patience) = self.holes
            && patience.is_zero()
        {
            return Err(ProfileError::Patience);
        }
        if self.dscp > 63 {
            return Err(ProfileError::Dscp(self.dscp));
        }
        // [RFC1122-3.2.1.7-1]
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

    /// Checks that a program can use it which writes bytes and takes whatever bytes come, in any order: without data units.
    ///
    /// # Errors
    /// [`ProfileError::NotBytes`].
    pub fn carries_bytes(&self) -> Result<(), ProfileError> {
        match self.ordering {
            OrderingChoice::InOrder | OrderingChoice::Unordered => Ok(()),
            OrderingChoice::Units(_) => Err(ProfileError::NotBytes),
        }
    }

    /// Checks that a program for plain streams can use it.
    ///
    /// # Errors
    /// [`ProfileError::NotBytes`] or [`ProfileError::NotAStream`].
    pub fn carries_a_stream(&self) -> Result<(), ProfileError> {
        self.carries_bytes()?;
        match self.ordering {
            OrderingChoice::Unordered => Err(ProfileError::NotAStream),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::OfferedOptions;

    #[test]
    fn the_default_works_and_contradictions_are_refused() {
        let good = Profile::default();
        assert_eq!(good.validate(), Ok(()));
        let no_sack = OfferedOptions { sack: false, ..good.options };
        assert_eq!(
            Profile { options: no_sack, ..good.clone() }.validate(),
            Err(ProfileError::SackWithoutOption)
        );
        assert_eq!(
            Profile { options: no_sack, recovery: RecoveryChoice::NewReno, ..good.clone() }
                .validate(),
            Ok(())
        );
        let unscaled = OfferedOptions { window_scale: false, ..good.options };
        assert!(matches!(
            Profile { options: unscaled, ..good.clone() }.validate(),
            Err(ProfileError::WindowNeedsScale(_))
        ));
        assert!(matches!(
            Profile { send_buffer: 9 << 20, ..good.clone() }.validate(),
            Err(ProfileError::BufferOrder("send", ..))
        ));
        let slow = AckChoice::Delayed(Duration::from_millis(500));
        assert!(matches!(
            Profile { ack: slow, ..good.clone() }.validate(),
            Err(ProfileError::AckDelay(_))
        ));
        assert_eq!(
            Profile { max_segment: Some(63), ..good.clone() }.validate(),
            Err(ProfileError::MaxSegment(63))
        );
    }
}
