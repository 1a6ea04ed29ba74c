//! The status of a deployment: the same for all modes.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use transom_device::interface::RootQueue;
use transom_router::queue::QueueStatistics;

use crate::Refusal;

/// Advertised-window control at work on an interface. It ends, and removes what it has put into the system, when it is dropped.
pub trait Deployment: Send {
    /// The status, with at most `flows` flows.
    ///
    /// # Errors
    /// When the system does not answer.
    fn status(&mut self, flows: usize) -> Result<Status, Refusal>;

    /// Does what has to be done now and then; to be called about once in a second.
    ///
    /// # Errors
    /// When the deployment has come to an end by itself.
    fn maintain(&mut self) -> Result<(), Refusal>;
}

/// A deployment's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// `tc`, `nfqueue` or `user`.
    pub mode: String,
    /// The interface whose queue is the bottleneck.
    pub device: String,
    /// The policy's name.
    pub policy: String,
    /// The window all flows are brought to, in bytes; `None` if the policy has no such thing.
    pub target: Option<u64>,
    /// The bottleneck's queue.
    pub queue: QueueStatus,
    /// The counters.
    pub counters: Counters,
    /// Flows in the table. In mode `tc` without requested flows: those at the last scan (every ten seconds) and those that have come since.
    pub tracked: u64,
    /// Flows the table can hold.
    pub capacity: u64,
    /// Flows, the most recent first, as many as requested.
    pub flows: Vec<FlowStatus>,
}

/// The bottleneck's queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueueStatus {
    /// Its kind, as tc(8) names it.
    pub kind: String,
    /// Packets that wait.
    pub packets: u64,
    /// Bytes that wait.
    pub bytes: u64,
    /// Packets dropped so far.
    pub drops: u64,
    /// Packets that have left so far.
    pub sent_packets: u64,
    /// Bytes that have left so far.
    pub sent_bytes: u64,
    /// Packets marked with "congestion experienced" so far. In mode `user`; the interface's own queue does not say.
    #[serde(default)]
    pub marks: u64,
    /// The queues inside it, where it has several. In mode `user`.
    #[serde(default)]
    pub parts: Vec<PartStatus>,
}

/// A queue inside the bottleneck's, such as the low-latency one of a dual queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PartStatus {
    /// Its name.
    pub name: String,
    /// Packets that wait.
    pub packets: u64,
    /// Bytes that wait.
    pub bytes: u64,
    /// Flows that have something waiting, where flows are kept apart.
    pub flows: u64,
    /// Packets that have left so far.
    pub sent_packets: u64,
    /// Packets dropped so far.
    pub drops: u64,
    /// Packets marked so far.
    pub marks: u64,
    /// How long the packets that left had waited, on average, in microseconds.
    pub mean_delay_us: u64,
    /// The longest that one had waited, in microseconds.
    pub longest_delay_us: u64,
    /// The probability of a signal now, in millionths, where there is one.
    pub probability_millionths: u64,
}

impl PartStatus {
    pub(crate) fn of(name: &str, statistics: &QueueStatistics) -> Self {
        let QueueStatistics { sent, delay, .. } = statistics;
        PartStatus {
            name: name.to_owned(),
            packets: statistics.waiting.packets,
            bytes: statistics.waiting.bytes,
            flows: statistics.flows,
            sent_packets: sent.packets,
            drops: statistics.dropped,
            marks: statistics.marked,
            mean_delay_us: delay.as_micros().checked_div(sent.packets).unwrap_or(0),
            longest_delay_us: statistics.longest.as_micros(),
            probability_millionths: (statistics.probability.as_f64() * 1e6) as u64,
        }
    }
}

impl From<RootQueue> for QueueStatus {
    fn from(queue: RootQueue) -> Self {
        let RootQueue { kind, packets, bytes, drops, sent_packets, sent_bytes, .. } = queue;
        QueueStatus {
            kind,
            packets: packets.into(),
            bytes: bytes.into(),
            drops: drops.into(),
            sent_packets,
            sent_bytes,
            marks: 0,
            parts: Vec::new(),
        }
    }
}

/// Counts since the deployment began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Packets towards the bottleneck.
    pub arrivals: u64,
    /// Their bytes, from the IP header on.
    pub arrived_bytes: u64,
    /// Acknowledgements that came back, of any flow.
    pub acks: u64,
    /// Acknowledgements whose window was changed, and SYNs.
    pub rewritten: u64,
    /// Acknowledgements that were delayed.
    pub held: u64,
    /// Acknowledgements and SYNs with an option that covers their header, such as a signature, or may do so; they pass unchanged. They do not
    /// count as unknown.
    #[serde(default)]
    pub covered: u64,
    /// Acknowledgements of flows whose handshake was not seen; they pass unchanged.
    pub unknown: u64,
    /// Acknowledgements of data that was never sent; they pass unchanged.
    pub implausible: u64,
    /// Truncated packets, fragments, and packets on their way to an intermediate host, either way, which pass unchanged. Policies without a flow table read only the way back.
    pub unreadable: u64,
    /// Flows entered into the table.
    pub confirmed: u64,
    /// Flows without a place in the table; they pass unchanged.
    pub table_full: u64,
    /// Changes that did not succeed, or could not have; the packet passed as it was. The kernel may refuse them in mode `tc`, and hand out
    /// packets to mode `nfqueue` that are not whole. In mode `user` nothing of this kind can happen.
    pub failed: u64,
    /// Frames that an interface did not accept, in either direction, because they are too long or too many came at once: they are lost. In mode
    /// `user`; in the others the kernel sends.
    pub lost: u64,
}

/// A flow in the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// The address of the data's sender.
    pub sender: SocketAddr,
    /// The receiver's address.
    pub receiver: SocketAddr,
    /// The last window that the policy wanted, in bytes; [`FlowStatus::UNLIMITED`] before that.
    pub desired: u64,
    /// The one that was passed on at last, in bytes; `None` where that is not kept.
    pub written: Option<u64>,
    /// The one that the receiver advertised at last, in bytes; `None` where that is not kept.
    pub advertised: Option<u64>,
    /// The largest segment, in bytes.
    pub mss: u16,
    /// The receiver's window scale.
    pub scale: u8,
    /// Milliseconds since it was seen.
    pub idle_ms: u64,
}

impl FlowStatus {
    /// In [`desired`](FlowStatus::desired): the policy has not wanted a window yet, or never does.
    pub const UNLIMITED: u64 = u32::MAX as u64;
}
