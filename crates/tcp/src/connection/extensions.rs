//! The extensions of a connection: attached, woken, detached. `effective` applies their limits to the connection; `layer_events` keeps what is
//! to be published of them.

mod effective;
mod host;
mod layer_events;
mod layers;
mod observed;
mod view;

use effective::ASKED_ANEW;
pub(super) use effective::Own;
use host::note;
pub(super) use host::{Host, Shared};
pub(super) use layers::Layers;
pub use observed::{Observed, ObservedLayers};
pub use view::View;

use super::glance::Source;
use super::timers::Timer;
use super::{Connection, State};
use crate::extension::variable::Variables;
use crate::extension::{
    AckKind, AttachError, Capabilities, Departure, DepartureReason, Extension, LayerId, Limits,
    Occasion, Ruling, Variable, Wake,
};
use crate::pos::Pos;
use crate::time::Instant;
use alloc::boxed::Box;
use alloc::string::ToString;
use core::ops::Range;

/// Counters of the requests of extensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestCounters {
    /// Times an extension was woken.
    pub wakes: u64,
    /// Acknowledgements that were not believed, for limits of snd_una and snd_nxt.
    pub acks_rejected: u64,
    /// Segments that were not taken, for limits of rcv_nxt.
    pub segments_rejected: u64,
    /// For each variable, in the order of [`Variable::ALL`], how often layers began to contradict each other.
    pub conflicts: [u64; Variable::ALL.len()],
}

impl RequestCounters {
    fn count_conflict(&mut self, variable: Variable) {
        if let Some(conflicts) = self.conflicts.get_mut(variable as usize) {
            *conflicts += 1;
        }
    }
}

/// A layer of a connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LayerInfo<'a> {
    /// Which it is.
    pub id: LayerId,
    /// Its name.
    pub name: &'a str,
    /// Its requests.
    pub limits: &'a Limits,
}

impl Connection {
    /// Attaches an extension as the topmost layer of a connection whose handshake is complete. The owner asks for segments to send afterwards, as after every call.
    ///
    /// # Errors
    ///
    /// If the handshake is not complete, the connection lacks what the extension [requires](Extension::requires), there are
    /// [`MAX_LAYERS`](crate::extension::MAX_LAYERS) already, or it fails when it is attached.
    pub fn attach(
        &mut self,
        now: Instant,
        extension: Box<dyn Extension>,
    ) -> Result<LayerId, AttachError> {
        if !self.state.is_synchronized() || self.state == State::TimeWait || self.owner.dismissed {
            return Err(AttachError::NotEstablished);
        }
        // The extension is asked while the other layers are in their place, so that they survive if it panics.
        let (requires, wakes) = (extension.requires(), extension.wake_on());
        let lacking = requires - self.capabilities();
        if !lacking.is_empty() {
            return Err(AttachError::Lacks(lacking));
        }
        if !self.extensions.is_some() {
            self.control.forget_layers();
        }
        let mut host = self.extensions.take().unwrap_or_default();
        let attached = host.attach(now, Source::Connection(self), extension, requires, wakes);
        let asked = attached.map_or(Variables::empty(), |(_, asked)| asked);
        self.settle(now, host, asked);
        self.limit_orphans_extensions(now);
        attached.map(|(layer, _)| layer)
    }

    /// The time that a connection keeps its extensions after its owner has closed it begins, if it has any.
    pub(super) fn limit_orphans_extensions(&mut self, now: Instant) {
        if self.owner.gone && self.extensions.is_some() && !self.timers.is_set(Timer::Orphan) {
            self.timers.set(Timer::Orphan, now + self.profile.extensions_after_close);
        }
    }

    /// The handshake is complete: attaches the extensions of the profile. Reports those that cannot be attached as departures.
    pub(super) fn attach_chosen(&mut self, now: Instant) {
        if self.profile.extensions.is_empty() {
            return;
        }
        let profile = self.profile.clone();
        for choice in &profile.extensions {
            // On a real path nothing takes the ranges away.
            if choice.is_unconstrained() && self.path.simulated {
                self.extensions.lift_ranges();
            }
            if let Err(error) = self.attach(now, choice.extension()) {
                let mut host = self.extensions.take().unwrap_or_default();
                let (name, reason) = (choice.to_string(), error.into());
                let departure = Departure { layer: None, name, reason };
                host.pending_events.departed(&departure);
                note(&mut host.departures, departure);
                self.extensions.put(host);
            }
        }
    }

