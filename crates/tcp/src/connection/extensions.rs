//! The extensions of a connection: attached, woken, detached. What their limits do to the connection is in `used`, what is told of all
//! that to a log in `news`.

mod news;
#[cfg(feature = "unconstrained")]
mod unconstrained;
mod used;
mod view;

pub use news::{LayerChange, LayerNews};
pub use view::View;

use super::timers::Timer;
use super::{Connection, State};
use crate::extension::stack::{Change, Combined};
use crate::extension::variable::{COUNT, Variables};
use crate::extension::{
    Ack, AckKind, AttachError, Capabilities, Departure, Event, Extension, Fault, History, LayerId,
    Limits, MAX_LAYERS, Ruling, Variable, Wake,
};
use crate::pacing::RatePacing;
use crate::pos::Pos;
use crate::time::Instant;
#[cfg(fixed_units)]
use crate::units::direct::*;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::ops::Range;

/// So many departures wait to be asked for.
const DEPARTURES: usize = MAX_LAYERS;

/// What became of what extensions asked for.
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

#[derive(Debug)]
struct Layer {
    id: LayerId,
    extension: Box<dyn Extension>,
    limits: Limits,
    wakes: Wake,
    requires: Capabilities,
    fault: Option<Fault>,
}

/// What an extension may see of the others and of the past.
#[derive(Debug, Default)]
pub(super) struct Shared {
    combined: Combined,
    history: History,
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
#[derive(Debug)]
pub(super) struct Host {
    /// In the order in which they were attached.
    layers: Vec<Layer>,
    /// When the clock wakes the first of them; [`Instant::FAR_FUTURE`] if it wakes none.
    clock: Instant,
    /// How the retransmission timer was last started; nothing if it was before there were extensions.
    armed: Option<Armed>,
    news: news::News,
    shared: Shared,
    next_id: u32,
    /// What wakes any of them.
    wakes: Wake,
    /// What has happened and was not told yet.
    pending: Wake,
    /// Keeps the pacing rate where the connection does not pace by itself.
    pacer: RatePacing,
    /// The rate it was kept at last, bytes per second; zero if it was not.
    paced_at: u64,
    departures: VecDeque<Departure>,
}

impl Default for Host {
    fn default() -> Self {
        Host {
            layers: Vec::new(),
            shared: Shared::default(),
            next_id: 0,
            wakes: Wake::empty(),
            pending: Wake::empty(),
            clock: Instant::FAR_FUTURE,
            armed: None,
            pacer: RatePacing::default(),
            paced_at: 0,
            departures: VecDeque::new(),
            news: news::News::default(),
        }
    }
}

impl Host {
    /// What the layers ask may have changed; a layer may have replaced its limits whole, or be gone. Returns the variables of which they together
    /// ask for something else.
    fn recombine(&mut self) -> Variables {
        let Shared { combined, tallies, .. } = &mut self.shared;
        let mut some = combined.some();
        self.layers.iter().for_each(|layer| some.add(layer.limits.some()));
        let mut changed = Variables::NONE;
        for variable in some.iter() {
            let before = combined.conflicts(variable);
            let layers = self.layers.iter().map(|layer| (layer.id, &layer.limits));
            let change = combined.combine(variable, layers);
            if change == Change::None {
                continue;
            }
            changed.add(Variables::one(variable));
            self.news.request_changed(variable, change == Change::Values);
            let begins = combined.conflicts(variable) && !before;
            if let Some(conflicts) = tallies.conflicts.get_mut(variable as usize) {
                *conflicts += u64::from(begins);
            }
        }
        changed
    }

    /// The set of layers has changed.
    fn survey(&mut self) {
        self.wakes = Wake::TIMER;
        let mut requires = Capabilities::empty();
        for layer in &self.layers {
            self.wakes |= layer.wakes;
            requires |= layer.requires;
        }
        self.shared.history.keep(
            requires.contains(Capabilities::ACK_LIST),
            requires.contains(Capabilities::MESSAGE_LIST),
        );
    }

