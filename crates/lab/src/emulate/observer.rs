//! Observes the flows of programs, whose sockets are not ours.
//!
//! Theory of operation. A thread asks the kernels of both ends for their TCP connections shortly before each sample, and gets notified of those that
//! have ended in between. A connection belongs to the flow with its server port. A flow may use several connections, in both directions. *Delivered*
//! is the larger of the bytes that its clients and its server have received. Its *sender* is the connection at the other end that has sent most. (A
//! kernel counts the end of a stream as a byte.)

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use transom_device::namespace::Namespace;
use transom_device::{DestroyEvents, Diag, KernelTcpState, TcpSocket};
use transom_sim::network::NodeId;
use transom_sim::traffic::FlowId;
use transom_tcp::ConnectionState;
use transom_tcp::time::{Duration, Instant};

use super::beside::{Beside, Rest};
use super::clock::Clock;
use super::followed::Totals;
use super::{RunError, system};
use crate::lock;

/// How long before a sample the kernels are asked.
const LEAD_TIME: Duration = Duration::from_millis(1);

/// A flow to be observed.
pub(super) struct ObservedFlow {
    pub(super) flow: FlowId,
    pub(super) server: SocketAddr,
    /// The hosts of its client and its server: gateway and namespace.
    pub(super) ends: [(NodeId, Arc<Namespace>); 2],
}

/// The state of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowState {
    pub(super) flow: FlowId,
    pub(super) delivered: u64,
    /// A unique number of the sender's connection, and the kernel's information on it.
    pub(super) sender: Option<(u64, ConnectionState)>,
    /// The host that sends.
    pub(super) from: NodeId,
    /// The counters of all its senders.
    pub(super) totals: Totals,
}

/// Watches flows of programs until it is dropped.
pub(super) struct Observer {
    seen: Arc<Mutex<Vec<FlowState>>>,
    _thread: Option<Beside<()>>,
}

impl Observer {
    /// Follows connections from now on, and samples them every `interval` once the clock runs.
    pub(super) fn start(
        observed: Vec<ObservedFlow>,
        interval: Duration,
        clock: impl Fn() -> Option<Clock> + Send + 'static,
    ) -> Result<Self, RunError> {
        const WHAT: &str = "cannot look at the sockets of programs";
        let open = |(node, namespace): (NodeId, Arc<Namespace>)| -> Result<End, RunError> {
            let opened = namespace.run(|| Ok((Diag::open()?, DestroyEvents::open()?)))?;
            let (diag, ends) = opened.map_err(system::<io::Error>(WHAT))?;
            Ok(End { node, diag, ends, seen: BTreeMap::new() })
        };
        let mut flows = Vec::new();
        for ObservedFlow { flow, server, ends: [client, served] } in observed {
            flows.push(Watched { flow, server, ends: [open(client)?, open(served)?] });
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        if flows.is_empty() {
            return Ok(Observer { seen, _thread: None });
        }
        let work = seen.clone();
        let thread =
            Beside::start("observer", move |rest| watch(flows, &work, interval, clock, rest))
                .map_err(system(WHAT))?;
        Ok(Observer { seen, _thread: Some(thread) })
    }

    /// The last samples.
    pub(super) fn seen(&self) -> Vec<FlowState> {
        lock(&self.seen).clone()
    }
}

/// A flow and what has been seen at its ends.
struct Watched {
    flow: FlowId,
    server: SocketAddr,
    ends: [End; 2],
}

/// One end of a flow.
struct End {
    node: NodeId,
    diag: Diag,
    ends: DestroyEvents,
    /// The connections that were ever seen, by their cookies, as they were last.
    seen: BTreeMap<u64, ConnectionState>,
}

/// The thread's work.
fn watch(
    mut flows: Vec<Watched>,
    seen: &Mutex<Vec<FlowState>>,
    interval: Duration,
    clock: impl Fn() -> Option<Clock>,
    rest: Rest,
) {
    let ahead = LEAD_TIME.min(interval.over(2));
    let mut tick = Instant::ZERO;
    let mut patience = Duration::from_millis(10);
    while rest.sleep(patience) {
        let Some(clock) = clock() else { continue };
        if clock.until(tick + interval - ahead) == Duration::ZERO {
            let states = flows.iter_mut().map(Watched::sample).collect();
            *lock(seen) = states;
            // One that was missed is not made up for.
            while tick <= clock.now() {
                tick += interval;
            }
        }
        patience = clock.until(tick + interval - ahead);
    }
}

impl Watched {
    fn sample(&mut self) -> FlowState {
        let server = self.server;
        let [client, served] = &mut self.ends;
        let at_client = client.sample(|one| one.remote == server);
        let at_server = served.sample(|one| one.local == server);
        let received =
            |end: &End| -> u64 { end.seen.values().map(|info| info.counters.bytes_accepted).sum() };
        // Up is from the client to the server.
        let (up, down) = (received(served), received(client));
        let (end, present) = if up >= down { (client, at_client) } else { (served, at_server) };
        let most = present.into_iter().flatten().max_by_key(|(_, info)| info.counters.bytes_sent);
        FlowState {
            flow: self.flow,
            delivered: up.max(down),
            sender: most,
            from: end.node,
            totals: end.seen.values().fold(Totals::NONE, Totals::and),
        }
    }
}

impl End {
    /// Samples the flow's connections, and returns those that exist.
    fn sample(
        &mut self,
        is_its: impl Fn(&TcpSocket) -> bool,
    ) -> io::Result<Vec<(u64, ConnectionState)>> {
        let mut remember = |sockets: Vec<TcpSocket>| -> Vec<(u64, ConnectionState)> {
            let its = sockets.into_iter().filter(|one| is_its(one));
            let known = its.filter_map(|one| {
                let info = ConnectionState::of_tcp_info(one.info?.as_bytes())?;
                (one.state != KernelTcpState::Listen).then_some((one.cookie, info))
            });
            let known: Vec<_> = known.collect();
            self.seen.extend(known.iter().copied());
            known
        };
        let present = self.diag.tcp().map(&mut remember);
        // Too many endings at once for the kernel to tell: what was seen of those connections last counts.
        let mut ended = Vec::new();
        loop {
            let before = ended.len();
            if self.ends.take(|socket| ended.push(socket)).is_err() || ended.len() == before {
                break;
            }
        }
        remember(ended);
        present
    }
}
