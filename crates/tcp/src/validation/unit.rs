//! The validation unit of a connection, whichever it is.

use super::cwv::Cwv;
use super::keep::KeepWindow;
use super::restart::RestartWindow;
use super::{IdlePeriod, Validation, WindowBounds};
use crate::ack_context::AckContext;
use crate::congestion::{InitialWindow, Window};
use crate::one_of::one_of;
use crate::profile::ValidationChoice;
use alloc::boxed::Box;

one_of! {
    /// One of the validation units.
    #[derive(Debug)]
    pub(crate) enum ValidationUnit as Validation {
        /// All that the window was.
        Keep(KeepWindow),
        /// RFC 5681 section 4.1.
        Restart(RestartWindow),
        /// RFC 7661.
        Cwv(Box<Cwv>),
    }

    fn on_restart(&mut self, window: &Window, silence: &IdlePeriod) -> WindowBounds;
    fn on_ack(&mut self, window: &Window, ack: &AckContext) -> Option<WindowBounds>;
    fn on_mark(&self, flight: u64) -> u64;
    fn on_loss(&mut self, flight: u64, lost: u64) -> u64;
    fn on_recovered(&mut self, window: &Window, lost: u64) -> Option<u64>;
    fn on_invalidated(&mut self);
}

impl ValidationUnit {
    /// The unit of this choice, for connections with this initial window.
    pub(crate) fn new(choice: ValidationChoice, initial: InitialWindow) -> Self {
        match choice {
            ValidationChoice::Keep => ValidationUnit::Keep(KeepWindow),
            ValidationChoice::RestartWindow => ValidationUnit::Restart(RestartWindow { initial }),
            ValidationChoice::Cwv => ValidationUnit::Cwv(Box::new(Cwv::new(initial))),
        }
    }
}