    /// Detaches a layer, its limits with it, and returns its extension; nothing if there is no such layer (any more).
    pub fn detach(&mut self, now: Instant, layer: LayerId) -> Option<Box<dyn Extension>> {
        let mut host = self.extensions.take()?;
        let gone = host.detach(layer);
        let asked = gone.as_ref().map_or(Variables::empty(), |layer| layer.limits.some());
        self.settle(now, host, asked);
        gone.map(|layer| layer.extension)
    }

    /// Detaches all layers of a connection that its owner has closed: from now on it is plain TCP, and ends by itself.
    pub(super) fn dismiss_extensions(&mut self, now: Instant) {
        self.owner.dismissed = true;
        let Some(mut host) = self.extensions.take() else { return };
        let asked = host.layers.iter().map(|layer| layer.limits.some());
        let asked = asked.fold(Variables::empty(), Variables::union);
        host.expel(|_| Some(DepartureReason::Orphaned));
        self.settle(now, host, asked);
    }

    /// Wakes one layer now, as if the time that it [requested](Limits::wake_at) had come, and forgets that time. For a layer that forwards requests
    /// from outside and has just received one. Returns whether there is such a layer.
    pub fn wake_layer(&mut self, now: Instant, layer: LayerId) -> bool {
        let found = self.extensions.change(|host| {
            let layer = host.layers.iter_mut().find(|other| other.id == layer)?;
            layer.limits.wake_at(now);
            host.clock = host.clock.min(now);
            Some(())
        });
        if found.flatten().is_none() {
            return false;
        }
        self.notify(now, Wake::empty());
        true
    }

