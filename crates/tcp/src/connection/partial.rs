//! Partial reliability on a connection: the forward point on its way out and in, holes that are skipped, and reading past them.
//!
//! Recovery (by the persistence) and the ages of holes decide what to give up. Here both ends carry it out. A forward point leaves in a
//! segment of its own without data: at once when it has moved, again a round trip later while acknowledgements show that the peer has
//! not received it, and with every retransmission timeout. The receiver accepts it from an otherwise acceptable segment (RFC 5961) on
//! three conditions. The option was agreed upon, the point lies within the window, and it is not beyond the segment that brings it or
//! the peer's FIN. Any other is ignored and counted. An old one is answered, within the budget for such answers: the peer repeats it
//! because the acknowledgement was lost.

use super::timers::Timer;
use super::{Connection, Signal};
use crate::holes::{Ages, Hole, HoleChoice};
use crate::ordering::Ordering as _;
use crate::persistence::Persistence;
use crate::pos::Pos;
use crate::profile::Profile;
use crate::rto::RetransmissionTimer as _;
use crate::segment::Segment;
use crate::time::Instant;
use alloc::boxed::Box;
use core::ops::Range;
use transom_wire::{PartialReliability, TcpHeader};

/// The state of partial reliability on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct PartialInfo {
    /// Both ends have agreed that data may be given up. If not, everything this end sends is sent until it has arrived, whatever
    /// its profile says.
    pub agreed: bool,
    /// How long lost data is sent again, if not until it has arrived.
    pub persistence: Option<Persistence>,
    /// Bytes given up by this end.
    pub given_up_bytes: u64,
    /// Bytes of the peer's that never came and were moved over.
    pub skipped_bytes: u64,
    /// Bytes that arrived when they had been moved over.
    pub late_bytes: u64,
    /// Forward points that were not acceptable.
    pub ignored_forward_points: u64,
}

/// The state that a connection keeps while data may be given up.
#[derive(Debug, Default)]
pub(super) struct PartialState {
    given_up_bytes: u64,
    skipped_bytes: u64,
    late_bytes: u64,
    ignored: u64,
    /// The forward point has to leave.
    forward_due: bool,
    /// The last one that did, and when.
    announced: Option<(Pos, Instant)>,
    /// One past the last position that was moved over without having arrived.
    skipped_upto: Pos,
    /// The timestamp that arrived last.
    latest_stamp: Option<u32>,
    /// For a receiver that loses patience.
    ages: Option<Ages>,
}

impl PartialState {
    pub(super) fn for_profile(profile: &Profile) -> Option<Box<Self>> {
        let ages = match profile.holes {
            HoleChoice::Skip(patience) => Some(Ages::new(patience)),
            HoleChoice::Wait | HoleChoice::Accept => None,
        };
        let state = PartialState { ages, ..PartialState::default() };
        profile.offers_partial().then(|| Box::new(state))
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.ages.as_ref().map_or(0, Ages::memory)
    }
}

impl Connection {
    /// After losses: gives up those without hope, and tells the peer.
    pub(super) fn give_up_what_is_hopeless(&mut self, now: Instant) {
        let given_up = self.control.give_up(self.snd.buffer.end(), now);
        self.note_given_up(now, given_up);
    }

    /// These bytes were given up, or none: the peer may have to be told.
    pub(super) fn note_given_up(&mut self, now: Instant, given_up: u64) {
        if !self.agreed.partial {
            return;
        }
        let timer = self.control.timer();
        let patience = timer.srtt().unwrap_or(timer.rto());
        let Some(state) = &mut self.partial else { return };
        state.given_up_bytes += given_up;
        if let Some(point) = self.control.forward_point() {
            state.forward_due |=
                state.announced.is_none_or(|(before, at)| point > before || now >= at + patience);
        }
    }

    /// The retransmission timer expired: repeats the forward point if the peer may not have received it.
    pub(super) fn repeat_forward_point(&mut self) {
        if let Some(state) = &mut self.partial {
            state.forward_due = true;
        }
    }

    /// Whether a segment has to leave to announce the forward point.
    pub(super) fn forward_point_is_due(&self) -> bool {
        self.partial.as_ref().is_some_and(|state| state.forward_due)
            && self.control.forward_point().is_some()
    }

    /// The option for a segment without data that leaves now.
    pub(super) fn announcement(&mut self, now: Instant) -> Option<PartialReliability> {
        let state = self.partial.as_mut()?;
        if !core::mem::take(&mut state.forward_due) {
            return None;
        }
        let point = self.control.forward_point()?;
        state.announced = Some((point, now));
        Some(PartialReliability::ForwardPoint(self.snd.space.to_wire(point)))
    }

