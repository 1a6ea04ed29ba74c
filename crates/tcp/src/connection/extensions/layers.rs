//! The layers of a connection, and a summary of them that is cheap to read.
//!
//! A connection checks at every packet whether a layer limits a variable or waits for an event; usually none does. So the answers are kept beside
//! the pointer to the layers. If the layers do not concern a packet, it costs no more than without layers.

use super::{Host, Shared};
use crate::control::Clamp;
use crate::extension::variable::Variables;
use crate::extension::{Variable, Wake};
use alloc::boxed::Box;

/// The summary of the layers for the next packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outline {
    /// The variables of which anything is asked.
    asked: Variables,
    /// The events that may wake a layer, or have to be counted for one.
    heard: Wake,
    /// There are events for a log.
    events_pending: bool,
}

impl Outline {
    #[inline]
    fn of(host: &Host) -> Self {
        Outline {
            asked: host.shared.combined.some(),
            heard: host.heard(),
            events_pending: !host.pending_events.is_empty(),
        }
    }
}

/// The layers, if there are any.
#[derive(Debug, Default)]
pub(in super::super) struct Layers {
    host: Option<Box<Host>>,
    outline: Outline,
}

impl Layers {
    /// Whether there are layers, or events of them.
    #[inline]
    pub(in super::super) fn is_some(&self) -> bool {
        self.host.is_some()
    }

    /// Whether anything is asked of `variable`.
    #[inline]
    pub(super) fn asks(&self, variable: Variable) -> bool {
        self.outline.asked.has(variable)
    }

    /// Whether any of this concerns a layer.
    #[inline]
    pub(super) fn hear(&self, what: Wake) -> bool {
        self.outline.heard.intersects(what)
    }

    /// Whether there are events for a log.
    #[inline]
    pub(in super::super) fn have_events(&self) -> bool {
        self.outline.events_pending
    }

    #[inline]
    pub(super) fn get(&self) -> Option<&Host> {
        let host = self.host.as_deref();
        debug_assert!(host.is_none_or(|host| self.outline == Outline::of(host)));
        host
    }

    /// What the layers ask of the send engine.
    #[inline]
    pub(in super::super) fn clamp(&self) -> Clamp<'_> {
        match self.get() {
            Some(host) => Clamp::of(&host.shared.combined, host.pacer.release_at()),
            None => Clamp::NONE,
        }
    }

    /// What layers see of each other, if there are any.
    #[inline]
    pub(in super::super) fn shared(&self) -> Option<&Shared> {
        self.get().map(|host| &host.shared)
    }

    /// For what is in no outline.
    #[inline]
    pub(super) fn get_mut(&mut self) -> Option<&mut Host> {
        self.host.as_deref_mut()
    }

    /// For everything else.
    pub(super) fn change<T>(&mut self, change: impl FnOnce(&mut Host) -> T) -> Option<T> {
        let host = self.host.as_deref_mut()?;
        let result = change(host);
        self.outline = Outline::of(host);
        Some(result)
    }

    /// Safe ranges are not kept to from now on.
    pub(super) fn lift_ranges(&mut self) {
        self.host.get_or_insert_default().shared.combined.lift_ranges();
    }

    /// Takes them out while they read the connection; [`put`](Self::put) must follow.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Box<Host>> {
        self.host.take()
    }

    /// Sets the layers; none, if there are none and no events are left.
    #[inline(always)]
    pub(super) fn put(&mut self, host: Box<Host>) {
        if host.layers.is_empty() && host.is_reported() {
            return self.nobody_is_left();
        }
        self.outline = Outline::of(&host);
        // They were taken out, so that there is nothing to be dropped.
        core::mem::forget(self.host.replace(host));
    }

    /// The same; unless anything has `changed` about them that the outline shows, they are as they were when they were taken out.
    #[inline(always)]
    pub(super) fn put_changed(&mut self, host: Box<Host>, changed: bool) {
        if changed {
            return self.put(host);
        }
        debug_assert!(self.outline == Outline::of(&host));
        core::mem::forget(self.host.replace(host));
    }

    #[cold]
    fn nobody_is_left(&mut self) {
        *self = Layers::default();
    }
}
