//! The feedback of marks on a connection, whichever it is.

use super::EcnFeedback;
use super::classic::Classic;
use super::per_packet::PerPacket;
use crate::one_of::one_of;
use crate::profile::EcnChoice;

one_of! {
    /// One of the ways to feed marks back by an echo.
    #[derive(Debug)]
    pub(crate) enum FeedbackUnit as EcnFeedback {
        /// RFC 3168.
        Classic(Classic),
        /// RFC 8257.
        PerPacket(PerPacket),
    }

    fn on_data(&mut self, marked: bool, reduced: bool) -> bool;
    fn echo(&self) -> bool;
}

impl FeedbackUnit {
    /// The unit of this choice, if there is ECN.
    pub(crate) fn new(choice: EcnChoice) -> Option<Self> {
        match choice {
            EcnChoice::Off => None,
            EcnChoice::Classic(_) | EcnChoice::Accurate { .. } => {
                Some(FeedbackUnit::Classic(Classic::default()))
            }
            EcnChoice::PerPacket(_) => Some(FeedbackUnit::PerPacket(PerPacket::default())),
        }
    }
}
