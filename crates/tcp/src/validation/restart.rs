//! Restarting from the initial window (RFC 5681 section 4.1). After an idle period longer than the
//! retransmission timeout there is no clock of acknowledgements any more, and the window is min(IW,
//! cwnd). The slow-start threshold stays, so that slow start leads back to the earlier window.

use super::{IdlePeriod, Validation, WindowBounds};
use crate::congestion::{InitialWindow, Window};

/// The restart window of RFC 5681.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RestartWindow {
    /// IW.
    pub(crate) initial: InitialWindow,
}

impl Validation for RestartWindow {
    fn on_restart(&mut self, window: &Window, _silence: &IdlePeriod) -> WindowBounds {
        WindowBounds { most_cwnd: self.initial.bytes(window.mss), ..WindowBounds::UNCHANGED }
    }
}
