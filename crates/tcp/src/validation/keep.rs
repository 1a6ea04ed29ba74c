//! No validation: the window stays, used or not, like a kernel without slow start after idle. The whole window may leave in one burst after an
//! idle period of any length; with pacing it leaves in a round trip.

use super::{IdlePeriod, Validation, WindowBounds};
use crate::congestion::Window;

/// The window is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeepWindow;

impl Validation for KeepWindow {
    fn on_restart(&mut self, _window: &Window, _silence: &IdlePeriod) -> WindowBounds {
        WindowBounds::UNCHANGED
    }
}
