//! Controls that few applications set, kept apart so that others pay only a pointer for them: delayed output (`TCP_CORK`,
//! `MSG_MORE`), separate records (`MSG_EOR`), low-water marks (`TCP_NOTSENT_LOWAT`, `SO_RCVLOWAT`), and keep-alives.
//!
//! The meaning is that of Linux. A tail of less than a segment waits while the connection is corked, or while the last write
//! announced more data, independently of Nagle's algorithm, but for no longer than `MOST_HELD`.

use super::timers::Timer;
use super::{Connection, Signal, WriteError};
use crate::flow::FlowControl as _;
use crate::ordering::Ordering as _;
use crate::pos::Pos;
use crate::profile::{KeepAlive, Profile};
use crate::time::{Duration, Instant};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::net::IpAddr;

/// How long a tail waits for more at most: the ceiling of Linux.
pub(crate) const MOST_HELD: Duration = Duration::from_millis(200);

/// Ends of records that are kept at most, before a write that ends another one has to wait.
const MOST_RECORDS: usize = 4096;

/// How [`Connection::write_with`] writes. By default nothing follows, and no record ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteOptions {
    /// More data follows: a partial segment waits for it (`MSG_MORE`).
    pub more: bool,
    /// A record ends behind these bytes: no segment has bytes of two records (`MSG_EOR`).
    pub end_of_record: bool,
}

transom_base::setters! {
    const WriteOptions:
    with_more = more: bool,
    with_end_of_record = end_of_record: bool,
}

/// The controls that are set.
#[derive(Debug)]
pub(super) struct Controls {
    cork: bool,
    /// The end of the queued data when the last write announced more.
    more_upto: Pos,
    /// Data up to here may leave although the connection is corked.
    pushed_upto: Pos,
    /// Since when a tail waits; [`Instant::FAR_FUTURE`] without one.
    held_since: Instant,
    /// It has waited for long enough.
    overdue: bool,
    /// The most unsent bytes before writes are refused; 0: no limit.
    notsent_low_water: u32,
    /// The readable bytes from which on a reader is notified.
    receive_low_water: usize,
    /// The ends of records, in order.
    records: VecDeque<Pos>,
    keep_alive: Option<KeepAlive>,
    /// The peer's address, for extensions.
    remote: Option<IpAddr>,
}

impl Default for Controls {
    fn default() -> Self {
        Controls {
            cork: false,
            more_upto: Pos::INITIAL,
            pushed_upto: Pos::INITIAL,
            held_since: Instant::FAR_FUTURE,
            overdue: false,
            notsent_low_water: 0,
            receive_low_water: 1,
            records: VecDeque::new(),
            keep_alive: None,
            remote: None,
        }
    }
}

impl Controls {
    /// The controls of a profile, if it sets any.
    pub(super) fn of_profile(profile: &Profile) -> Option<Box<Self>> {
        let keep_alive = Some(profile.keep_alive?);
        Some(Box::new(Controls { keep_alive, ..Controls::default() }))
    }
}

impl Connection {
    /// Switches keep-alives on or off [MUST-24] [MUST-27].
    pub(super) fn set_keep_alive(&mut self, keep_alive: Option<KeepAlive>) {
        if keep_alive.is_some() || self.controls.is_some() {
            self.controls_mut().keep_alive = keep_alive;
        }
        self.rcv.heard.unanswered = 0;
        self.arm_keep_alive();
    }

    /// The keep-alive settings.
    pub(super) fn keep_alive(&self) -> Option<KeepAlive> {
        self.controls.as_ref()?.keep_alive
    }

    /// The peer's address, if it is [known](crate::connection::Setting::Remote).
    pub(super) fn remote(&self) -> Option<IpAddr> {
        self.controls.as_ref().and_then(|controls| controls.remote)
    }

    /// See [`Setting::Remote`](super::Setting::Remote).
    pub(super) fn set_remote(&mut self, remote: IpAddr) {
        if !self.profile.extensions.is_empty() {
            self.controls_mut().remote = Some(remote);
        }
    }

    fn controls_mut(&mut self) -> &mut Controls {
        self.controls.get_or_insert_with(Box::default)
    }

