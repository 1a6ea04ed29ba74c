//! Layers over a connection of another TCP, such as the kernel's.
//!
//! The caller reports the state of such a connection ([`Observed`]) and its events. [`ObservedLayers`] wakes the layers and gives the
//! effective values of their limits. [`Connection`](super::Connection) runs its own layers with the same code.

use super::super::glance::{Glance, Source};
use super::effective::rule;
use super::{Host, LayerInfo};
use crate::extension::{
    AttachError, Capabilities, Departure, DepartureReason, Extension, LayerId, Message, Occasion,
    Ruling, Variable, Wake,
};
use crate::state::ConnectionState;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The known state of a connection that another TCP runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Its state.
    pub state: ConnectionState,
    /// The messages not yet acknowledged cumulatively, the oldest first; empty if they are unknown.
    pub messages: Vec<Message>,
    /// The capabilities that an extension may require.
    pub capabilities: Capabilities,
}

/// The layers of a connection that another TCP runs.
#[derive(Debug, Default)]
pub struct ObservedLayers {
    host: Box<Host>,
}

impl ObservedLayers {
    /// Attaches an extension as the topmost layer.
    ///
    /// # Errors
    /// If the connection lacks a capability that the extension [requires](Extension::requires), there are
    /// [`MAX_LAYERS`](crate::extension::MAX_LAYERS) already, or it fails when it is attached.
    pub fn attach(
        &mut self,
        now: Instant,
        connection: &Observed,
        extension: Box<dyn Extension>,
    ) -> Result<LayerId, AttachError> {
        let (requires, wakes) = (extension.requires(), extension.wake_on());
        let lacking = requires - connection.capabilities;
        if !lacking.is_empty() {
            return Err(AttachError::Lacks(lacking));
        }
        let source = Source::Observed(connection);
        let (layer, asked) = self.host.attach(now, source, extension, requires, wakes)?;
        self.host.clock = self.host.earliest();
        self.host.recombine(asked);
        Ok(layer)
    }

    /// Wakes every layer that waits for the event, or whose time has come. No layer sees the limits that another sets in answer. Returns
    /// whether the combined request has changed.
    pub fn wake(&mut self, connection: &Observed, occasion: &Occasion) -> bool {
        let host = &mut *self.host;
        if let Some(ack) = &occasion.ack {
            host.shared.acks_seen += 1;
            host.shared.history.note_ack(Some(ack));
        }
        if !host.hears(occasion.what, occasion.now) {
            return false;
        }
        let woken = host.wake(Source::Observed(connection), &mut occasion.clone());
        host.clock = woken.clock;
        if woken.faulty {
            host.expel(|layer| layer.limits.fault().map(DepartureReason::Fault));
            host.clock = host.earliest();
        }
        let (_, any) = host.recombine(woken.asked);
        if occasion.what.contains(Wake::ROUND) {
            host.pending_events.round_over();
        }
        any
    }

    /// Counts acknowledgements that were not reported, so that extensions find that they have missed some. The list of acknowledgements begins anew.
    pub fn missed(&mut self, acks: u64) {
        if acks > 0 {
            self.host.shared.acks_seen += acks;
            self.host.shared.history.forget_acks();
        }
    }

    /// When the clock wakes the first layer, if it wakes any. The caller calls [`wake`](Self::wake) at that time.
    pub fn next_wake(&self) -> Option<Instant> {
        Some(self.host.clock).filter(|at| *at != Instant::FAR_FUTURE)
    }

    /// The layers, in the order in which they were attached.
    pub fn layers(&self) -> impl Iterator<Item = LayerInfo<'_>> {
        self.host.layers()
    }

    /// The combined request for a variable, its effective value, and the layer that decided.
    pub fn ruling(&self, connection: &Observed, variable: Variable) -> Ruling {
        rule(Glance(Source::Observed(connection)), &self.host.shared, variable)
    }

    /// The next layer that was detached for a fault of its own.
    pub fn poll_departure(&mut self) -> Option<Departure> {
        self.host.departures.pop_front()
    }
}
