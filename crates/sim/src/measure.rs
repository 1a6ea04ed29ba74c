//! What can be measured of a network without disturbing it.
//!
//! A [`Recorder`] lets a network run from tick to tick and writes down, at each, what every flow and the links of interest are
//! like. It only looks; the same network runs in the same way without it.

mod summary;

use crate::link::{Counters, Traffic};
use crate::network::{LinkId, Network, NetworkError};
use crate::traffic::Flow;
use transom_tcp::connection::Info;
use transom_tcp::time::{Duration, Instant};

pub use summary::{efficiency, jain_index, per_second};

/// A flow at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSample {
    /// When.
    pub at: Instant,
    /// Bytes that the receiving application has got so far.
    pub delivered: u64,
    /// Transfers completed so far.
    pub completed: usize,
    /// Its present connection as the sender sees it, while there is one.
    pub sender: Option<SenderSample>,
}

/// A sender at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderSample {
    /// Congestion window, bytes.
    pub cwnd: u64,
    /// Slow-start threshold, bytes; `None` before the first reduction.
    pub ssthresh: Option<u64>,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// The last round-trip time sample.
    pub last_rtt: Option<Duration>,
    /// The retransmission timeout with its back-off.
    pub rto: Duration,
    /// Payload bytes sent so far, retransmissions included: the throughput's integral.
    pub bytes_sent: u64,
    /// Segments sent again so far.
    pub retransmissions: u64,
    /// Retransmission timeouts so far.
    pub timeouts: u64,
    /// Times fast recovery began so far.
    pub fast_recoveries: u64,
}

impl From<Info> for SenderSample {
    fn from(info: Info) -> Self {
        SenderSample {
            cwnd: info.cwnd,
            ssthresh: (info.ssthresh != u64::MAX).then_some(info.ssthresh),
            in_flight: info.in_flight,
            mss: info.mss,
            srtt: info.srtt,
            last_rtt: info.last_rtt,
            rto: info.rto,
            bytes_sent: info.counters.bytes_sent,
            retransmissions: info.counters.retransmitted_segments,
            timeouts: info.counters.timeouts,
            fast_recoveries: info.counters.fast_recoveries,
        }
    }
}

/// A link at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSample {
    /// When.
    pub at: Instant,
    /// What waits for the serialiser.
    pub waiting: Traffic,
    /// What it has done so far.
    pub counters: Counters,
}

/// The history of one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSeries {
    /// Which.
    pub link: LinkId,
    /// Its samples, in the order of time.
    pub samples: Vec<LinkSample>,
}

/// Writes down what happens.
#[derive(Clone, Debug)]
pub struct Recorder {
    interval: Duration,
    next: Instant,
    flows: Vec<Vec<FlowSample>>,
    links: Vec<LinkSeries>,
}

impl Recorder {
    /// Looks at all flows and these links every `interval` (a nanosecond at least), beginning with the start.
    pub fn new(interval: Duration, links: impl IntoIterator<Item = LinkId>) -> Self {
        let links = links.into_iter().map(|link| LinkSeries { link, samples: Vec::new() });
        Recorder {
            interval: interval.max(Duration::from_nanos(1)),
            next: Instant::ZERO,
            flows: Vec::new(),
            links: links.collect(),
        }
    }

    /// Runs `network` up to and including `limit`.
    ///
    /// # Errors
    /// As [`Network::run_until`].
    pub fn run_until(&mut self, network: &mut Network, limit: Instant) -> Result<(), NetworkError> {
        while self.next <= limit {
            network.run_until(self.next)?;
            self.look(network);
            self.next = self.next.max(network.now()) + self.interval;
        }
        network.run_until(limit)
    }

    fn look(&mut self, network: &mut Network) {
        let at = network.now();
        self.flows.resize_with(network.flows().len().max(self.flows.len()), Vec::new);
        for (flow, samples) in network.flows().iter().zip(&mut self.flows) {
            samples.push(FlowSample {
                at,
                delivered: flow.delivered,
                completed: flow.completions.len(),
                sender: sender(network, flow, at),
            });
        }
        for LinkSeries { link, samples } in &mut self.links {
            if let (Some(waiting), Some(counters)) =
                (network.queued(*link), network.link_counters(*link))
            {
                samples.push(LinkSample { at, waiting, counters });
            }
        }
    }

    /// The samples of each flow, by its number. A flow is there from when it was first heard of.
    pub fn flows(&self) -> &[Vec<FlowSample>] {
        &self.flows
    }

    /// The samples of each link.
    pub fn links(&self) -> &[LinkSeries] {
        &self.links
    }
}

fn sender(network: &Network, flow: &Flow, at: Instant) -> Option<SenderSample> {
    let (host, id) = flow.sender?;
    Some(network.stack(host)?.connection(id)?.info(at).into())
}

#[cfg(test)]
mod tests;
