//! A broker's numbers in the text format of Prometheus.

use std::fmt::Write as _;

use crate::protocol::{Count, LeaseStatus, Status};

/// A metric of each lease: its name, its meaning, and where it stands.
type LeaseMetric = (&'static str, &'static str, fn(&LeaseStatus) -> u64);

/// All metrics of a status.
pub fn text(status: &Status) -> String {
    let mut text = String::new();
    let attached = status.uplinks.iter().filter(|uplink| uplink.attached).count();
    write_metric(
        &mut text,
        "uplinks",
        "gauge",
        "Interfaces where packets are looked at.",
        attached as u64,
    );
    write_metric(
        &mut text,
        "leases",
        "gauge",
        "Devices that are lent.",
        status.leases.len() as u64,
    );
    write_counters(
        &mut text,
        "requests_total",
        "Requests to the broker, by outcome.",
        "event",
        &status.broker,
    );
    write_counters(
        &mut text,
        "demux_total",
        "Packets for lent ports, by outcome.",
        "event",
        &status.demux,
    );
    write_counters(
        &mut text,
        "guard_drops_total",
        "Packets from processes that the guard dropped, by reason.",
        "reason",
        &status.guard,
    );
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
        write_header(&mut text, name, "gauge", help);
        for lease in &status.leases {
            let LeaseStatus { device, user, .. } = lease;
            let value = value(lease);
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "transom_broker_{name}{{device=\"{device}\",user=\"{user}\"}} {value}"
            );
        }
    }
    text
}

fn write_header(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ =
        writeln!(text, "# HELP transom_broker_{name} {help}\n# TYPE transom_broker_{name} {kind}");
}

fn write_metric(text: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    write_header(text, name, kind, help);
    let _ = writeln!(text, "transom_broker_{name} {value}");
}

fn write_counters(text: &mut String, name: &str, help: &str, label: &str, counts: &[Count]) {
    write_header(text, name, "counter", help);
    for Count { name: value, count } in counts {
        let _ = writeln!(text, "transom_broker_{name}{{{label}=\"{value}\"}} {count}");
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
        let text = text(&Status { leases: vec![lease], guard, ..Status::default() });
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
