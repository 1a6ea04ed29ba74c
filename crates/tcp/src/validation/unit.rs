//! The validation unit of a connection, whichever it is.

use super::cwv::Cwv;
use super::keep::KeepWindow;
use super::restart::RestartWindow;
use super::{IdlePeriod, Validation, WindowBounds};
use crate::ack_context::AckContext;
use crate::congestion::{InitialWindow, Window};
use crate::profile::ValidationChoice;
use alloc::boxed::Box;

/// One of the validation units.
#[derive(Debug)]
pub(crate) enum ValidationUnit {
    /// All that the window was.
    Keep(KeepWindow),
    /// RFC 5681 section 4.1.
    Restart(RestartWindow),
    /// RFC 7661.
    Cwv(Box<Cwv>),
}

/// Calls whichever unit it is.
macro_rules! each {
    ($self:expr, $unit:ident => $call:expr) => {
        match $self {
            ValidationUnit::Keep($unit) => $call,
            ValidationUnit::Restart($unit) => $call,
            ValidationUnit::Cwv($unit) => $call,
        }
    };
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

impl Validation for ValidationUnit {
    #[inline]
    fn name(&self) -> &'static str {
        each!(self, one => one.name())
    }

    #[inline]
    fn on_restart(&mut self, window: &Window, silence: &IdlePeriod) -> WindowBounds {
        each!(self, one => one.on_restart(window, silence))
    }

    #[inline]
    fn on_ack(&mut self, window: &Window, ack: &AckContext) -> Option<WindowBounds> {
        each!(self, one => one.on_ack(window, ack))
    }

    #[inline]
    fn on_mark(&self, flight: u64) -> u64 {
        each!(self, one => one.on_mark(flight))
    }

    #[inline]
    fn on_loss(&mut self, flight: u64, lost: u64) -> u64 {
        each!(self, one => one.on_loss(flight, lost))
    }

    #[inline]
    fn on_recovered(&mut self, window: &Window, lost: u64) -> Option<u64> {
        each!(self, one => one.on_recovered(window, lost))
    }

    #[inline]
    fn on_invalidated(&mut self) {
        each!(self, one => one.on_invalidated())
    }
}
