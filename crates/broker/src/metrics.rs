//! A broker's numbers in the text format of Prometheus.

use transom_device::serving::{MetricsText, labels};

use crate::protocol::{Count, LeaseStatus, Status};

/// A metric of each lease: its name, its meaning, and where it stands.
type LeaseMetric = (&'static str, &'static str, fn(&LeaseStatus) -> u64);

impl Status {
    /// All metrics, in the text format of Prometheus.
    pub fn metrics(&self) -> String {
        let Status { uplinks, leases, broker, demux, guard, .. } = self;
        let mut text = MetricsText::new("transom_broker_");
        let attached = uplinks.iter().filter(|uplink| uplink.attached).count();
        text.metric("uplinks", "Interfaces where packets are looked at.", [("", attached as u64)]);
        text.metric("leases", "Devices that are lent.", [("", leases.len() as u64)]);
        let guards = "Packets from processes that the guard dropped, by reason.";
        for (name, help, label, counts) in [
            ("requests_total", "Requests to the broker, by outcome.", "event", broker),
            ("demux_total", "Packets for lent ports, by outcome.", "event", demux),
            ("guard_drops_total", guards, "reason", guard),
        ] {
            let of = |Count { name, count }: &Count| (labels(&[(label, name)]), *count);
            text.metric(name, help, counts.iter().map(of));
        }
        let columns: [LeaseMetric; 5] = [
            ("lease_received_packets", "Packets handed to the process.", |lease| {
                lease.received_packets
            }),
            ("lease_received_bytes", "Bytes handed to the process.", |lease| lease.received_bytes),
            ("lease_sent_packets", "Packets that left.", |lease| lease.sent_packets),
            ("lease_sent_bytes", "Bytes that left.", |lease| lease.sent_bytes),
            ("lease_dropped_packets", "Packets of the process that were dropped.", |lease| {
                lease.drops.iter().map(|count| count.count).sum()
            }),
        ];
        for (name, help, value) in columns {
            let of = |lease: &LeaseStatus| {
                let user = lease.user.to_string();
                (labels(&[("device", &lease.device), ("user", &user)]), value(lease))
            };
            text.metric(name, help, leases.iter().map(of));
        }
        text.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_names_and_labels() {
        let lease = LeaseStatus {
            device: "tcpk0".into(),
            index: 7,
            name: "a \"name\"\n".into(),
            process: 1,
            user: 1000,
            connected: true,
            packets_per_second: None,
            ports: Vec::new(),
            more_ports: 0,
            received_packets: 3,
            received_bytes: 4,
            sent_packets: 5,
            sent_bytes: 6,
            drops: vec![Count { name: "rate".into(), count: 2 }],
        };
        let guard = vec![Count { name: "rate".into(), count: 9 }];
        let text = Status { leases: vec![lease], guard, ..Status::default() }.metrics();
        for line in [
            "transom_broker_leases 1",
            "transom_broker_guard_drops_total{reason=\"rate\"} 9",
            "transom_broker_lease_sent_packets{device=\"tcpk0\",user=\"1000\"} 5",
            "transom_broker_lease_dropped_packets{device=\"tcpk0\",user=\"1000\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in {text}");
        }
        // The name that a process gave itself is left out: it could be anything.
        assert!(!text.contains("name\""));
    }
}
