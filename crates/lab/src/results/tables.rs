//! The tables of a run: flows, their completions, and links.
//!
//! All values are integers: times in nanoseconds since the run began, sizes in bytes, and totals from the run's beginning. The
//! difference of two rows is the amount in the span between them.

use super::column::{Column, Integer, Kind, Part, Table, columns};
use crate::run::{FlowObservations, LinkObservations};
use crate::scenario::Name;
use transom_sim::link::{Counters, Delays, Traffic};
use transom_sim::measure::{FlowSample, LinkSample, SenderSample, SentSample, WindowSample};
use transom_tcp::time::{Duration, Instant};

impl Part for SenderSample {
    const EMPTY: Self = SenderSample {
        cwnd: 0,
        ssthresh: None,
        in_flight: 0,
        mss: 0,
        srtt: None,
        last_rtt: None,
        rto: Duration::ZERO,
    };
}

impl Part for WindowSample {
    const EMPTY: Self = WindowSample {
        target: None,
        acks: 0,
        rewritten: 0,
        unknown: 0,
        implausible: 0,
        held: 0,
        opened: 0,
    };
}

/// The flows, at every sample interval.
pub(super) struct Flows;

static FLOW_COLUMNS: &[Column<FlowSample>] = &columns! { FlowSample:
    always "time", "when, in nanoseconds", at;
    always "delivered", "bytes that the receiving application has got so far", delivered;
    always "skipped", "bytes that never came: holes that the receiving application was told of so far", skipped;
    always "completed", "transfers or requests completed so far", completed;
    maybe "sent_packets", "IP packets that the sender has sent so far", sent.packets;
    maybe "sent_bytes", "bytes of these packets, headers included", sent.bytes;
    maybe "sent_payload", "payload bytes of TCP segments sent so far, retransmissions included", sent.payload;
    maybe "retransmissions", "segments sent again so far", sent.retransmissions;
    maybe "timeouts", "retransmission timeouts so far", sent.timeouts;
    maybe "fast_recoveries", "times fast recovery began so far", sent.fast_recoveries;
    always in sender "cwnd", "congestion window, bytes; empty while there is no connection", cwnd;
    maybe in sender "ssthresh", "slow-start threshold, bytes; empty before the first reduction", ssthresh;
    always in sender "in_flight", "bytes in flight", in_flight;
    always in sender "mss", "payload bytes of a full segment", mss;
    maybe in sender "srtt", "smoothed round-trip time, nanoseconds", srtt;
    maybe in sender "last_rtt", "the last round-trip time sample, nanoseconds", last_rtt;
    always in sender "rto", "retransmission timeout with its back-off, nanoseconds", rto;
};

impl Table for Flows {
    const NAME: &'static str = "flows";
    const KEYS: &'static [(&'static str, &'static str)] = &[("flow", "the flow's name")];
    type Owner = FlowObservations;
    type Row = FlowSample;

    fn attributes() -> &'static [Column<FlowObservations>] {
        &[]
    }

    fn columns() -> &'static [Column<FlowSample>] {
        FLOW_COLUMNS
    }

    fn blank() -> FlowSample {
        let sent = SentSample::default();
        FlowSample { at: Instant::ZERO, delivered: 0, skipped: 0, completed: 0, sent, sender: None }
    }

    fn key(flow: &FlowObservations) -> Vec<&str> {
        vec![flow.name.as_str()]
    }

    fn owner(key: &[String]) -> Option<FlowObservations> {
        let [flow] = key else { return None };
        Some(FlowObservations {
            name: name(flow)?,
            samples: Vec::new(),
            completions: Vec::new(),
            departures: Vec::new(),
        })
    }

    fn rows(flow: &FlowObservations) -> &[FlowSample] {
        &flow.samples
    }

    fn rows_mut(flow: &mut FlowObservations) -> &mut Vec<FlowSample> {
        &mut flow.samples
    }
}

/// The completions of flows: transfers, or requests with their responses.
pub(super) struct Completions;

/// When, and how long it took.
type Completion = (Instant, Duration);

