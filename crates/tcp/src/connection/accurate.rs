//! Accurate ECN on a connection (RFC 9768): the marks in its segments, the marks in the peer's, and their validation.

use super::Connection;
use crate::accurate_ecn::{
    self, Arrival, Arrivals, Counts, FIELD, ReceiverCounters, SenderCounters, handshake_codepoint,
    handshake_flags, is_mangled,
};
use crate::passive::HalfOpen;
use crate::pos::Pos;
use crate::recovery::Phase;
use crate::segment::Segment;
use crate::time::Instant;
use core::ops::Range;
use transom_wire::tcp::MAX_OPTIONS_LEN;
use transom_wire::{AccEcn, Ecn, Flags, Options, SackBlocks, TcpHeader};

/// The state of the peer's options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerOptions {
    /// The handshake brought none, and nothing has since: it is counted by the field alone.
    Absent,
    /// They arrive, so far without a count.
    Empty,
    /// They arrive.
    Counting,
    /// A count that cannot be zero was (section 3.2.3.2.4): none is believed.
    Zeroed,
}

/// Since everything that was sent has been acknowledged with an option.
#[derive(Clone, Copy, Debug, Default)]
struct Quiet {
    /// Packets that have left.
    sent: u32,
    /// Packets reported as marked, if the field has not wrapped.
    marked: u64,
    /// Bytes that an option reported as marked.
    counted: u64,
}

/// The state of accurate ECN on a connection.
#[derive(Debug)]
pub(super) struct Accurate {
    receiver: ReceiverCounters,
    sender: SenderCounters,
    /// How the peer's SYN arrived.
    syn: Ecn,
    /// How the peer's SYN-ACK arrived, while the next pure acknowledgement is to say it.
    syn_ack: Option<Ecn>,
    /// A marked SYN-ACK has been counted.
    syn_ack_counted: bool,
    /// How our SYN-ACK left, if it is known which one arrived.
    syn_ack_sent: Option<Ecn>,
    /// The segment at hand is the acknowledgement of our SYN-ACK: its field is no count.
    is_handshake: bool,
    /// A SYN-ACK has completed the handshake, so that the acknowledgement of ours is still to come.
    awaits_handshake_ack: bool,
    /// Options are sent.
    sends_options: bool,
    /// The profile allows options.
    may_send_options: bool,
    /// An acknowledgement of a repeated SYN-ACK has left with an option.
    has_shown_again: bool,
    /// The beginning of the last data that arrived again though it had been acknowledged.
    repeated_at: Option<Pos>,
    /// The next pure acknowledgement carries one, whether a count has changed or not.
    shows_option: bool,
    /// So does the first data.
    shows_with_data: bool,
    /// The position of the first data that carried one, until it is acknowledged.
    first_with_option: Option<Pos>,
    peer_options: PeerOptions,
    /// The field of a segment without SYN has been checked.
    field_seen: bool,
    /// The field was zero where it cannot be (sections 3.2.2.1 and 3.2.2.4): marks are not answered.
    pub(super) ignores_marks: bool,
    /// The latest timestamp among the segments whose counts were taken.
    newest: Option<u32>,
    quiet: Quiet,
    arrivals: Arrivals,
    /// The path clears the codepoints of data.
    cleared: bool,
}

/// The marks that an acknowledgement reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// There were some.
    pub(super) echo: bool,
    /// How many bytes, if that is reported.
    pub(super) bytes: Option<u64>,
}

/// Accurate ECN on a connection, as [`Connection::info`] gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct AccurateInfo {
    /// Packets and bytes that arrived here.
    pub received: Counts,
    /// Packets and bytes that the peer reports as arrived. Packets are an estimate if the field may have wrapped.
    pub delivered: Counts,
    /// Options of the peer have arrived.
    pub options_seen: bool,
    /// With counts in them.
    pub counts_seen: bool,
    /// Options of the peer are not believed, as their counts were zeroed.
    pub options_zeroed: bool,
    /// This end sends options.
    pub sends_options: bool,
    /// The peer's field was zeroed, so that nothing leaves ECN-capable and marks are not answered (RFC 9768 section 3.2.2.4).
    pub field_zeroed: bool,
    /// Data arrives without the codepoints that it left with, so that nothing leaves ECN-capable any more (RFC 9768 section 3.2.2.3).
    pub codepoints_cleared: bool,
}

