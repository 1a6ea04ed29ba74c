//! The tables of a run: flows, their completions, and links.
//!
//! All values are integers: times in nanoseconds since the run began, sizes in bytes, and totals from the run's beginning. The
//! difference of two rows is the amount in the span between them.

use super::column::{Cell, Column, Kind, Table, columns, is_optional};
use crate::run::{FlowObservations, LinkObservations};
use crate::scenario::Name;
use transom_sim::link::Delays;
use transom_sim::measure::{FlowSample, LinkSample};
use transom_tcp::time::{Duration, Instant};

static FLOW_COLUMNS: &[Column<FlowSample>] = &columns! { FlowSample:
    "time", "when, in nanoseconds", at;
    "delivered", "bytes that the receiving application has got so far", delivered;
    "skipped", "bytes that never came: holes that the receiving application was told of so far", skipped;
    "completed", "transfers or requests completed so far", completed;
    "sent_packets", "IP packets that the sender has sent so far", sent.packets;
    "sent_bytes", "bytes of these packets, headers included", sent.bytes;
    "sent_payload", "payload bytes of TCP segments sent so far, retransmissions included", sent.payload;
    "retransmissions", "segments sent again so far", sent.retransmissions;
    "timeouts", "retransmission timeouts so far", sent.timeouts;
    "fast_recoveries", "times fast recovery began so far", sent.fast_recoveries;
    in sender "cwnd", "congestion window, bytes; empty while there is no connection", cwnd;
    in sender "ssthresh", "slow-start threshold, bytes; empty before the first reduction", ssthresh;
    in sender "in_flight", "bytes in flight", in_flight;
    in sender "mss", "payload bytes of a full segment", mss;
    in sender "srtt", "smoothed round-trip time, nanoseconds", srtt;
    in sender "last_rtt", "the last round-trip time sample, nanoseconds", last_rtt;
    in sender "rto", "retransmission timeout with its back-off, nanoseconds", rto;
};

/// The flows, at every sample interval.
pub(super) static FLOWS: Table<FlowObservations, FlowSample> = Table {
    name: "flows",
    keys: FLOW_KEYS,
    attributes: &[],
    columns: FLOW_COLUMNS,
    key: flow_key,
    owner: flow,
    rows: |flow| &flow.samples,
    rows_mut: |flow| &mut flow.samples,
};

const FLOW_KEYS: &[(&str, &str)] = &[("flow", "the flow's name")];

fn flow_key(flow: &FlowObservations) -> Vec<&str> {
    vec![flow.name.as_str()]
}

fn flow(key: &[String]) -> Option<FlowObservations> {
    let [flow] = key else { return None };
    Some(FlowObservations {
        name: name(flow)?,
        samples: Vec::new(),
        completions: Vec::new(),
        departures: Vec::new(),
    })
}

/// When, and how long it took.
type Completion = (Instant, Duration);

static COMPLETION_COLUMNS: &[Column<Completion>] = &columns! { Completion:
    "time", "when it was complete, in nanoseconds", 0;
    "took", "how long that was since its start, nanoseconds", 1;
};

/// The completions of flows: transfers, or requests with their responses.
pub(super) static COMPLETIONS: Table<FlowObservations, Completion> = Table {
    name: "completions",
    keys: FLOW_KEYS,
    attributes: &[],
    columns: COMPLETION_COLUMNS,
    key: flow_key,
    owner: flow,
    rows: |flow| &flow.completions,
    rows_mut: |flow| &mut flow.completions,
};

const THERE: &str = "there";
const BACK: &str = "back";

static LINK_ATTRIBUTES: &[Column<LinkObservations>] = &columns! { LinkObservations:
    "rate", "the rate, bits per second; empty for a link without one", rate;
};