    /// Like [`Connection::write`], with a word on how the bytes are cut into segments.
    ///
    /// # Errors
    /// As [`Connection::write`]. [`WriteError::WouldBlock`] is also told for the end of a record while 4096 records are queued.
    pub fn write_with(
        &mut self,
        now: Instant,
        bytes: &[u8],
        options: WriteOptions,
    ) -> Result<usize, WriteError> {
        if options == WriteOptions::default() {
            return self.write(now, bytes);
        }
        self.write_state()?;
        if options.end_of_record && self.controls_mut().records.len() >= MOST_RECORDS {
            self.snd.writer_waits = true;
            return Err(WriteError::WouldBlock);
        }
        let written = self.write(now, bytes)?;
        let end = self.snd.buffer.end();
        let controls = self.controls_mut();
        if options.more && written > 0 {
            controls.more_upto = end;
        }
        if options.end_of_record && written > 0 && written == bytes.len() {
            controls.records.push_back(end);
        }
        Ok(written)
    }

    /// See [`Setting::Cork`](super::Setting::Cork).
    pub(super) fn set_cork(&mut self, cork: bool) {
        if cork || self.controls.is_some() {
            let controls = self.controls_mut();
            if controls.cork != cork {
                // The wait begins anew.
                controls.held_since = Instant::FAR_FUTURE;
                controls.overdue = false;
                controls.more_upto = Pos::INITIAL;
            }
            controls.cork = cork;
        }
    }

    /// Whether it is corked.
    pub(super) fn cork(&self) -> bool {
        self.controls.as_ref().is_some_and(|controls| controls.cork)
    }

    /// Lets what is queued by now leave, corked or not.
    pub(super) fn push(&mut self) {
        let end = self.snd.buffer.end();
        if let Some(controls) = &mut self.controls {
            controls.pushed_upto = end;
        }
    }

    /// Whether a tail that does not fill a segment waits for more.
    pub(super) fn waits_for_more(&self) -> bool {
        let end = self.snd.buffer.end();
        self.controls.as_ref().is_some_and(|controls| {
            (controls.cork || controls.more_upto == end)
                && !controls.overdue
                && end > controls.pushed_upto
        })
    }

    /// Data is about to leave at `now`: has its tail waited for long enough?
    pub(super) fn check_tail_deadline(&mut self, now: Instant) {
        if let Some(controls) = &mut self.controls {
            controls.overdue = now >= controls.held_since + MOST_HELD;
        }
    }

    /// A tail waits for more.
    pub(super) fn hold_tail(&mut self, now: Instant) {
        if let Some(controls) = &mut self.controls {
            controls.held_since = controls.held_since.min(now);
            self.timers.set(Timer::Persist, controls.held_since + MOST_HELD);
        }
    }

    /// Whether a tail waits for more data, or did at the last output.
    pub(super) fn holds_tail(&self) -> bool {
        let since = self.controls.as_ref().map(|controls| controls.held_since);
        since.is_some_and(|since| since < Instant::FAR_FUTURE)
    }

    /// New data has left.
    pub(super) fn note_new_data(&mut self) {
        if self.controls.is_none() {
            return;
        }
        let low = self.is_below_low_water();
        let space = self.snd.buffer.space();
        let controls = self.controls_mut();
        controls.held_since = Instant::FAR_FUTURE;
        controls.overdue = false;
        if controls.notsent_low_water > 0 && low && space > 0 && self.snd.writer_waits {
            self.snd.writer_waits = false;
            self.raise(Signal::Writable);
        }
    }

    /// How many bytes there are from `at` to the end of the record it is in.
    pub(super) fn record_left(&self, at: Pos) -> u64 {
        let Some(controls) = &self.controls else { return u64::MAX };
        if controls.records.is_empty() {
            return u64::MAX;
        }
        let next = controls.records.partition_point(|&end| end <= at);
        controls.records.get(next).map_or(u64::MAX, |end| end.since(at))
    }

    /// Whether a record ends at `at`.
    #[inline]
    pub(super) fn ends_record(&self, at: Pos) -> bool {
        self.controls.as_ref().is_some_and(|controls| {
            !controls.records.is_empty() && controls.records.binary_search(&at).is_ok()
        })
    }

    /// Everything before `una` is acknowledged.
    pub(super) fn forget_records(&mut self, una: Pos) {
        if let Some(controls) = &mut self.controls {
            while controls.records.front().is_some_and(|&end| end <= una) {
                controls.records.pop_front();
            }
        }
    }