impl Accurate {
    pub(super) fn new(options: bool) -> Self {
        Accurate {
            receiver: ReceiverCounters::default(),
            sender: SenderCounters::default(),
            syn: Ecn::NotEct,
            syn_ack: None,
            syn_ack_counted: false,
            syn_ack_sent: None,
            is_handshake: false,
            awaits_handshake_ack: false,
            sends_options: options,
            may_send_options: options,
            has_shown_again: false,
            repeated_at: None,
            shows_option: false,
            shows_with_data: false,
            first_with_option: None,
            peer_options: PeerOptions::Absent,
            field_seen: false,
            ignores_marks: false,
            newest: None,
            quiet: Quiet::default(),
            arrivals: Arrivals::default(),
            cleared: false,
        }
    }

    pub(super) fn info(&self) -> AccurateInfo {
        AccurateInfo {
            received: *self.receiver.counts(),
            delivered: *self.sender.counts(),
            options_seen: self.peer_options != PeerOptions::Absent,
            counts_seen: self.peer_options == PeerOptions::Counting,
            options_zeroed: self.peer_options == PeerOptions::Zeroed,
            sends_options: self.sends_options,
            field_zeroed: self.ignores_marks,
            codepoints_cleared: self.cleared,
        }
    }

    /// The field ACE.
    pub(super) fn field(&self) -> Flags {
        self.receiver.field()
    }

    /// The flags of a SYN-ACK.
    pub(super) fn syn_ack_flags(&self) -> Flags {
        handshake_flags(self.syn)
    }

    /// The option of a SYN-ACK with these `others`.
    pub(super) fn syn_ack_option(&self, others: &Options) -> Option<AccEcn> {
        let room = room_beside(others);
        self.receiver.handshake_option(room).filter(|_| self.sends_options)
    }

    /// The peer's SYN arrived.
    pub(super) fn on_syn(&mut self, arrived: Ecn) {
        self.syn = arrived;
    }

    /// The option of the first segment that the peer sends after its SYN: whether there is one, and whether its counts can be true
    /// (sections 3.2.3.2.3 and 3.2.3.2.4).
    fn test_options(&mut self, option: Option<&AccEcn>) {
        self.peer_options = match option {
            None => PeerOptions::Absent,
            Some(option) if option.ect0() == Some(0) || option.ect1() == Some(0) => {
                PeerOptions::Zeroed
            }
            Some(option) if option.fields() == 0 => PeerOptions::Empty,
            Some(_) => PeerOptions::Counting,
        };
    }

    /// The option of a segment, if it is believed.
    fn trusted_option(&mut self, option: Option<AccEcn>) -> Option<AccEcn> {
        let option = option.filter(|_| self.peer_options != PeerOptions::Zeroed)?;
        if option.fields() > 0 {
            self.peer_options = PeerOptions::Counting;
        } else if self.peer_options == PeerOptions::Absent {
            self.peer_options = PeerOptions::Empty;
        }
        Some(option)
    }

    /// Whether a segment with `stamp` that acknowledges `delivered` new bytes is later than those whose counts were taken (appendix A.1).
    fn is_later(&mut self, stamp: Option<u32>, delivered: u64) -> bool {
        let Some(stamp) = stamp else { return delivered > 0 };
        let ahead = self.newest.map_or(1, |newest| stamp.wrapping_sub(newest) as i32);
        if ahead > 0 {
            self.newest = Some(stamp);
        }
        ahead > 0 || (ahead == 0 && delivered > 0)
    }

    /// Whether the option's bytes and the field contradict each other beyond doubt (section 3.2.3.2.5).
    fn is_inconsistent(&self) -> bool {
        let Quiet { sent, marked, counted } = self.quiet;
        counted > 0 && marked == 0 && sent < 8
    }
}

/// The bytes for an option besides `others`.
fn room_beside(others: &Options) -> usize {
    MAX_OPTIONS_LEN.saturating_sub(others.encoded_len())
}

