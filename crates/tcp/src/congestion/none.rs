//! No congestion control: only the receiver's window bounds what is in flight.

use super::{CongestionControl, CongestionEvent, Window};
use crate::ack_context::AckContext;
use crate::time::Instant;

/// Leaves the congestion window as wide as it can be.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCongestionControl;

/// Wide enough never to bind, narrow enough that sums of windows cannot overflow.
const UNBOUNDED: u64 = 1 << 40;

impl CongestionControl for NoCongestionControl {
    fn name(&self) -> &'static str {
        "none"
    }

    fn on_start(&mut self, window: &mut Window) {
        window.cwnd = UNBOUNDED;
    }

    fn on_ack(&mut self, window: &mut Window, _ack: &AckContext) {
        window.cwnd = UNBOUNDED;
    }

    fn on_event(&mut self, window: &mut Window, _event: CongestionEvent, _now: Instant) {
        window.cwnd = UNBOUNDED;
    }
}
