//! Which unit a connection uses for each job, and the settings that go with them.
//!
//! A [`Profile`] is checked once, when it is built, and shared by all connections that use it. A combination that
//! cannot work is refused with the reason; it is never silently repaired.

use crate::ack_policy::AckPolicy;
use crate::ack_policy::delayed::DelayedAck;
use crate::ack_policy::immediate::Immediate;
use crate::adu::AduConfig;
use crate::ecn::classic::Classic;
use crate::ecn::per_packet::PerPacket;
use crate::ecn::{EcnConfig, EcnFeedback};
use crate::flow::FlowControl;
use crate::flow::fixed::FixedWindow;
use crate::flow::none::NoFlowControl;
use crate::flow::receive_window::{ReceiveWindow, ReceiveWindowConfig};
use crate::holes::HoleChoice;
use crate::ordering::Ordering;
use crate::ordering::adu::Units;
use crate::ordering::holed::Holed;
use crate::ordering::in_order::InOrder;
use crate::ordering::unordered::Unordered;
use crate::pacing::{Pacing, RatePacing};
use crate::persistence::Persistence;
use crate::pos::Pos;
use crate::recovery::Recovery;
use crate::recovery::giving_up::GivingUp;
use crate::recovery::go_back_n::GoBackN;
use crate::recovery::newreno::NewReno;
use crate::recovery::rack_tlp::RackTlp;
use crate::recovery::sack::SackRecovery;
use crate::reduction::Reduction;
use crate::reduction::prr::Prr;
use crate::rto::RetransmissionTimer;
use crate::rto::eifel::EifelConfig;
use crate::rto::fixed::FixedConfig;
use crate::rto::rfc6298::Rfc6298Config;
use crate::slow_start::SlowStart;
use crate::slow_start::hystart_pp::HyStartPp;
use crate::slow_start::limited::Limited;
use crate::slow_start::standard::Standard;
use crate::time::Duration;
use crate::undo::UndoConfig;
use crate::validation::Validation;
use crate::validation::cwv::Cwv;
use crate::validation::keep::KeepWindow;
use crate::validation::restart::RestartWindow;
use alloc::boxed::Box;

pub use crate::congestion::CongestionChoice;

/// How the window grows until the first loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartChoice {
    /// RFC 5681.
    Standard(Standard),
    /// RFC 3742.
    Limited(Limited),
    /// RFC 9406.
    HyStartPp,
}

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryChoice {
    /// RFC 6582, whatever the peer offers.
    NewReno,
    /// RFC 6675 when SACK was agreed, RFC 6582 otherwise.
    Sack,
    /// RFC 8985 when SACK was agreed, RFC 6582 otherwise.
    RackTlp,
    /// Everything from the loss on again.
    GoBackN,
}

/// The retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerChoice {
    /// RFC 6298.
    Rfc6298(Rfc6298Config),
    /// Ludwig and Sklower, CCR 2000.
    Eifel(EifelConfig),
    /// Always the same.
    Fixed(FixedConfig),
}

/// In what order data reaches the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderingChoice {
    /// The byte stream of RFC 9293.
    InOrder,
    /// Its bytes as they arrive, each piece with its place.
    Unordered,
    /// Application data units, encoded in the stream; in both directions.
    Units(AduConfig),
}

impl OrderingChoice {
    /// How units are taken in, if there are any.
    pub fn units(&self) -> Option<AduConfig> {
        match *self {
            OrderingChoice::InOrder | OrderingChoice::Unordered => None,
            OrderingChoice::Units(config) => Some(config),
        }
    }
}

/// How the window comes down in fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionChoice {
    /// At once (RFC 5681, RFC 6675).
    AtOnce,
    /// Evenly (RFC 9937).
    Prr,
}

/// What a window that was not used is still worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationChoice {
    /// All that it was.
    Keep,
    /// The initial window after a silence (RFC 5681 section 4.1).
    RestartWindow,
    /// What RFC 7661 says.
    Cwv,
}

/// How marks are fed back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnChoice {
    /// No ECN.
    Off,
    /// RFC 3168.
    Classic(EcnConfig),
    /// RFC 8257, for DCTCP at both ends: it is not negotiated.
    PerPacket(EcnConfig),
}

impl EcnChoice {
    /// How it is used, if it is.
    pub fn config(&self) -> Option<EcnConfig> {
        match *self {
            EcnChoice::Off => None,
            EcnChoice::Classic(config) | EcnChoice::PerPacket(config) => Some(config),
        }
    }
}

/// What the receiver offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowChoice {
    /// A receive window, tuned between the two sizes.
    ReceiveWindow(ReceiveWindowConfig),
    /// A receive window of one size, in bytes.
    Fixed(usize),
    /// The widest window always; what does not fit the memory is dropped.
    None {
        /// So many bytes at most are held for the application.
        memory: usize,
    },
}

impl FlowChoice {
    /// The sizes of the receive buffer.
    pub fn buffer(&self) -> ReceiveWindowConfig {
        match *self {
            FlowChoice::ReceiveWindow(config) => config,
            FlowChoice::Fixed(size) | FlowChoice::None { memory: size } => {
                ReceiveWindowConfig { initial: size, max: size }
            }
        }
    }

