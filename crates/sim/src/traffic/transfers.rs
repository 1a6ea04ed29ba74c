//! Many transfers, a connection for each.

use super::schedule::Next;
use super::{Application, Bond, FlowId, Io, Schedule};
use crate::network::host::Map;
use std::net::SocketAddr;
use transom_stack::ConnectionId;
use transom_tcp::Signal;
use transom_tcp::time::Instant;

/// Sends what a [`Schedule`] says to one receiver.
#[derive(Debug)]
struct Transfers {
    flow: FlowId,
    remote: SocketAddr,
    schedule: Schedule,
    /// No transfer begins at this time or later.
    stop: Instant,
    began: Option<Instant>,
    /// How many have begun.
    count: usize,
    next: Option<Next>,
    /// The bytes that each connection has still to send.
    left: Map<ConnectionId, u64>,
}

/// Sends what `schedule` says to `remote`; no transfer begins at `stop` or later.
pub fn transfers(
    flow: FlowId,
    remote: SocketAddr,
    schedule: Schedule,
    stop: Instant,
) -> Box<dyn Application> {
    let left = Map::default();
    Box::new(Transfers { flow, remote, schedule, stop, began: None, count: 0, next: None, left })
}

impl Transfers {
    /// Decides about the next transfer, the last one having begun or ended now.
    fn plan(&mut self, io: &mut dyn Io) {
        let now = io.now();
        let began = *self.began.get_or_insert(now);
        self.next =
            self.schedule.next(self.count, began, now, io.rng()).filter(|next| next.at < self.stop);
        if let Some(next) = self.next {
            io.call_at(next.at.max(now));
        }
    }

    fn begin(&mut self, io: &mut dyn Io, bytes: u64) {
        self.count += 1;
        let Some(id) = io.connect(self.remote) else { return };
        io.transfer_begins(self.flow, id);
        self.left.insert(id, bytes);
    }

    fn fill(&mut self, io: &mut dyn Io, id: ConnectionId) {
        let Some(left) = self.left.get_mut(&id) else { return };
        *left -= io.write(id, *left);
        if *left == 0 {
            self.left.remove(&id);
            // Its events still come, so that it is known when the receiver has everything.
            io.shutdown(id);
        }
    }
}

impl Application for Transfers {
    fn on_timer(&mut self, io: &mut dyn Io) {
        while let Some(next) = self.next.filter(|next| next.at <= io.now()) {
            self.next = None;
            self.begin(io, next.bytes);
            if !self.schedule.waits() {
                self.plan(io);
            }
        }
        if self.began.is_none() {
            self.plan(io);
        }
    }

    fn on_signal(&mut self, io: &mut dyn Io, id: ConnectionId, signal: Signal) {
        match signal {
            Signal::Connected | Signal::Writable => self.fill(io, id),
            // The receiver closes when it has everything.
            Signal::Readable | Signal::Closed => {
                let taken = io.read(id);
                if taken.over {
                    self.left.remove(&id);
                    io.close(id);
                    if self.schedule.waits() && self.next.is_none() {
                        self.plan(io);
                    }
                }
            }
            _ => {}
        }
    }

    fn bonds(&self) -> Option<Vec<Bond>> {
        Some(vec![Bond::Sends(self.flow)])
    }
}
