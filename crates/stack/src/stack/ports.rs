//! Ephemeral ports: unpredictable from outside, and each destination sees a sequence of its own (RFC 6056 section 3.3.4).

use super::Stack;
use crate::destinations::Position;
use crate::flow::{FlowKey, Handler};
use crate::mapped::Bound;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use transom_tcp::time::Instant;

/// The order in which the ephemeral ports are tried for one socket.
#[derive(Clone, Copy)]
struct PortDraw {
    first: u16,
    count: u32,
    /// The first one to be tried, counted from `first`.
    start: u32,
    position: Position,
}

impl PortDraw {
    /// All ephemeral ports, each once.
    fn ports(self) -> impl Iterator<Item = u16> {
        (0..self.count).map(move |step| self.nth(step))
    }

    fn nth(&self, step: u32) -> u16 {
        self.first + ((self.start + step) % self.count) as u16
    }

    /// How many ports were tried if it became this one.
    fn tried(&self, port: u16) -> u32 {
        let place = u32::from(port.saturating_sub(self.first));
        (place + self.count - self.start) % self.count + 1
    }
}

impl Stack {
    fn draw_ports(&self, local: IpAddr, remote: SocketAddr) -> PortDraw {
        let ports = &self.config.ephemeral_ports;
        let (first, last) = (*ports.start(), *ports.end());
        let count = u32::from(last.saturating_sub(first)) + 1;
        let towards =
            FlowKey { local, remote: remote.ip(), local_port: 0, remote_port: remote.port() };
        let position = self.ports.position(&self.secrets, &towards);
        PortDraw { first, count, start: position.number % count, position }
    }

    /// A port of `draw` was taken: the next draw goes on behind it.
    fn take_drawn(&mut self, draw: PortDraw, port: u16) {
        self.ports.advance(draw.position, draw.tried(port));
    }

    /// A port for a connection from `ip` to `remote`, if one is free.
    pub(super) fn ephemeral(
        &mut self,
        ip: IpAddr,
        remote: SocketAddr,
        now: Instant,
    ) -> Option<SocketAddr> {
        let draw = self.draw_ports(ip, remote);
        let port = draw.ports().find(|&port| self.may_connect_from(ip, port, remote, now))?;
        self.take_drawn(draw, port);
        Some(SocketAddr::new(ip, port))
    }

    fn may_connect_from(&self, ip: IpAddr, port: u16, remote: SocketAddr, now: Instant) -> bool {
        if !self.config.shard.has_port(port) {
            return false;
        }
        let local = SocketAddr::new(ip, port);
        let taken = match self.flows.get(&FlowKey::new(local, remote)).copied() {
            None => false,
            Some(Handler::TimeWait(place)) => {
                !self.waits.get(place).is_some_and(|entry| entry.wait.may_be_reused(now))
            }
            Some(_) => true,
        };
        !taken
            && !self.is_reserved(&Bound::new(local, true))
            && self.listening.find_named(local).is_none()
    }

    /// A place with a free ephemeral port, for a socket that is to be bound to `ip` or to listen there: the first of which `is_free` says so.
    pub fn free_place(
        &mut self,
        ip: IpAddr,
        v6_only: bool,
        is_free: impl Fn(&Stack, &Bound) -> bool,
    ) -> Option<Bound> {
        let at_port = |port| Bound::new(SocketAddr::new(ip, port), v6_only);
        let local = ip.to_canonical();
        let nobody = match local {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let draw = self.draw_ports(local, SocketAddr::new(nobody, 0));
        let port = draw.ports().find(|&port| is_free(self, &at_port(port)))?;
        self.take_drawn(draw, port);
        Some(at_port(port))
    }
}
