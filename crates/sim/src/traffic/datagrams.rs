//! UDP that heeds nothing: on for a while, off for a while.

use super::{Application, Bond, FlowId, Io, Sends};
use crate::random::Draw;
use crate::units::Rate;
use std::net::SocketAddrV4;
use transom_tcp::time::{Duration, Instant};

/// Sends datagrams of one size at a rate while it is on.
#[derive(Debug)]
struct OnOff {
    flow: FlowId,
    port: u16,
    remote: SocketAddrV4,
    payload: u16,
    /// Between two datagrams.
    gap: Duration,
    /// Nanoseconds.
    on: Draw,
    off: Draw,
    stop: Instant,
    /// When the present period of being on ends.
    until: Option<Instant>,
}

/// Datagrams of `payload` bytes from `port` to `remote`, at `rate` counting their IP packets, on and off in turns for so many
/// nanoseconds each, until `stop`. If it is never off it is always on.
pub fn on_off(
    flow: FlowId,
    port: u16,
    remote: SocketAddrV4,
    rate: Rate,
    payload: u16,
    (on, off): (Draw, Draw),
    stop: Instant,
) -> Box<dyn Application> {
    let bits = (u128::from(payload) + u128::from(super::DATAGRAM_HEADERS as u32)) * 8;
    let nanos = bits * 1_000_000_000 / u128::from(rate.bits_per_sec());
    let gap = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).max(1));
    Box::new(OnOff { flow, port, remote, payload, gap, on, off, stop, until: None })
}

impl Application for OnOff {
    fn on_timer(&mut self, io: &mut dyn Io) {
        let now = io.now();
        if now >= self.stop {
            return;
        }
        let until = match self.until {
            Some(until) => until,
            None => {
                io.sends(self.flow, Sends::To(self.remote.into()));
                let until = now + Duration::from_nanos(self.on.draw(io.rng()));
                *self.until.insert(until)
            }
        };
        if now < until || self.off == Draw::Constant(0) {
            io.send_datagram(self.port, self.remote, self.payload);
            io.call_at(now + self.gap);
        } else {
            self.until = None;
            let off = Duration::from_nanos(self.off.draw(io.rng()));
            io.call_at((until + off).max(now));
        }
    }

    fn bonds(&self) -> Option<Vec<Bond>> {
        Some(vec![Bond::Sends(self.flow)])
    }
}

/// Counts the datagrams that come to a port.
#[derive(Debug)]
struct DatagramSink {
    flow: FlowId,
    port: u16,
}

/// Counts the datagrams that come to `port` for `flow`.
pub fn datagram_sink(flow: FlowId, port: u16) -> Box<dyn Application> {
    Box::new(DatagramSink { flow, port })
}

impl Application for DatagramSink {
    fn on_timer(&mut self, io: &mut dyn Io) {
        // If somebody else has the port, nothing will be delivered, and the ledger shows it.
        io.bind(self.port);
    }

    fn on_datagram(&mut self, io: &mut dyn Io, payload: usize) {
        let now = io.now();
        let flow = io.ledger().flow(self.flow);
        flow.delivered += payload as u64;
        flow.started.get_or_insert(now);
        flow.finished = Some(now);
    }

    fn bonds(&self) -> Option<Vec<Bond>> {
        Some(vec![Bond::Receives(self.flow)])
    }
}
