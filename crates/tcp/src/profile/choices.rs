//! The choices for each unit.

use super::MAX_WINDOW;
use crate::adu::AduConfig;
use crate::ecn::EcnConfig;
use crate::flow::receive_window::ReceiveWindowConfig;
use crate::rto::eifel::EifelConfig;
use crate::rto::fixed::FixedConfig;
use crate::rto::rfc6298::Rfc6298Config;
use crate::slow_start::limited::Limited;
use crate::slow_start::standard::Standard;
use crate::time::Duration;

/// How the window grows until the first loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartChoice {
    /// RFC 5681.
    Standard(Standard),
    /// RFC 3742.
    Limited(Limited),
    /// RFC 9406.
    HyStartPp,
    /// The one of Linux' CUBIC.
    HyStart,
    /// draft-chung-ccwg-search.
    Search,
}

/// Loss detection and recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryChoice {
    /// RFC 2581, whatever the peer offers: the first acknowledgement of new data ends fast recovery.
    Reno,
    /// RFC 6582, whatever the peer offers.
    NewReno,
    /// RFC 6675 when SACK was agreed, RFC 6582 otherwise.
    Sack,
    /// RFC 8985 when SACK was agreed, RFC 6582 otherwise.
    RackTlp,
    /// Everything from the loss on again.
    GoBackN,
    /// Everything from the loss on again, and once more with each partial acknowledgement: FreeBSD 4.7 without a congestion window.
    WholeWindow,
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
    pub(crate) fn units(&self) -> Option<AduConfig> {
        match *self {
            OrderingChoice::InOrder | OrderingChoice::Unordered => None,
            OrderingChoice::Units(config) => Some(config),
        }
    }
}

/// How fast recovery reduces the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionChoice {
    /// At once (RFC 5681, RFC 6675).
    AtOnce,
    /// Evenly (RFC 9937).
    Prr,
}

/// The validation of a window that was not fully used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationChoice {
    /// All that it was.
    Keep,
    /// The initial window after a silence (RFC 5681 section 4.1).
    RestartWindow,
    /// RFC 7661.
    Cwv,
}

/// How marks are fed back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnChoice {
    /// No ECN.
    Off,
    /// RFC 3168.
    Classic(EcnConfig),
    /// RFC 8257, for DCTCP at both ends, without negotiation.
    PerPacket(EcnConfig),
    /// RFC 9768, and RFC 3168 with a peer without accurate ECN.
    Accurate {
        /// The settings of RFC 3168, for a peer without accurate ECN.
        ecn: EcnConfig,
        /// Send options with counts of bytes too. Those of the peer are read in any case.
        options: bool,
    },
}

impl EcnChoice {
    /// How it is used, if it is.
    pub fn config(&self) -> Option<EcnConfig> {
        match *self {
            EcnChoice::Off => None,
            EcnChoice::Classic(config) | EcnChoice::PerPacket(config) => Some(config),
            EcnChoice::Accurate { ecn, .. } => Some(ecn),
        }
    }

    /// Whether accurate ECN sends options, if it is used.
    pub(crate) fn accurate(&self) -> Option<bool> {
        match *self {
            EcnChoice::Accurate { options, .. } => Some(options),
            _ => None,
        }
    }
}

/// The window that the receiver advertises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowChoice {
    /// A receive window, tuned between the two sizes.
    ReceiveWindow(ReceiveWindowConfig),
    /// A receive window of one size, in bytes.
    Fixed(usize),
    /// Always the largest window; data that does not fit the memory is dropped.
    None {
        /// At most this many bytes are held for the application.
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
    pub(super) fn needs_scale(&self) -> Option<usize> {
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
    /// As Linux, waiting at most this long.
    Quick(Duration),
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
#[non_exhaustive]
pub struct OfferedOptions {
    /// Window scale (RFC 7323 section 2).
    pub window_scale: bool,
    /// Timestamps, and with them PAWS (RFC 7323 sections 3 to 5).
    pub timestamps: bool,
    /// Selective acknowledgement (RFC 2018).
    pub sack: bool,
}

/// All of them.
impl Default for OfferedOptions {
    fn default() -> Self {
        OfferedOptions { window_scale: true, timestamps: true, sack: true }
    }
}

transom_base::setters! {
    const OfferedOptions:
    with_window_scale = window_scale: bool,
    with_timestamps = timestamps: bool,
    with_sack = sack: bool,
}
