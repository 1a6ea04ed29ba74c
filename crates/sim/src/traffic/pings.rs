//! Datagrams that come back: how long the way there and back takes, at fixed times and whatever the answers do.
//!
//! Datagrams have no contents here. So the size of one says which it is: the sizes of pings in a row differ, and an answer has the size of its question.

use super::{Application, Bond, FlowId, Io, Sends};
use std::collections::VecDeque;
use std::net::SocketAddrV4;
use transom_tcp::time::{Duration, Instant};

/// So many sizes there are. A ping whose answer has not come when its size is used again is lost.
const SIZES: u16 = 64;

/// The asking end.
#[derive(Debug)]
struct Pings {
    flow: FlowId,
    port: u16,
    remote: SocketAddrV4,
    /// Bytes of the smallest.
    payload: u16,
    interval: Duration,
    stop: Instant,
    sent: u16,
    /// Those without an answer, the oldest first: its size, and when it was sent.
    waiting: VecDeque<(u16, Instant)>,
    begun: bool,
}

/// Datagrams of at least `payload` bytes from `port` to `remote`, one each `interval`, until `stop`. They are up to 63 bytes longer. Each answer
/// counts as a completed transfer, from the question to the answer.
pub fn pings(
    flow: FlowId,
    port: u16,
    remote: SocketAddrV4,
    payload: u16,
    interval: Duration,
    stop: Instant,
) -> Box<dyn Application> {
    let payload = payload.clamp(1, u16::MAX - SIZES);
    let waiting = VecDeque::new();
    Box::new(Pings { flow, port, remote, payload, interval, stop, sent: 0, waiting, begun: false })
}

impl Application for Pings {
    fn on_timer(&mut self, io: &mut dyn Io) {
        let now = io.now();
        if !self.begun {
            self.begun = true;
            io.bind(self.port);
            io.sends(self.flow, Sends::To(self.remote.into()));
            io.ledger().flow(self.flow).started = Some(now);
        }
        if now >= self.stop {
            return;
        }
        let size = self.payload + self.sent % SIZES;
        self.sent = (self.sent + 1) % SIZES;
        self.waiting.retain(|(other, _)| *other != size);
        self.waiting.push_back((size, now));
        io.send_datagram(self.port, self.remote, size);
        io.call_at(now + self.interval);
    }

    fn on_datagram(&mut self, io: &mut dyn Io, payload: usize) {
        let is_it = |(size, _): &(u16, Instant)| usize::from(*size) == payload;
        // A second answer to the same question has none left.
        let Some(place) = self.waiting.iter().position(is_it) else { return };
        let Some((_, asked)) = self.waiting.remove(place) else { return };
        let now = io.now();
        let flow = io.ledger().flow(self.flow);
        flow.delivered += payload as u64;
        flow.completions.push((now, now.since(asked)));
        flow.finished = Some(now);
    }

    fn bonds(&self) -> Option<Vec<Bond>> {
        let bonds = vec![Bond::Sends(self.flow), Bond::Receives(self.flow)];
        Some(bonds)
    }
}

/// The answering end.
#[derive(Debug)]
struct Echo {
    port: u16,
    remote: SocketAddrV4,
}

/// Sends each datagram that comes to `port` back to `remote`, which alone asks there.
pub fn echo(port: u16, remote: SocketAddrV4) -> Box<dyn Application> {
    Box::new(Echo { port, remote })
}

impl Application for Echo {
    fn on_timer(&mut self, io: &mut dyn Io) {
        // If somebody else has the port, nothing is answered, and the ledger shows it.
        io.bind(self.port);
    }

    fn on_datagram(&mut self, io: &mut dyn Io, payload: usize) {
        io.send_datagram(self.port, self.remote, u16::try_from(payload).unwrap_or(u16::MAX));
    }

    fn bonds(&self) -> Option<Vec<Bond>> {
        Some(Vec::new())
    }
}