static COMPLETION_COLUMNS: &[Column<Completion>] = &columns! { Completion:
    always "time", "when it was complete, in nanoseconds", 0;
    always "took", "how long that was since its start, nanoseconds", 1;
};

impl Table for Completions {
    const NAME: &'static str = "completions";
    const KEYS: &'static [(&'static str, &'static str)] = Flows::KEYS;
    type Owner = FlowObservations;
    type Row = Completion;

    fn attributes() -> &'static [Column<FlowObservations>] {
        &[]
    }

    fn columns() -> &'static [Column<Completion>] {
        COMPLETION_COLUMNS
    }

    fn blank() -> Completion {
        (Instant::ZERO, Duration::ZERO)
    }

    fn key(flow: &FlowObservations) -> Vec<&str> {
        Flows::key(flow)
    }

    fn owner(key: &[String]) -> Option<FlowObservations> {
        Flows::owner(key)
    }

    fn rows(flow: &FlowObservations) -> &[Completion] {
        &flow.completions
    }

    fn rows_mut(flow: &mut FlowObservations) -> &mut Vec<Completion> {
        &mut flow.completions
    }
}

/// Both ways of the links, at every sample interval.
pub(super) struct Links;

const THERE: &str = "there";
const BACK: &str = "back";

static LINK_ATTRIBUTES: &[Column<LinkObservations>] = &columns! { LinkObservations:
    maybe "rate", "the rate, bits per second; empty for a link without one", rate;
};

static LINK_COLUMNS: &[Column<LinkSample>] = &columns! { LinkSample:
    always "time", "when, in nanoseconds", at;
    always "queue_packets", "packets that wait for the serialiser", waiting.packets;
    always "queue_bytes", "their bytes", waiting.bytes;
    always "queue_peak_packets", "the most packets that ever waited so far", counters.queue_peak.packets;
    always "queue_peak_bytes", "the most bytes that ever waited so far", counters.queue_peak.bytes;
    always "offered_packets", "packets given to the link so far", counters.offered.packets;
    always "offered_bytes", "their bytes", counters.offered.bytes;
    always "delivered_packets", "packets that came out so far, copies included", counters.delivered.packets;
    always "delivered_bytes", "their bytes", counters.delivered.bytes;
    always "too_big_packets", "packets dropped so far that were larger than the MTU", counters.too_big.packets;
    always "too_big_bytes", "their bytes", counters.too_big.bytes;
    always "queue_full_packets", "packets that the queue has refused so far", counters.queue_full.packets;
    always "queue_full_bytes", "their bytes", counters.queue_full.bytes;
    always "queue_dropped_packets", "packets dropped so far after they had waited", counters.queue_dropped.packets;
    always "queue_dropped_bytes", "their bytes", counters.queue_dropped.bytes;
    always "marked", "packets that the queue has marked so far", counters.marked;
    always "lost_packets", "packets lost on the wire so far", counters.lost.packets;
    always "lost_bytes", "their bytes", counters.lost.bytes;
    always "duplicated_packets", "copies that the wire has made so far", counters.duplicated.packets;
    always "duplicated_bytes", "their bytes", counters.duplicated.bytes;
    always "corrupted", "packets damaged on the wire so far", counters.corrupted;
    always "reordered", "packets held back so far so that others may overtake them", counters.reordered;
    always "dequeued", "packets that left the queue for the serialiser so far, those that found it idle included", counters.dequeued;
    always "queue_delay", "how long these were in the queue, nanoseconds, all added up", counters.queue_delay;
    always "low_dequeued", "of these packets, those that came through the low-latency queue of a dual queue", counters.low_dequeued;
    always "low_queue_delay", "how long those were in the queue, nanoseconds, all added up", counters.low_queue_delay;
    always "opportunities", "opportunities to deliver that a rate trace has had so far, taken or not", counters.opportunities;
    maybe in window "window_target", "the window that the link's window control has arrived at, bytes; empty without one, and of a policy that has not the same for all flows", target;
    always in window "window_acks", "acknowledgements that have come back past the window control so far; empty without one, as are the next columns", acks;
    always in window "window_rewritten", "acknowledgements whose window it has rewritten so far", rewritten;
    always in window "window_unknown", "acknowledgements of flows that it does not know so far", unknown;
    always in window "window_implausible", "acknowledgements so far whose numbers cannot belong to the flow", implausible;
    always in window "window_held", "acknowledgements that it delayed so far", held;
    always in window "window_opened", "flows whose handshake it has seen so far", opened;
    bytes "queue_delays", "the delays of those that had to wait since the row before: the greatest, nanoseconds; then, of each bucket of an HDR histogram of two digits, its distance from the one before and its count; all as LEB128 numbers", delays, Delays::as_bytes, Delays::from_bytes;
    bytes "low_queue_delays", "the same of those that came through the low-latency queue of a dual queue", low_delays, Delays::as_bytes, Delays::from_bytes;
    derived "queue_delay_p50", "the median delay of the packets that left the queue since the row before, nanoseconds, to 1 %", |before, row| percentile(before, row, 50);
    derived "queue_delay_p95", "its 95th percentile", |before, row| percentile(before, row, 95);
    derived "queue_delay_p99", "its 99th percentile", |before, row| percentile(before, row, 99);
    derived "queue_delay_max", "the greatest, exactly", |before, row| percentile(before, row, 100);
};

