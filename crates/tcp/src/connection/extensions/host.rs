//! The layers of a connection, and what they share.

use super::super::glance::Source;
use super::layer_events;
use super::view::View;
use super::{LayerInfo, RequestCounters};
use crate::event::LayerChange;
use crate::extension::stack::{Change, Combined};
use crate::extension::variable::Variables;
use crate::extension::{
    AttachError, Capabilities, Departure, DepartureReason, Extension, Fault, History, LEAST_WAIT,
    LayerId, Limits, MAX_LATE_WAKES, MAX_LAYERS, Occasion, Variable, Wake,
};
use crate::pacing::RatePacing;
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use smallvec::SmallVec;

/// The most departures that wait to be polled.
const DEPARTURES: usize = MAX_LAYERS;

#[derive(Debug)]
#[repr(C)]
pub(super) struct Layer {
    pub(super) extension: Box<dyn Extension>,
    pub(super) id: LayerId,
    pub(super) wakes: Wake,
    pub(super) requires: Capabilities,
    pub(super) limits: Limits,
    pub(super) clock_use: ClockUse,
}

/// How a layer uses the clock.
#[derive(Debug)]
pub(super) struct ClockUse {
    /// When the clock last woke it.
    pub(super) woken: Instant,
    /// How often in a row it then requested a time in the past, without catching up.
    pub(super) wakes: u32,
    /// How late the last of these times was.
    pub(super) late: Duration,
}

impl Default for ClockUse {
    fn default() -> Self {
        ClockUse { woken: Instant::ZERO, wakes: 0, late: Duration::MAX }
    }
}

impl Layer {
    /// The layer was called at `now`, by the clock or not. Postpones what it asks of the clock, if that is too soon.
    #[inline(always)]
    pub(super) fn postpone_wake(&mut self, now: Instant, by_clock: bool) {
        if by_clock {
            self.count_late_wakes(now);
        }
        // Mostly a layer does not wait for a time.
        if self.limits.clock() != Instant::FAR_FUTURE {
            self.limits.not_before(self.clock_use.woken + LEAST_WAIT);
        }
    }

