//! The sending half: what the peer reports as arrived.

use super::{Counts, FIRST_BYTES, FIRST_PACKETS};
use transom_wire::AccEcn;

/// One wrap of the field ACE.
const WRAP: u64 = 8;
/// Bits of the fractional part of the average of [`SenderCounters::covered`].
const FRACTION: u32 = 4;
/// Acknowledgements that cover this many packets on average may often wrap the field.
const ACK_THINNING: u32 = 4;
/// After this many consecutive acknowledgements with marks but without an option, the sender no longer waits for options.
const MAX_WITHOUT_OPTION: u8 = 4;

/// An acknowledgement that is no older than those before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The field ACE.
    pub(crate) ace: u8,
    /// The option, if there is one that is believed.
    pub(crate) option: Option<AccEcn>,
    /// Bytes that it says have arrived, for the first time.
    pub(crate) delivered: u64,
    /// The payload of a full segment, bytes; not zero.
    pub(crate) mss: u64,
}

/// The marks that an acknowledgement reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NewMarks {
    /// Packets newly reported as marked.
    pub(crate) packets: u64,
    /// Bytes newly reported as marked; an estimate without an option.
    pub(crate) bytes: u64,
    /// By how much the field went up, if it has not wrapped.
    pub(crate) least: u64,
    /// Bytes by which the option's own count went up.
    pub(crate) counted: u64,
}

/// The counters s.cep, s.ceb, s.e0b and s.e1b.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderCounters {
    pub(super) counts: Counts,
    /// Marked bytes that were estimated without an option, and that no option has confirmed.
    estimated: u64,
    /// How many packets an acknowledgement covers, on average.
    pub(super) covered: u32,
    /// Whether options arrive; false after several acknowledgements with marks but without one.
    options: bool,
    without: u8,
}

impl SenderCounters {
    /// The counts that the peer has reported.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The handshake reported our SYN-ACK as marked (table 4).
    pub(crate) fn on_marked_syn_ack(&mut self) {
        self.counts.ce_packets += 1;
    }

    /// Decodes an acknowledgement (section 3.2.2.2 and 3.2.3.1, appendix A).
    pub(crate) fn on_arrival(&mut self, arrival: &Arrival) -> NewMarks {
        let Arrival { ace, option, delivered, mss } = *arrival;
        let mss = mss.max(1);
        let counted = option.and_then(|option| self.take_option(&option));
        let told = u64::from(ace).wrapping_sub(FIRST_PACKETS).wrapping_sub(self.counts.ce_packets);
        let least = told % WRAP;
        let covered = delivered.div_ceil(mss);
        self.note_covered(covered);
        let thinned = self.covered >= ACK_THINNING << FRACTION;
        let packets = match counted {
            // The fewest that can have carried what the option says beyond what was taken for granted.
            Some(bytes) => at_least(least, bytes.saturating_sub(self.estimated).div_ceil(mss)),
            // The next option says more.
            None if thinned || self.options => least,
            None => safest(least, covered),
        };
        self.expect_options(counted.is_some(), least > 0);
        self.counts.ce_packets = self.counts.ce_packets.saturating_add(packets);
        let bytes = match counted {
            Some(bytes) => {
                let unconfirmed = bytes.saturating_sub(self.estimated);
                self.estimated = 0;
                unconfirmed
            }
            None => {
                let bytes = packets.saturating_mul(mss);
                self.estimated = self.estimated.saturating_add(bytes);
                bytes
            }
        };
        NewMarks { packets, bytes, least, counted: counted.unwrap_or(0) }
    }

    /// An acknowledgement covers so many packets. The first one stands for those to come, as on Linux.
    fn note_covered(&mut self, covered: u64) {
        if covered > 0 {
            let sample = u32::try_from(covered.min(1 << 16)).unwrap_or(0) << FRACTION;
            self.covered = match self.covered {
                0 => sample,
                average => average - average / 8 + sample / 8,
            };
        }
    }

    /// An acknowledgement came, with or without counts, and with or without marks.
    fn expect_options(&mut self, counted: bool, marked: bool) {
        if counted {
            (self.options, self.without) = (true, 0);
        } else if marked {
            self.without = self.without.saturating_add(1);
            self.options &= self.without < MAX_WITHOUT_OPTION;
        }
    }

    /// The counts of an option with any. Returns by how much that of marked bytes went up: without its field it has not changed.
    fn take_option(&mut self, option: &AccEcn) -> Option<u64> {
        if option.fields() == 0 {
            return None;
        }
        let counts = &mut self.counts;
        let mut changes = [
            (&mut counts.ect0_bytes, option.ect0(), FIRST_BYTES),
            (&mut counts.ect1_bytes, option.ect1(), FIRST_BYTES),
            (&mut counts.ce_bytes, option.ce(), 0),
        ]
        .map(|(count, field, first)| {
            let change = field.map_or(Some(0), |field| forward(*count, field, first));
            (count, change)
        });
        // One that goes back makes all of them old, or false.
        if changes.iter().any(|(_, change)| change.is_none()) {
            return None;
        }
        let mut marked = 0;
        for (count, change) in &mut changes {
            marked = change.unwrap_or(0);
            **count = count.saturating_add(marked);
        }
        Some(marked)
    }
}

/// By how much `field`, 24 bits of a count that began at `first`, is ahead of `count`; `None` if it is behind.
fn forward(count: u64, field: u32, first: u64) -> Option<u64> {
    let ahead = u64::from(field).wrapping_sub(first).wrapping_sub(count) & 0x00ff_ffff;
    (ahead < 1 << 23).then_some(ahead)
}

/// The least number that is `least` modulo a wrap, and not below `floor`.
fn at_least(least: u64, floor: u64) -> u64 {
    least + floor.saturating_sub(least).div_ceil(WRAP) * WRAP
}

/// dSafer.cep of appendix A.2.1: as many of `covered` packets as can have been marked.
fn safest(least: u64, covered: u64) -> u64 {
    match covered.checked_sub(least) {
        Some(rest) => covered - rest % WRAP,
        // The count of packets is too low: some carried no data, or little.
        None => least,
    }
}
