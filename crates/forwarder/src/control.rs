//! Window control with a clock, for the modes that handle packets in this process.

use std::time::Instant as Clock;

use transom_device::{PREFETCH, prefer_huge_pages};
use transom_router::queue::Length;
use transom_router::window::{ControlConfig, Returning, WindowControl, WindowReport};
use transom_tcp::time::Instant;

use crate::latest::smallest;
use crate::refusal::{Refusal, random};
use crate::status::{Counters, FlowStatus, QueueStatus, Status};

/// Window control, what it does not count itself, and the time.
#[derive(Debug)]
pub(crate) struct Control {
    inner: WindowControl,
    policy: &'static str,
    origin: Clock,
    arrived_bytes: u64,
    failed: u64,
}

impl Control {
    pub(crate) fn new(config: &ControlConfig) -> Result<Self, Refusal> {
        let mut inner = WindowControl::new(config, random()?)
            .map_err(|error| Refusal::Parameter(error.to_string()))?;
        inner.set_prefetch(PREFETCH);
        for range in inner.memory() {
            // It works without.
            let _ = prefer_huge_pages(range);
        }
        Ok(Control {
            inner,
            policy: config.policy.name(),
            origin: Clock::now(),
            arrived_bytes: 0,
            failed: 0,
        })
    }

    /// The time since the beginning.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }

    /// See [`WindowControl::forward`].
    pub(crate) fn forward(&mut self, now: Instant, packet: &[u8], len: usize, queue: Length) {
        self.arrived_bytes += len as u64;
        self.inner.forward(now, packet, len, queue);
    }

    /// See [`WindowControl::returning_all`].
    pub(crate) fn returning_all(
        &mut self,
        now: Instant,
        packets: &mut [Returning<'_>],
        queue: Length,
    ) {
        self.inner.returning_all(now, packets, queue);
    }

    /// This many returning packets passed unchanged, because the mode could not rewrite them.
    pub(crate) fn failed(&mut self, packets: usize) {
        self.failed += packets as u64;
    }

    /// The status, except the parts that only the mode knows.
    pub(crate) fn status(
        &self,
        mode: &str,
        device: &str,
        flows: usize,
        queue: QueueStatus,
    ) -> Status {
        let WindowReport { counters, table, target, .. } = self.inner.report();
        let known = self.inner.flows(self.now()).filter(|flow| flow.is_open);
        let latest = smallest(known, flows, |flow| flow.idle);
        let flows = latest.iter().map(|flow| FlowStatus {
            sender: flow.sender,
            receiver: flow.receiver,
            desired: flow.desired.into(),
            written: None,
            advertised: None,
            mss: flow.mss,
            scale: flow.scale,
            idle_ms: flow.idle.as_millis(),
        });
        Status {
            mode: mode.into(),
            device: device.into(),
            policy: self.policy.into(),
            target,
            queue,
            counters: Counters {
                arrivals: counters.arrived,
                arrived_bytes: self.arrived_bytes,
                acks: counters.acks,
                rewritten: counters.rewritten,
                held: counters.held,
                covered: counters.covered,
                unknown: counters.unknown,
                implausible: counters.implausible,
                unreadable: counters.unreadable,
                confirmed: counters.opened,
                table_full: table.refused,
                failed: self.failed,
                lost: 0,
            },
            tracked: table.open as u64,
            capacity: table.capacity as u64,
            flows: flows.collect(),
        }
    }
}
