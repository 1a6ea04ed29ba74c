//! Measures of a network, taken without disturbing it.
//!
//! A [`Recorder`] lets a network run from tick to tick and writes down, at each, what every flow and the links of interest are
//! like. It only looks; the same network runs in the same way without it.

mod delay;
mod summary;

use crate::link::{Counters, Delays, LinkModel, Traffic};
use crate::network::{LinkId, Network, NetworkError};
use crate::traffic::{Flow, Sent};
use transom_router::window::{self, WindowControl};
use transom_tcp::ConnectionState;
use transom_tcp::time::{Duration, Instant};

pub use delay::{Lane, QueueDelay};
pub use summary::{jain_index, per_second, percentile};

/// A flow at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowSample {
    /// When.
    pub at: Instant,
    /// Bytes that the receiving application has got so far.
    pub delivered: u64,
    /// Bytes that never came: holes that the receiving application was told of so far.
    pub skipped: u64,
    /// Transfers completed so far.
    pub completed: usize,
    /// The counters of its sender.
    pub sent: SentSample,
    /// The connection that was opened last as the sender sees it, while there is one.
    pub sender: Option<SenderSample>,
}

impl FlowSample {
    /// A flow that has not begun at `at`.
    fn before_the_start(at: Instant) -> Self {
        let sent = Sent::default().into();
        FlowSample { at, delivered: 0, skipped: 0, completed: 0, sent, sender: None }
    }
}

/// Counters of a flow's sender over all its connections, past ones included. `None`: not known. The simulator knows all of them; a kernel's
/// TCP does not report all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentSample {
    /// IP packets.
    pub packets: Option<u64>,
    /// Bytes of these packets, headers included: the throughput's integral.
    pub bytes: Option<u64>,
    /// Payload bytes of TCP segments, retransmissions included.
    pub payload: Option<u64>,
    /// Segments sent again.
    pub retransmissions: Option<u64>,
    /// Retransmission timeouts.
    pub timeouts: Option<u64>,
    /// Times fast recovery began.
    pub fast_recoveries: Option<u64>,
}

impl From<Sent> for SentSample {
    fn from(sent: Sent) -> Self {
        let Sent { packets, payload, retransmissions, timeouts, fast_recoveries } = sent;
        SentSample {
            packets: Some(packets.packets),
            bytes: Some(packets.bytes),
            payload: Some(payload),
            retransmissions: Some(retransmissions),
            timeouts: Some(timeouts),
            fast_recoveries: Some(fast_recoveries),
        }
    }
}

/// The state of a flow's sender that is not in the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutsideSample {
    /// The counters of the sender.
    pub sent: SentSample,
    /// The connection that was opened last, while there is one.
    pub sender: Option<SenderSample>,
}

/// A sender at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// The last round-trip time sample, where the sender tells it.
    pub last_rtt: Option<Duration>,
    /// The retransmission timeout that is used, with its back-off.
    pub rto: Duration,
}

impl From<ConnectionState> for SenderSample {
    fn from(info: ConnectionState) -> Self {
        SenderSample {
            cwnd: info.cwnd,
            ssthresh: (info.ssthresh != u64::MAX).then_some(info.ssthresh),
            in_flight: info.in_flight,
            mss: info.mss,
            srtt: info.srtt,
            last_rtt: info.last_rtt,
            rto: info.effective_rto,
        }
    }
}

/// A link at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSample {
    /// When.
    pub at: Instant,
    /// The packets before the serialiser.
    pub waiting: Traffic,
    /// The counters of the link.
    pub counters: Counters,
    /// How long the packets had waited that left the queue since the sample before.
    pub delays: Delays,
    /// The same of those that came through the low-latency queue of a dual queue.
    pub low_delays: Delays,
    /// Its window control, if it has one.
    pub window: Option<WindowSample>,
}

impl LinkSample {
    /// The state of a link without window control at `at`, and the delays of its packets since the last sample. Call
    /// [`LinkModel::measure_delays`] before, so that it records delays.
    pub(crate) fn take<P: Clone + Send + 'static>(link: &mut LinkModel<P>, at: Instant) -> Self {
        let (waiting, [delays, low_delays]) = (link.queued(at), link.take_delays(at));
        LinkSample { at, waiting, counters: link.counters(), delays, low_delays, window: None }
    }
}

