//! The extensions of a connection: attached, woken, detached. `effective` applies their limits to the connection; `layer_events` reports changes to a
//! log.

mod effective;
mod layer_events;
mod layers;
mod observed;
#[cfg(feature = "unconstrained")]
mod unconstrained;
mod view;

use effective::ASKED_ANEW;
pub use layer_events::{LayerChange, LayerEvent};
pub(super) use layers::Layers;
pub use observed::{Observed, ObservedLayers};
use view::Source;
pub use view::View;

use super::timers::Timer;
use super::{Connection, State};
use crate::extension::stack::{Change, Combined};
use crate::extension::variable::{COUNT, Variables};
use crate::extension::{
    AckKind, AttachError, Capabilities, Departure, DepartureReason, Event, Extension, Fault,
    History, LEAST_WAIT, LayerId, Limits, MAX_LATE_WAKES, MAX_LAYERS, Ruling, Variable, Wake,
};
use crate::pacing::RatePacing;
use crate::pos::Pos;
use crate::time::{Duration, Instant};
#[cfg(fixed_units)]
use crate::units::direct::*;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use core::ops::Range;
use smallvec::SmallVec;

/// The most departures that wait to be polled.
const DEPARTURES: usize = MAX_LAYERS;

/// Counters of the requests of extensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    /// Times an extension was woken.
    pub wakes: u64,
    /// Acknowledgements that were not believed, for limits of snd_una and snd_nxt.
    pub acks_rejected: u64,
    /// Segments that were not taken, for limits of rcv_nxt.
    pub segments_rejected: u64,
    /// For each variable, in the order of [`ALL`](crate::extension::variable::ALL), how often layers began to contradict each other.
    pub conflicts: [u64; COUNT],
}

impl Tallies {
    fn count_conflict(&mut self, variable: Variable) {
        if let Some(conflicts) = self.conflicts.get_mut(variable as usize) {
            *conflicts += 1;
        }
    }
}

#[derive(Debug)]
#[repr(C)]
struct Layer {
    extension: Box<dyn Extension>,
    id: LayerId,
    wakes: Wake,
    requires: Capabilities,
    limits: Limits,
    clock_use: ClockUse,
}

/// How a layer uses the clock.
#[derive(Debug)]
struct ClockUse {
    /// When the clock last woke it.
    woken: Instant,
    /// How often in a row it then requested a time in the past, without catching up.
    wakes: u32,
    /// How late the last of these times was.
    late: Duration,
}

impl Default for ClockUse {
    fn default() -> Self {
        ClockUse { woken: Instant::ZERO, wakes: 0, late: Duration::MAX }
    }
}

impl Layer {
    /// The layer was called at `now`, by the clock or not. Postpones what it asks of the clock, if that is too soon.
    #[inline(always)]
    fn settle_clock(&mut self, now: Instant, by_clock: bool) {
        if by_clock {
            self.count_late_wakes(now);
        }
        // Mostly a layer does not wait for a time.
        if self.limits.clock() != Instant::FAR_FUTURE {
            self.limits.not_before(self.clock_use.woken + LEAST_WAIT);
        }
    }

    /// The clock woke the layer. If it asks for a time that has passed, it has to catch up: each such time is less late than the one before.
    fn count_late_wakes(&mut self, now: Instant) {
        self.clock_use.woken = now;
        let asked = self.limits.clock();
        if asked > now {
            (self.clock_use.wakes, self.clock_use.late) = (0, Duration::MAX);
            return;
        }
        let late = now.since(asked);
        self.clock_use.wakes =
            if late < self.clock_use.late { 0 } else { self.clock_use.wakes + 1 };
        self.clock_use.late = late;
        if self.clock_use.wakes > MAX_LATE_WAKES {
            self.limits.fail(Fault::Restless);
        }
    }
}

/// Shared state that extensions may see: other layers, and the past.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Shared {
    /// Acknowledgements that have arrived since the first layer was attached.
    acks_seen: u64,
    /// Times a layer was woken.
    wakes: u64,
    combined: Combined,
    history: History,
    /// All but the times a layer was woken.
    tallies: Tallies,
}

/// The retransmission timer that runs.
#[derive(Clone, Copy, Debug)]
struct Armed {
    /// When it was started.
    at: Instant,
    /// When TCP's own would expire.
    own: Instant,
    /// An extension has set it to another time.
    by_request: bool,
}

