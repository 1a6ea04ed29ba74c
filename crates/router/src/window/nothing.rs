//! The policy without an effect, to observe packets and the uncontrolled queue.

use transom_base::time::Instant;

use super::policy::{AckAction, AckContext, Policy};
use crate::queue::Length;

/// Leaves every window unchanged. Flows are remembered and counted as with any other policy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nothing;

impl Policy for Nothing {
    fn on_arrival(&mut self, _: Instant, _: usize, _: Length) {}

    fn on_ack(&mut self, _: Instant, _: &AckContext) -> AckAction {
        AckAction::AsItIs
    }
}
