//! A transfer as fast as TCP allows.

use super::{Application, Bond, Bonds, FlowId, Io};
use std::net::SocketAddr;
use std::sync::Arc;
use transom_stack::ConnectionId;
use transom_tcp::time::Instant;
use transom_tcp::{Profile, Signal};

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
pub struct Bulk {
    flow: FlowId,
    remote: SocketAddr,
    amount: Amount,
    profile: Option<Arc<Profile>>,
    sent: u64,
    connection: Option<ConnectionId>,
}

impl Bulk {
    /// A transfer to `remote`, over a connection with the host's own profile.
    pub fn new(flow: FlowId, remote: SocketAddr, amount: Amount) -> Self {
        Bulk { flow, remote, amount, profile: None, sent: 0, connection: None }
    }

    /// The same with a profile of its own.
    pub fn with_profile(self, profile: Arc<Profile>) -> Self {
        Bulk { profile: Some(profile), ..self }
    }

    fn fill(&mut self, io: &mut Io<'_>, id: ConnectionId) {
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
    fn on_timer(&mut self, io: &mut Io<'_>) {
        if let Some(id) = self.connection {
            return self.fill(io, id);
        }
        self.connection = io.connect(self.remote, self.profile.clone());
        if let Some(id) = self.connection {
            io.transfer_begins(self.flow, id);
        }
        if let Amount::Until(end) = self.amount {
            io.call_at(end);
        }
    }

    fn on_signal(&mut self, io: &mut Io<'_>, id: ConnectionId, signal: Signal) {
        match signal {
            Signal::Connected | Signal::Writable => self.fill(io, id),
            Signal::Closed => {
                self.connection = None;
                io.close(id);
            }
            _ => {}
        }
    }

    fn bonds(&self) -> Bonds {
        Bonds::with_profile(vec![Bond::Sends(self.flow)], self.profile.as_ref())
    }
}