    /// Removes the layers that failed, and tells of them. Returns whether there were any.
    fn expel(&mut self) -> bool {
        if self.layers.iter().all(|layer| layer.fault.is_none()) {
            return false;
        }
        let (departures, news) = (&mut self.departures, &mut self.news);
        self.layers.retain(|layer| {
            let Some(fault) = layer.fault else { return true };
            let name = layer.extension.name().to_string();
            let (layer, reason) = (Some(layer.id), fault.into());
            let departure = Departure { layer, name, reason };
            news.departed(&departure);
            note(departures, departure);
            false
        });
        true
    }

    /// Whether anybody waits for any of this, or for the time.
    #[inline]
    fn hears(&self, what: Wake, now: Instant) -> bool {
        self.wakes.intersects(what) || self.clock <= now
    }
}

fn note(departures: &mut VecDeque<Departure>, departure: Departure) {
    if departures.len() == DEPARTURES {
        departures.pop_front();
    }
    departures.push_back(departure);
}

impl Layer {
    /// What is wrong with it after a call.
    fn examine(&mut self) {
        let nonsense = || self.limits.nonsense().map(Fault::Nonsense);
        self.fault = self.extension.fault().or_else(nonsense);
    }
}

/// A layer of a connection.
#[derive(Clone, Copy, Debug)]
pub struct LayerInfo<'a> {
    /// Which it is.
    pub id: LayerId,
    /// Its name.
    pub name: &'a str,
    /// What it asks for.
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
        mut extension: Box<dyn Extension>,
    ) -> Result<LayerId, AttachError> {
        if !self.state.is_synchronized() || self.state == State::TimeWait {
            return Err(AttachError::NotEstablished);
        }
        let requires = extension.requires();
        let lacking = requires - self.capabilities();
        if !lacking.is_empty() {
            return Err(AttachError::Lacks(lacking));
        }
        let mut host = self.extensions.take().unwrap_or_default();
        let result = if host.layers.len() < MAX_LAYERS {
            let id = LayerId(host.next_id);
            host.next_id += 1;
            let mut limits = Limits::default();
            extension.on_attach(&View::new(self, &host.shared, now), &mut limits);
            let (wakes, fault) = (extension.wake_on(), None);
            let mut layer = Layer { id, extension, limits, wakes, requires, fault };
            layer.examine();
            match layer.fault {
                Some(fault) => Err(AttachError::Failed(fault)),
                None => {
                    host.news.tell(&layer, LayerChange::Attached);
                    host.layers.push(layer);
                    host.survey();
                    Ok(id)
                }
            }
        } else {
            Err(AttachError::TooMany)
        };
        self.settle(now, host);
        result
    }

    /// The handshake is complete: what the profile names is attached. What cannot be is told of as a departure.
    pub(super) fn attach_chosen(&mut self, now: Instant) {
        if self.profile.extensions.is_empty() {
            return;
        }
        let profile = self.profile.clone();
        for choice in &profile.extensions {
            #[cfg(feature = "unconstrained")]
            if choice.is_unconstrained() {
                let host = self.extensions.get_or_insert_default();
                host.shared.combined.lift_ranges();
            }
            if let Err(error) = self.attach(now, choice.extension()) {
                let host = self.extensions.get_or_insert_default();
                let (name, reason) = (choice.to_string(), error.into());
                let departure = Departure { layer: None, name, reason };
                host.news.departed(&departure);
                note(&mut host.departures, departure);
            }
        }
    }

    /// Detaches a layer, its limits with it, and returns its extension; nothing if there is no such layer (any more).
    pub fn detach(&mut self, now: Instant, layer: LayerId) -> Option<Box<dyn Extension>> {
        let mut host = self.extensions.take()?;
        let index = host.layers.iter().position(|other| other.id == layer);
        let gone = index.map(|index| host.layers.remove(index));
        if let Some(layer) = &gone {
            host.news.tell(layer, LayerChange::Detached);
            host.survey();
        }
        self.settle(now, host);
        gone.map(|layer| layer.extension)
    }

    /// Wakes one layer now, as if the time it [asked for](Limits::wake_at) had come, and forgets that time: for a layer that passes on what
    /// somebody outside asks, and has just been asked something. Returns whether there is such a layer.
    pub fn wake_layer(&mut self, now: Instant, layer: LayerId) -> bool {
        let Some(host) = &mut self.extensions else { return false };
        let Some(layer) = host.layers.iter_mut().find(|other| other.id == layer) else {
            return false;
        };
        layer.limits.wake_at(now);
        host.clock = host.clock.min(now);
        self.tell_of(now, Wake::empty());
        true
    }

    /// The layers, in the order in which they were attached.
    pub fn layers(&self) -> impl Iterator<Item = LayerInfo<'_>> {
        self.extensions.iter().flat_map(|host| {
            host.layers.iter().map(|layer| LayerInfo {
                id: layer.id,
                name: layer.extension.name(),
                limits: &layer.limits,
            })
        })
    }

    /// The next layer that was detached for a fault of its own, or that the profile names and could not be attached.
    pub fn poll_departure(&mut self) -> Option<Departure> {
        self.extensions.as_mut()?.departures.pop_front()
    }

    /// The departures that [`Connection::poll_departure`] would give, the oldest first.
    pub fn departures(&self) -> impl Iterator<Item = &Departure> {
        self.extensions.iter().flat_map(|host| &host.departures)
    }

    /// What is asked of a variable, what is used, and who decided.
    pub fn ruling(&self, variable: Variable) -> Ruling {
        match &self.extensions {
            Some(host) => self.rule(&host.shared, variable),
            None => self.rule(&Shared::default(), variable),
        }
    }

    /// What became of what extensions asked for.
    pub fn tallies(&self) -> Tallies {
        self.extensions.as_ref().map_or(Tallies::default(), |host| host.shared.tallies)
    }

    /// What the connection has that an extension may require.
    pub fn capabilities(&self) -> Capabilities {
        let mut has = Capabilities::ACK_LIST | Capabilities::MESSAGE_LIST;
        has.set(Capabilities::SACK, self.agreed.sack);
        has.set(Capabilities::TIMESTAMPS, self.agreed.timestamps);
        has.set(Capabilities::CWND_CNT, self.snd.congestion.counts_acknowledged_bytes());
        has
    }

    /// Something happened that is told with the next event.
    pub(super) fn note_for_extensions(&mut self, what: Wake) {
        if let Some(host) = &mut self.extensions {
            host.pending |= what;
        }
    }

    /// The messages before `ack` are about to leave the scoreboard.
    pub(super) fn remember_messages(&mut self, now: Instant, ack: Pos) {
        let Some(host) = &mut self.extensions else { return };
        if host.shared.history.keeps_messages() {
            for record in self.snd.sent.records().take_while(|record| record.start < ack) {
                host.shared.history.note_acknowledged(record, ack, now);
            }
        }
    }

    /// An acknowledgement of this kind has been dealt with, and a `round` may be over. Whether anybody wants to hear more of it: then
    /// [`tell_of_ack`](Self::tell_of_ack) is to follow, with what is returned.
    #[inline]
    pub(super) fn hears_of_ack(
        &mut self,
        now: Instant,
        kind: AckKind,
        round: bool,
    ) -> Option<Wake> {
        let all = self.una() == self.nxt();
        let host = self.extensions.as_deref_mut()?;
        if round || all {
            host.news.round_over();
        }
        let mut what = Wake::empty();
        what.set(Wake::ACK, kind.intersects(AckKind::NEW_DATA | AckKind::SACK));
        what.set(Wake::DUPLICATE_ACK, kind.intersects(AckKind::DUPLICATE | AckKind::DSACK));
        what.set(Wake::ROUND, round);
        if host.hears(what | host.pending, now) || host.shared.history.keeps_acks() {
            return Some(what);
        }
        host.pending = Wake::empty();
        host.shared.history.count_ack();
        None
    }

    /// An acknowledgement has been dealt with.
    pub(super) fn tell_of_ack(&mut self, ack: Ack, what: Wake) {
        let Some(host) = &mut self.extensions else { return };
        host.shared.history.note_ack(&ack);
        self.wake(Event { now: ack.at, what, ack: Some(ack), sent: None });
    }

    /// Data has left.
    #[inline]
    pub(super) fn tell_of_data(&mut self, now: Instant, sent: Range<Pos>) {
        let Some(host) = self.extensions.as_deref_mut() else { return };
        if host.hears(Wake::SEND | host.pending, now) {
            self.wake(Event { now, what: Wake::SEND, ack: None, sent: Some(sent) });
        } else {
            host.pending = Wake::empty();
        }
    }

    /// A segment has been dealt with before which `next` was expected, and so many bytes had been accepted.
    #[inline]
    pub(super) fn tell_of_arrival(&mut self, now: Instant, next: Pos, accepted: u64) {
        let new = |this: &Connection| this.counters.bytes_accepted > accepted;
        if self.extensions.is_some() && (self.rcv.next > next || new(self)) {
            self.tell_of(now, Wake::DATA);
        }
    }

    /// Something happened that is neither an acknowledgement nor a transmission; or what is pending is to be told now.
    pub(super) fn tell_of(&mut self, now: Instant, what: Wake) {
        if self.extensions.is_some() {
            self.wake(Event { now, what, ack: None, sent: None });
        }
    }

    /// Wakes every layer that waits for any of it. None of them sees what another asks for in answer.
    fn wake(&mut self, mut event: Event) {
        if self.state == State::Closed {
            return; // There is nothing left to be narrowed.
        }
        let Some(host) = self.extensions.as_deref_mut() else { return };
        event.what |= core::mem::take(&mut host.pending);
        if !host.hears(event.what, event.now) {
            return;
        }
        let Some(mut host) = self.extensions.take() else { return };
        let happened = event.what - Wake::TIMER;
        let mut woken = 0;
        let Host { layers, shared, .. } = &mut *host;
        let view = View::new(self, shared, event.now);
        for layer in layers.iter_mut() {
            let due = layer.limits.take_due(event.now);
            if due || layer.wakes.intersects(happened) {
                event.what = happened;
                event.what.set(Wake::TIMER, due);
                layer.extension.on_wake(&event, &view, &mut layer.limits);
                layer.examine();
                woken += 1;
            }
        }
        shared.tallies.wakes += woken;
        self.settle(event.now, host);
    }

    /// After layers were attached, woken or detached: what follows for the connection.
    fn settle(&mut self, now: Instant, mut host: Box<Host>) {
        if host.expel() {
            host.survey();
        }
        let changed = host.recombine();
        if !changed.is_empty() && self.una() == self.nxt() {
            host.news.round_over();
        }
        let clocks = host.layers.iter().filter_map(|layer| layer.limits.next_wake());
        host.clock = clocks.min().unwrap_or(Instant::FAR_FUTURE);
        match self.state {
            State::Closed => self.timers.clear(Timer::Extension),
            _ => self.timers.set(Timer::Extension, host.clock),
        }
        let armed = host.armed;
        self.extensions = Some(host).filter(|host| !host.is_idle());
        if !changed.is_empty() && self.state.is_synchronized() {
            self.limits_changed(now, armed, changed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection without extensions pays for a pointer.
    #[test]
    fn nothing_is_kept_for_nobody() {
        assert_eq!(size_of::<Option<Box<Host>>>(), size_of::<usize>());
    }
}