impl Connection {
    pub(super) fn accurate(&self) -> Option<&Accurate> {
        self.ecn.as_deref()?.accurate()
    }

    fn accurate_mut(&mut self) -> Option<&mut Accurate> {
        self.ecn.as_deref_mut()?.accurate_mut()
    }

    /// Takes over a listener's state of the handshake.
    pub(super) fn take_accurate_handshake(&mut self, half: &HalfOpen) {
        let sent = half.sent_codepoint(&self.profile);
        let Some(ecn) = self.ecn.as_deref_mut() else { return };
        ecn.silent |= half.silent;
        let Some(state) = ecn.accurate_mut() else { return };
        state.syn = half.syn_codepoint;
        state.syn_ack_sent = sent;
        // An option may be why the SYN-ACK did not arrive (section 3.2.3.2.2).
        state.sends_options &= !half.is_repeated();
    }

    /// The peer's SYN-ACK arrived, and agrees to accurate ECN.
    pub(super) fn on_accurate_syn_ack(&mut self, now: Instant, segment: &Segment<'_>) {
        let Some(ecn) = self.ecn.as_deref_mut() else { return };
        let Some(state) = ecn.accurate_mut() else { return };
        state.syn_ack = Some(segment.ecn);
        state.shows_option = state.sends_options;
        state.shows_with_data = state.sends_options;
        state.syn_ack_counted = segment.ecn == Ecn::Ce;
        state.receiver.on_packets(segment.ecn, 1, segment.payload.len() as u64, true);
        state.test_options(segment.header.options.acc_ecn.as_ref());
        ecn.marked_segments += u64::from(segment.ecn == Ecn::Ce);
        // Our SYN was not ECN-capable. A codepoint that is not reported is taken for unchanged (section 3.1.3).
        let arrived = handshake_codepoint(segment.header.flags).unwrap_or(Ecn::NotEct);
        ecn.silent |= is_mangled(Ecn::NotEct, arrived);
        if arrived == Ecn::Ce {
            self.on_handshake_mark(now);
        }
    }

    /// A SYN-ACK arrived again: our acknowledgement was lost, perhaps for its option. The next says how this one arrived (section 3.2.2.1), whatever its
    /// own flags are: what was agreed on stays (section 3.1.5). It has an option once more, as on Linux. After that, options may be why it is lost.
    pub(super) fn on_repeated_syn_ack(&mut self, segment: &Segment<'_>, start: Pos) {
        let header = segment.header;
        let ack = self.snd.space.from_wire(header.ack, self.una());
        let acceptable = header.flags.contains(Flags::SYN | Flags::ACK)
            && self.owner.active
            && (start, ack) == (Pos::INITIAL, Pos::FIRST_DATA);
        if !acceptable {
            return;
        }
        let simultaneous = !self.state.is_synchronized();
        // The budget for such answers may be used up.
        let answered = self.rcv.ack_now;
        let Some(state) = self.accurate_mut() else { return };
        state.syn_ack = Some(segment.ecn).filter(|_| answered);
        let again = !simultaneous && answered;
        state.sends_options &= !(again && core::mem::replace(&mut state.has_shown_again, true));
        state.shows_option = state.sends_options;
        if segment.ecn == Ecn::Ce && !core::mem::replace(&mut state.syn_ack_counted, true) {
            state.receiver.on_packets(Ecn::Ce, 1, 0, false);
        }
    }

    /// The peer's SYN arrived again after our SYN-ACK. The agreement stays (section 3.1.5).
    pub(super) fn on_repeated_accurate_syn(&mut self, segment: &Segment<'_>) {
        let Some(ecn) = self.ecn.as_deref_mut() else { return };
        ecn.silent |= accurate_ecn::ace(segment.header.flags) == 0;
        let Some(state) = ecn.accurate_mut() else { return };
        state.on_syn(segment.ecn);
        // An option may be why the SYN-ACK did not arrive (section 3.2.3.2.2).
        state.sends_options = false;
    }

