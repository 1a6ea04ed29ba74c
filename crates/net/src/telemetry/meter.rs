//! `metrics`: counters, gauges and a histogram.

use crate::stack::Stack;
use metrics::{
    Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use std::collections::HashMap;
use transom_stack::StackCounters;
use transom_stack::log::{EndedBy, FlowEvent, Record, What};
use transom_tcp::State;

/// Counters of the records, and what the host had counted at the last look.
#[derive(Debug)]
pub(super) struct Meter {
    /// The last round-trip times since the last reading, in microseconds.
    trips: HashMap<(usize, u64), u32>,
    before: StackCounters,
}

impl Meter {
    pub(super) fn new() -> Meter {
        for (name, unit, words) in [
            ("transom_connections_opened_total", Unit::Count, "Connections that began"),
            ("transom_connections_ended_total", Unit::Count, "Connections that ended, by how"),
            ("transom_sent_bytes_total", Unit::Bytes, "Sequence space sent for the first time"),
            ("transom_received_bytes_total", Unit::Bytes, "New data received"),
            ("transom_retransmitted_bytes_total", Unit::Bytes, "Sequence space sent again"),
            ("transom_lost_bytes_total", Unit::Bytes, "Bytes believed lost"),
            ("transom_timeouts_total", Unit::Count, "Retransmission timeouts"),
            ("transom_recoveries_total", Unit::Count, "Times that fast recovery began"),
            ("transom_undone_total", Unit::Count, "Reductions of the window that were taken back"),
            (
                "transom_log_missed_total",
                Unit::Count,
                "Records of the event log that were overwritten unread",
            ),
            ("transom_packets_received_total", Unit::Count, "Packets received"),
            ("transom_packets_sent_total", Unit::Count, "Packets sent"),
            ("transom_packets_refused_total", Unit::Count, "Packets received that were not valid"),
        ] {
            describe_counter!(name, unit, words);
        }
        describe_gauge!("transom_connections", Unit::Count, "Connections that exist");
        describe_gauge!("transom_memory_bytes", Unit::Bytes, "Data that connections hold");
        describe_histogram!("transom_rtt_seconds", Unit::Seconds, "Round-trip times");
        Meter { trips: HashMap::new(), before: StackCounters::default() }
    }

    /// Counts one record.
    pub(super) fn take(&mut self, shard: usize, record: &Record) {
        match &record.what {
            What::Opened { .. } => counter!("transom_connections_opened_total").increment(1),
            What::State { error, .. }
                if record.state == State::Closed || record.state == State::TimeWait =>
            {
                let how = error.map_or("in-order", EndedBy::name);
                counter!("transom_connections_ended_total", "how" => how).increment(1);
            }
            What::Flow(event, values) => {
                let bytes = u64::from(values.bytes);
                match event {
                    FlowEvent::Acknowledged if bytes > 0 && values.extra > 0 => {
                        self.trips.insert((shard, record.connection), values.extra);
                    }
                    FlowEvent::Acknowledged => {}
                    FlowEvent::Arrived => counter!("transom_received_bytes_total").increment(bytes),
                    FlowEvent::Sent => counter!("transom_sent_bytes_total").increment(bytes),
                    FlowEvent::Retransmitted => {
                        counter!("transom_retransmitted_bytes_total").increment(bytes);
                    }
                    FlowEvent::Lost => counter!("transom_lost_bytes_total").increment(bytes),
                    FlowEvent::Recovery => counter!("transom_recoveries_total").increment(1),
                    FlowEvent::TimedOut => counter!("transom_timeouts_total").increment(1),
                    FlowEvent::Undone => counter!("transom_undone_total").increment(1),
                }
            }
            What::State { .. }
            | What::Request { .. }
            | What::Layer { .. }
            | What::Limited { .. } => {}
        }
    }

    /// One round-trip time of each connection is enough for one reading.
    pub(super) fn end_of_reading(&mut self) {
        for (_, micros) in self.trips.drain() {
            histogram!("transom_rtt_seconds").record(f64::from(micros) / 1e6);
        }
    }

    /// Records were overwritten before they were read.
    pub(super) fn missed(&self, records: u64) {
        counter!("transom_log_missed_total").increment(records);
    }

    /// Adds what the host itself has counted since the last call. Several hosts of a process add up.
    pub(super) fn count(&mut self, stack: &Stack) {
        let now = stack.counters();
        let refused = |counters: &StackCounters| {
            counters.malformed
                + counters.misaddressed
                + counters.refused_extensions
                + counters.bad_checksum
                + counters.bad_tcp
        };
        let before = std::mem::replace(&mut self.before, now);
        for (name, now, before) in [
            ("transom_packets_received_total", now.packets_received, before.packets_received),
            ("transom_packets_sent_total", now.packets_sent, before.packets_sent),
            ("transom_packets_refused_total", refused(&now), refused(&before)),
        ] {
            counter!(name).increment(now.saturating_sub(before));
        }
        gauge!("transom_connections").set(stack.connection_count() as f64);
        gauge!("transom_memory_bytes").set(stack.memory().held as f64);
    }
}

#[cfg(test)]
mod tests;