    /// The layers, in the order in which they were attached.
    pub fn layers(&self) -> impl Iterator<Item = LayerInfo<'_>> {
        self.extensions.get().into_iter().flat_map(Host::layers)
    }

    /// The next layer that was detached for its own fault, or that the profile names and could not be attached.
    pub fn poll_departure(&mut self) -> Option<Departure> {
        self.extensions.get_mut()?.departures.pop_front()
    }

    /// The departures that [`Connection::poll_departure`] would give, the oldest first.
    pub fn departures(&self) -> impl Iterator<Item = &Departure> {
        self.extensions.get().into_iter().flat_map(|host| &host.departures)
    }

    /// The requested, own and effective value of a variable, and the layer that decided.
    pub fn ruling(&self, variable: Variable) -> Ruling {
        match self.extensions.get() {
            Some(host) => self.rule(&host.shared, variable),
            None => self.rule(&Shared::default(), variable),
        }
    }

    /// The counters of the extensions' requests.
    pub fn request_counters(&self) -> RequestCounters {
        self.extensions
            .get()
            .map_or(RequestCounters::default(), |host| host.shared.request_counters())
    }

    /// The capabilities of the connection that an extension may require.
    fn capabilities(&self) -> Capabilities {
        let mut has = Capabilities::ACK_LIST | Capabilities::MESSAGE_LIST;
        has.set(Capabilities::SACK, self.agreed.sack);
        has.set(Capabilities::TIMESTAMPS, self.agreed.timestamps);
        has.set(Capabilities::CWND_CNT, self.control.counts_acknowledged_bytes());
        has
    }

    /// Notes an event, for the next report.
    pub(super) fn note_for_extensions(&mut self, what: Wake) {
        self.extensions.change(|host| host.pending |= what);
    }

    /// The messages before `ack` are about to leave the scoreboard.
    pub(super) fn remember_messages(&mut self, now: Instant, ack: Pos) {
        let Some(host) = self.extensions.get_mut() else { return };
        if host.lists_messages {
            for record in self.control.board().records().take_while(|record| record.start < ack) {
                host.shared.history.note_acknowledged(record, ack, now);
            }
        }
    }

    /// An acknowledgement was processed, and a `round` may have ended. Returns whether a layer needs more of it: then
    /// [`notify_ack`](Self::notify_ack) must follow.
    #[inline]
    pub(super) fn hears_of_ack(&mut self, round: bool) -> bool {
        let all = self.una() == self.nxt();
        let Some(host) = self.extensions.get_mut() else { return false };
        host.shared.acks_seen += 1;
        if (round || all) && host.pending_events.wait_for_round() {
            self.extensions.change(|host| host.pending_events.round_over());
        }
        let acks = Wake::ACK | Wake::DUPLICATE_ACK;
        self.extensions.hear(if round { acks | Wake::ROUND } else { acks })
    }

    /// An acknowledgement of this kind was processed that may wake a layer: the occasion has it already.
    #[inline]
    pub(super) fn notify_ack(&mut self, occasion: &mut Occasion, kind: AckKind, round: bool) {
        let new_data = kind.intersects(AckKind::NEW_DATA | AckKind::SACK);
        let copies = kind.intersects(AckKind::DUPLICATE | AckKind::DSACK);
        occasion.what = Wake::ACK.only_if(new_data)
            | Wake::DUPLICATE_ACK.only_if(copies)
            | Wake::ROUND.only_if(round);
        let Some(host) = self.extensions.get_mut() else { return };
        if !host.listed.is_empty() {
            host.shared.history.note_ack(occasion.ack.as_ref());
        }
        self.wake(occasion);
    }

    /// Data has left.
    #[inline]
    pub(super) fn notify_data(&mut self, now: Instant, sent: Range<Pos>) {
        if self.extensions.hear(Wake::SEND) {
            self.wake(&mut Occasion { now, what: Wake::SEND, ack: None, sent: Some(sent) });
        }
    }

    /// A segment was processed. Before it `next` was expected, and so many bytes had been accepted.
    #[inline]
    pub(super) fn notify_arrival(&mut self, now: Instant, next: Pos, accepted: u64) {
        let new = |this: &Connection| this.counters.bytes_accepted > accepted;
        if self.extensions.hear(Wake::DATA) && (self.rcv.next() > next || new(self)) {
            self.notify(now, Wake::DATA);
        }
    }

    /// Reports an event that is neither an acknowledgement nor a transmission; or reports pending events now.
    pub(super) fn notify(&mut self, now: Instant, what: Wake) {
        if self.extensions.is_some() {
            self.wake(&mut Occasion { now, what, ack: None, sent: None });
        }
    }

    /// Wakes every layer that waits for any of it. None of them sees what another asks for in answer.
    fn wake(&mut self, occasion: &mut Occasion) {
        if self.state == State::Closed {
            return; // There is nothing left to be narrowed.
        }
        let Some(mut host) = self.extensions.take() else { return };
        let pending = core::mem::take(&mut host.pending);
        occasion.what |= pending;
        // With a layer that waits for a time, this is asked for every packet.
        if !host.hears(occasion.what, occasion.now) {
            return self.extensions.put_changed(host, !pending.is_empty());
        }
        let woken = host.wake(Source::Connection(self), occasion);
        if woken.faulty {
            host.expel(|layer| layer.limits.fault().map(DepartureReason::Fault));
            return self.settle(occasion.now, host, woken.asked);
        }
        self.conclude(occasion.now, host, woken.asked, woken.clock, !pending.is_empty());
    }

    /// Applies the effects of attaching or detaching layers that request, or requested, values of the variables `asked`.
    #[cold]
    fn settle(&mut self, now: Instant, host: Box<Host>, asked: Variables) {
        let clock = host.earliest();
        self.conclude(now, host, asked, clock, true);
        if self.state == State::Closed {
            self.timers.clear(Timer::Extension);
        }
    }

    /// Layers may have changed their requests for these variables, the clock must wake the first of them at `clock`, and something about them may
    /// have `changed` already. Applies the effects to the connection.
    #[inline(always)]
    fn conclude(
        &mut self,
        now: Instant,
        mut host: Box<Host>,
        asked: Variables,
        clock: Instant,
        changed: bool,
    ) {
        let (values, any) = host.recombine(asked);
        if any && self.una() == self.nxt() {
            host.pending_events.round_over();
        }
        // Mostly nobody waits for a time, before and after.
        let waits = clock.min(host.clock) != Instant::FAR_FUTURE;
        if waits {
            host.clock = clock;
            self.timers.set(Timer::Extension, clock);
        }
        self.extensions.put_changed(host, changed | any | waits);
        if !self.extensions.is_some() {
            self.control.forget_layers();
        }
        if values.intersects(ASKED_ANEW) && self.state.is_synchronized() {
            self.limits_changed(now, values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection without extensions pays for a pointer, a window and what fits into a word.
    #[test]
    fn nothing_is_kept_for_nobody() {
        assert_eq!(size_of::<Layers>(), 2 * size_of::<usize>());
    }
}