    /// SYNs have crossed, and the peer's SYN-ACK completes the handshake. The acknowledgement of our own SYN-ACK comes later, and its field is no count.
    pub(super) fn await_accurate_handshake_ack(&mut self) {
        if let Some(state) = self.accurate_mut() {
            state.awaits_handshake_ack = true;
        }
    }

    /// A segment arrived, perhaps the acknowledgement of our SYN-ACK after the handshake was complete.
    pub(super) fn on_late_handshake_ack(&mut self, now: Instant, segment: &Segment<'_>, ack: Pos) {
        let Some(state) = self.accurate_mut() else { return };
        if core::mem::take(&mut state.awaits_handshake_ack) && ack == Pos::FIRST_DATA {
            self.on_accurate_handshake_ack(now, segment);
        }
    }

    /// Data from `start` on arrived again though it had been acknowledged. The answer has an option. If the data comes for a third time, options may be
    /// why acknowledgements are lost (section 3.2.3.2.2). Linux gives them up at the same time.
    pub(super) fn suspect_options_of_acks(&mut self, start: Pos) {
        let Some(state) = self.accurate_mut() else { return };
        state.sends_options &= state.repeated_at.replace(start) != Some(start);
        state.shows_option |= state.sends_options;
    }

    /// The acknowledgement of our SYN-ACK arrived (section 3.2.2.1, table 4).
    pub(super) fn on_accurate_handshake_ack(&mut self, now: Instant, segment: &Segment<'_>) {
        let header = segment.header;
        let bare = segment.sequence_len() == 0 && header.options.sack.is_empty();
        let Some(ecn) = self.ecn.as_deref_mut() else { return };
        let Some(state) = ecn.accurate_mut() else { return };
        state.test_options(header.options.acc_ecn.as_ref());
        if matches!(state.peer_options, PeerOptions::Empty | PeerOptions::Counting) {
            // Options pass in one direction at least, so the first data tries one even if a SYN-ACK had to do without (section 3.2.3.2.2).
            state.shows_with_data |= state.may_send_options && !state.sends_options;
            state.sends_options = state.may_send_options;
        }
        if !bare {
            return;
        }
        state.is_handshake = true;
        if accurate_ecn::ace(header.flags) == 0 {
            state.ignores_marks = true;
            ecn.silent = true;
            return;
        }
        let Some(arrived) = handshake_codepoint(header.flags) else { return };
        let mangled = state.syn_ack_sent.is_some_and(|sent| is_mangled(sent, arrived));
        if arrived == Ecn::Ce {
            state.sender.on_marked_syn_ack();
        }
        ecn.silent |= mangled;
        if arrived == Ecn::Ce {
            self.on_handshake_mark(now);
        }
    }

    /// A SYN or SYN-ACK of ours was marked: the initial window is one segment, as if it had been lost (draft-ietf-tcpm-generalized-ecn section 3.2).
    fn on_handshake_mark(&mut self, now: Instant) {
        let nxt = self.nxt();
        if let Some(ecn) = self.ecn.as_deref_mut() {
            ecn.note_handshake_mark(nxt);
        }
        self.control.on_handshake_mark(now);
    }

    /// An acceptable segment arrived: counts its codepoint (section 3.2), and acknowledges its marks if needed.
    pub(super) fn count_codepoint(&mut self, segment: &Segment<'_>) {
        let len = segment.payload.len() as u64;
        let one = segment.segment_size.map_or(len, u64::from);
        let packets = len.div_ceil(one.max(1)).max(1);
        let waiting = len > 0 || self.rcv.next() > self.rcv.last_ack_sent;
        let Some(ecn) = self.ecn.as_deref_mut() else { return };
        if segment.ecn == Ecn::Ce {
            ecn.marked_segments += packets;
        }
        let Some(state) = ecn.accurate_mut() else { return };
        if state.receiver.on_packets(segment.ecn, packets, len, waiting) {
            self.rcv.ack_now = true;
        }
    }

