//! Events that were not published yet.
//!
//! One call may be many events, and they are published when it is over: so they are added up here as they happen, in the place where they happen.

use super::{Connection, State};
use crate::event::{Event, Publisher};
use bitflags::bitflags;

bitflags! {
    /// The kinds of what has happened.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Kinds: u8 {
        const ACKNOWLEDGED = 1 << 0;
        /// The sequence number of a SYN or FIN at least: it is acknowledged, and nothing is delivered with it.
        const MOVED = 1 << 1;
        const TIMED_OUT = 1 << 2;
        const LOST = 1 << 3;
        const RECOVERY = 1 << 4;
        const UNDONE = 1 << 5;
        const ARRIVED = 1 << 6;
        const STATE = 1 << 7;
    }
}

/// See the top of the file.
#[derive(Debug)]
pub(super) struct News {
    kinds: Kinds,
    /// The state before it first changed.
    from: State,
    /// Nobody listens: nothing is noted.
    off: bool,
    delivered: u32,
    lost: u32,
    arrived: u32,
}

/// More than fits into a call.
fn add(sum: &mut u32, bytes: u64) {
    *sum = sum.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
}

impl News {
    pub(super) const fn new() -> Self {
        let kinds = Kinds::empty();
        News { kinds, from: State::Closed, off: false, delivered: 0, lost: 0, arrived: 0 }
    }

    #[inline]
    fn note(&mut self, kind: Kinds) {
        if !self.off {
            self.kinds |= kind;
        }
    }

    /// An acknowledgement was a `duplicate`, or SND.UNA `moved`, or so many bytes were delivered.
    #[inline]
    pub(super) fn acknowledged(&mut self, duplicate: bool, moved: bool, delivered: u64) {
        if duplicate || moved || delivered > 0 {
            self.note(if moved { Kinds::ACKNOWLEDGED | Kinds::MOVED } else { Kinds::ACKNOWLEDGED });
            add(&mut self.delivered, delivered);
        }
    }

    #[inline]
    pub(super) fn arrived(&mut self, bytes: u64) {
        if bytes > 0 {
            self.note(Kinds::ARRIVED);
            add(&mut self.arrived, bytes);
        }
    }

    pub(super) fn lost(&mut self, bytes: u64) {
        if bytes > 0 {
            self.note(Kinds::LOST);
            add(&mut self.lost, bytes);
        }
    }

    pub(super) fn timed_out(&mut self) {
        self.note(Kinds::TIMED_OUT);
    }

    pub(super) fn recovers(&mut self) {
        self.note(Kinds::RECOVERY);
    }

    pub(super) fn undone(&mut self) {
        self.note(Kinds::UNDONE);
    }

    fn left(&mut self, state: State) {
        if !self.kinds.contains(Kinds::STATE) {
            self.from = state;
            self.note(Kinds::STATE);
        }
    }

    /// Takes what there is, and begins anew.
    fn take(&mut self) -> News {
        let off = self.off;
        core::mem::replace(self, News { off, ..News::new() })
    }
}

impl Connection {
    /// Enters a state of RFC 9293.
    pub(super) fn enter(&mut self, state: State) {
        self.notices.news.left(self.state);
        self.state = state;
    }

    /// Gives `publisher` what has happened since the last time, in an order of its own: what was acknowledged, timers and losses, what arrived, the
    /// state, and layers. The owner calls it after each call.
    #[inline(always)]
    pub fn publish(&mut self, publisher: &mut impl Publisher) {
        self.notices.news.off = !publisher.is_on();
        if !self.notices.news.kinds.is_empty() {
            self.publish_news(publisher);
        }
        self.publish_layers(publisher);
    }

    /// The news of layers alone: also after each segment, for otherwise what they ask for in answer to several would be one event.
    #[inline(always)]
    pub fn publish_layers(&mut self, publisher: &mut impl Publisher) {
        if self.extensions.have_events() {
            self.publish_layer_events(publisher);
        }
    }

    #[inline]
    fn publish_news(&mut self, publisher: &mut impl Publisher) {
        let news = self.notices.news.take();
        if news.off {
            return;
        }
        let News { kinds, from, off: _, delivered, lost, arrived } = news;
        let mut tell = |kind, event| {
            if kinds.contains(kind) {
                publisher.publish(self, event);
            }
        };
        let moved = u32::from(kinds.contains(Kinds::MOVED));
        tell(Kinds::ACKNOWLEDGED, Event::Acknowledged { bytes: delivered.max(moved).into() });
        tell(Kinds::TIMED_OUT, Event::TimedOut);
        tell(Kinds::LOST, Event::Lost { bytes: lost.into() });
        tell(Kinds::RECOVERY, Event::Recovery);
        tell(Kinds::UNDONE, Event::Undone);
        tell(Kinds::ARRIVED, Event::Arrived { bytes: arrived.into() });
        if from != self.state {
            tell(Kinds::STATE, Event::State { from, error: self.error });
        }
    }

    /// Also if nobody listens, because the events would otherwise stay queued.
    #[cold]
    fn publish_layer_events(&mut self, publisher: &mut impl Publisher) {
        while let Some(told) = self.extensions.next_change() {
            let event = Event::Layer { layer: told.layer, name: &told.name, change: told.change };
            if publisher.is_on() {
                publisher.publish(self, event);
            }
        }
        while let Some(variable) = self.extensions.next_request() {
            if publisher.is_on() {
                let ruling = self.ruling(variable);
                publisher.publish(self, Event::Request { variable, ruling });
            }
        }
    }
}
