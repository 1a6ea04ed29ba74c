//! The effects of acknowledgements on the sending half.

use super::accurate::Marks;
use super::timers::Timer;
use super::{Connection, MemoryState, Signal, State};
use crate::control::{AckInput, Outcome};
use crate::extension::{self, Ack, AckKind, Wake};
use crate::pos::Pos;
use crate::segment::Segment;
use crate::sent::Delivered;
use crate::time::{Duration, Instant};
use core::ops::Range;
use transom_wire::Flags;

/// An acknowledgement, as it arrived.
struct Arriving<'a> {
    now: Instant,
    segment: &'a Segment<'a>,
    /// Where the segment begins.
    start: Pos,
    /// The acknowledgement that it has, and the highest so far.
    said: Pos,
    ack: Pos,
    /// SND.UNA before it.
    una: Pos,
    /// The window that it offers, in bytes.
    window: u64,
    /// Its window is newer than the last one (SND.WL1, SND.WL2).
    in_order: bool,
}

impl Arriving<'_> {
    /// It is older than one that has arrived: only its SACK blocks count (RFC 6675 section 5).
    fn is_old(&self) -> bool {
        self.said < self.una
    }

    fn has_sack(&self) -> bool {
        !self.segment.header.options.sack.is_empty()
    }

    /// Data that acknowledges nothing new, the common case where data flows one way: by RFC 5681 it is no duplicate, and there is nothing for control
    /// in it.
    fn tells_nothing(&self) -> bool {
        self.ack == self.una && !self.segment.payload.is_empty() && !self.has_sack()
    }
}

/// What was true before an acknowledgement.
struct Before {
    /// SND.WND.
    window: u64,
    edge: Pos,
    in_flight: u64,
    outstanding: bool,
}

/// What an acknowledgement says.
struct Said {
    delivered: Delivered,
    /// Bytes that the peer got twice, and the first of the ranges.
    duplicated: u64,
    reported: Option<Range<Pos>>,
    duplicate: bool,
    marks: Marks,
}

impl Said {
    fn is_news(&self) -> bool {
        let Delivered { acked, sacked, .. } = self.delivered;
        let arrived = acked > 0 || sacked > 0 || self.duplicate || self.duplicated > 0;
        // A count of marks is told once, an echo until it is answered.
        arrived || (self.marks.echo && self.marks.bytes.is_some())
    }
}

impl Connection {
    /// Bytes in flight, as the recovery unit sees it.
    pub(super) fn in_flight(&self) -> u64 {
        self.control.in_flight()
    }

    /// Whether `ack` can be true: nothing that was never sent, and no further back than the peer's window ever was large (RFC 5961
    /// section 5).
    pub(super) fn is_plausible(&self, ack: Pos) -> bool {
        let una = self.una();
        ack <= self.highest_sent()
            && (ack >= una || (ack >= Pos::FIRST_DATA && una.since(ack) <= self.snd.peer.most))
    }

    /// Processes the acknowledgement, SACK blocks and window of an acceptable segment at `start` (RFC 9293 section 3.10.7.4, fifth
    /// step). Returns whether to process the rest of the segment.
    pub(super) fn on_acknowledgement(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        start: Pos,
        said: Pos,
    ) -> bool {
        // [MAY-12]
        if !self.is_plausible(said) {
            self.reply(now);
            return false;
        }
        let arriving = self.arriving(now, segment, start, said);
        // Of what others have overtaken, only the SACK blocks are news.
        if (arriving.is_old() && !(self.agreed.sack && arriving.has_sack()))
            || self.rejects_ack(said)
            || self.disbelieves(arriving.ack)
        {
            return true;
        }
        if arriving.tells_nothing() {
            self.take_window(&arriving);
            self.on_marks_without_ack(now, segment);
            self.after_acknowledgement(now, 0);
            return true;
        }
        let before = self.before_ack(&arriving);
        let (mut delivered, duplicated) = self.enter_ack(&arriving);
        self.take_window(&arriving);
        let marks = self.read_ack_marks(&arriving, &delivered);
        let duplicate = self.is_duplicate(&arriving, &before, &delivered);
        self.take_echo(&arriving, &mut delivered);
        let reported = self.reported_range(&arriving, duplicated);
        let said = Said { delivered, duplicated, reported, duplicate, marks };
        let outcome = if said.is_news() {
            self.on_news(&arriving, &before, &said)
        } else {
            Outcome::default()
        };
        self.after_acknowledgement(now, said.delivered.acked);
        let again = said.reported.as_ref().map(|range| range.start);
        self.control.learn_of_reordering(arriving.ack, duplicate, again);
        self.report_ack(&arriving, &before, said, &outcome);
        true
    }

