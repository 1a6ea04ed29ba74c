//! A [`Status`] in the text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use crate::Status;
use crate::status::PartStatus;

/// The metrics. Flows have none of their own: there can be any number of them.
pub fn text(status: &Status) -> String {
    let Status { mode, device, policy: _, target, queue, counters, tracked, capacity, flows: _ } =
        status;
    let labels = format!("{{device=\"{}\",mode=\"{}\"}}", escaped(device), escaped(mode));
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, value: u64| {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "# HELP transom_router_{name} {help}\n# TYPE transom_router_{name} {kind}\ntransom_router_{name}{labels} {value}"
        );
    };
    if let Some(target) = target {
        metric("target_window_bytes", "gauge", "The window all flows are brought to.", *target);
    }
    metric("queue_packets", "gauge", "Packets that wait in the bottleneck's queue.", queue.packets);
    metric("queue_bytes", "gauge", "Bytes that wait in the bottleneck's queue.", queue.bytes);
    metric(
        "queue_drops_total",
        "counter",
        "Packets dropped by the bottleneck's queue.",
        queue.drops,
    );
    metric(
        "queue_marks_total",
        "counter",
        "Packets marked by the bottleneck's queue.",
        queue.marks,
    );
    metric(
        "sent_packets_total",
        "counter",
        "Packets that have left the bottleneck's queue.",
        queue.sent_packets,
    );
    metric(
        "sent_bytes_total",
        "counter",
        "Bytes that have left the bottleneck's queue.",
        queue.sent_bytes,
    );
    metric("arrivals_total", "counter", "Packets towards the bottleneck.", counters.arrivals);
    metric(
        "arrived_bytes_total",
        "counter",
        "Bytes towards the bottleneck.",
        counters.arrived_bytes,
    );
    metric("acks_total", "counter", "Acknowledgements that came back.", counters.acks);
    metric(
        "rewritten_total",
        "counter",
        "Acknowledgements whose window was changed, and SYNs.",
        counters.rewritten,
    );
    metric("held_total", "counter", "Acknowledgements that were delayed.", counters.held);
    metric(
        "covered_total",
        "counter",
        "Acknowledgements and SYNs whose options cover their header.",
        counters.covered,
    );
    metric(
        "unknown_total",
        "counter",
        "Acknowledgements of flows whose handshake was not seen.",
        counters.unknown,
    );
    metric(
        "implausible_total",
        "counter",
        "Acknowledgements of data that was never sent.",
        counters.implausible,
    );
    metric("unreadable_total", "counter", "Truncated packets and fragments.", counters.unreadable);
    metric("confirmed_total", "counter", "Flows that came into the table.", counters.confirmed);
    metric(
        "table_full_total",
        "counter",
        "Flows for which there was no place.",
        counters.table_full,
    );
    metric("failed_total", "counter", "Changes that did not succeed.", counters.failed);
    metric("lost_total", "counter", "Frames that an interface did not take.", counters.lost);
    metric("flows", "gauge", "Flows in the table.", *tracked);
    metric("flows_capacity", "gauge", "Flows the table can hold.", *capacity);
    parts(&mut text, status);
    text
}

/// A metric of a queue inside the bottleneck's: its name, its kind, its help, and its value.
type PartMetric = (&'static str, &'static str, &'static str, fn(&PartStatus) -> u64);

const PART_METRICS: [PartMetric; 7] = [
    ("part_packets", "gauge", "Packets that wait in one of the queues.", |part| part.packets),
    ("part_flows", "gauge", "Flows that wait in one of the queues.", |part| part.flows),
    ("part_sent_packets_total", "counter", "Packets that have left one of the queues.", |part| {
        part.sent_packets
    }),
    ("part_drops_total", "counter", "Packets dropped by one of the queues.", |part| part.drops),
    ("part_marks_total", "counter", "Packets marked by one of the queues.", |part| part.marks),
    ("part_mean_delay_microseconds", "gauge", "The mean delay in one of the queues.", |part| {
        part.mean_delay_us
    }),
    ("part_probability_millionths", "gauge", "The probability of a signal now.", |part| {
        part.probability_millionths
    }),
];

/// The queues inside the bottleneck's, each with a label of its own.
fn parts(text: &mut String, status: &Status) {
    if status.queue.parts.is_empty() {
        return;
    }
    let (device, mode) = (escaped(&status.device), escaped(&status.mode));
    for (name, kind, help, value) in PART_METRICS {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "# HELP transom_router_{name} {help}\n# TYPE transom_router_{name} {kind}"
        );
        for part in &status.queue.parts {
            let labels =
                format!("device=\"{device}\",mode=\"{mode}\",queue=\"{}\"", escaped(&part.name));
            let _ = writeln!(text, "transom_router_{name}{{{labels}}} {}", value(part));
        }
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
