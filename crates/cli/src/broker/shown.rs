//! A broker's state as text for people.

use std::fmt::Write as _;

use transom_broker::protocol::{Count, LeaseStatus, Status};
use transom_broker::{Policy, Rule, Subject};

use crate::output::listed;

/// One line for each lease.
pub(super) fn list(status: &Status) -> String {
    let mut text = format!(
        "{:<10} {:>6} {:>8} {:<16} {:>10} {:>10} {:>8}  PORTS",
        "DEVICE", "USER", "PROCESS", "NAME", "RECEIVED", "SENT", "DROPPED"
    );
    for lease in &status.leases {
        let LeaseStatus { device, user, process, name, received_packets, sent_packets, .. } = lease;
        let dropped = total(&lease.drops);
        let ports = ports(lease);
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "\n{device:<10} {user:>6} {process:>8} {name:<16} {received_packets:>10} {sent_packets:>10} {dropped:>8}  {ports}"
        );
    }
    if status.leases.is_empty() {
        text.push_str("\n(nothing is lent)");
    }
    text
}

fn total(counts: &[Count]) -> u64 {
    counts.iter().map(|count| count.count).sum()
}

fn ports(lease: &LeaseStatus) -> String {
    let mut ports: Vec<_> = lease.ports.iter().map(ToString::to_string).collect();
    if lease.more_ports > 0 {
        ports.push(format!("and {} more", lease.more_ports));
    }
    ports.join(" ")
}

/// Everything about a lease.
pub(super) fn lease(lease: &LeaseStatus) -> String {
    let mut text = format!("device     {} (number {})", lease.device, lease.index);
    let mut row = |name: &str, rest: String| {
        let _ = write!(text, "\n{name:<10} {rest}");
    };
    row("process", format!("{} ({}), user {}", lease.process, lease.name, lease.user));
    let rate = lease.packets_per_second;
    row("rate", rate.map_or("no limit".into(), |rate| format!("{rate} packets a second")));
    row("ports", ports(lease));
    row("received", format!("{} packets, {} B", lease.received_packets, lease.received_bytes));
    row("sent", format!("{} packets, {} B", lease.sent_packets, lease.sent_bytes));
    row("dropped", counts(&lease.drops));
    if !lease.connected {
        row("", "the process has not spoken with this broker yet".into());
    }
    text
}

/// Everything about the broker itself.
pub(super) fn broker(status: &Status) -> String {
    let uplinks = status.uplinks.iter().map(|uplink| match uplink.attached {
        true => uplink.name.clone(),
        false => format!("{} (not there)", uplink.name),
    });
    format!(
        "uplinks    {}\nleases     {}\narrived    {}\ndropped    {}\nbroker     {}",
        listed(uplinks, ""),
        status.leases.len(),
        counts(&status.demux),
        counts(&status.guard),
        counts(&status.broker)
    )
}

/// Those that are not zero.
fn counts(counts: &[Count]) -> String {
    let some = counts.iter().filter(|count| count.count > 0);
    listed(some.map(|count| format!("{} {}", count.name, count.count)), "nothing")
}

/// A policy as text.
pub(super) fn policy(policy: &Policy) -> String {
    let mut text = format!("uplinks: {}", policy.uplinks.join(", "));
    for rule in &policy.rules {
        let _ = write!(text, "\n{}", rule_text(rule));
    }
    text
}

/// The same for programs.
pub(super) fn policy_json(policy: &Policy) -> serde_json::Value {
    let rules: Vec<_> = policy.rules.iter().map(rule_json).collect();
    serde_json::json!({ "uplinks": policy.uplinks, "allow": rules })
}

fn who(rule: &Rule) -> String {
    match rule.subject {
        Subject::User(user) => format!("user {user}"),
        Subject::Group(group) => format!("group {group}"),
        Subject::Everybody => "everybody".into(),
    }
}

fn texts<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

fn rule_text(rule: &Rule) -> String {
    let mut ports = vec![];
    let listed = rule.ports.to_string();
    if !listed.is_empty() {
        ports.push(format!("ports {listed}"));
    }
    if rule.ephemeral {
        ports.push("ports that the kernel chooses".into());
    }
    if ports.is_empty() {
        ports.push("no ports".into());
    }
    let mut text = format!("{}: {}", who(rule), ports.join(" and "));
    if !rule.addresses.is_empty() {
        let _ = write!(text, ", of {}", texts(&rule.addresses).join(" "));
    }
    if !rule.peers.is_empty() {
        let _ = write!(text, ", with {}", texts(&rule.peers).join(" "));
    }
    let _ = write!(text, "; {} devices, {} ports at most", rule.devices, rule.most_ports);
    if let Some(rate) = rule.packets_per_second {
        let _ = write!(text, ", {rate} packets a second");
    }
    text
}

fn rule_json(rule: &Rule) -> serde_json::Value {
    serde_json::json!({
        "who": who(rule),
        "ports": rule.ports.to_string(),
        "ephemeral": rule.ephemeral,
        "addresses": texts(&rule.addresses),
        "peers": texts(&rule.peers),
        "devices": rule.devices,
        "most-ports": rule.most_ports,
        "packets-per-second": rule.packets_per_second,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_and_rules_are_shown() {
        let found = LeaseStatus {
            device: "tcpk0".into(),
            index: 9,
            name: "web".into(),
            process: 4242,
            user: 1000,
            connected: false,
            packets_per_second: Some(500),
            ports: vec!["192.0.2.1:8080".parse().unwrap(), "[2001:db8::1]:8080".parse().unwrap()],
            more_ports: 3,
            received_packets: 12,
            received_bytes: 3400,
            sent_packets: 56,
            sent_bytes: 7800,
            drops: vec![Count { name: "foreign-port".into(), count: 7 }],
        };
        let text = lease(&found);
        for part in [
            "tcpk0 (number 9)",
            "4242 (web), user 1000",
            "500 packets a second",
            "192.0.2.1:8080 [2001:db8::1]:8080 and 3 more",
            "12 packets, 3400 B",
            "foreign-port 7",
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        let status = Status { leases: vec![found], ..Status::default() };
        assert!(list(&status).lines().nth(1).unwrap().starts_with("tcpk0"), "{}", list(&status));
        assert!(list(&Status::default()).contains("nothing is lent"));
        let rule = "user:7,ports:80+8000-8999,ephemeral:no,address:192.0.2.0/24,rate:9";
        let policy_of = Policy { rules: vec![rule.parse().unwrap()], ..Policy::default() };
        let text = policy(&policy_of);
        assert!(text.contains("user 7: ports 80, 8000-8999, of 192.0.2.0/24; 4 devices"), "{text}");
        assert_eq!(policy_json(&policy_of)["allow"][0]["devices"], 4);
    }
}
