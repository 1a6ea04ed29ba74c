//! A [`Status`] in the text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use crate::Status;
use crate::status::PartStatus;

/// The metrics. Flows have none of their own: there can be any number of them.
pub fn text(status: &Status) -> String {
    let Status { mode, device, policy: _, target, queue, counters: c, tracked, capacity, flows: _ } =
        status;
    let labels = format!("{{device=\"{}\",mode=\"{}\"}}", escaped(device), escaped(mode));
    let mut text = String::new();
    let mut metric = |name: &str, help: &str, value: u64| {
        let kind = kind(name);
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "# HELP transom_router_{name} {help}\n# TYPE transom_router_{name} {kind}\ntransom_router_{name}{labels} {value}"
        );
    };
    if let Some(target) = target {
        metric("target_window_bytes", "The window all flows are brought to.", *target);
    }
    metric("queue_packets", "Packets that wait in the bottleneck's queue.", queue.packets);
    metric("queue_bytes", "Bytes that wait in the bottleneck's queue.", queue.bytes);
    metric("queue_drops_total", "Packets dropped by the bottleneck's queue.", queue.drops);
    metric("queue_marks_total", "Packets marked by the bottleneck's queue.", queue.marks);
    metric(
        "sent_packets_total",
        "Packets that have left the bottleneck's queue.",
        queue.sent_packets,
    );
    metric("sent_bytes_total", "Bytes that have left the bottleneck's queue.", queue.sent_bytes);
    metric("arrivals_total", "Packets towards the bottleneck.", c.arrivals);
    metric("arrived_bytes_total", "Bytes towards the bottleneck.", c.arrived_bytes);
    metric("acks_total", "Acknowledgements that came back.", c.acks);
    metric("rewritten_total", "Acknowledgements whose window was changed, and SYNs.", c.rewritten);
    metric("held_total", "Acknowledgements that were delayed.", c.held);
    metric(
        "covered_total",
        "Acknowledgements and SYNs whose options cover their header.",
        c.covered,
    );
    metric("unknown_total", "Acknowledgements of flows whose handshake was not seen.", c.unknown);
    metric("implausible_total", "Acknowledgements of data that was never sent.", c.implausible);
    metric("unreadable_total", "Truncated packets and fragments.", c.unreadable);
    metric("confirmed_total", "Flows that came into the table.", c.confirmed);
    metric("table_full_total", "Flows for which there was no place.", c.table_full);
    metric("failed_total", "Changes that did not succeed.", c.failed);
    metric("lost_total", "Frames that an interface did not take.", c.lost);
    metric("flows", "Flows in the table.", *tracked);
    metric("flows_capacity", "Flows the table can hold.", *capacity);
    parts(&mut text, status);
    text
}

/// A metric of a queue inside the bottleneck's: its name, its help, and its value.
type PartMetric = (&'static str, &'static str, fn(&PartStatus) -> u64);

const PART_METRICS: [PartMetric; 7] = [
    ("part_packets", "Packets that wait in one of the queues.", |part| part.packets),
    ("part_flows", "Flows that wait in one of the queues.", |part| part.flows),
    ("part_sent_packets_total", "Packets that have left one of the queues.", |part| {
        part.sent_packets
    }),
    ("part_drops_total", "Packets dropped by one of the queues.", |part| part.drops),
    ("part_marks_total", "Packets marked by one of the queues.", |part| part.marks),
    ("part_mean_delay_microseconds", "The mean delay in one of the queues.", |part| {
        part.mean_delay_us
    }),
    ("part_probability_millionths", "The probability of a signal now.", |part| {
        part.probability_millionths
    }),
];

/// The queues inside the bottleneck's, each with a label of its own.
fn parts(text: &mut String, status: &Status) {
    if status.queue.parts.is_empty() {
        return;
    }
    let (device, mode) = (escaped(&status.device), escaped(&status.mode));
    for (name, help, value) in PART_METRICS {
        let kind = kind(name);
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

/// By its name: that of a count says so.
fn kind(name: &str) -> &'static str {
    if name.ends_with("_total") { "counter" } else { "gauge" }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