/// A link's window control at one moment. The packets that it has seen on the way forward are those offered to the link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowSample {
    /// The window that the policy has arrived at, in bytes; `None` of a policy that has not the same for all flows.
    pub target: Option<u64>,
    /// Acknowledgements that have come back so far, SYNs and resets not counted.
    pub acks: u64,
    /// Of these, how many had their window rewritten.
    pub rewritten: u64,
    /// How many were of flows that are not known, and passed as they were.
    pub unknown: u64,
    /// How many could not be of the flow they said, and passed as they were.
    pub implausible: u64,
    /// How many were to go on later.
    pub held: u64,
    /// Flows whose handshake has been seen so far.
    pub opened: u64,
}

impl From<&WindowControl> for WindowSample {
    fn from(control: &WindowControl) -> Self {
        let window::WindowReport { counters, target, .. } = control.report();
        let window::Counters {
            arrived: _,
            acks,
            rewritten,
            // No host of a simulation signs its segments.
            covered: _,
            unknown,
            implausible,
            held,
            unreadable: _,
            opened,
        } = counters;
        WindowSample { target, acks, rewritten, unknown, implausible, held, opened }
    }
}

/// Writes down what happens.
#[derive(Clone, Debug)]
pub struct Recorder {
    interval: Duration,
    next: Instant,
    /// When the last sample was taken.
    last_sample: Option<Instant>,
    flows: Vec<Vec<FlowSample>>,
    links: Vec<(LinkId, Vec<LinkSample>)>,
}

impl Recorder {
    /// Looks at all flows and these links every `interval` (a nanosecond at least), beginning with the start.
    pub fn new(interval: Duration, links: impl IntoIterator<Item = LinkId>) -> Self {
        let links = links.into_iter().map(|link| (link, Vec::new()));
        Recorder {
            interval: interval.max(Duration::from_nanos(1)),
            next: Instant::ZERO,
            last_sample: None,
            flows: Vec::new(),
            links: links.collect(),
        }
    }

    /// When it looks next.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Runs `network` up to and including `limit`.
    ///
    /// # Errors
    /// As [`Network::run_until`].
    pub fn run_until(&mut self, network: &mut Network, limit: Instant) -> Result<(), NetworkError> {
        for (link, _) in &self.links {
            network.measure_delays(*link);
        }
        while self.next <= limit {
            network.run_until(self.next)?;
            self.take_sample(network);
            self.next = self.next.max(network.now()) + self.interval;
        }
        network.run_until(limit)
    }

    fn take_sample(&mut self, network: &mut Network) {
        let at = network.now();
        let before = self.last_sample.replace(at);
        let unheard = || before.map(FlowSample::before_the_start).into_iter().collect();
        self.flows.resize_with(network.flows().len().max(self.flows.len()), unheard);
        for (flow, samples) in network.flows().iter().zip(&mut self.flows) {
            samples.push(FlowSample {
                at,
                delivered: flow.delivered,
                skipped: flow.skipped,
                completed: flow.completions.len(),
                sent: flow.outside.map_or_else(|| flow.sent.into(), |outside| outside.sent),
                sender: sender(network, flow, at),
            });
        }
        for (link, samples) in &mut self.links {
            samples.extend(network.sample_link(*link));
        }
    }

    /// The samples of each flow, by its number. They begin with the last one in which it was not heard of yet.
    pub fn flows(&self) -> &[Vec<FlowSample>] {
        &self.flows
    }

    /// The samples of each link, in the order of time.
    pub fn links(&self) -> &[(LinkId, Vec<LinkSample>)] {
        &self.links
    }
}

fn sender(network: &Network, flow: &Flow, at: Instant) -> Option<SenderSample> {
    let (host, id) = flow.sender?;
    match network.stack(host) {
        Some(stack) => Some(stack.connection(id)?.info(at).into()),
        None => flow.outside?.sender,
    }
}

#[cfg(test)]
mod tests;