    /// The same choice for a receive buffer of these sizes; one that is not tuned has the larger from the beginning.
    pub fn with_buffer(self, config: ReceiveWindowConfig) -> Self {
        match self {
            FlowChoice::ReceiveWindow(_) => FlowChoice::ReceiveWindow(config),
            FlowChoice::Fixed(_) => FlowChoice::Fixed(config.max),
            FlowChoice::None { .. } => FlowChoice::None { memory: config.max },
        }
    }

    /// The largest window it may offer, in bytes, which the window scale is for.
    pub(crate) fn max_window(&self) -> usize {
        match *self {
            FlowChoice::ReceiveWindow(config) => config.max,
            FlowChoice::Fixed(size) => size,
            FlowChoice::None { .. } => MAX_WINDOW,
        }
    }

    /// The window of a SYN or SYN-ACK, which is not scaled.
    pub(crate) fn first_window(&self) -> u16 {
        let window = match *self {
            FlowChoice::ReceiveWindow(config) => config.initial,
            FlowChoice::Fixed(size) => size,
            FlowChoice::None { .. } => MAX_WINDOW,
        };
        u16::try_from(window).unwrap_or(u16::MAX)
    }

    /// The window that cannot be offered without the window scale option, if it needs one.
    fn needs_scale(&self) -> Option<usize> {
        match self {
            FlowChoice::ReceiveWindow(_) | FlowChoice::Fixed(_) => {
                Some(self.max_window()).filter(|&window| window > 65_535)
            }
            // As wide as can be expressed, whatever that is.
            FlowChoice::None { .. } => None,
        }
    }
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckChoice {
    /// RFC 5681 section 4.2, waiting at most this long.
    Delayed(Duration),
    /// As soon as everything that came together has been taken in.
    Immediate,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// How much may be in flight.
    pub congestion: CongestionChoice,
    /// How that grows at the beginning.
    pub slow_start: SlowStartChoice,
    /// What is sent again.
    pub recovery: RecoveryChoice,
    /// How often and how long that is tried, with a peer that has agreed to it; `None`: until it has arrived.
    pub persistence: Option<Persistence>,
    /// What this end does about data that does not come.
    pub holes: HoleChoice,
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
    /// How the window comes down in fast recovery.
    pub reduction: ReductionChoice,
    /// What a window that was not used is still worth.
    pub validation: ValidationChoice,
    /// Who watches for reductions that were for nothing.
    pub undo: UndoConfig,
    /// How marks are fed back, and whether ECN is offered.
    pub ecn: EcnChoice,
    /// Options offered to the peer.
    pub options: OfferedOptions,
    /// The largest segment announced and sent, in bytes of payload and options, if less than the interface takes
    /// (what `TCP_MAXSEG` sets); at least 64.
    pub max_segment: Option<u16>,
    /// Duplicate acknowledgements that mean loss (DupThresh of RFC 6675).
    pub dup_thresh: u32,
    /// Take fewer for a loss when so few segments are outstanding that not enough can come (RFC 5827).
    pub early_retransmit: bool,
    /// Let the first of them bring new data out (RFC 3042).
    pub limited_transmit: bool,
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
            congestion: CongestionChoice::reno(),
            slow_start: SlowStartChoice::Standard(Standard::default()),
            recovery: RecoveryChoice::Sack,
            persistence: None,
            holes: HoleChoice::Wait,
            timer: TimerChoice::Rfc6298(Rfc6298Config::default()),
            ordering: OrderingChoice::InOrder,
            flow: FlowChoice::ReceiveWindow(ReceiveWindowConfig::default()),
            ack: AckChoice::Delayed(Duration::from_millis(40)),
            pacing: PacingChoice::None,
            reduction: ReductionChoice::AtOnce,
            validation: ValidationChoice::RestartWindow,
            undo: UndoConfig::NONE,
            ecn: EcnChoice::Classic(EcnConfig::default()),
            options: OfferedOptions { window_scale: true, timestamps: true, sack: true },
            max_segment: None,
            dup_thresh: 3,
            early_retransmit: false,
            limited_transmit: true,
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
    #[error(
        "SACK and RACK-TLP recovery need the SACK option; offer it, or choose NewReno or go-back-N"
    )]
    SackWithoutOption,
    /// Two ideas of when something is lost.
    #[error(
        "early retransmit counts duplicates, and RACK-TLP goes by time and probes the tail; choose another loss recovery, or leave it out"
    )]
    EarlyRetransmitWithRack,
    /// The controller sends at a rate of its own.
    #[error(
        "{0} sends at the rate it measures and needs pacing; without it, choose another congestion control"
    )]
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
        /// What it needs.
        least: usize,
    },
    /// See [`Profile::carries_bytes`].
    #[error(
        "application data units are for programs that send and receive them as such, and here bytes are written: leave adu out"
    )]
    NotBytes,
    /// See [`Profile::carries_a_stream`].
    #[error(
        "unordered delivery is for programs that put the pieces in their places, and here a stream is read: leave unordered out"
    )]
    NotAStream,
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
    /// Data that is given up before it can be lost.
    #[error("data with a lifetime of zero is given up before it can be lost")]
    Lifetime,
    /// A receiver without any patience would take the least reordering for a loss.
    #[error("a receiver has to wait some time for what is missing before it skips it")]
    Patience,
    /// Both keep-alive times and the count must be positive.
    #[error("keep-alive needs positive times and at least one probe")]
    KeepAlive,
}

