//! The feedback of marks on a connection, whichever it is.

use super::EcnFeedback;
use super::classic::Classic;
use super::per_packet::PerPacket;
use crate::profile::EcnChoice;

/// One of the ways to feed marks back by an echo.
#[derive(Debug)]
pub(crate) enum FeedbackUnit {
    /// RFC 3168.
    Classic(Classic),
    /// RFC 8257.
    PerPacket(PerPacket),
}

/// Calls whichever unit it is.
macro_rules! each {
    ($self:expr, $unit:ident => $call:expr) => {
        match $self {
            FeedbackUnit::Classic($unit) => $call,
            FeedbackUnit::PerPacket($unit) => $call,
        }
    };
}

impl FeedbackUnit {
    /// The unit of this choice, if there is ECN.
    pub(crate) fn new(choice: EcnChoice) -> Option<Self> {
        match choice {
            EcnChoice::Off => None,
            EcnChoice::Classic(_) | EcnChoice::Accurate(_) => {
                Some(FeedbackUnit::Classic(Classic::default()))
            }
            EcnChoice::PerPacket(_) => Some(FeedbackUnit::PerPacket(PerPacket::default())),
        }
    }
}

impl EcnFeedback for FeedbackUnit {
    #[inline]
    fn on_data(&mut self, marked: bool, reduced: bool) -> bool {
        each!(self, one => one.on_data(marked, reduced))
    }

    #[inline]
    fn echo(&self) -> bool {
        each!(self, one => one.echo())
    }
}