    /// See [`Setting::NotsentLowWater`](super::Setting::NotsentLowWater).
    pub(super) fn set_notsent_low_water(&mut self, bytes: u32) {
        if bytes > 0 || self.controls.is_some() {
            self.controls_mut().notsent_low_water = bytes;
            if self.snd.writer_waits && self.send_room() > 0 {
                self.snd.writer_waits = false;
                self.raise(Signal::Writable);
            }
        }
    }

    /// The mark that [`Setting::NotsentLowWater`](crate::connection::Setting::NotsentLowWater) sets.
    pub(super) fn notsent_low_water(&self) -> u32 {
        self.controls.as_ref().map_or(0, |controls| controls.notsent_low_water)
    }

    /// Bytes of memory owned.
    pub(super) fn controls_memory(&self) -> usize {
        self.controls.as_ref().map_or(0, |controls| {
            size_of::<Controls>() + controls.records.capacity() * size_of::<Pos>()
        })
    }

    fn unsent(&self) -> u64 {
        self.snd.buffer.end().since(self.nxt())
    }

    /// How many bytes a write takes now.
    pub(super) fn send_room(&self) -> usize {
        let space = self.buffer_space();
        let mark = u64::from(self.notsent_low_water());
        if mark == 0 {
            return space;
        }
        let left = mark.saturating_sub(self.unsent());
        // As on Linux a whole segment is begun where there is any room.
        let most = if left > 0 { left.max(u64::from(self.mss())) } else { 0 };
        space.min(usize::try_from(most).unwrap_or(usize::MAX))
    }

    /// Whether the unsent data is below the mark, so that a writer is notified.
    pub(super) fn is_below_low_water(&self) -> bool {
        let mark = u64::from(self.notsent_low_water());
        mark == 0 || self.unsent() * 2 < mark
    }

    /// Whether a waiting writer should be woken now: there is room in the buffer, and less than half of the mark is unsent. A
    /// connection with an error, or that accepts no more data, is writable too: a call fails at once.
    pub fn is_writable(&self) -> bool {
        if self.pending_soft_error().is_some() {
            return true;
        }
        match self.write_state() {
            Ok(()) => {
                let usable = self.state.is_synchronized() || self.is_early() || self.holds_syn();
                usable && self.buffer_space() > 0 && self.is_below_low_water()
            }
            Err(_) => true,
        }
    }

    /// Makes [`Signal::Writable`] follow when a waiting writer should be woken. Returns whether the connection is such that it will.
    pub fn expect_room(&mut self) -> bool {
        let open = self.write_state().is_ok();
        self.snd.writer_waits |= open;
        open
    }

    /// See [`Setting::ReceiveLowWater`](super::Setting::ReceiveLowWater).
    pub(super) fn set_receive_low_water(&mut self, bytes: usize) {
        if bytes > 1 || self.controls.is_some() {
            self.controls_mut().receive_low_water = bytes.max(1);
            if self.is_readable() {
                self.raise(Signal::Readable);
            }
        }
    }

    /// The mark that [`Setting::ReceiveLowWater`](crate::connection::Setting::ReceiveLowWater) sets.
    pub(super) fn receive_low_water(&self) -> usize {
        self.controls.as_ref().map_or(1, |controls| controls.receive_low_water)
    }

    /// Whether a waiting reader should be woken now.
    pub(super) fn is_readable(&self) -> bool {
        self.has_enough(usize::MAX)
    }

    /// Whether any new data is news for the reader: no low-water mark is set.
    #[inline]
    pub(super) fn has_no_low_water(&self) -> bool {
        self.controls.as_ref().is_none_or(|controls| controls.receive_low_water <= 1)
    }

    /// Whether a reader of `wanted` bytes has waited long enough: the low-water mark is reached, all of them are there, or no
    /// more can come.
    pub fn has_enough(&self, wanted: usize) -> bool {
        let readable = self.rcv.ordering.readable();
        // Looked at last, because there is nearly always something to read.
        let ended = || {
            self.rcv.ordering.hole().is_some()
                || self.error.is_some()
                || self.pending_soft_error().is_some()
                || self.end_of_stream()
                || self.peer_has_closed()
        };
        let least = self.controls.as_ref().map_or(1, |controls| controls.receive_low_water);
        if least <= 1 {
            return readable > 0 || ended();
        }
        let mark = least.min(wanted).min(self.rcv.flow.buffer_limit() / 2).max(1);
        let window = self.rcv.edge.since(self.rcv.next());
        readable >= mark || ended() || (readable > 0 && window <= self.rcv.segment)
    }
}
