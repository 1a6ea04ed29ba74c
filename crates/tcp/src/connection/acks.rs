//! The effects of acknowledgements on the sending half.

use super::timers::Timer;
use super::{Connection, Event, MemoryState, State};
use crate::ack_context::AckContext;
use crate::congestion::CongestionEvent;
use crate::extension::{self, Ack, AckKind, Wake};
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::segment::Segment;
use crate::sent::Delivered;
use crate::time::{Duration, Instant};
#[cfg(fixed_units)]
use crate::units::direct::*;
use crate::validation::WindowBounds;
use transom_wire::Flags;

impl Connection {
    /// Bytes in flight, as the recovery unit sees it.
    pub(super) fn in_flight(&self) -> u64 {
        self.snd.recovery.in_flight(&self.snd.sent)
    }

    /// Whether `ack` can be true: nothing that was never sent, and no further back than the peer's window ever was large (RFC 5961
    /// section 5).
    pub(super) fn is_plausible(&self, ack: Pos) -> bool {
        let una = self.una();
        ack <= self.highest_sent()
            && (ack >= una || (ack >= Pos::FIRST_DATA && una.since(ack) <= self.snd.max_window))
    }

    /// Processes the acknowledgement, SACK blocks and window of an acceptable segment at `start` (RFC 9293 section 3.10.7.4, fifth
    /// step). Returns whether to process the rest of the segment.
    pub(super) fn on_acknowledgement(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        start: Pos,
        ack: Pos,
    ) -> bool {
        let una = self.una();
        // [MAY-12]
        if !self.is_plausible(ack) {
            self.reply(now);
            return false;
        }
        // RFC 6675 section 5: SACK blocks are taken from any acknowledgement, also from one that others have overtaken. It has nothing else to say.
        let (said, old) = (ack, ack < una);
        if old && (!self.agreed.sack || segment.header.options.sack.is_empty()) {
            return true;
        }
        let ack = ack.max(una);
        if self.rejects_ack(said)
            || (self.profile.mishandles_shrinking && ack > self.snd.right_edge)
        {
            return true;
        }
        let header = segment.header;
        let window = self.scaled_window(header);
        let in_order =
            !old && (start > self.snd.wl1 || (start == self.snd.wl1 && ack >= self.snd.wl2));
        if ack == una && !segment.payload.is_empty() && header.options.sack.is_empty() {
            // Data that acknowledges nothing new, the common case where data flows one way: by RFC 5681 it is no
            // duplicate, and there is nothing for the units in it.
            if in_order {
                self.update_window(start, ack, window);
            }
            self.on_marks_without_ack(now, segment);
            self.after_acknowledgement(now, 0);
            return true;
        }
        let same_window = ack + window == self.snd.right_edge;
        let prior_window = self.snd.right_edge.since(una);
        let prior_in_flight = self.in_flight();
        let had_outstanding = self.snd.sent.outstanding() > 0;

        self.remember_messages(now, ack);
        let overtaken_upto = self.snd.sent.sacked().last().map(|range| range.end);
        let mut delivered = Delivered::default();
        if ack > self.nxt() {
            // The window probe was taken after all. When it was sent says nothing about the round trip.
            self.snd.sent.push(ack, now);
            self.snd.probe_outstanding = false;
            self.snd.sent.acknowledge(ack, now, &mut delivered);
            delivered.rtt = None;
        } else {
            self.snd.sent.acknowledge(ack, now, &mut delivered);
        }
        self.snd.buffer.acknowledge(ack);
        self.forget_records(ack);
        let duplicated = self.take_sack_blocks(now, segment, said, &mut delivered);
        if let (Some(lowest), Some(upto)) = (delivered.lowest_original, overtaken_upto) {
            let mss = self.mss();
            self.snd.note_reordering(lowest, upto, mss);
        }
        self.look_for_probe(now);
        if in_order {
            self.update_window(start, ack, window);
        }

        let marks = self.read_marks(segment, delivered.acked_not_sacked + delivered.sacked, old);
        self.forget_first_option(ack);
        let bare = segment.payload.is_empty() && !header.flags.intersects(Flags::SYN | Flags::FIN);
        let has_sack = !header.options.sack.is_empty();
        // RFC 6675 section 2: with SACK it is the news that counts, whatever else the segment does. A peer that agreed
        // to SACK and sends none is taken by RFC 5681 section 2.
        let duplicate = had_outstanding
            && if self.agreed.sack && has_sack {
                delivered.sacked > 0
            } else {
                ack == una && bare && same_window && !old
            };
        let arrived = delivered.acked > 0 || delivered.sacked > 0 || duplicate || duplicated > 0;
        // A count of marks is told once, an echo until it is answered.
        let new_information = arrived || (marks.echo && marks.bytes.is_some());
        let round_start = new_information && ack > self.snd.round_end;
        self.duplicate_seen |= duplicate;
        if new_information {
            // A round trip lasts until what was outstanding at its beginning is acknowledged.
            if round_start {
                self.snd.round_end = self.nxt();
                self.snd.timer.on_round();
            }
            self.snd.timer.on_flight(prior_in_flight.div_ceil(u64::from(self.mss()).max(1)));
            self.sample_rtt(now, segment, &mut delivered);
            let newly_delivered = self.newly_delivered(&delivered, duplicate);
            let min_rtt = self.snd.min_rtt();
            let rate = self.snd.sent.rate_sample(delivered.rate, min_rtt);
            self.consult_units(AckContext {
                now,
                una: ack,
                nxt: self.nxt(),
                acked: delivered.acked,
                given_up: delivered.given_up,
                sacked: delivered.sacked,
                newly_delivered,
                lowest_original: delivered.lowest_original,
                newest: delivered.newest,
                lost: 0,
                duplicated,
                duplicate,
                has_sack,
                sack_agreed: self.agreed.sack,
                included_retransmission: delivered.included_retransmission,
                rtt: delivered.rtt,
                srtt: self.snd.timer.srtt(),
                min_rtt,
                timestamps: header.options.timestamps,
                round_start,
                delivered: self.snd.sent.delivery().delivered(),
                recovering: false,
                rate,
                prior_in_flight,
                in_flight: 0,
                cwnd_limited: self.was_cwnd_limited(una, prior_in_flight),
                ecn_echo: marks.echo,
                marked: marks.bytes,
                mss: self.mss(),
            });
        }
        self.after_acknowledgement(now, delivered.acked);
        let position = |seq| self.snd.space.from_wire(seq, ack);
        let reported = header.options.sack.iter().next().filter(|_| duplicated > 0);
        let reported = reported.map(|block| position(block.left)..position(block.right));
        self.learn_of_reordering(ack, duplicate, reported.as_ref().map(|range| range.start));
        if self.hears_of_ack(round_start) {
            let kind = AckKind::NEW_DATA.only_if(delivered.acked > 0)
                | AckKind::DUPLICATE.only_if(duplicate)
                | AckKind::SACK.only_if(delivered.sacked > 0)
                | AckKind::DSACK.only_if(duplicated > 0)
                | AckKind::WINDOW_UPDATE.only_if(window != prior_window)
                | AckKind::ECN_ECHO.only_if(marks.echo);
            let Delivered { acked, sacked, rtt, .. } = delivered;
            let told = Ack { at: now, ack, window, kind, acked, sacked, duplicated: reported, rtt };
            let mut event =
                extension::Event { now, what: Wake::empty(), ack: Some(told), sent: None };
            self.notify_ack(&mut event, kind, round_start);
        }
        true
    }