impl Table for Links {
    const NAME: &'static str = "links";
    const KEYS: &'static [(&'static str, &'static str)] = &[
        ("link", "the link's name"),
        ("direction", "there, as the scenario writes the link, or back"),
    ];
    type Owner = LinkObservations;
    type Row = LinkSample;

    fn attributes() -> &'static [Column<LinkObservations>] {
        LINK_ATTRIBUTES
    }

    fn columns() -> &'static [Column<LinkSample>] {
        LINK_COLUMNS
    }

    fn blank() -> LinkSample {
        LinkSample {
            at: Instant::ZERO,
            waiting: Traffic::default(),
            counters: Counters::default(),
            delays: Delays::default(),
            low_delays: Delays::default(),
            window: None,
        }
    }

    fn key(link: &LinkObservations) -> Vec<&str> {
        vec![link.name.as_str(), if link.back { BACK } else { THERE }]
    }

    fn owner(key: &[String]) -> Option<LinkObservations> {
        let [link, direction] = key else { return None };
        let back = match direction.as_str() {
            THERE => false,
            BACK => true,
            _ => return None,
        };
        Some(LinkObservations { name: name(link)?, back, rate: None, samples: Vec::new() })
    }

    fn rows(link: &LinkObservations) -> &[LinkSample] {
        &link.samples
    }

    fn rows_mut(link: &mut LinkObservations) -> &mut Vec<LinkSample> {
        &mut link.samples
    }
}

/// The percentile of the delays of packets that left the queue since the row before, by the nearest rank. It is exact for 100 %, and else at
/// most 1 % too long. None if no packet left it.
fn percentile(before: Option<&LinkSample>, row: &LinkSample, percent: u64) -> Option<u64> {
    let packets = row.counters.dequeued.checked_sub(before?.counters.dequeued)?;
    let rank = packets.saturating_mul(percent).div_ceil(100).max(1);
    if packets == 0 {
        return None;
    }
    let max = row.delays.max().unwrap_or_default().as_nanos();
    let mut passed = packets.saturating_sub(row.delays.count());
    if rank <= passed {
        return Some(0);
    }
    for (least, count) in row.delays.counts() {
        passed = passed.saturating_add(count);
        if rank <= passed {
            // The greatest delay of the bucket: from 256 on, each power of two is divided into 128 of them.
            let least = least.as_nanos();
            let width = 1u64 << least.checked_ilog2().unwrap_or(0).saturating_sub(7);
            return Some(least.saturating_add(width - 1).min(max));
        }
    }
    Some(max)
}

fn name(text: &str) -> Option<Name> {
    Name::try_from(text.to_owned()).ok()
}