/// The layers, while there are any.
///
/// A host with many connections finds little of them in a cache. So the fields that every acknowledgement with a wake-up needs come first. A single
/// layer is stored here too, with its most used fields first. The last test of this file states the size.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Host {
    /// When the clock wakes the first of them; [`Instant::FAR_FUTURE`] if it wakes none.
    clock: Instant,
    /// How the retransmission timer was last started; nothing if it was before there were extensions.
    armed: Option<Armed>,
    /// The events that wake any of them.
    wakes: Wake,
    /// The events that the lists need.
    listed: Wake,
    /// Events that were not reported yet.
    pending: Wake,
    /// Acknowledged messages are remembered.
    lists_messages: bool,
    next_id: u32,
    pending_events: layer_events::PendingEvents,
    shared: Shared,
    departures: VecDeque<Departure>,
    /// Keeps the pacing rate where the connection does not pace by itself.
    pacer: RatePacing,
    /// The rate it was kept at last, bytes per second; zero if it was not.
    paced_at: u64,
    layers: Lines,
}

/// The layers, in the order in which they were attached, from where a line of the cache begins.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Lines(SmallVec<[Layer; 1]>);

impl core::ops::Deref for Lines {
    type Target = SmallVec<[Layer; 1]>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl core::ops::DerefMut for Lines {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Default for Host {
    fn default() -> Self {
        Host {
            clock: Instant::FAR_FUTURE,
            armed: None,
            wakes: Wake::empty(),
            listed: Wake::empty(),
            pending: Wake::empty(),
            lists_messages: false,
            next_id: 0,
            pending_events: layer_events::PendingEvents::default(),
            shared: Shared::default(),
            departures: VecDeque::new(),
            pacer: RatePacing::default(),
            paced_at: 0,
            layers: Lines::default(),
        }
    }
}

impl Shared {
    fn tallies(&self) -> Tallies {
        Tallies { wakes: self.wakes, ..self.tallies }
    }
}

/// The result of waking layers.
struct Woken {
    /// The variables that they limit, or limited before.
    asked: Variables,
    /// When the clock wakes the first layer.
    clock: Instant,
    /// One of them has failed.
    faulty: bool,
}

impl Host {
    /// Attaches a layer. Returns its number and the variables that it limits.
    fn attach(
        &mut self,
        now: Instant,
        source: Source<'_>,
        mut extension: Box<dyn Extension>,
        requires: Capabilities,
        wakes: Wake,
    ) -> Result<(LayerId, Variables), AttachError> {
        if self.layers.len() >= MAX_LAYERS {
            return Err(AttachError::TooMany);
        }
        let id = LayerId(self.next_id);
        self.next_id += 1;
        let mut limits = Limits::default();
        extension.on_attach(&View::new(source, &self.shared, now), &mut limits);
        let clock_use = ClockUse::default();
        let mut layer = Layer { extension, id, wakes, requires, limits, clock_use };
        layer.settle_clock(now, false);
        if let Some(fault) = layer.limits.fault() {
            return Err(AttachError::Failed(fault));
        }
        let asked = layer.limits.some();
        self.pending_events.tell(&layer, LayerChange::Attached);
        self.layers.push(layer);
        self.survey();
        Ok((id, asked))
    }

    /// Removes a layer, if it exists.
    fn detach(&mut self, layer: LayerId) -> Option<Layer> {
        let index = self.layers.iter().position(|other| other.id == layer)?;
        let layer = self.layers.remove(index);
        self.pending_events.tell(&layer, LayerChange::Detached);
        self.survey();
        Some(layer)
    }

    /// Wakes every layer that waits for the event. No layer sees the limits that another sets in answer.
    #[inline(always)]
    fn wake(&mut self, source: Source<'_>, event: &mut Event) -> Woken {
        let happened = event.what - Wake::TIMER;
        let Host { layers, shared, .. } = self;
        let view = View::new(source, shared, event.now);
        let (mut woken, mut asked, mut faulty) = (0, Variables::NONE, false);
        let mut clock = Instant::FAR_FUTURE;
        for layer in layers.iter_mut() {
            let due = layer.limits.take_due(event.now);
            if due || layer.wakes.intersects(happened) {
                event.what = happened;
                event.what.set(Wake::TIMER, due);
                // It may change its limits, or replace them whole.
                asked.add(layer.limits.some());
                layer.extension.on_wake(event, &view, &mut layer.limits);
                layer.settle_clock(event.now, due);
                faulty |= layer.limits.fault().is_some();
                asked.add(layer.limits.some());
                woken += 1;
            }
            clock = clock.min(layer.limits.clock());
        }
        shared.wakes += woken;
        Woken { asked, clock, faulty }
    }

    /// When the clock wakes the first layer.
    fn earliest(&self) -> Instant {
        let clocks = self.layers.iter().map(|layer| layer.limits.clock());
        clocks.fold(Instant::FAR_FUTURE, Instant::min)
    }

    /// The layers, in the order in which they were attached.
    fn layers(&self) -> impl Iterator<Item = LayerInfo<'_>> {
        self.layers.iter().map(|layer| LayerInfo {
            id: layer.id,
            name: layer.extension.name(),
            limits: &layer.limits,
        })
    }

    /// Layers may have changed their requests for these variables, or were removed. Returns the variables whose combined request has changed, and
    /// whether any value changed or only the requesting layers.
    #[inline(always)]
    fn recombine(&mut self, asked: Variables) -> (Variables, bool) {
        let (mut values, mut any) = (Variables::NONE, false);
        for variable in asked.iter() {
            let change = self.recombine_one(variable);
            any |= change != Change::None;
            // Which of two layers stands for what both ask depends on the order in which they were attached, and nothing else may.
            if !matches!(change, Change::None | Change::Deciders) {
                values.add(Variables::one(variable));
            }
        }
        (values, any)
    }

    /// The same for one of them.
    #[inline(always)]
    fn recombine_one(&mut self, variable: Variable) -> Change {
        let combined = &mut self.shared.combined;
        let change = match &self.layers[..] {
            [layer] => combined.combine_one(variable, layer.id, layer.limits.asked(variable)),
            layers => {
                let layers = layers.iter().map(|layer| (layer.id, &layer.limits));
                combined.combine(variable, layers)
            }
        };
        if change != Change::None {
            self.pending_events.request_changed(variable, change == Change::Values);
            if change == Change::Askers {
                self.count_conflicts(variable);
            }
        }
        change
    }

    #[cold]
    fn count_conflicts(&mut self, variable: Variable) {
        let Shared { combined, tallies, .. } = &mut self.shared;
        if combined.conflicts(variable) {
            tallies.count_conflict(variable);
        }
    }

    /// The set of layers has changed.
    fn survey(&mut self) {
        self.wakes = Wake::TIMER;
        let mut requires = Capabilities::empty();
        for layer in self.layers.iter() {
            self.wakes |= layer.wakes;
            requires |= layer.requires;
        }
        let acks = requires.contains(Capabilities::ACK_LIST);
        let messages = requires.contains(Capabilities::MESSAGE_LIST);
        self.listed = if acks { Wake::ACK } else { Wake::empty() };
        self.lists_messages = messages;
        self.shared.history.keep(acks, messages);
    }

    /// Removes the layers for which there is a `reason`, and reports it.
    fn expel(&mut self, reason: impl Fn(&Layer) -> Option<DepartureReason>) {
        let (departures, events) = (&mut self.departures, &mut self.pending_events);
        self.layers.retain(|layer| {
            let Some(reason) = reason(layer) else { return true };
            let name = layer.extension.name().to_string();
            let layer = Some(layer.id);
            let departure = Departure { layer, name, reason };
            events.departed(&departure);
            note(departures, departure);
            false
        });
        self.survey();
    }

    /// Whether anybody waits for any of this, or for the time.
    #[inline]
    fn hears(&self, what: Wake, now: Instant) -> bool {
        self.wakes.intersects(what) || self.clock <= now
    }

    /// The events that may wake a layer: any, once a layer waits for a time, or an event is pending.
    fn heard(&self) -> Wake {
        if self.clock != Instant::FAR_FUTURE || !self.pending.is_empty() {
            return Wake::all();
        }
        self.wakes | self.listed
    }
}

fn note(departures: &mut VecDeque<Departure>, departure: Departure) {
    if departures.len() == DEPARTURES {
        departures.pop_front();
    }
    departures.push_back(departure);
}

/// A layer of a connection.
#[derive(Clone, Copy, Debug)]
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
    /// [`MAX_LAYERS`] already, or it fails when it is attached.
    pub fn attach(
        &mut self,
        now: Instant,
        extension: Box<dyn Extension>,
    ) -> Result<LayerId, AttachError> {
        if !self.state.is_synchronized() || self.state == State::TimeWait || self.dismissed {
            return Err(AttachError::NotEstablished);
        }
        // What an extension answers is asked for while the layers are in their place: one that panics does not take the others along.
        let (requires, wakes) = (extension.requires(), extension.wake_on());
        let lacking = requires - self.capabilities();
        if !lacking.is_empty() {
            return Err(AttachError::Lacks(lacking));
        }
        let mut host = self.extensions.take().unwrap_or_default();
        let attached = host.attach(now, Source::Connection(self), extension, requires, wakes);
        let asked = attached.map_or(Variables::NONE, |(_, asked)| asked);
        self.settle(now, host, asked);
        self.limit_orphans_extensions(now);
        attached.map(|(layer, _)| layer)
    }

