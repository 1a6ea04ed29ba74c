//! The journal of a part: what it did in a window of time, so that the parts' doings can be put into the order of one core.

use super::agenda::Entity;
use super::{LinkId, NodeId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use transom_stack::log::Encoded;
use transom_tcp::time::Instant;

/// Something that a part did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It called an entity that was due then. What follows happened during that call.
    Ran(Instant, Entity),
    /// A call of an entity was asked for, and is the earliest of it.
    Called(Entity),
    /// A packet left over a cut link, and comes out then.
    Sent(u32, Instant),
}

/// What somebody wants to see, who looks from the thread that runs the network.
#[derive(Debug)]
pub(super) enum Seen {
    /// A packet came to a link.
    Offered(LinkId, Instant, Vec<u8>, Option<String>),
    /// A packet came out of a link.
    Arrived(LinkId, Instant, Vec<u8>),
    /// A host wrote a record into its event log.
    Logged(NodeId, Encoded),
}

/// What has been seen, and during which call of the window.
#[derive(Debug, Default)]
pub(super) struct Sights {
    call: usize,
    pub(super) seen: Vec<(usize, Seen)>,
}

/// The sights of a part, shared by it with its taps.
#[derive(Clone, Debug, Default)]
pub(super) struct Lookout(Arc<Mutex<Sights>>);

impl Lookout {
    pub(super) fn lock(&self) -> MutexGuard<'_, Sights> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn saw(&self, seen: Seen) {
        let mut sights = self.lock();
        let call = sights.call;
        sights.seen.push((call, seen));
    }
}

/// The journal of a window.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) steps: Vec<Step>,
    /// Present if anybody looks.
    pub(super) lookout: Option<Lookout>,
}

impl Journal {
    pub(super) fn runs(&mut self, at: Instant, entity: Entity) {
        self.steps.push(Step::Ran(at, entity));
        if let Some(lookout) = &self.lookout {
            lookout.lock().call += 1;
        }
    }

    pub(super) fn called(&mut self, entity: Entity) {
        self.steps.push(Step::Called(entity));
    }

    pub(super) fn sent(&mut self, cut: u32, due: Instant) {
        self.steps.push(Step::Sent(cut, due));
    }

    /// Takes what was seen, by the number of the call from one on, and begins a new window.
    pub(super) fn take_sights(&mut self) -> Vec<(usize, Seen)> {
        let Some(lookout) = &self.lookout else { return Vec::new() };
        let mut sights = lookout.lock();
        sights.call = 0;
        std::mem::take(&mut sights.seen)
    }
}
