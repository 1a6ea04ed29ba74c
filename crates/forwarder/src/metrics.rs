//! A [`Status`] in the text format of Prometheus.

use transom_device::serving::{MetricsText, labels};

use crate::Status;
use crate::status::PartStatus;

impl Status {
    /// The metrics, in the text format of Prometheus. Flows have none of their own: there can be any number of them.
    pub fn metrics(&self) -> String {
        let Status {
            mode,
            device,
            policy: _,
            target,
            queue,
            counters,
            tracked,
            capacity,
            flows: _,
        } = self;
        let mut text = MetricsText::new("transom_router_");
        let ours = labels(&[("device", device), ("mode", mode)]);
        if let Some(target) = target {
            let help = "The window all flows are brought to.";
            text.metric("target_window_bytes", help, [(&ours, *target)]);
        }
        for (name, help, value) in [
            ("queue_packets", "Packets that wait in the bottleneck's queue.", queue.packets),
            ("queue_bytes", "Bytes that wait in the bottleneck's queue.", queue.bytes),
            ("queue_drops_total", "Packets dropped by the bottleneck's queue.", queue.drops),
            ("queue_marks_total", "Packets marked by the bottleneck's queue.", queue.marks),
            (
                "sent_packets_total",
                "Packets that have left the bottleneck's queue.",
                queue.sent_packets,
            ),
            ("sent_bytes_total", "Bytes that have left the bottleneck's queue.", queue.sent_bytes),
            ("arrivals_total", "Packets towards the bottleneck.", counters.arrivals),
            ("arrived_bytes_total", "Bytes towards the bottleneck.", counters.arrived_bytes),
            ("acks_total", "Acknowledgements that came back.", counters.acks),
            (
                "rewritten_total",
                "Acknowledgements whose window was changed, and SYNs.",
                counters.rewritten,
            ),
            ("held_total", "Acknowledgements that were delayed.", counters.held),
            (
                "covered_total",
                "Acknowledgements and SYNs whose options cover their header.",
                counters.covered,
            ),
            (
                "unknown_total",
                "Acknowledgements of flows whose handshake was not seen.",
                counters.unknown,
            ),
            (
                "implausible_total",
                "Acknowledgements of data that was never sent.",
                counters.implausible,
            ),
            ("unreadable_total", "Truncated packets and fragments.", counters.unreadable),
            ("confirmed_total", "Flows that came into the table.", counters.confirmed),
            ("table_full_total", "Flows for which there was no place.", counters.table_full),
            ("failed_total", "Changes that did not succeed.", counters.failed),
            ("lost_total", "Frames that an interface did not take.", counters.lost),
            ("flows", "Flows in the table.", *tracked),
            ("flows_capacity", "Flows the table can hold.", *capacity),
        ] {
            text.metric(name, help, [(&ours, value)]);
        }
        // Each queue inside the bottleneck's has a label of its own.
        if !queue.parts.is_empty() {
            for (name, help, value) in PART_METRICS {
                let of = |part: &PartStatus| {
                    let queue = ("queue", &part.name[..]);
                    (labels(&[("device", device), ("mode", mode), queue]), value(part))
                };
                text.metric(name, help, queue.parts.iter().map(of));
            }
        }
        text.finish()
    }
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