    /// The forward point in an acceptable segment at `start`.
    pub(super) fn take_forward_point(&mut self, now: Instant, header: &TcpHeader, start: Pos) {
        let Some(PartialReliability::ForwardPoint(seq)) = header.options.partial else { return };
        let next = self.rcv.next();
        let point = self.rcv.space.from_wire(seq, next);
        let beyond = point > start
            || point > self.rcv.edge
            || self.rcv.fin.is_some_and(|fin| point > fin.max(next));
        // More than a window back is not something that was repeated.
        let ancient = next.since(point) > u64::from(u32::MAX / 4) || point < Pos::FIRST_DATA;
        if !self.agreed.partial || beyond || ancient {
            self.partial.get_or_insert_default().ignored += 1;
            return;
        }
        if point <= next {
            self.reply(now);
            return;
        }
        if self.state.can_receive() {
            self.note_stamp(header);
            self.skip(now, point);
        }
    }

    /// RCV.NXT moves over what is missing before `upto`.
    fn skip(&mut self, now: Instant, upto: Pos) {
        let before = self.rcv.next();
        let skipped = self.rcv.ordering.skip(upto);
        let next = self.rcv.ordering.next();
        self.rcv.ack_now = true;
        if next == before {
            return;
        }
        let state = self.partial.get_or_insert_default();
        state.skipped_bytes += skipped;
        state.skipped_upto = state.skipped_upto.max(upto.min(next));
        // With Last.ACK.sent everything moves that RFC 7323 section 4.3 ties to it.
        if let Some(stamp) = state.latest_stamp.filter(|_| self.agreed.timestamps) {
            self.rcv.timestamps.update(stamp, now);
        }
        self.arm_hole_timer();
        if self.rcv.shut {
            self.drop_received();
        } else {
            self.raise(Signal::Readable);
        }
    }

    fn note_stamp(&mut self, header: &TcpHeader) {
        if let Some(state) = &mut self.partial
            && let Some(stamps) = header.options.timestamps
        {
            state.latest_stamp = Some(stamps.value);
        }
    }

    /// Data, or the FIN, was taken in.
    pub(super) fn note_arrival(&mut self, now: Instant, segment: &Segment<'_>, range: Range<Pos>) {
        if self.partial.is_none() {
            return;
        }
        self.note_stamp(segment.header);
        let next = self.rcv.next();
        // Without SACK an acknowledgement tells of one arrival, however many segments came together.
        let size = segment.segment_size.filter(|_| self.agreed.sack).map_or(u64::MAX, u64::from);
        let segments = range.end.since(range.start).div_ceil(size.max(1));
        if let Some(state) = &mut self.partial
            && let Some(ages) = &mut state.ages
        {
            ages.on_arrival(now, range, segments, next);
            self.arm_hole_timer();
        }
    }

    fn arm_hole_timer(&mut self) {
        let next = self.rcv.next();
        let Some(state) = &mut self.partial else { return };
        let Some(ages) = &mut state.ages else { return };
        ages.forget_below(next);
        match ages.deadline().filter(|_| self.state.can_receive()) {
            Some(at) => self.timers.set(Timer::Hole, at),
            None => self.timers.clear(Timer::Hole),
        }
    }

    /// A hole has been waited for long enough.
    pub(super) fn on_hole_timeout(&mut self, now: Instant) {
        let ages = self.partial.as_ref().and_then(|state| state.ages.as_ref());
        let Some(upto) = ages.and_then(|ages| ages.overdue(now)) else { return };
        if self.state.can_receive() {
            self.skip(now, upto);
            self.reach_fin(now);
        }
    }

    /// Data there had arrived before (for DSACK, RFC 2883), or comes too late.
    pub(super) fn note_duplicate(&mut self, from: Pos, upto: Pos) {
        let bytes = upto.since(from);
        if let Some(state) = &mut self.partial
            && from < state.skipped_upto
        {
            state.late_bytes += bytes;
            return;
        }
        self.counters.duplicate_bytes_received += bytes;
        self.rcv.dsack = from..upto;
        // One byte alone is a keep-alive, which repeats itself for no loss.
        if from < self.rcv.last_ack_sent && bytes > 1 {
            self.suspect_options_of_acks(from);
        }
    }

    /// Drops received data that will not be read.
    pub(super) fn drop_received(&mut self) {
        loop {
            let readable = self.rcv.ordering.readable();
            self.rcv.ordering.discard(readable);
            if self.rcv.ordering.take_hole().is_none() {
                return;
            }
        }
    }

    /// The hole in front of the reader, if there is one: its data will never come. [`Connection::read`] returns nothing until
    /// [`Connection::take_hole`].
    pub fn hole(&self) -> Option<Hole> {
        self.rcv.ordering.hole().map(Hole::from)
    }

    /// The reader has noted the hole in front of it, and continues behind it.
    pub fn take_hole(&mut self) -> Option<Hole> {
        let hole = self.rcv.ordering.take_hole()?;
        self.update_window_if_due();
        self.raise(Signal::Readable);
        Some(Hole::from(hole))
    }

    pub(super) fn partial_info(&self) -> Option<PartialInfo> {
        let state = self.partial.as_ref()?;
        Some(PartialInfo {
            agreed: self.agreed.partial,
            persistence: self.profile.persistence.filter(|_| self.agreed.partial),
            given_up_bytes: state.given_up_bytes,
            skipped_bytes: state.skipped_bytes,
            late_bytes: state.late_bytes,
            ignored_forward_points: state.ignored,
        })
    }
}