    /// Reads the marks that `segment` reports; it acknowledges `delivered` new bytes. The counts of an `old` segment, whose acknowledgement was
    /// overtaken, are ignored (appendix A.1).
    pub(super) fn read_marks(&mut self, segment: &Segment<'_>, delivered: u64, old: bool) -> Marks {
        let header = segment.header;
        if !self.agreed.accurate {
            let echo = self.agreed.ecn && header.flags.contains(Flags::ECE);
            return Marks { echo, bytes: None };
        }
        let mss = u64::from(self.mss());
        let all_acknowledged = self.una() == self.nxt();
        // What is repaired need not have left ECN-capable.
        let is_capable = matches!(self.control.phase(), Phase::Open | Phase::Disorder)
            && self.control.answers_marks();
        let stamps = header.options.timestamps.filter(|_| self.agreed.timestamps);
        let Some(ecn) = self.ecn.as_deref_mut() else { return Marks::default() };
        // Where ECN has ended for another reason, nothing leaves ECN-capable.
        let is_capable = is_capable && !ecn.silent;
        let Some(state) = ecn.accurate_mut() else { return Marks::default() };
        let later = !old && state.is_later(stamps.map(|stamps| stamps.value), delivered);
        if core::mem::take(&mut state.is_handshake) || !later {
            return Marks { echo: false, bytes: Some(0) };
        }
        let ace = accurate_ecn::ace(header.flags);
        let zeroed = !core::mem::replace(&mut state.field_seen, true) && ace == 0;
        state.ignores_marks |= zeroed;
        let option = state.trusted_option(header.options.acc_ecn);
        let before = state.sender.counts().bytes();
        let marks = state.sender.on_arrival(&Arrival { ace, option, delivered, mss });
        let counted = state.sender.counts().bytes() - before;
        let acknowledged = if is_capable { delivered } else { 0 };
        let told = option.is_some_and(|option| option.fields() > 0);
        state.cleared |= state.arrivals.on_arrival(acknowledged, counted, told, mss);
        state.quiet.marked += marks.least;
        state.quiet.counted += marks.counted;
        let silent = zeroed || state.cleared || state.is_inconsistent();
        if all_acknowledged && option.is_some_and(|option| option.fields() > 0) {
            state.quiet = Quiet::default();
        }
        let ignores_marks = state.ignores_marks;
        ecn.silent |= silent;
        let (echo, bytes) =
            if ignores_marks { (false, 0) } else { (marks.packets > 0, marks.bytes) };
        Marks { echo: echo || bytes > 0, bytes: Some(bytes) }
    }

    /// A segment that acknowledges nothing reports marks.
    pub(super) fn on_marks_without_ack(&mut self, now: Instant, segment: &Segment<'_>) {
        if !self.agreed.accurate {
            return;
        }
        let marks = self.read_marks(segment, 0, false);
        if marks.echo {
            let outcome = self.control.on_marks(now, marks.bytes, self.mark_bounds());
            self.carry_out(now, &outcome);
        }
    }

    /// The options of our SYN-ACK, with what shows that accurate ECN's arrive; not in one that is repeated (section 3.2.3.2.2).
    pub(super) fn with_accurate_option(&self, options: Options) -> Options {
        let again = self.snd.retransmits > 0;
        let option = self.accurate().filter(|_| !again);
        Options { acc_ecn: option.and_then(|state| state.syn_ack_option(&options)), ..options }
    }

    /// A segment leaves with the field.
    pub(super) fn note_field_sent(&mut self) {
        if let Some(state) = self.accurate_mut() {
            state.receiver.on_segment_sent();
        }
    }

    /// The first data with an option is acknowledged.
    pub(super) fn forget_first_option(&mut self, ack: Pos) {
        let Some(state) = self.accurate_mut() else { return };
        if state.first_with_option.is_some_and(|at| at < ack) {
            state.first_with_option = None;
        }
    }

    /// `range` leaves again for a timeout. If it is the first that carried an option, that may be why it did not arrive (section
    /// 3.2.3.2.2).
    pub(super) fn suspect_option(&mut self, range: &Range<Pos>) {
        let timed_out = self.snd.retransmits > 0;
        let Some(state) = self.accurate_mut() else { return };
        if timed_out && state.first_with_option.is_some_and(|at| range.contains(&at)) {
            state.sends_options = false;
        }
    }

