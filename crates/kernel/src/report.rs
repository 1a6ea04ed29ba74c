//! Reports on connections, for `list`, `show` and `watch`.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// All of one host's connections.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostReport {
    /// The process that runs the extensions.
    pub process: u32,
    /// The control group's directory.
    pub cgroup: String,
    /// The extensions, as they were named.
    pub extensions: String,
    /// The name of the controller in the kernel.
    pub controller: String,
    /// Connections under control until now.
    pub seen: u64,
    /// Records of events that the kernel has handed over.
    pub events: u64,
    /// Records that were lost, as the ring was full.
    pub lost_records: u64,
    /// How many connections can have limits at a time.
    pub room: u32,
    /// Connections that got no limits, as there was no room.
    pub without_slot: u64,
    /// Walks that made the kernel look at sockets with nothing in flight, by socket.
    pub kicks: u64,
    /// Times that the kernel gave a threshold that no window gives.
    pub garbage: u64,
    /// Switches to or from the controller that the kernel has refused.
    pub refused: u64,
    /// The connections under control.
    pub connections: Vec<ConnectionReport>,
}

/// A connection under control.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConnectionReport {
    /// The kernel's number for the socket (`SO_COOKIE`).
    pub cookie: u64,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The algorithm that it had.
    pub had: String,
    /// The algorithm that TCP's own window follows.
    pub grows_by: String,
    /// The layers.
    pub layers: Vec<LayerReport>,
    /// Extensions that are not attached, or not any more, with the reason.
    pub departed: Vec<String>,
    /// The variables of which something is asked, and cwnd.
    pub limits: Vec<Limit>,
    /// Variables of which something is asked that has no form here.
    pub without_effect: Vec<String>,
    /// Maximum segment size, bytes.
    pub mss: u32,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Smoothed round-trip time, microseconds.
    pub srtt_us: Option<u64>,
    /// Least round-trip time, microseconds.
    pub min_rtt_us: Option<u64>,
    /// Bytes delivered.
    pub delivered: u64,
    /// The rate at which they were delivered lately, bytes per second.
    pub delivery_rate: Option<u64>,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Open, disorder, recovery or loss.
    pub phase: String,
    /// Events that were reported.
    pub events: u64,
    /// Acknowledgements that were not reported one by one.
    pub missed_acks: u64,
}

/// A layer of a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LayerReport {
    /// Its number.
    pub id: u32,
    /// Its name.
    pub name: String,
}

/// A request for a variable, and the value in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Limit {
    /// Its name.
    pub variable: String,
    /// TCP's own value.
    pub own: u64,
    /// The request, as an interval.
    pub asked: Option<String>,
    /// The value that is used.
    pub used: u64,
    /// The deciding party: `tcp`, a layer's name, `safe-range` or `conflict`.
    pub by: String,
}
