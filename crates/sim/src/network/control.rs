//! Window control at the near end of links.
//!
//! A link with a `window` policy has a [`WindowControl`], which is shown what is sent over the link, and what arrives over its other
//! direction before anything else happens to that. A router's box does this for its output queue; a host's own link can have
//! one as well. Only a router can hold an acknowledgement back.

use super::packets::PacketId;
use super::{Fabric, LinkId, NetworkError};
use crate::link::{LinkConfig, Traffic};
use crate::random::Streams;
use std::collections::VecDeque;
use transom_router::queue::Length;
use transom_router::window::{
    ChecksumState, ControlConfig, ControlConfigError, WindowControl, WindowReport,
};
use transom_tcp::time::{Duration, Instant};

/// Streams of controls are numbered from here; see `topology`.
const CONTROL_STREAMS: u64 = 1 << 33;

/// A link's window control.
pub(super) struct Controlled {
    control: WindowControl,
    /// Acknowledgements that are to go on later: when, over which link.
    held: VecDeque<(Instant, Option<LinkId>, PacketId)>,
}

impl Controlled {
    /// That of a link; `None` if it has none.
    pub(super) fn new(
        config: &LinkConfig,
        streams: Streams,
        index: u64,
    ) -> Result<Option<Box<Self>>, ControlConfigError> {
        let Some(window) = config.window.0 else { return Ok(None) };
        let rate = config.mean_rate().map_or(0, |rate| rate.bits_per_sec());
        let mut secret = [0; 16];
        streams.rng(CONTROL_STREAMS + index, 0).fill(&mut secret);
        let control = WindowControl::new(&ControlConfig::new(window.on_link(rate)), secret)?;
        Ok(Some(Box::new(Controlled { control, held: VecDeque::new() })))
    }

    pub(super) fn report(&self) -> WindowReport {
        self.control.report()
    }
}

fn length(traffic: Traffic) -> Length {
    Length { packets: traffic.packets, bytes: traffic.bytes }
}

impl Fabric {
    fn controlled(&mut self, link: LinkId) -> Option<&mut Controlled> {
        self.controls.get_mut(link.0 as usize)?.as_deref_mut()
    }

    /// A packet is about to be sent over a link.
    pub(super) fn pass_control(&mut self, now: Instant, link: LinkId, id: PacketId) {
        let Fabric { controls, wires, packets, .. } = self;
        let Some(Some(controlled)) = controls.get_mut(link.0 as usize) else { return };
        let (Some(wire), Some(packet)) = (wires.get_mut(link.0 as usize), packets.get_mut(id))
        else {
            return;
        };
        let queue = length(wire.model.queued(now));
        controlled.control.forward(now, packet.headers(), packet.len(), queue);
    }

    /// A packet has arrived over a link: the control of its other direction may rewrite it, and says how long to hold it.
    pub(super) fn control_arrival(&mut self, now: Instant, over: LinkId, id: PacketId) -> Duration {
        let link = over.back();
        let Fabric { controls, wires, packets, .. } = self;
        let Some(Some(controlled)) = controls.get_mut(link.0 as usize) else {
            return Duration::ZERO;
        };
        let (Some(wire), Some(packet)) = (wires.get_mut(link.0 as usize), packets.get_mut(id))
        else {
            return Duration::ZERO;
        };
        let queue = length(wire.model.queued(now));
        let (len, checksum) = (packet.len(), packet.checksum_state());
        controlled.control.returning(now, packet.headers_mut(), len, checksum, queue).hold
    }

    /// The same for a packet that a wire has damaged. In every case the packet goes on at once.
    pub(super) fn control_damaged(&mut self, now: Instant, over: LinkId, bytes: &mut [u8]) {
        let link = over.back();
        let Fabric { controls, wires, .. } = self;
        let Some(Some(controlled)) = controls.get_mut(link.0 as usize) else { return };
        let Some(wire) = wires.get_mut(link.0 as usize) else { return };
        let (queue, len) = (length(wire.model.queued(now)), bytes.len());
        controlled.control.returning(now, bytes, len, ChecksumState::Complete, queue);
    }

    /// Holds an acknowledgement that arrived over a link, and what comes after it. Returns when to call for it.
    pub(super) fn hold(
        &mut self,
        now: Instant,
        over: LinkId,
        delay: Duration,
        towards: Option<LinkId>,
        id: PacketId,
    ) -> Instant {
        let Some(controlled) = self.controlled(over.back()) else { return now };
        let last = controlled.held.back().map_or(now, |(at, ..)| *at);
        let at = (now + delay).max(last);
        controlled.held.push_back((at, towards, id));
        controlled.held.front().map_or(at, |(first, ..)| *first)
    }

    /// Whether something waits that arrived over this link.
    pub(super) fn is_holding(&mut self, over: LinkId) -> bool {
        self.controlled(over.back()).is_some_and(|controlled| !controlled.held.is_empty())
    }

    /// Sends on what a link's control has held long enough. Returns when the next is due.
    pub(super) fn release_held(
        &mut self,
        now: Instant,
        link: LinkId,
    ) -> Result<Option<Instant>, NetworkError> {
        while let Some(controlled) = self.controlled(link) {
            let due = controlled.held.pop_front_if(|(at, ..)| *at <= now);
            let Some((_, towards, id)) = due else {
                return Ok(controlled.held.front().map(|(at, ..)| *at));
            };
            self.send(now, towards, id)?;
        }
        Ok(None)
    }
}
