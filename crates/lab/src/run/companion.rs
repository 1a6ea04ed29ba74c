//! Datagrams at the rate of a connection beside them: an extension of the connection publishes it.

use crate::scenario::{Name, Resolved, Traffic};
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use transom_extensions::{Allowance, Companion};
use transom_sim::traffic::{Application, Bond, FlowId, Io, Sends};
use transom_tcp::arguments::Fraction;
use transom_tcp::time::{Duration, Instant};

/// The rate may change with each acknowledgement, so nobody sleeps for longer.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);

/// The state of each flow of TCP that has companions, by its name.
pub(super) fn companions(scenario: &Resolved) -> BTreeMap<Name, Companion> {
    let beside = scenario.flows.iter().filter_map(|flow| match &flow.traffic {
        Traffic::Companion(companion) => Some(companion.beside.clone()),
        _ => None,
    });
    beside.map(|name| (name, Companion::default())).collect()
}

/// Has datagrams to send all the time.
#[derive(Debug)]
pub(super) struct Datagrams {
    flow: FlowId,
    allowance: Allowance,
    port: u16,
    remote: SocketAddrV4,
    payload: u16,
    stop: Instant,
    begun: bool,
}

impl Datagrams {
    /// Datagrams of `payload` bytes from `port` to `remote` at the connection's rate, until `stop`.
    pub(super) fn new(
        flow: FlowId,
        companion: &Companion,
        port: u16,
        remote: SocketAddrV4,
        payload: u16,
        stop: Instant,
    ) -> Self {
        let allowance = companion.allowance(Fraction::ONE);
        Datagrams { flow, allowance, port, remote, payload, stop, begun: false }
    }
}

impl Application for Datagrams {
    fn on_timer(&mut self, io: &mut dyn Io) {
        let now = io.now();
        if now >= self.stop {
            return;
        }
        if !self.begun {
            self.begun = true;
            io.sends(self.flow, Sends::To(self.remote.into()));
        }
        if self.allowance.may_send(now) {
            io.send_datagram(self.port, self.remote, self.payload);
            self.allowance.on_send(now, self.payload.into());
        }
        let soon = now + LONGEST_SLEEP;
        io.call_at(self.allowance.next_time(now).unwrap_or(soon).min(soon));
    }

    fn bonds(&self) -> Option<Vec<Bond>> {
        Some(vec![Bond::Sends(self.flow)])
    }
}