    /// Whether the acknowledged data was sent while cwnd was the limit; in slow start also when half of it was used,
    /// as doubling takes the whole round trip to show.
    fn was_cwnd_limited(&self, una: Pos, prior_in_flight: u64) -> bool {
        una < self.snd.cwnd_limited_upto
            || (self.snd.window.in_slow_start() && prior_in_flight * 2 > self.snd.window.cwnd)
    }

    /// Enters the SACK blocks of an acknowledgement of `ack` into the scoreboard. Returns the bytes the peer says it got twice.
    fn take_sack_blocks(
        &mut self,
        now: Instant,
        segment: &Segment<'_>,
        ack: Pos,
        delivered: &mut Delivered,
    ) -> u64 {
        if !self.agreed.sack || segment.header.options.sack.is_empty() {
            return 0;
        }
        let blocks = &segment.header.options.sack;
        let mss = u64::from(self.mss());
        let (una, nxt) = (self.una(), self.nxt());
        let mut duplicated = 0;
        let position = |seq| self.snd.space.from_wire(seq, ack);
        let mut ranges = blocks.iter().map(|block| position(block.left)..position(block.right));
        // RFC 2883 section 4: a first block below the acknowledgement, or inside the second, tells of duplicates.
        let mut collected: [core::ops::Range<Pos>; 4] = [ack..ack, ack..ack, ack..ack, ack..ack];
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
                self.snd.sent.sack(range.start.max(una)..range.end, mss, now, delivered);
            }
        }
        self.counters.duplicate_bytes_reported += duplicated;
        duplicated
    }

    /// SND.WND, SND.WL1 and SND.WL2.
    fn update_window(&mut self, start: Pos, ack: Pos, window: u64) {
        self.snd.wl1 = start;
        self.snd.wl2 = ack;
        // [MUST-34] [SHLD-15] the edge may move left: what is beyond it simply has no room.
        self.snd.right_edge = ack + window;
        self.snd.max_window = self.snd.max_window.max(window);
        self.snd.unanswered_probes = 0;
        if self.snd.right_edge > self.nxt() {
            // With nobody waiting for the data, only progress counts: see after_acknowledgement.
            if !self.orphaned {
                self.snd.probes = 0;
            }
            self.timers.clear(Timer::Persist);
        }
    }

    fn sample_rtt(&mut self, now: Instant, segment: &Segment<'_>, delivered: &mut Delivered) {
        // Our own record is finer than the timestamp; the timestamp tells retransmissions apart [MUST-18] (Karn's
        // rule, RFC 7323 section 4.1). Data that a retransmission uncovered had waited for it, so the time since it
        // left says nothing about the path.
        if delivered.included_retransmission || delivered.given_up > 0 {
            delivered.rtt = None;
        }
        if delivered.rtt.is_none()
            && delivered.acked > 0
            && self.agreed.timestamps
            && let Some(stamps) = segment.header.options.timestamps
        {
            delivered.rtt = self
                .rcv
                .timestamps
                .echo_rtt(stamps.echo, now)
                .map(|rtt| rtt.max(Duration::from_millis(1)));
        }
        if let Some(rtt) = delivered.rtt {
            self.snd.timer.on_sample(rtt, now);
            self.snd.note_rtt(rtt);
        }
    }

    /// DeliveredData of RFC 9937 section 6.2: without SACK each duplicate counts as a segment, which the next advance must not
    /// count again.
    fn newly_delivered(&mut self, delivered: &Delivered, duplicate: bool) -> u64 {
        if self.agreed.sack {
            return delivered.acked_not_sacked + delivered.sacked;
        }
        if delivered.acked > 0 {
            let advance = delivered.acked.saturating_sub(delivered.given_up);
            let counted = self.snd.duplicates_delivered.min(advance);
            // The rest was counted too, and belongs to a later advance.
            let rest = self.snd.duplicates_delivered - counted;
            self.snd.duplicates_delivered = rest.min(self.snd.sent.outstanding());
            return advance - counted;
        }
        // More cannot have arrived than is out there.
        let left = self.snd.sent.outstanding().saturating_sub(self.snd.duplicates_delivered);
        let segment = if duplicate { u64::from(self.mss()).min(left) } else { 0 };
        self.snd.duplicates_delivered += segment;
        segment
    }

    /// The context for the units when something is detected without an acknowledgement.
    pub(super) fn no_acknowledgement(&self, now: Instant, lost: u64) -> AckContext {
        let in_flight = self.in_flight();
        AckContext {
            now,
            una: self.una(),
            nxt: self.nxt(),
            lost,
            sack_agreed: self.agreed.sack,
            srtt: self.snd.timer.srtt(),
            min_rtt: self.snd.min_rtt(),
            delivered: self.snd.sent.delivery().delivered(),
            recovering: self.snd.recovery.phase() == Phase::Recovery,
            prior_in_flight: in_flight,
            in_flight,
            mss: self.mss(),
            ..AckContext::default()
        }
    }

    /// Recovery first (what is lost), then congestion control (how much may be in flight).
    fn consult_units(&mut self, mut ack: AckContext) {
        let flight = self.snd.sent.outstanding();
        let was_recovering = self.snd.recovery.phase() == Phase::Recovery;
        let threshold = self.loss_threshold();
        let verdict = self.snd.recovery.on_ack(&mut self.snd.sent, &ack, threshold);
        ack.lost = verdict.lost;
        ack.in_flight = self.in_flight();
        ack.recovering = self.snd.recovery.phase() == Phase::Recovery;
        self.note_lost(ack.now, verdict.lost);
        let snd = &mut self.snd;
        if snd.window.in_slow_start() {
            snd.slow_start.on_sample(&mut snd.window, &ack);
        }
        snd.congestion.on_sample(&mut snd.window, &ack);
        if self.was_spurious(&ack) {
            self.undo(ack.now, ack.ecn_echo);
        } else if self.losses_count(&ack, verdict.entered) {
            self.begin_recovery(&ack, flight);
        } else if verdict.exited && was_recovering {
            self.end_recovery(verdict.limit_to_flight, &ack);
        } else if ack.acked > 0 && ack.cwnd_limited && !ack.recovering && self.may_grow(&ack) {
            self.grow_window(&ack);
        }
        if verdict.exited {
            self.end_episode();
        }
        if let Some(WindowBounds { cwnd, ssthresh }) =
            self.snd.validation.on_ack(&self.snd.window, &ack)
        {
            self.reduce(CongestionEvent::Unvalidated { cwnd, ssthresh, idle: false }, ack.now);
        }
        if ack.recovering {
            self.go_on_reducing(&ack);
        }
        if ack.ecn_echo {
            self.on_echo(&ack);
        }
        if verdict.restart_timer {
            self.restart_retransmission(ack.now);
        }
        self.give_up_what_is_hopeless(ack.now);
        self.arm_recovery(ack.now);
        // Enough to keep the window full while the next write is on its way.
        let wanted = usize::try_from(self.snd.window.cwnd.saturating_mul(2)).unwrap_or(usize::MAX);
        let limit = self.snd.buffer.limit();
        let grows = wanted > limit && self.memory == MemoryState::Normal;
        if grows && limit < self.profile.max_send_buffer {
            self.snd.buffer.set_limit(wanted.min(self.profile.max_send_buffer));
        }
    }

    /// The recovery unit has newly marked `bytes` lost.
    pub(super) fn note_lost(&mut self, now: Instant, bytes: u64) {
        self.counters.lost_bytes += bytes;
        if bytes > 0 {
            let snd = &mut self.snd;
            snd.sent.report_lost(now, bytes, |lost| {
                snd.congestion.on_lost(&mut snd.window, lost);
            });
        }
    }

    /// New data was acknowledged, and the window was what held it back.
    fn grow_window(&mut self, ack: &AckContext) {
        if self.is_unconstrained() {
            return self.grow_without_ranges(ack);
        }
        let mut acked = self.profile.counting.counted(ack);
        if self.snd.window.in_slow_start() && !self.snd.congestion.has_own_slow_start() {
            let first = self.within_slow_start(acked);
            let snd = &mut self.snd;
            acked = acked - first + snd.slow_start.grow(&mut snd.window, first, ack);
        }
        // After a timeout one acknowledgement can cover what several windows of the present size would hold, and most of it was sent in
        // larger ones. It is one round trip all the same, and worth one increase (RFC 5681 section 3.1).
        acked = acked.min(self.snd.window.cwnd);
        if acked > 0 && !self.withholds_growth(acked) {
            let snd = &mut self.snd;
            snd.congestion.on_ack(&mut snd.window, acked, ack);
        }
    }

    /// The consequences for timers, states and the writer.
    fn after_acknowledgement(&mut self, now: Instant, acked: u64) {
        if acked > 0 {
            self.snd.retransmits = 0;
            self.snd.repeat_due = false;
            let unsent = if self.has_unsent() { now } else { Instant::FAR_FUTURE };
            let oldest = self.snd.sent.first();
            self.snd.unacked_since = oldest.map_or(unsent, |record| record.first_sent);
            if self.una() == self.nxt() {
                self.timers.clear(Timer::Retransmit);
            }
            if self.snd.unacked_since == Instant::FAR_FUTURE {
                self.limited.end_busy(now);
            }
            if self.snd.right_edge > self.nxt() {
                self.snd.probes = 0;
            }
            let space = self.snd.buffer.space();
            let room = self.snd.writer_waits
                && space * 3 >= self.snd.buffer.limit()
                && self.is_below_low_water();
            // After the last write only the end of what was written is news: for one who lingers.
            if room || (self.snd.fin_queued && self.snd.buffer.is_empty()) {
                self.snd.writer_waits = false;
                self.raise(Event::Writable);
            }
        } else if self.snd.right_edge <= self.una() && !self.orphaned {
            // [MUST-37] [SHLD-17] the peer lives and keeps its window closed.
            self.snd.retransmits = 0;
            if self.snd.unacked_since().is_some() {
                self.snd.unacked_since = now;
            }
        }
        if self.fin_acked() {
            match self.state {
                State::FinWait1 => {
                    self.state = State::FinWait2;
                    if self.orphaned {
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
