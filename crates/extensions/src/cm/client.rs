//! A TCP connection as a member of a macroflow.

use super::{DEFAULT_MACROFLOW, FlowState, Manager, Membership, macroflow_to};
use crate::vegas::Poll;
use transom_tcp::extension::{Extension, Limits, Occasion, Value, View, Wake};

/// The extension. At each wake-up it reports the connection's state to the manager, and limits cwnd to the connection's share.
///
/// Once each round trip by default, and in any case when it begins to send after having had nothing to send, when a loss is found and when
/// the retransmission timer expires.
#[derive(Debug)]
pub(super) struct Client {
    manager: Manager,
    /// None: its peer's address.
    macroflow: Option<String>,
    weight: u32,
    /// When it takes samples.
    poll: Poll,
    /// Since it is attached.
    membership: Option<Membership>,
    /// At its last call, nothing was outstanding and there was nothing to send.
    idle: bool,
}

impl Client {
    pub(super) fn new(
        manager: Manager,
        macroflow: Option<String>,
        weight: u32,
        poll: Poll,
    ) -> Self {
        Client { manager, macroflow, weight, poll, membership: None, idle: true }
    }

    fn limit(&mut self, view: &View<'_>, limits: &mut Limits) {
        let Some(membership) = &self.membership else { return };
        let state = FlowState::of(view);
        self.idle = state.is_idle();
        limits.at_most(Value::Cwnd(membership.update(&state, view.now())));
    }
}

impl Extension for Client {
    fn name(&self) -> &str {
        "cm"
    }

    fn wake_on(&self) -> Wake {
        self.poll.wakes() | Wake::SEND | Wake::ROUND | Wake::LOSS | Wake::TIMEOUT
    }

    fn on_attach(&mut self, view: &View<'_>, limits: &mut Limits) {
        let named = self.macroflow.clone().or_else(|| view.remote().map(macroflow_to));
        let macroflow = named.unwrap_or_else(|| DEFAULT_MACROFLOW.to_owned());
        self.membership = Some(self.manager.join(macroflow, self.weight));
        self.limit(view, limits);
    }

    fn on_wake(&mut self, occasion: &Occasion, view: &View<'_>, limits: &mut Limits) {
        if occasion.what != Wake::SEND || self.idle || self.poll == Poll::Send {
            self.limit(view, limits);
        }
    }
}
