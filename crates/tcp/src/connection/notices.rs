//! Notices that nobody has taken yet: signals for the owner, reports for the application, and events that were not published.
//!
//! One call may be many events, and they are published when it is over: so they are added up here as they happen, in the place where they happen.

use super::reports::Reports;
use super::{Connection, State, icmp};
use crate::event::{Event, Publisher};
use crate::state::LimitReason;
use alloc::boxed::Box;
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
        /// Timers and losses: what most calls have nothing of.
        const TROUBLE = Self::TIMED_OUT.bits() | Self::LOST.bits() | Self::RECOVERY.bits() | Self::UNDONE.bits();
    }
}

/// See the top of the file. One struct without gaps: every connection has it.
#[derive(Debug)]
pub(super) struct Notices {
    pub(super) soft_error: Option<Box<icmp::SoftError>>,
    /// Bits: the signals that wait for the owner.
    pub(super) signals: u8,
    pub(super) reports: Reports,
    kinds: Kinds,
    /// The state before it first changed.
    from: State,
    delivered: u32,
    lost: u32,
    arrived: u32,
}

/// The part of it that was published.
struct News {
    kinds: Kinds,
    from: State,
    delivered: u64,
    lost: u64,
    arrived: u64,
}

/// More than fits into a call.
fn add(sum: &mut u32, bytes: u64) {
    *sum = sum.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
}

impl Notices {
    pub(super) fn new(reports: Reports) -> Self {
        Notices {
            soft_error: None,
            signals: 0,
            reports,
            kinds: Kinds::empty(),
            from: State::Closed,
            delivered: 0,
            lost: 0,
            arrived: 0,
        }
    }

    #[inline]
    fn note(&mut self, kind: Kinds) {
        self.kinds |= kind;
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

    /// Takes the news, and begins anew.
    #[inline]
    fn take_news(&mut self) -> News {
        let Notices { kinds, from, delivered, lost, arrived, .. } = *self;
        self.kinds = Kinds::empty();
        (self.delivered, self.lost, self.arrived) = (0, 0, 0);
        News {
            kinds,
            from,
            delivered: delivered.into(),
            lost: lost.into(),
            arrived: arrived.into(),
        }
    }
}

impl Connection {
    /// Enters a state of RFC 9293.
    pub(super) fn enter(&mut self, state: State) {
        self.notices.left(self.state);
        self.state = state;
    }

    /// Gives `publisher` what has happened since the last time, in an order of its own: what was acknowledged, timers and losses, what arrived, the
    /// state, the limit of the sender, and layers. The owner calls it after each call.
    #[inline(always)]
    pub fn publish(&mut self, publisher: &mut impl Publisher) {
        if !self.notices.kinds.is_empty() {
            self.publish_news(publisher);
        }
        self.publish_turn(publisher);
    }

    /// The news of a turn to send, besides the segment: another limit of the sender, and what layers did. The owner calls it after each
    /// [`Connection::prepare`], for otherwise what layers ask for in answer to several segments would be one event.
    #[inline(always)]
    pub fn publish_turn(&mut self, publisher: &mut impl Publisher) {
        if let Some(because) = self.limited.take_change() {
            self.publish_limit(publisher, because);
        }
        if self.extensions.have_events() {
            self.publish_layer_events(publisher);
        }
    }

    /// Apart from the frequent code: most turns to send end as the one before.
    #[cold]
    fn publish_limit(&self, publisher: &mut impl Publisher, because: LimitReason) {
        if publisher.is_on() {
            publisher.publish(self, Event::Limited { because });
        }
    }

    #[inline]
    fn publish_news(&mut self, publisher: &mut impl Publisher) {
        let News { kinds, from, delivered, lost, arrived } = self.notices.take_news();
        if !publisher.is_on() {
            return;
        }
        if kinds.contains(Kinds::ACKNOWLEDGED) {
            let moved = u64::from(kinds.contains(Kinds::MOVED));
            publisher.publish(self, Event::Acknowledged { bytes: delivered.max(moved) });
        }
        if kinds.intersects(Kinds::TROUBLE) {
            self.publish_trouble(publisher, kinds, lost);
        }
        if kinds.contains(Kinds::ARRIVED) {
            publisher.publish(self, Event::Arrived { bytes: arrived });
        }
        if kinds.contains(Kinds::STATE) && from != self.state {
            publisher.publish(self, Event::State { from, error: self.error });
        }
    }

    /// Timers and losses.
    #[cold]
    fn publish_trouble(&self, publisher: &mut impl Publisher, kinds: Kinds, lost: u64) {
        let mut tell = |kind, event| {
            if kinds.contains(kind) {
                publisher.publish(self, event);
            }
        };
        tell(Kinds::TIMED_OUT, Event::TimedOut);
        tell(Kinds::LOST, Event::Lost { bytes: lost });
        tell(Kinds::RECOVERY, Event::Recovery);
        tell(Kinds::UNDONE, Event::Undone);
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
