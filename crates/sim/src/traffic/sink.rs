//! An application that takes whatever comes.

use super::{Application, Bond, FlowId, Io};
use transom_stack::ConnectionId;
use transom_tcp::Signal;

/// The reader.
#[derive(Clone, Debug)]
struct Sink {
    flow: FlowId,
    port: u16,
}

/// Listens at `port`, reads everything for `flow`, and closes when the other end has.
pub fn sink(flow: FlowId, port: u16) -> Box<dyn Application> {
    Box::new(Sink { flow, port })
}

impl Sink {
    fn drain(&mut self, io: &mut dyn Io, id: ConnectionId) {
        let taken = io.read(id);
        let now = io.now();
        let flow = io.ledger().flow(self.flow);
        flow.delivered += taken.bytes;
        flow.skipped += taken.skipped;
        if taken.over {
            flow.finished = Some(now);
            if let Some(sender) = io.remote_address(id) {
                io.ledger().complete(self.flow, sender, now);
            }
            io.close(id);
        }
    }
}

impl Application for Sink {
    fn on_timer(&mut self, io: &mut dyn Io) {
        // If somebody else listens there already, nothing will be delivered, and the ledger shows it.
        io.listen(self.port);
    }

    fn on_accept(&mut self, io: &mut dyn Io, id: ConnectionId) {
        self.drain(io, id);
    }

    fn on_signal(&mut self, io: &mut dyn Io, id: ConnectionId, signal: Signal) {
        if matches!(signal, Signal::Readable | Signal::Closed) {
            self.drain(io, id);
        }
    }

    fn bonds(&self) -> Option<Vec<Bond>> {
        Some(vec![Bond::Receives(self.flow)])
    }
}