    /// The time that a connection keeps its extensions after its owner has closed it begins, if it has any.
    pub(super) fn limit_orphans_extensions(&mut self, now: Instant) {
        if self.orphaned && self.extensions.is_some() && !self.timers.is_set(Timer::Orphan) {
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
            #[cfg(feature = "unconstrained")]
            if choice.is_unconstrained() {
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
        let asked = gone.as_ref().map_or(Variables::NONE, |layer| layer.limits.some());
        self.settle(now, host, asked);
        gone.map(|layer| layer.extension)
    }

    /// Detaches all layers of a connection that its owner has closed: from now on it is plain TCP, and ends by itself.
    pub(super) fn dismiss_extensions(&mut self, now: Instant) {
        self.dismissed = true;
        let Some(mut host) = self.extensions.take() else { return };
        let asked = host.layers.iter().map(|layer| layer.limits.some());
        let asked = asked.fold(Variables::NONE, Variables::and);
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
    pub fn tallies(&self) -> Tallies {
        self.extensions.get().map_or(Tallies::default(), |host| host.shared.tallies())
    }

    /// The capabilities of the connection that an extension may require.
    pub fn capabilities(&self) -> Capabilities {
        let mut has = Capabilities::ACK_LIST | Capabilities::MESSAGE_LIST;
        has.set(Capabilities::SACK, self.agreed.sack);
        has.set(Capabilities::TIMESTAMPS, self.agreed.timestamps);
        has.set(Capabilities::CWND_CNT, self.snd.congestion.counts_acknowledged_bytes());
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
            for record in self.snd.sent.records().take_while(|record| record.start < ack) {
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

    /// An acknowledgement of this kind was processed that may wake a layer: the event has it already.
    #[inline]
    pub(super) fn notify_ack(&mut self, event: &mut Event, kind: AckKind, round: bool) {
        let new_data = kind.intersects(AckKind::NEW_DATA | AckKind::SACK);
        let copies = kind.intersects(AckKind::DUPLICATE | AckKind::DSACK);
        event.what = Wake::ACK.only_if(new_data)
            | Wake::DUPLICATE_ACK.only_if(copies)
            | Wake::ROUND.only_if(round);
        let Some(host) = self.extensions.get_mut() else { return };
        if !host.listed.is_empty() {
            host.shared.history.note_ack(event.ack.as_ref());
        }
        self.wake(event);
    }

    /// Data has left.
    #[inline]
    pub(super) fn notify_data(&mut self, now: Instant, sent: Range<Pos>) {
        if self.extensions.hear(Wake::SEND) {
            self.wake(&mut Event { now, what: Wake::SEND, ack: None, sent: Some(sent) });
        }
    }

    /// A segment was processed. Before it `next` was expected, and so many bytes had been accepted.
    #[inline]
    pub(super) fn notify_arrival(&mut self, now: Instant, next: Pos, accepted: u64) {
        let new = |this: &Connection| this.counters.bytes_accepted > accepted;
        if self.extensions.hear(Wake::DATA) && (self.rcv.next > next || new(self)) {
            self.notify(now, Wake::DATA);
        }
    }

    /// Reports an event that is neither an acknowledgement nor a transmission; or reports pending events now.
    pub(super) fn notify(&mut self, now: Instant, what: Wake) {
        if self.extensions.is_some() {
            self.wake(&mut Event { now, what, ack: None, sent: None });
        }
    }

    /// Wakes every layer that waits for any of it. None of them sees what another asks for in answer.
    fn wake(&mut self, event: &mut Event) {
        if self.state == State::Closed {
            return; // There is nothing left to be narrowed.
        }
        let Some(mut host) = self.extensions.take() else { return };
        let pending = core::mem::take(&mut host.pending);
        event.what |= pending;
        // With a layer that waits for a time, this is asked for every packet.
        if !host.hears(event.what, event.now) {
            return self.extensions.put_changed(host, !pending.is_empty());
        }
        let woken = host.wake(Source::Connection(self), event);
        if woken.faulty {
            host.expel(|layer| layer.limits.fault().map(DepartureReason::Fault));
            return self.settle(event.now, host, woken.asked);
        }
        self.conclude(event.now, host, woken.asked, woken.clock, !pending.is_empty());
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
        if values.has_any(ASKED_ANEW) && self.state.is_synchronized() {
            self.limits_changed(now, values);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    /// A connection without extensions pays for a pointer, a window and what fits into a word.
    #[test]
    fn nothing_is_kept_for_nobody() {
        assert_eq!(size_of::<Layers>(), 2 * size_of::<usize>());
    }

    /// A layer that is not woken costs one line of the host's for each acknowledgement. One alone that is woken and limits cwnd needs two,
    /// and two of its own.
    #[test]
    fn a_layer_needs_few_lines() {
        let seen = offset_of!(Host, shared) + offset_of!(Shared, acks_seen);
        assert_eq!(seen + size_of::<u64>(), 64);
        let combined = offset_of!(Host, shared) + offset_of!(Shared, combined);
        assert!(combined + Combined::UPTO_CWND <= 128, "{combined}");
        let layers = offset_of!(Host, layers);
        assert_eq!(layers % 64, 0);
        let limits = size_of::<usize>() + offset_of!(Layer, limits);
        assert!(limits + Limits::UPTO_CWND <= 128, "{limits}");
    }
}