    /// The clock woke the layer. If it asks for a time that has passed, it has to catch up: each such time is less late than the one before.
    pub(super) fn count_late_wakes(&mut self, now: Instant) {
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
pub(in crate::connection) struct Shared {
    /// Acknowledgements that have arrived since the first layer was attached.
    pub(super) acks_seen: u64,
    /// Times a layer was woken.
    pub(super) wakes: u64,
    pub(super) combined: Combined,
    pub(super) history: History,
    /// All but the times a layer was woken.
    pub(super) request_counters: RequestCounters,
}

/// The layers, while there are any.
///
/// A host with many connections finds little of them in a cache. So the fields that every acknowledgement with a wake-up needs come first. A single
/// layer is stored here too, with its most used fields first. The last test of this file states the size.
#[derive(Debug)]
#[repr(C, align(64))]
pub(in crate::connection) struct Host {
    /// When the clock wakes the first of them; [`Instant::FAR_FUTURE`] if it wakes none.
    pub(super) clock: Instant,
    /// Keeps the pacing rate where the connection does not pace by itself.
    pub(super) pacer: RatePacing,
    /// The rate it was kept at last, bytes per second; zero if it was not.
    pub(super) paced_at: u64,
    /// The events that wake any of them.
    pub(super) wakes: Wake,
    /// The events that the lists need.
    pub(super) listed: Wake,
    /// Events that were not reported yet.
    pub(super) pending: Wake,
    /// Acknowledged messages are remembered.
    pub(super) lists_messages: bool,
    pub(super) next_id: u32,
    pub(super) pending_events: layer_events::PendingEvents,
    pub(super) shared: Shared,
    pub(super) departures: VecDeque<Departure>,
    pub(super) layers: Lines,
}

/// The layers, in the order in which they were attached, from where a line of the cache begins.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Lines(pub(super) SmallVec<[Layer; 1]>);

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
    pub(super) fn request_counters(&self) -> RequestCounters {
        RequestCounters { wakes: self.wakes, ..self.request_counters }
    }
}

/// The result of waking layers.
pub(super) struct Woken {
    /// The variables that they limit, or limited before.
    pub(super) asked: Variables,
    /// When the clock wakes the first layer.
    pub(super) clock: Instant,
    /// One of them has failed.
    pub(super) faulty: bool,
}

impl Host {
    /// Attaches a layer. Returns its number and the variables that it limits.
    pub(super) fn attach(
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
        layer.postpone_wake(now, false);
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
    pub(super) fn detach(&mut self, layer: LayerId) -> Option<Layer> {
        let index = self.layers.iter().position(|other| other.id == layer)?;
        let layer = self.layers.remove(index);
        self.pending_events.tell(&layer, LayerChange::Detached);
        self.survey();
        Some(layer)
    }

    /// Wakes every layer that waits for the event. No layer sees the limits that another sets in answer.
    #[inline(always)]
    pub(super) fn wake(&mut self, source: Source<'_>, occasion: &mut Occasion) -> Woken {
        let happened = occasion.what - Wake::TIMER;
        let Host { layers, shared, .. } = self;
        let view = View::new(source, shared, occasion.now);
        let (mut woken, mut asked, mut faulty) = (0, Variables::empty(), false);
        let mut clock = Instant::FAR_FUTURE;
        for layer in layers.iter_mut() {
            let due = layer.limits.take_due(occasion.now);
            if due || layer.wakes.intersects(happened) {
                occasion.what = happened;
                occasion.what.set(Wake::TIMER, due);
                // It may change its limits, or replace them whole.
                asked.insert(layer.limits.some());
                layer.extension.on_wake(occasion, &view, &mut layer.limits);
                layer.postpone_wake(occasion.now, due);
                faulty |= layer.limits.fault().is_some();
                asked.insert(layer.limits.some());
                woken += 1;
            }
            clock = clock.min(layer.limits.clock());
        }
        shared.wakes += woken;
        Woken { asked, clock, faulty }
    }

    /// When the clock wakes the first layer.
    pub(super) fn earliest(&self) -> Instant {
        let clocks = self.layers.iter().map(|layer| layer.limits.clock());
        clocks.fold(Instant::FAR_FUTURE, Instant::min)
    }

    /// The layers, in the order in which they were attached.
    pub(super) fn layers(&self) -> impl Iterator<Item = LayerInfo<'_>> {
        self.layers.iter().map(|layer| LayerInfo {
            id: layer.id,
            name: layer.extension.name(),
            limits: &layer.limits,
        })
    }

    /// Layers may have changed their requests for these variables, or were removed. Returns the variables whose combined request has changed, and
    /// whether any value changed or only the requesting layers.
    #[inline(always)]
    pub(super) fn recombine(&mut self, asked: Variables) -> (Variables, bool) {
        let (mut values, mut any) = (Variables::empty(), false);
        for variable in asked.each() {
            let change = self.recombine_one(variable);
            any |= change != Change::None;
            // Which of two layers stands for what both ask depends on the order in which they were attached, and nothing else may.
            if !matches!(change, Change::None | Change::Deciders) {
                values.insert(Variables::one(variable));
            }
        }
        (values, any)
    }

    /// The same for one of them.
    #[inline(always)]
    pub(super) fn recombine_one(&mut self, variable: Variable) -> Change {
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
    pub(super) fn count_conflicts(&mut self, variable: Variable) {
        let Shared { combined, request_counters, .. } = &mut self.shared;
        if combined.conflicts(variable) {
            request_counters.count_conflict(variable);
        }
    }

    /// The set of layers has changed.
    pub(super) fn survey(&mut self) {
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
    pub(super) fn expel(&mut self, reason: impl Fn(&Layer) -> Option<DepartureReason>) {
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
    pub(super) fn hears(&self, what: Wake, now: Instant) -> bool {
        self.wakes.intersects(what) || self.clock <= now
    }

    /// The events that may wake a layer: any, once a layer waits for a time, or an event is pending.
    pub(super) fn heard(&self) -> Wake {
        if self.clock != Instant::FAR_FUTURE || !self.pending.is_empty() {
            return Wake::all();
        }
        self.wakes | self.listed
    }
}

pub(super) fn note(departures: &mut VecDeque<Departure>, departure: Departure) {
    if departures.len() == DEPARTURES {
        departures.pop_front();
    }
    departures.push_back(departure);
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

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