    fn arriving<'a>(
        &self,
        now: Instant,
        segment: &'a Segment<'a>,
        start: Pos,
        said: Pos,
    ) -> Arriving<'a> {
        let una = self.una();
        let ack = said.max(una);
        let in_order = said >= una && self.snd.peer.is_older_than(start, ack);
        let window = self.scaled_window(segment.header);
        Arriving { now, segment, start, said, ack, una, window, in_order }
    }

    /// Whether a rule of the profile's is against it.
    fn disbelieves(&self, ack: Pos) -> bool {
        self.profile.ack_rule.as_ref().is_some_and(|rule| !rule.believes(ack, self.snd.peer.edge))
    }

    fn before_ack(&self, arriving: &Arriving<'_>) -> Before {
        Before {
            window: self.snd.peer.edge.since(arriving.una),
            edge: self.snd.peer.edge,
            in_flight: self.in_flight(),
            outstanding: self.control.board().outstanding() > 0,
        }
    }

    /// Enters it into the scoreboard and the send buffer. Returns what that changed, and the bytes that the peer says it got twice.
    fn enter_ack(&mut self, arriving: &Arriving<'_>) -> (Delivered, u64) {
        let &Arriving { now, ack, .. } = arriving;
        self.remember_messages(now, ack);
        let overtaken_upto = self.control.board().sacked().last().map(|range| range.end);
        // The window probe may have been taken after all.
        self.snd.probes.outstanding &= ack <= self.nxt();
        let had = self.control.board().delivery().delivered();
        let mut delivered = self.control.acknowledge(ack, now);
        self.snd.buffer.acknowledge(ack);
        self.forget_records(ack);
        let duplicated = self.take_sack_blocks(now, arriving, &mut delivered);
        let new = self.control.board().delivery().delivered() - had;
        self.notices.acknowledged(false, self.una() > arriving.una, new);
        if let (Some(lowest), Some(upto)) = (delivered.lowest_original, overtaken_upto) {
            self.control.note_reordering(lowest, upto);
        }
        self.look_for_probe(now);
        (delivered, duplicated)
    }

    fn read_ack_marks(&mut self, arriving: &Arriving<'_>, delivered: &Delivered) -> Marks {
        let bytes = delivered.acked_not_sacked + delivered.sacked;
        let marks = self.read_marks(arriving.segment, bytes, arriving.is_old());
        self.forget_first_option(arriving.ack);
        marks
    }

    /// RFC 6675 section 2: with SACK it is the news that counts, whatever else the segment does. A peer that agreed
    /// to SACK and sends none is taken by RFC 5681 section 2.
    fn is_duplicate(
        &mut self,
        arriving: &Arriving<'_>,
        before: &Before,
        delivered: &Delivered,
    ) -> bool {
        let Arriving { segment, ack, una, window, .. } = *arriving;
        let controls = segment.header.flags.intersects(Flags::SYN | Flags::FIN);
        let bare = segment.payload.is_empty() && !controls;
        let duplicate = before.outstanding
            && if self.agreed.sack && arriving.has_sack() {
                delivered.sacked > 0
            } else {
                ack == una && bare && ack + window == before.edge && !arriving.is_old()
            };
        self.notices.acknowledged(duplicate, false, 0);
        duplicate
    }

    /// Enters its SACK blocks into the scoreboard. Returns the bytes the peer says it got twice.
    fn take_sack_blocks(
        &mut self,
        now: Instant,
        arriving: &Arriving<'_>,
        delivered: &mut Delivered,
    ) -> u64 {
        if !self.agreed.sack || !arriving.has_sack() {
            return 0;
        }
        let ack = arriving.said;
        let blocks = &arriving.segment.header.options.sack;
        let (una, nxt) = (self.una(), self.nxt());
        let mut duplicated = 0;
        let position = |seq| self.snd.space.from_wire(seq, ack);
        let mut ranges = blocks.iter().map(|block| position(block.left)..position(block.right));
        // RFC 2883 section 4: a first block below the acknowledgement, or inside the second, tells of duplicates.
        let mut collected: [Range<Pos>; 4] = [ack..ack, ack..ack, ack..ack, ack..ack];
        let mut count = 0;
        for slot in &mut collected {
            let Some(range) = ranges.next() else { break };
            *slot = range;
            count += 1;
        }
        let collected = collected.get(..count).unwrap_or(&[]);
        for (index, range) in collected.iter().enumerate() {
            if range.start >= range.end || range.end > nxt {
                continue; // never sent: a lie, or corruption that the checksum missed
            }
            let inside_second = index == 0
                && collected.get(1).is_some_and(|b| b.start <= range.start && range.end <= b.end);
            if index == 0 && (range.end <= ack || inside_second) {
                if range.start >= Pos::FIRST_DATA {
                    duplicated += range.end.since(range.start);
                }
                continue;
            }
            if range.end > una {
                self.control.sack(range.start.max(una)..range.end, now, delivered);
            }
        }
        self.counters.duplicate_bytes_reported += duplicated;
        duplicated
    }

    /// The range that the peer says it got twice.
    fn reported_range(&self, arriving: &Arriving<'_>, duplicated: u64) -> Option<Range<Pos>> {
        let position = |seq| self.snd.space.from_wire(seq, arriving.ack);
        let first = arriving.segment.header.options.sack.iter().next();
        first.filter(|_| duplicated > 0).map(|block| position(block.left)..position(block.right))
    }

    /// SND.WND, SND.WL1 and SND.WL2.
    fn take_window(&mut self, arriving: &Arriving<'_>) {
        let &Arriving { start, ack, window, .. } = arriving;
        if !arriving.in_order {
            return;
        }
        self.snd.peer.take(start, ack, window);
        self.snd.probes.unanswered = 0;
        if self.snd.peer.edge > self.nxt() {
            // With nobody waiting for the data, only progress counts: see after_acknowledgement.
            if !self.owner.gone {
                self.snd.probes.sent = 0;
            }
            self.timers.clear(Timer::Persist);
        }
    }

    /// Our own record of the round-trip time is finer than the timestamp; the timestamp tells retransmissions apart [MUST-18] (Karn's
    /// rule, RFC 7323 section 4.1). Data that a retransmission uncovered had waited for it, so the time since it left says nothing about the path.
    fn take_echo(&self, arriving: &Arriving<'_>, delivered: &mut Delivered) {
        if delivered.included_retransmission || delivered.given_up > 0 {
            delivered.rtt = None;
        }
        if delivered.rtt.is_none()
            && delivered.acked > 0
            && self.agreed.timestamps
            && let Some(stamps) = arriving.segment.header.options.timestamps
        {
            let rtt = self.rcv.timestamps.echo_rtt(stamps.echo, arriving.now);
            delivered.rtt = rtt.map(|rtt| rtt.max(Duration::from_millis(1)));
        }
    }

    /// It says something new: control answers.
    fn on_news(&mut self, arriving: &Arriving<'_>, before: &Before, said: &Said) -> Outcome {
        let now = arriving.now;
        let input = AckInput {
            now,
            una_before: arriving.una,
            prior_in_flight: before.in_flight,
            delivered: said.delivered,
            duplicate: said.duplicate,
            duplicated: said.duplicated,
            has_sack: arriving.has_sack(),
            timestamps: arriving.segment.header.options.timestamps,
            ecn_echo: said.marks.echo,
            marked: said.marks.bytes,
            bounds: self.mark_bounds(),
            probe: super::path_mtu::probe_in_flight(&self.path_mtu),
            starved: self.profile.early_retransmit && self.is_starved(),
            end: self.snd.buffer.end(),
        };
        let outcome = self.control.on_ack(input, &self.extensions.clamp());
        self.carry_out(now, &outcome);
        self.note_given_up(now, outcome.given_up);
        self.grow_buffer();
        outcome
    }

    /// Counts and tells what control has done.
    pub(super) fn carry_out(&mut self, now: Instant, outcome: &Outcome) {
        self.counters.lost_bytes += outcome.lost;
        self.counters.fast_recoveries += u64::from(outcome.recovers);
        self.counters.spurious_reductions += u64::from(outcome.undone);
        self.notices.lost(outcome.lost);
        if outcome.undone {
            self.notices.undone();
        }
        if outcome.recovers {
            self.notices.recovers();
            self.note_for_extensions(Wake::LOSS);
        }
        if outcome.probe_lost {
            self.on_probe_lost(now);
        }
        self.note_reduction(outcome);
    }

    /// The send buffer has room for a window, and for the next write on its way.
    fn grow_buffer(&mut self) {
        let cwnd = self.control.window().cwnd;
        let wanted = usize::try_from(cwnd.saturating_mul(2)).unwrap_or(usize::MAX);
        let limit = self.snd.buffer.limit();
        let grows = wanted > limit && self.memory == MemoryState::Normal;
        if grows && limit < self.profile.max_send_buffer {
            self.snd.buffer.set_limit(wanted.min(self.profile.max_send_buffer));
        }
    }

    /// Tells the layers that wait for it.
    fn report_ack(
        &mut self,
        arriving: &Arriving<'_>,
        before: &Before,
        said: Said,
        outcome: &Outcome,
    ) {
        if !self.hears_of_ack(outcome.round_start) {
            return;
        }
        let &Arriving { now, ack, window, .. } = arriving;
        let Delivered { acked, sacked, rtt, .. } = said.delivered;
        let kind = AckKind::NEW_DATA.only_if(acked > 0)
            | AckKind::DUPLICATE.only_if(said.duplicate)
            | AckKind::SACK.only_if(sacked > 0)
            | AckKind::DSACK.only_if(said.duplicated > 0)
            | AckKind::WINDOW_UPDATE.only_if(window != before.window)
            | AckKind::ECN_ECHO.only_if(said.marks.echo);
        let duplicated = said.reported;
        let told = Ack { at: now, ack, window, kind, acked, sacked, duplicated, rtt };
        let mut occasion =
            extension::Occasion { now, what: Wake::empty(), ack: Some(told), sent: None };
        self.notify_ack(&mut occasion, kind, outcome.round_start);
    }

    /// The consequences for timers, states and the writer.
    fn after_acknowledgement(&mut self, now: Instant, acked: u64) {
        if acked > 0 {
            self.snd.retransmits = 0;
            self.control.on_progress();
            let unsent = if self.has_unsent() { now } else { Instant::FAR_FUTURE };
            let oldest = self.control.board().first();
            self.snd.unacked_since = oldest.map_or(unsent, |record| record.first_sent);
            if self.snd.unacked_since == Instant::FAR_FUTURE {
                self.limited.end_busy(now);
            }
            if self.snd.peer.edge > self.nxt() {
                self.snd.probes.sent = 0;
            }
            let space = self.snd.buffer.space();
            let room = self.snd.writer_waits
                && space * 3 >= self.snd.buffer.limit()
                && self.is_below_low_water();
            // After the last write only the end of what was written is news: for one who lingers.
            if room || (self.snd.fin_queued && self.snd.buffer.is_empty()) {
                self.snd.writer_waits = false;
                self.raise(Signal::Writable);
            }
        } else if self.snd.peer.edge <= self.una() && !self.owner.gone {
            // [MUST-37] [SHLD-17] the peer lives and keeps its window closed.
            self.snd.retransmits = 0;
            if self.snd.unacked_since().is_some() {
                self.snd.unacked_since = now;
            }
        }
        if self.fin_acked() {
            match self.state {
                State::FinWait1 => {
                    self.enter(State::FinWait2);
                    if self.owner.gone {
                        self.wait_for_fin(now);
                    }
                }
                State::Closing => self.enter_time_wait(now),
                State::LastAck => self.finish(None),
                _ => {}
            }
        }
    }
}
