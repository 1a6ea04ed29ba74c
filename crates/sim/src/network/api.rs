//! The calls of a network. Names are everybody's; behind them is one part, or several.

use super::several::{Place, Several};
use super::{Division, LinkId, LogReader, Network, NetworkError, NodeId, Part, Tap};
use crate::link::{Counters, Traffic};
use crate::measure::LinkSample;
use crate::traffic::{Flow, Ledger};
use transom_router::window::WindowControl;
use transom_stack::Stack;
use transom_stack::log::Encoded;
use transom_tcp::time::Instant;

/// The totals of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Events handled.
    pub events: u64,
    /// Packets that left a host.
    pub packets: u64,
    /// Packets that are on their way.
    pub on_their_way: usize,
    /// Packets without a receiver.
    pub undeliverable: u64,
}

impl Network {
    pub(super) fn whole(part: Part, division: Division) -> Self {
        let hosts = part.hosts.clone();
        Network { now: Instant::ZERO, hosts, parts: vec![part], several: None, division }
    }

    pub(super) fn divided(
        hosts: Vec<NodeId>,
        parts: Vec<Part>,
        several: Several,
        division: Division,
    ) -> Self {
        let several = Some(Box::new(several));
        Network { now: Instant::ZERO, hosts, parts, several, division }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// How it is divided among cores, or why it is not.
    pub fn division(&self) -> &Division {
        &self.division
    }

    /// The totals so far.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for Part { events, fabric, .. } in &self.parts {
            totals.events += events;
            totals.packets += fabric.sent;
            totals.on_their_way += fabric.packets.len();
            totals.undeliverable += fabric.undeliverable;
        }
        totals
    }

    /// The flows and what has become of them, by number.
    pub fn flows(&self) -> &[Flow] {
        match &self.several {
            Some(several) => several.ledger.flows(),
            None => self.parts.first().map_or(&[], |part| part.fabric.ledger.flows()),
        }
    }

    /// The ledger of flows, for events outside of the network.
    pub fn ledger(&mut self) -> &mut Ledger {
        match &mut self.several {
            Some(several) => &mut several.ledger,
            None => &mut self.parts[0].fabric.ledger,
        }
    }

    fn place(&self, node: NodeId) -> Option<Place> {
        match &self.several {
            Some(several) => several.node(node),
            None => Some(Place { part: 0, at: node.0 }),
        }
    }

    /// The part that has the near end of a link, and the link there.
    fn near(&self, link: LinkId) -> Option<(usize, LinkId)> {
        let place = match &self.several {
            Some(several) => several.link(link)?.0,
            None => Place { part: 0, at: link.0 },
        };
        Some((place.part as usize, LinkId(place.at)))
    }

    fn near_part(&mut self, link: LinkId) -> Option<(&mut Part, LinkId)> {
        let (part, link) = self.near(link)?;
        Some((self.parts.get_mut(part)?, link))
    }

    /// A host's stack, to look at.
    pub fn stack(&self, host: NodeId) -> Option<&Stack> {
        let place = self.place(host)?;
        Some(&self.parts.get(place.part as usize)?.host(place.at as usize)?.stack)
    }

    /// The counters of a link, as of the last packet that came to it or the last [sample](Self::sample_link).
    pub fn link_counters(&self, link: LinkId) -> Option<Counters> {
        let (part, near) = self.near(link)?;
        let counters = self.parts.get(part)?.fabric.wires.get(near.0 as usize)?.model.counters();
        Some(self.with_deliveries(link, counters))
    }

    /// Deliveries are counted at the far end.
    fn with_deliveries(&self, link: LinkId, counters: Counters) -> Counters {
        let ends = self.several.as_ref().and_then(|several| several.link(link));
        let Some((_, far)) = ends.filter(|(near, far)| near.part != far.part) else {
            return counters;
        };
        let wires = self.parts.get(far.part as usize).map(|part| &part.fabric.wires);
        let wire = wires.and_then(|wires| wires.get(far.at as usize));
        let delivered = wire.map_or(Traffic::default(), |wire| wire.model.counters().delivered);
        Counters { delivered, ..counters }
    }

    /// A link's window control, if it has one.
    pub(crate) fn window_control(&self, link: LinkId) -> Option<&WindowControl> {
        let (part, link) = self.near(link)?;
        let controlled = self.parts.get(part)?.fabric.controls.get(link.0 as usize)?.as_ref()?;
        Some(&controlled.control)
    }

    /// Keeps from now on how long each packet waits before a link; see [`LinkModel::measure_delays`](crate::link::LinkModel::measure_delays).
    pub(crate) fn measure_delays(&mut self, link: LinkId) {
        if let Some((part, link)) = self.near_part(link)
            && let Some(wire) = part.fabric.wires.get_mut(link.0 as usize)
        {
            wire.model.measure_delays();
        }
    }

    /// The present state of a link, and the delays of packets since the last such sample.
    pub fn sample_link(&mut self, link: LinkId) -> Option<LinkSample> {
        let now = self.now;
        let (part, near) = self.near_part(link)?;
        let wire = part.fabric.wires.get_mut(near.0 as usize)?;
        let sample = LinkSample::take(&mut wire.model, now);
        let counters = self.with_deliveries(link, sample.counters);
        let window = self.window_control(link).map(Into::into);
        Some(LinkSample { counters, window, ..sample })
    }

    /// Watches every packet that comes to a link, also those that it drops. `tap` is called with the time, the packet's bytes with all checksums,
    /// and what the host that sends it right now says of it, if it [comments](super::HostConfig::comments).
    pub fn tap(
        &mut self,
        link: LinkId,
        tap: impl FnMut(Instant, &[u8], Option<&str>) + Send + 'static,
    ) {
        let tap: Tap = Box::new(tap);
        match &mut self.several {
            Some(several) => several.tap(&mut self.parts, link, tap),
            None => {
                self.parts[0].fabric.taps.insert(link, tap);
            }
        }
    }

    /// Watches every packet that comes out of a link, as its receiver finds it: marked, damaged, twice.
    pub fn tap_arrivals(
        &mut self,
        link: LinkId,
        tap: impl FnMut(Instant, &[u8], Option<&str>) + Send + 'static,
    ) {
        let tap: Tap = Box::new(tap);
        match &mut self.several {
            Some(several) => several.tap_arrivals(&mut self.parts, link, tap),
            None => {
                self.parts[0].fabric.arrival_taps.insert(link, tap);
            }
        }
    }

    /// Hands the records of a host's event log to `reader`, from now on and as they are made. Of a host without a log
    /// ([`HostConfig::log`](super::HostConfig::log)), and of what is no host, there are none.
    pub fn watch_log(&mut self, node: NodeId, reader: impl FnMut(&Encoded) + Send + 'static) {
        let reader: LogReader = Box::new(reader);
        match &mut self.several {
            Some(several) => several.watch_log(&mut self.parts, node, reader),
            None => {
                if let Some(host) = self.parts[0].host_mut(node.0 as usize) {
                    host.watch_log(reader);
                }
            }
        }
    }

    /// Handles everything up to and including `limit`, which is the present afterwards.
    ///
    /// # Errors
    /// [`NetworkError::Packet`], which would be a defect of this program.
    pub fn run_until(&mut self, limit: Instant) -> Result<(), NetworkError> {
        match &mut self.several {
            Some(several) => several.run_until(&mut self.parts, limit)?,
            None => {
                self.parts[0].run_until(limit)?;
                self.parts[0].count();
            }
        }
        self.now = self.now.max(limit);
        Ok(())
    }
}
