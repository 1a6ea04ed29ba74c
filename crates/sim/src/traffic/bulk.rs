//! A transfer as fast as TCP allows.

use super::{Application, Bond, FlowId, Io};
use std::net::SocketAddr;
use transom_stack::ConnectionId;
use transom_tcp::Signal;
use transom_tcp::time::Instant;

/// How much to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many bytes.
    Bytes(u64),
    /// For ever.
    Endless,
    /// As much as can be sent until then.
    Until(Instant),
}

/// Opens one connection and keeps its send buffer full.
#[derive(Clone, Debug)]
struct Bulk {
    flow: FlowId,
    remote: SocketAddr,
    amount: Amount,
    sent: u64,
    connection: Option<ConnectionId>,
}

/// A transfer to `remote`, as fast as TCP allows.
pub fn bulk(flow: FlowId, remote: SocketAddr, amount: Amount) -> Box<dyn Application> {
    Box::new(Bulk { flow, remote, amount, sent: 0, connection: None })
}

impl Bulk {
    fn fill(&mut self, io: &mut dyn Io, id: ConnectionId) {
        let left = match self.amount {
            Amount::Bytes(all) => all.saturating_sub(self.sent),
            Amount::Until(end) if io.now() >= end => 0,
            Amount::Until(_) | Amount::Endless => u64::MAX,
        };
        let written = io.write(id, left);
        self.sent += written;
        if left == written {
            self.connection = None;
            io.close(id);
        }
    }
}

impl Application for Bulk {
    fn on_timer(&mut self, io: &mut dyn Io) {
        if let Some(id) = self.connection {
            return self.fill(io, id);
        }
        self.connection = io.connect(self.remote);
        if let Some(id) = self.connection {
            io.transfer_begins(self.flow, id);
        }
        if let Amount::Until(end) = self.amount {
            io.call_at(end);
        }
    }

    fn on_signal(&mut self, io: &mut dyn Io, id: ConnectionId, signal: Signal) {
        match signal {
            Signal::Connected | Signal::Writable => self.fill(io, id),
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
