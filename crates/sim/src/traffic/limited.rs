//! A stream whose application has only so much to say.

use super::{Application, Bond, FlowId, Io};
use crate::units::Rate;
use std::net::SocketAddr;
use transom_stack::ConnectionId;
use transom_tcp::Signal;
use transom_tcp::time::{Duration, Instant};

/// Writes a chunk at regular intervals, as a codec does. Data for which there is no room waits.
#[derive(Debug)]
struct Limited {
    flow: FlowId,
    remote: SocketAddr,
    chunk: u64,
    interval: Duration,
    stop: Instant,
    connection: Option<ConnectionId>,
    /// Said and not yet written.
    backlog: u64,
}

/// A stream of `chunk` bytes at a time, at `rate`, to `remote` until `stop`.
pub fn limited(
    flow: FlowId,
    remote: SocketAddr,
    rate: Rate,
    chunk: u64,
    stop: Instant,
) -> Box<dyn Application> {
    let nanos = u128::from(chunk) * 8_000_000_000 / u128::from(rate.bits_per_sec());
    let interval = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX).max(1));
    Box::new(Limited { flow, remote, chunk, interval, stop, connection: None, backlog: 0 })
}

impl Limited {
    fn push(&mut self, io: &mut dyn Io, id: ConnectionId) {
        self.backlog -= io.write(id, self.backlog);
        if self.backlog == 0 && io.now() >= self.stop {
            self.connection = None;
            io.close(id);
        }
    }
}

impl Application for Limited {
    fn on_timer(&mut self, io: &mut dyn Io) {
        let now = io.now();
        match self.connection {
            None if now >= self.stop => return,
            None => {
                self.connection = io.connect(self.remote);
                if let Some(id) = self.connection {
                    io.transfer_begins(self.flow, id);
                }
            }
            Some(id) => {
                if now < self.stop {
                    self.backlog += self.chunk;
                }
                self.push(io, id);
            }
        }
        if now < self.stop {
            io.call_at((now + self.interval).min(self.stop));
        }
    }

    fn on_signal(&mut self, io: &mut dyn Io, id: ConnectionId, signal: Signal) {
        match signal {
            Signal::Connected | Signal::Writable => self.push(io, id),
            Signal::Closed => {
                self.connection = None;
                io.close(id);
            }
            _ => {}
        }
    }

    fn bonds(&self) -> Option<Vec<Bond>> {
        Some(vec![Bond::Sends(self.flow)])
    }
}