    /// Packets with `len` bytes of payload in all are about to leave.
    pub(super) fn count_sent(&mut self, len: u64) {
        if !self.agreed.accurate {
            return;
        }
        let packets = len.div_ceil(u64::from(self.mss()));
        let Some(state) = self.accurate_mut() else { return };
        let packets = u32::try_from(packets).unwrap_or(u32::MAX).max(1);
        state.quiet.sent = state.quiet.sent.saturating_add(packets);
    }

    /// Whether a pure acknowledgement has to leave before data: it says how the SYN-ACK arrived, or of marks in an option for which full segments
    /// have no room.
    pub(super) fn marks_want_pure_ack(&self) -> bool {
        self.rcv.ack_now
            && self.accurate().is_some_and(|state| {
                state.syn_ack.is_some() || (state.sends_options && state.receiver.is_urgent())
            })
    }

    /// Whether all packets of a super-segment must have the same field. CWR is an exception: segmentation sets it in the first packet only.
    pub(super) fn field_forbids_cutting(&self) -> bool {
        self.accurate().is_some_and(|state| state.field().contains(Flags::CWR))
    }

    /// The new data to send, of `range`. The first is to carry an option, and so leaves room for it (section 3.2.3.2.1).
    pub(super) fn with_room_for_option(&self, range: Range<Pos>, fin: bool) -> (Range<Pos>, bool) {
        if !self.agreed.accurate {
            return (range, fin);
        }
        let full = AccEcn::padded_len(AccEcn::MAX_FIELDS) as u64;
        let most = u64::from(self.mss()).saturating_sub(full);
        let shows =
            self.accurate().is_some_and(|state| state.shows_with_data && state.sends_options);
        if !shows || range.end.since(range.start) <= most || most <= full {
            return (range, fin);
        }
        (range.start..range.start + most, false)
    }

    /// Adds the option to new data, `len` bytes from `start` on, if it has room: a full segment has none.
    pub(super) fn add_option_to_data(&mut self, header: &mut TcpHeader, start: Pos, len: u64) {
        if !self.agreed.accurate {
            return;
        }
        let free = u64::from(self.mss()).saturating_sub(len);
        let Some(state) = self.accurate_mut() else { return };
        let shows = state.shows_with_data;
        if !state.sends_options || !(shows || state.receiver.wants_option()) {
            return;
        }
        let room = room_beside(&header.options).min(usize::try_from(free).unwrap_or(usize::MAX));
        let option =
            if shows { state.receiver.handshake_option(room) } else { state.receiver.option(room) };
        if option.is_some() {
            header.options.acc_ecn = option;
            state.receiver.on_option_sent();
            state.shows_with_data = false;
            state.first_with_option.get_or_insert(start);
        }
    }

    /// Adds accurate ECN's fields to a pure acknowledgement: the codepoint of the SYN-ACK (section 3.2.2.1), and the option if a count has changed.
    /// Two SACK blocks go before the option (section 3.2.3.3).
    pub(super) fn add_marks_to_ack(&mut self, header: &mut TcpHeader) {
        let Some(state) = self.accurate_mut() else { return };
        // Once: with SACK blocks it would not be understood.
        let arrived = state.syn_ack.take().filter(|_| header.options.sack.is_empty());
        if let Some(arrived) = arrived {
            header.flags = (header.flags - FIELD) | handshake_flags(arrived);
        }
        if !state.sends_options || !(state.shows_option || state.receiver.wants_option()) {
            return;
        }
        let mut first_two = SackBlocks::default();
        for block in header.options.sack.iter().take(2) {
            first_two.push(*block);
        }
        let room = room_beside(&Options { sack: first_two, ..header.options });
        let option = if state.shows_option {
            state.receiver.handshake_option(room)
        } else {
            state.receiver.option(room)
        };
        let Some(option) = option else { return };
        state.shows_option = false;
        state.receiver.on_option_sent();
        let all = core::mem::take(&mut header.options.sack);
        header.options.acc_ecn = Some(option);
        let fit = header.options.sack_room();
        for block in all.iter().take(fit) {
            header.options.sack.push(*block);
        }
    }
}
