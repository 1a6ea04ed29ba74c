//! Events of layers: attached, detached and why, and the variables whose request has changed.
//!
//! They are kept until they are [published](super::Connection::publish), and bounded: if there are too many, the oldest are dropped.

use super::host::Layer;
use super::{Departure, Host, Layers};
use crate::event::LayerChange;
use crate::extension::variable::Variables;
use crate::extension::{LayerId, Variable};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::{String, ToString};

/// The most changes that are kept.
const REMEMBERED: usize = 32;

/// A change of the set of layers.
#[derive(Debug)]
pub(in super::super) struct LayerEvent {
    pub(in super::super) layer: Option<LayerId>,
    pub(in super::super) name: String,
    pub(in super::super) change: LayerChange,
}

/// Events that were not polled yet.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct PendingEvents {
    /// The variables of which something else is asked.
    requests: Variables,
    /// Variables to report at the end of the round trip, as they were reported in this one already.
    held: Variables,
    /// Variables that were reported in this round trip.
    told: Variables,
    /// Nothing while there is none: that is nearly always.
    #[expect(clippy::box_collection, reason = "a pointer fits into the first line of the host")]
    changes: Option<Box<VecDeque<LayerEvent>>>,
}

impl PendingEvents {
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_none() && self.requests.is_empty()
    }

    /// The request for a variable has changed. The first change in a round trip is reported at once, and the latest at its end. Changes of more
    /// than `values` are always reported at once.
    pub(super) fn request_changed(&mut self, variable: Variable, values: bool) {
        let one = Variables::one(variable);
        if values && self.told.has(variable) {
            self.held.insert(one);
        } else {
            self.requests.insert(one);
            self.told.insert(one);
            self.held.remove(one);
        }
    }

    /// Whether the end of a round trip makes a difference.
    #[inline]
    pub(super) fn wait_for_round(&self) -> bool {
        !self.told.is_empty()
    }

    /// A round trip ended, or nothing is outstanding that could end one.
    #[inline]
    pub(super) fn round_over(&mut self) {
        self.requests.insert(self.held);
        self.told = core::mem::take(&mut self.held);
    }

    pub(super) fn tell(&mut self, layer: &Layer, change: LayerChange) {
        let name = layer.extension.name().to_string();
        self.push(LayerEvent { layer: Some(layer.id), name, change });
    }

    pub(super) fn departed(&mut self, departure: &Departure) {
        let Departure { layer, name, reason } = departure.clone();
        self.push(LayerEvent { layer, name, change: LayerChange::Departed(reason) });
    }

    fn push(&mut self, event: LayerEvent) {
        let changes = self.changes.get_or_insert_default();
        if changes.len() == REMEMBERED {
            changes.pop_front();
        }
        changes.push_back(event);
    }

    fn pop(&mut self) -> Option<LayerEvent> {
        let changes = self.changes.as_mut()?;
        let oldest = changes.pop_front();
        if changes.is_empty() {
            self.changes = None;
        }
        oldest
    }
}

impl Layers {
    /// The next change of the set of layers, the oldest first.
    pub(in super::super) fn next_change(&mut self) -> Option<LayerEvent> {
        self.take_pending(PendingEvents::pop)
    }

    /// The next variable whose request has changed since the last call; its [ruling](super::Connection::ruling) has the present request. If the same
    /// layers change only the values, a variable is told at most once in a round trip, and once more at its end.
    pub(in super::super) fn next_request(&mut self) -> Option<Variable> {
        self.take_pending(|pending| pending.requests.pop())
    }

    fn take_pending<T>(&mut self, take: impl FnOnce(&mut PendingEvents) -> Option<T>) -> Option<T> {
        let mut host = self.take()?;
        let taken = take(&mut host.pending_events);
        self.put(host);
        taken
    }
}

impl Host {
    /// Whether everything about earlier layers has been reported.
    #[cold]
    pub(super) fn is_reported(&self) -> bool {
        self.departures.is_empty() && self.pending_events.is_empty()
    }
}
