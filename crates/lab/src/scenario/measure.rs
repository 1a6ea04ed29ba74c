//! `[measure]`: the series that pages draw, the links whose packets are captured, and the hosts whose event logs are kept.

use super::name::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The samples that a run's page draws, by default all; and the captures and logs, by default none. The tables of a run always have every series.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Series {
    /// Drawn of each flow.
    pub flows: Vec<FlowSeries>,
    /// Drawn of each direction of each link.
    pub links: Vec<LinkSeries>,
    /// The links of which every packet is written to files in pcapng's format, one for each end, or groups of links.
    #[schemars(with = "Vec<super::schema::NameText>")]
    pub capture: Vec<Name>,
    /// Whether segments from hosts with Transom's TCP have comments in the capture at that host, which Wireshark shows. A comment has the
    /// sender's windows, phase and timeout, its limit, and the values that extensions change.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub capture_comments: bool,
    /// The hosts, or groups of hosts, whose event logs are written to files for `transom log`: the events of each connection, acknowledgement by
    /// acknowledgement. Hosts with the kernel's TCP have none.
    #[schemars(with = "Vec<super::schema::NameText>")]
    pub log: Vec<Name>,
}

impl Default for Series {
    fn default() -> Self {
        Series {
            flows: FlowSeries::ALL.to_vec(),
            links: LinkSeries::ALL.to_vec(),
            capture: Vec::new(),
            capture_comments: false,
            log: Vec::new(),
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
    /// Bytes of all IP packets that its sender sent, headers included, per second.
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
    /// Retransmission timeouts, so far: rings in the chart of retransmissions.
    Timeouts,
}

impl FlowSeries {
    pub(crate) const ALL: [FlowSeries; 8] = [
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
    /// Packets dropped by the queue, and packets lost on the wire, so far.
    Drops,
    /// Packets marked by the queue (ECN), so far.
    Marks,
    /// The window that its window control has arrived at.
    WindowTarget,
    /// Acknowledgements whose window its window control has rewritten, and all that it has seen, so far.
    WindowsRewritten,
}

impl LinkSeries {
    pub(crate) const ALL: [LinkSeries; 7] = [
        LinkSeries::Throughput,
        LinkSeries::QueueLength,
        LinkSeries::QueueDelay,
        LinkSeries::Drops,
        LinkSeries::Marks,
        LinkSeries::WindowTarget,
        LinkSeries::WindowsRewritten,
    ];

    /// Whether only links with window control have anything of it.
    pub(crate) fn is_of_window_control(self) -> bool {
        matches!(self, LinkSeries::WindowTarget | LinkSeries::WindowsRewritten)
    }
}