static LINK_COLUMNS: &[Column<LinkSample>] = &columns! { LinkSample:
    "time", "when, in nanoseconds", at;
    "queue_packets", "packets that wait for the serialiser", waiting.packets;
    "queue_bytes", "their bytes", waiting.bytes;
    "queue_peak_packets", "the most packets that ever waited so far", counters.queue_peak.packets;
    "queue_peak_bytes", "the most bytes that ever waited so far", counters.queue_peak.bytes;
    "offered_packets", "packets given to the link so far", counters.offered.packets;
    "offered_bytes", "their bytes", counters.offered.bytes;
    "delivered_packets", "packets that came out so far, copies included", counters.delivered.packets;
    "delivered_bytes", "their bytes", counters.delivered.bytes;
    "too_big_packets", "packets dropped so far that were larger than the MTU", counters.too_big.packets;
    "too_big_bytes", "their bytes", counters.too_big.bytes;
    "queue_full_packets", "packets that the queue has refused so far", counters.queue_full.packets;
    "queue_full_bytes", "their bytes", counters.queue_full.bytes;
    "queue_dropped_packets", "packets dropped so far after they had waited", counters.queue_dropped.packets;
    "queue_dropped_bytes", "their bytes", counters.queue_dropped.bytes;
    "marked", "packets that the queue has marked so far", counters.marked;
    "lost_packets", "packets lost on the wire so far", counters.lost.packets;
    "lost_bytes", "their bytes", counters.lost.bytes;
    "duplicated_packets", "copies that the wire has made so far", counters.duplicated.packets;
    "duplicated_bytes", "their bytes", counters.duplicated.bytes;
    "corrupted", "packets damaged on the wire so far", counters.corrupted;
    "reordered", "packets held back so far so that others may overtake them", counters.reordered;
    "dequeued", "packets that left the queue for the serialiser so far, those that found it idle included", counters.dequeued;
    "queue_delay", "how long these were in the queue, nanoseconds, all added up", counters.queue_delay;
    "low_dequeued", "of these packets, those that came through the low-latency queue of a dual queue", counters.low_dequeued;
    "low_queue_delay", "how long those were in the queue, nanoseconds, all added up", counters.low_queue_delay;
    "opportunities", "opportunities to deliver that a rate trace has had so far, taken or not", counters.opportunities;
    in window "window_target", "the window that the link's window control has arrived at, bytes; empty without one, and of a policy that has not the same for all flows", target;
    in window "window_acks", "acknowledgements that have come back past the window control so far; empty without one, as are the next columns", acks;
    in window "window_rewritten", "acknowledgements whose window it has rewritten so far", rewritten;
    in window "window_unknown", "acknowledgements of flows that it does not know so far", unknown;
    in window "window_implausible", "acknowledgements so far whose numbers cannot belong to the flow", implausible;
    in window "window_held", "acknowledgements that it delayed so far", held;
    in window "window_opened", "flows whose handshake it has seen so far", opened;
    bytes "queue_delays", "the delays of those that had to wait since the row before: the greatest, nanoseconds; then, of each bucket of an HDR histogram of two digits, its distance from the one before and its count; all as LEB128 numbers", delays, Delays::as_bytes, Delays::from_bytes;
    bytes "low_queue_delays", "the same of those that came through the low-latency queue of a dual queue", low_delays, Delays::as_bytes, Delays::from_bytes;
    derived "queue_delay_p50", "the median delay of the packets that left the queue since the row before, nanoseconds, to 1 %", |before, row| percentile(before, row, 50);
    derived "queue_delay_p95", "its 95th percentile", |before, row| percentile(before, row, 95);
    derived "queue_delay_p99", "its 99th percentile", |before, row| percentile(before, row, 99);
    derived "queue_delay_max", "the greatest, exactly", |before, row| percentile(before, row, 100);
};

/// Both ways of the links, at every sample interval.
pub(super) static LINKS: Table<LinkObservations, LinkSample> = Table {
    name: "links",
    keys: &[
        ("link", "the link's name"),
        ("direction", "there, as the scenario writes the link, or back"),
    ],
    attributes: LINK_ATTRIBUTES,
    columns: LINK_COLUMNS,
    key: |link| vec![link.name.as_str(), if link.back { BACK } else { THERE }],
    owner: |key| {
        let [link, direction] = key else { return None };
        let back = match direction.as_str() {
            THERE => false,
            BACK => true,
            _ => return None,
        };
        Some(LinkObservations { name: name(link)?, back, rate: None, samples: Vec::new() })
    },
    rows: |link| &link.samples,
    rows_mut: |link| &mut link.samples,
};

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
