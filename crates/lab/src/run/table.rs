//! Series as comma-separated values.
//!
//! Integers throughout: times in nanoseconds, sizes in bytes, totals from the start of the run; those that a sender counts are of its
//! present connection. Each file begins with the scenario
//! that made it, in comments.

use super::Observations;
use crate::scenario::Resolved;
use std::fmt::{Display, Write};

/// An optional value; nothing if there is none.
struct Cell<T>(Option<T>);

impl<T: Display> Display for Cell<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.as_ref().map_or(Ok(()), |value| value.fmt(f))
    }
}

fn header(scenario: &Resolved, seed: u64, columns: &str) -> String {
    let mut text = format!("# seed = {seed}\n");
    for line in scenario.to_toml().lines() {
        text += if line.is_empty() { "#" } else { "# " };
        text += line;
        text.push('\n');
    }
    text + columns + "\n"
}

/// The flows' series.
pub fn flows_csv(scenario: &Resolved, seed: u64, seen: &Observations) -> String {
    let columns = "time,flow,delivered,completed,cwnd,ssthresh,in_flight,srtt,last_rtt,rto,bytes_sent,retransmissions,timeouts,\
                   fast_recoveries";
    let mut text = header(scenario, seed, columns);
    for flow in &seen.flows {
        for sample in &flow.samples {
            let one = sample.sender;
            let nanos = |time: transom_tcp::time::Duration| time.as_nanos();
            // Writing to a text does not fail.
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                sample.at.as_nanos(),
                flow.name,
                sample.delivered,
                sample.completed,
                Cell(one.map(|one| one.cwnd)),
                Cell(one.and_then(|one| one.ssthresh)),
                Cell(one.map(|one| one.in_flight)),
                Cell(one.and_then(|one| one.srtt).map(nanos)),
                Cell(one.and_then(|one| one.last_rtt).map(nanos)),
                Cell(one.map(|one| one.rto).map(nanos)),
                Cell(one.map(|one| one.bytes_sent)),
                Cell(one.map(|one| one.retransmissions)),
                Cell(one.map(|one| one.timeouts)),
                Cell(one.map(|one| one.fast_recoveries)),
            );
        }
    }
    text
}

/// The links' series.
pub fn links_csv(scenario: &Resolved, seed: u64, seen: &Observations) -> String {
    let columns = "time,link,direction,queue_packets,queue_bytes,offered_packets,delivered_packets,delivered_bytes,queue_drops,\
                   wire_losses,marks";
    let mut text = header(scenario, seed, columns);
    for link in &seen.links {
        let direction = if link.back { "back" } else { "there" };
        for sample in &link.samples {
            let counters = &sample.counters;
            let _ = writeln!(
                text,
                "{},{},{direction},{},{},{},{},{},{},{},{}",
                sample.at.as_nanos(),
                link.name,
                sample.waiting.packets,
                sample.waiting.bytes,
                counters.offered.packets,
                counters.delivered.packets,
                counters.delivered.bytes,
                counters.queue_full.packets + counters.queue_dropped.packets,
                counters.lost.packets,
                counters.marked,
            );
        }
    }
    text
}