/// The largest window that can be advertised (RFC 7323 section 2.3).
pub const MAX_WINDOW: usize = 65_535 << 14;

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
        if let AckChoice::Delayed(delay) = self.ack
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
            && patience.after.is_zero()
        {
            return Err(ProfileError::Patience);
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

    /// Checks that a program can use it which knows nothing but streams.
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

    pub(crate) fn slow_start(&self) -> Box<dyn SlowStart> {
        match self.slow_start {
            SlowStartChoice::Standard(config) => Box::new(config),
            SlowStartChoice::Limited(config) => Box::new(config),
            SlowStartChoice::HyStartPp => {
                Box::new(HyStartPp::new(self.pacing != PacingChoice::None))
            }
        }
    }

    /// Whether partial reliability is offered to the peer: whoever gives data up can also do without.
    pub(crate) fn offers_partial(&self) -> bool {
        self.persistence.is_some() || self.holes != HoleChoice::Wait
    }

    pub(crate) fn recovery(&self, sack_agreed: bool, partial_agreed: bool) -> Box<dyn Recovery> {
        let ordinary = self.ordinary_recovery(sack_agreed);
        match self.persistence.filter(|_| partial_agreed) {
            Some(persistence) => Box::new(GivingUp::new(ordinary, persistence)),
            None => ordinary,
        }
    }

    fn ordinary_recovery(&self, sack_agreed: bool) -> Box<dyn Recovery> {
        match self.recovery {
            RecoveryChoice::Sack if sack_agreed => Box::new(SackRecovery::default()),
            RecoveryChoice::RackTlp if sack_agreed => Box::new(RackTlp::default()),
            RecoveryChoice::Sack | RecoveryChoice::RackTlp | RecoveryChoice::NewReno => {
                Box::new(NewReno::default())
            }
            RecoveryChoice::GoBackN => Box::new(GoBackN::default()),
        }
    }

    pub(crate) fn timer(&self) -> Box<dyn RetransmissionTimer> {
        self.timer.timer()
    }

    /// A stream in order, with holes where there may be any.
    fn stream(&self, next: Pos) -> Box<dyn Ordering> {
        if self.offers_partial() {
            Box::new(Holed::new(next))
        } else {
            Box::new(InOrder::new(next))
        }
    }

    pub(crate) fn ordering(&self, next: Pos) -> Box<dyn Ordering> {
        match self.ordering {
            OrderingChoice::InOrder => self.stream(next),
            OrderingChoice::Unordered => Box::new(Unordered::new(next)),
            OrderingChoice::Units(AduConfig { max, ordered: true }) => {
                Box::new(Units::new(self.stream(next), max))
            }
            OrderingChoice::Units(AduConfig { max, ordered: false }) => {
                Box::new(Units::new(Box::new(Unordered::new(next)), max))
            }
        }
    }

    pub(crate) fn flow(&self) -> Box<dyn FlowControl> {
        match self.flow {
            FlowChoice::ReceiveWindow(config) => Box::new(ReceiveWindow::new(config)),
            FlowChoice::Fixed(size) => Box::new(FixedWindow(size)),
            FlowChoice::None { memory } => Box::new(NoFlowControl::new(memory)),
        }
    }

    pub(crate) fn ack(&self) -> Box<dyn AckPolicy> {
        match self.ack {
            AckChoice::Delayed(delay) => Box::new(DelayedAck::new(delay)),
            AckChoice::Immediate => Box::new(Immediate),
        }
    }

    pub(crate) fn reduction(&self) -> Option<Box<dyn Reduction>> {
        match self.reduction {
            ReductionChoice::AtOnce => None,
            ReductionChoice::Prr => Some(Box::new(Prr::default())),
        }
    }

    pub(crate) fn validation(&self) -> Box<dyn Validation> {
        match self.validation {
            ValidationChoice::Keep => Box::new(KeepWindow),
            ValidationChoice::RestartWindow => Box::new(RestartWindow),
            ValidationChoice::Cwv => Box::new(Cwv::default()),
        }
    }

    pub(crate) fn ecn_feedback(&self) -> Option<Box<dyn EcnFeedback>> {
        match self.ecn {
            EcnChoice::Off => None,
            EcnChoice::Classic(_) => Some(Box::new(Classic::default())),
            EcnChoice::PerPacket(_) => Some(Box::new(PerPacket::default())),
        }
    }

    pub(crate) fn pacing(&self) -> Option<Box<dyn Pacing>> {
        match self.pacing {
            PacingChoice::None => None,
            PacingChoice::Rate => Some(Box::new(RatePacing::default())),
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
