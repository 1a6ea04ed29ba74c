//! No congestion control: only the receiver's window bounds what is in flight.

use super::built_in::BuiltIn;
use super::controller::Kind;
use super::{CongestionControl, CongestionEvent, Takeover, Window};
use crate::ack_context::AckContext;
use crate::time::Instant;

/// Leaves the congestion window as wide as it can be.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NoCongestionControl;

impl BuiltIn for NoCongestionControl {
    const NAME: &'static str = "none";
    const SOURCE: &'static str = "\"TCP without congestion control\"";
    const SUMMARY: &'static str = "only the receiver's window limits the flight";

    fn kind(&self) -> Kind {
        Kind::NoCongestionControl(*self)
    }
}

impl CongestionControl for NoCongestionControl {
    fn name(&self) -> &'static str {
        "none"
    }

    fn answers_marks(&self) -> bool {
        false
    }

    fn on_start(&mut self, window: &mut Window, _now: Instant) {
        window.cwnd = Window::WIDEST;
    }

    fn on_takeover(&mut self, _window: &mut Window, _takeover: &Takeover) {
        // The next acknowledgement opens it.
    }

    fn on_leave(&mut self, window: &mut Window) {
        // Nothing has been learned of the path: whoever comes begins at the beginning.
        *window = Window::initial(window.mss);
    }

    fn has_own_slow_start(&self) -> bool {
        true
    }

    fn has_own_recovery(&self) -> bool {
        true
    }

    fn on_ack(&mut self, window: &mut Window, _acked: u64, _ack: &AckContext) {
        window.cwnd = Window::WIDEST;
    }

    fn on_event(&mut self, window: &mut Window, _event: CongestionEvent, _now: Instant) {
        window.cwnd = Window::WIDEST;
    }

    fn on_undo(&mut self, window: &mut Window, _prior: Window, _now: Instant) {
        window.cwnd = Window::WIDEST;
    }
}
