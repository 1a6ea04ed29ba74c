//! The receiving half: counts what arrives, and decides when to report it.

use super::{Counts, FIRST_BYTES, count_flags};
use transom_wire::{AccEcn, AccEcnCounters, AccEcnOrder, Ecn, Flags};

const ECT0: u8 = 1;
const CE: u8 = 2;
const ECT1: u8 = 4;
/// Half of what section 3.2.3.3 lets a count change by between two options.
const URGENT_BYTES: u64 = 1 << 21;
/// After so many packets of data without a codepoint an option shows that no count has changed.
const FIRST_PLAIN: u32 = 8;
/// That number is doubled so often at most.
const MOST_SHOWN: u8 = 24;

/// The counters r.cep, r.ceb, r.e0b and r.e1b.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceiverCounters {
    counts: Counts,
    /// The counts of bytes that have changed since the last option.
    untold: u8,
    /// By how much, in all.
    untold_bytes: u64,
    /// Packets with data that arrived without a codepoint since the last option or change of a count.
    plain: u32,
    /// Options that have left because of these, since a count changed.
    shown: u8,
    /// Marked packets since a segment left.
    since_segment: u32,
    /// The last packet was marked.
    marked: bool,
}

impl ReceiverCounters {
    /// The counts of arrived packets.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Counts `packets` that arrived with `bytes` of payload in all and the same codepoint. `unacknowledged` says that data, theirs included, waits
    /// for an acknowledgement. Returns whether an acknowledgement has to leave now (section 3.2.2.5.1): marked data follows a packet without a mark,
    /// or one report would have too many marks.
    pub(crate) fn on_packets(
        &mut self,
        arrived: Ecn,
        packets: u64,
        bytes: u64,
        unacknowledged: bool,
    ) -> bool {
        let counts = &mut self.counts;
        let (count, bit) = match arrived {
            Ecn::NotEct => {
                self.marked = false;
                if bytes > 0 {
                    let packets = u32::try_from(packets).unwrap_or(u32::MAX);
                    self.plain = self.plain.saturating_add(packets);
                }
                return false;
            }
            Ecn::Ect0 => (&mut counts.ect0_bytes, ECT0),
            Ecn::Ect1 => (&mut counts.ect1_bytes, ECT1),
            Ecn::Ce => (&mut counts.ce_bytes, CE),
        };
        *count += bytes;
        if bytes > 0 {
            self.untold |= bit;
            self.untold_bytes += bytes;
            (self.plain, self.shown) = (0, 0);
        }
        let before = core::mem::replace(&mut self.marked, arrived == Ecn::Ce);
        if !self.marked {
            return false;
        }
        counts.ce_packets += packets;
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        self.since_segment = self.since_segment.saturating_add(packets);
        let most = if unacknowledged { 2 } else { 3 };
        (bytes > 0 && !before) || self.since_segment >= most
    }

    /// The field ACE of a segment that leaves now.
    pub(crate) fn field(&self) -> Flags {
        count_flags(self.counts.ce_packets)
    }

    /// A segment left with [`ReceiverCounters::field`].
    pub(crate) fn on_segment_sent(&mut self) {
        self.since_segment = 0;
    }

    /// Whether an option is of use: a count of bytes has changed since the last one, or much data came without a codepoint. From the second, the sender
    /// learns that the path clears codepoints. Each such option waits for twice as much data as the last, because data need not be ECN-capable.
    pub(crate) fn wants_option(&self) -> bool {
        self.untold != 0 || self.shows_nothing()
    }

    /// Whether enough data without a codepoint has arrived to say so.
    fn shows_nothing(&self) -> bool {
        self.plain >= FIRST_PLAIN << self.shown.min(MOST_SHOWN)
    }

    /// Whether an option must leave soon: the count of marked bytes has changed, or any count by so much that it may soon be ambiguous.
    pub(crate) fn is_urgent(&self) -> bool {
        self.untold & CE != 0 || self.untold_bytes >= URGENT_BYTES
    }

    /// The option to send in `room` bytes: with each count that has ever changed, or else with each that has changed since the last option, and as many
    /// of the others as fit (section 3.2.3.3). All counts, where none has changed. `None` if it does not fit.
    pub(crate) fn option(&self, room: usize) -> Option<AccEcn> {
        if self.untold == 0 && self.shows_nothing() {
            return self.handshake_option(room);
        }
        let Counts { ce_bytes, ect0_bytes, ect1_bytes, .. } = self.counts;
        let flag = |bytes: u64, bit: u8| if bytes > 0 { bit } else { 0 };
        let ever = flag(ect0_bytes, ECT0) | flag(ce_bytes, CE) | flag(ect1_bytes, ECT1);
        let fits = |wanted: u8| {
            let (order, fewest) = Self::fewest(wanted, ever);
            let most = Self::fields_in(order, ever);
            let fields = (fewest..=most).rev();
            let fields = fields.into_iter().find(|&fields| AccEcn::padded_len(fields) <= room)?;
            Some(self.with(order, fields))
        };
        fits(ever).or_else(|| fits(self.untold))
    }

    /// How many fields in this order have all counts of `wanted`.
    fn fields_in(order: AccEcnOrder, wanted: u8) -> usize {
        let [first, last] = match order {
            AccEcnOrder::Ect0First => [ECT0, ECT1],
            AccEcnOrder::Ect1First => [ECT1, ECT0],
        };
        match wanted {
            _ if wanted & last != 0 => 3,
            _ if wanted & CE != 0 => 2,
            _ if wanted & first != 0 => 1,
            _ => 0,
        }
    }

    /// The option of the handshake, where it shows that options arrive: as much of it as fits into `room` bytes.
    pub(crate) fn handshake_option(&self, room: usize) -> Option<AccEcn> {
        let fields = (0..=AccEcn::MAX_FIELDS).rev();
        let fields = fields.into_iter().find(|&fields| AccEcn::padded_len(fields) <= room)?;
        Some(self.with(AccEcnOrder::Ect0First, fields))
    }

    /// An option left.
    pub(crate) fn on_option_sent(&mut self) {
        if self.shows_nothing() {
            self.shown = self.shown.saturating_add(1);
        }
        (self.untold, self.untold_bytes, self.plain) = (0, 0, 0);
    }

    /// The order in which the counts `wanted` take the fewest fields, and how many. If both orders are equal, the counts that have `ever` changed
    /// decide.
    fn fewest(wanted: u8, ever: u8) -> (AccEcnOrder, usize) {
        let first = match wanted & (ECT0 | ECT1) {
            0 if ever & (ECT0 | ECT1) == ECT1 => AccEcnOrder::Ect1First,
            ECT1 => AccEcnOrder::Ect1First,
            _ => AccEcnOrder::Ect0First,
        };
        let fields = match wanted {
            0 => 0,
            _ if wanted & ECT0 != 0 && wanted & ECT1 != 0 => 3,
            _ if wanted & CE != 0 => 2,
            _ => 1,
        };
        (first, fields)
    }

    fn with(&self, order: AccEcnOrder, fields: usize) -> AccEcn {
        let Counts { ce_bytes, ect0_bytes, ect1_bytes, .. } = self.counts;
        let counters = AccEcnCounters {
            ect0: ect0_bytes.wrapping_add(FIRST_BYTES) as u32,
            ce: ce_bytes as u32,
            ect1: ect1_bytes.wrapping_add(FIRST_BYTES) as u32,
        };
        AccEcn::new(order, counters, fields)
    }
}
