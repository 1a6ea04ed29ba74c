//! No validation: the window stays what it is, used or not, as kernels do that are told not to slow-start after idle. What it once was may leave
//! in one burst after a silence of any length; with pacing it leaves in a round trip.

use super::{IdlePeriod, Validation, WindowBounds};
use crate::congestion::Window;

/// The window is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeepWindow;

impl Validation for KeepWindow {
    fn name(&self) -> &'static str {
        "no-validation"
    }

    fn on_restart(&mut self, _window: &Window, _silence: &IdlePeriod) -> WindowBounds {
        WindowBounds::UNCHANGED
    }
}
