//! `[measure]`: the series that a run writes down.

use super::name::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run writes down, once every sample interval. By default everything but captures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Series {
    /// Of each flow.
    pub flows: Vec<FlowSeries>,
    /// Of each direction of each link.
    pub links: Vec<LinkSeries>,
    /// The links of which every packet is written to a file in pcapng's format, or groups of links.
    #[schemars(with = "Vec<super::schema::NameText>")]
    pub capture: Vec<Name>,
}

impl Default for Series {
    fn default() -> Self {
        Series {
            flows: FlowSeries::ALL.to_vec(),
            links: LinkSeries::ALL.to_vec(),
            capture: Vec::new(),
        }
    }
}

/// A series of a flow.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FlowSeries {
    /// Bytes that reached the application, per second.
    Goodput,
    /// Bytes of all segments sent, headers included, per second.
    Throughput,
    /// Congestion window.
    Cwnd,
    /// Slow-start threshold.
    Ssthresh,
    /// Smoothed round-trip time.
    Rtt,
    /// Bytes in flight.
    Flight,
    /// Segments sent again, so far.
    Retransmissions,
    /// Retransmission timeouts, so far.
    Timeouts,
}

impl FlowSeries {
    /// All of them.
    pub const ALL: [FlowSeries; 8] = [
        FlowSeries::Goodput,
        FlowSeries::Throughput,
        FlowSeries::Cwnd,
        FlowSeries::Ssthresh,
        FlowSeries::Rtt,
        FlowSeries::Flight,
        FlowSeries::Retransmissions,
        FlowSeries::Timeouts,
    ];
}

/// A series of one direction of a link.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum LinkSeries {
    /// Bytes sent over it, per second.
    Throughput,
    /// Packets in its queue.
    QueueLength,
    /// How long the packet that leaves the queue has been in it.
    QueueDelay,
    /// Packets dropped by the queue, so far.
    Drops,
    /// Packets marked by the queue (ECN), so far.
    Marks,
}

impl LinkSeries {
    /// All of them.
    pub const ALL: [LinkSeries; 5] = [
        LinkSeries::Throughput,
        LinkSeries::QueueLength,
        LinkSeries::QueueDelay,
        LinkSeries::Drops,
        LinkSeries::Marks,
    ];
}
