//! Makes records by comparing a connection before and after a call.
//!
//! A connection keeps little for the log: a flag for a duplicate acknowledgement and, with extensions, the changes of layers. A call without changes
//! costs the comparison of a few fields, which the call has just used. Where much data is received, arrivals are by far the most frequent events, and
//! the least informative. So consecutive arrivals make one record, which is written at their end.

use super::record::{EndedBy, Values};
use super::{FlowEvent, Log, Record, What};
use core::net::SocketAddr;
use transom_tcp::connection::{Checkpoint, Connection, Prepared, Snapshot};
use transom_tcp::pos::Pos;
use transom_tcp::time::{Duration, Instant};
use transom_wire::Flags;

/// Arrivals within this of the first make one record.
const RUN: Duration = Duration::from_micros(100);

/// A connection as records name it, and when.
#[derive(Clone, Copy)]
pub(crate) struct Subject {
    pub(crate) now: Instant,
    pub(crate) connection: u64,
}

/// Arrivals that make one record, which is not written yet.
#[derive(Debug)]
pub(super) struct Run {
    at: Instant,
    connection: u64,
    snapshot: Snapshot,
    bytes: u64,
}

impl Log {
    /// The state before a call; `None` if the log is off.
    #[inline(always)]
    pub(crate) fn checkpoint(&self, connection: &Connection) -> Option<Checkpoint> {
        self.is_on().then(|| connection.checkpoint())
    }

    /// Records the changes since `before`. Without changes it returns without a call.
    #[inline(always)]
    pub(crate) fn changes(
        &mut self,
        subject: Subject,
        connection: &mut Connection,
        before: Option<Checkpoint>,
    ) {
        if let Some(before) = before {
            let duplicate = connection.take_duplicate();
            let after = connection.checkpoint();
            let arrival = Checkpoint { bytes_accepted: after.bytes_accepted, ..before };
            if duplicate || after != arrival {
                self.differences(subject, connection, &before, &after, duplicate);
            } else if after.bytes_accepted > before.bytes_accepted {
                self.arrived(subject, connection, after.bytes_accepted - before.bytes_accepted);
            }
        }
        self.layer_events(subject, connection);
    }

    /// Records what is new about extensions: also after each segment, for otherwise what they ask for in answer to several would be one record.
    #[inline(always)]
    pub(crate) fn layer_events(&mut self, subject: Subject, connection: &mut Connection) {
        if connection.has_layer_events() {
            self.write_layer_events(subject, connection);
        }
    }

    /// Records that a connection exists.
    pub(crate) fn opened(
        &mut self,
        subject: Subject,
        connection: &Connection,
        local: SocketAddr,
        remote: SocketAddr,
    ) {
        if self.is_on() {
            self.write(subject, &connection.snapshot(), What::Opened { local, remote });
        }
    }

    /// Records what is about to leave, unless it is an acknowledgement and nothing else. Before it was settled, `resent` segments had been sent
    /// again.
    #[inline]
    pub(crate) fn sent(
        &mut self,
        subject: Subject,
        connection: &Connection,
        resent: u64,
        prepared: &Prepared,
    ) {
        let flags = prepared.header().flags;
        let range = prepared.range();
        let control = flags.intersects(Flags::SYN | Flags::FIN | Flags::RST);
        if !self.is_on() || (range.is_empty() && !control) {
            return;
        }
        let again = connection.counters().retransmitted_segments > resent;
        let range = match flags.contains(Flags::SYN) {
            true => Pos::INITIAL..range.end.max(Pos::FIRST_DATA),
            false => range,
        };
        let snapshot = connection.snapshot();
        let bytes = range.end.since(range.start);
        let extra = u32::from(flags.bits());
        let values = Values::of(&snapshot, range.start.get(), bytes, snapshot.snd_wnd, extra);
        if again {
            let (rto, _) = connection.retransmission_timeout();
            self.flow(subject, &snapshot, FlowEvent::Retransmitted, values.with_rto(rto));
        } else {
            self.flow(subject, &snapshot, FlowEvent::Sent, values);
        }
    }

    #[inline(never)]
    fn differences(
        &mut self,
        subject: Subject,
        connection: &Connection,
        before: &Checkpoint,
        after: &Checkpoint,
        duplicate: bool,
    ) {
        let accepted = after.bytes_accepted.saturating_sub(before.bytes_accepted);
        let snapshot = connection.snapshot();
        let una = snapshot.snd_una.get();
        let values = |bytes, extra| Values::of(&snapshot, una, bytes, snapshot.snd_wnd, extra);
        let delivered = after.delivered.saturating_sub(before.delivered);
        if duplicate || delivered > 0 || after.snd_una > before.snd_una {
            // The sequence numbers of SYN and FIN are acknowledged and not delivered.
            let bytes = delivered.max(after.snd_una.since(before.snd_una).min(1));
            let rtt = Values::last_rtt(&snapshot);
            self.flow(subject, &snapshot, FlowEvent::Acknowledged, values(bytes, rtt));
        }
        let timed_out = after.timeouts > before.timeouts;
        let lost = after.lost_bytes.saturating_sub(before.lost_bytes);
        let recovers = after.fast_recoveries > before.fast_recoveries;
        if timed_out || lost > 0 || recovers {
            let (rto, backoffs) = connection.retransmission_timeout();
            let mut told = |happened, event, bytes, extra| {
                if happened {
                    self.flow(subject, &snapshot, event, values(bytes, extra).with_rto(rto));
                }
            };
            told(timed_out, FlowEvent::TimedOut, 0, backoffs);
            told(lost > 0, FlowEvent::Lost, lost, 0);
            told(recovers, FlowEvent::Recovery, 0, 0);
        }
        if after.spurious_reductions > before.spurious_reductions {
            self.flow(subject, &snapshot, FlowEvent::Undone, values(0, 0));
        }
        if accepted > 0 {
            self.arrived(subject, connection, accepted);
        }
        if after.state != before.state {
            let error = connection.error().map(EndedBy::from);
            self.write(subject, &snapshot, What::State { from: before.state, error });
        }
    }

    /// New data: part of the run there is, or the beginning of another.
    #[inline]
    fn arrived(&mut self, subject: Subject, connection: &Connection, bytes: u64) {
        match &mut self.run {
            Some(run)
                if run.connection == subject.connection && subject.now.since(run.at) < RUN =>
            {
                run.bytes += bytes;
                (run.snapshot.rcv_nxt, run.snapshot.rcv_wnd) = connection.receive_window();
            }
            _ => {
                self.end_run();
                let snapshot = connection.snapshot();
                let Subject { now: at, connection } = subject;
                self.run = Some(Run { at, connection, snapshot, bytes });
            }
        }
    }

    /// Writes what has arrived, if that is still to be done.
    #[inline]
    pub(crate) fn end_run(&mut self) {
        if let Some(run) = self.run.take() {
            let Run { at: now, connection, snapshot, bytes } = run;
            let values = Values::of(&snapshot, snapshot.rcv_nxt.get(), bytes, snapshot.rcv_wnd, 0);
            let subject = Subject { now, connection };
            self.push(FlowEvent::Arrived.words(subject.now, connection, &snapshot, values));
        }
    }

    /// Also when the log is off, because the events would otherwise stay queued.
    #[cold]
    fn write_layer_events(&mut self, subject: Subject, connection: &mut Connection) {
        while let Some(event) = connection.poll_layer_event() {
            let (layer, fate) = (event.layer.map(|layer| layer.get()), event.change.into());
            let what = What::Layer { layer, fate, name: event.name };
            self.write_if_on(subject, connection, what);
        }
        while let Some(variable) = connection.poll_changed_request() {
            let ruling = connection.ruling(variable);
            self.write_if_on(subject, connection, What::Request { variable, ruling });
        }
    }

    fn write_if_on(&mut self, subject: Subject, connection: &Connection, what: What) {
        if self.is_on() {
            self.write(subject, &connection.snapshot(), what);
        }
    }

    /// The frequent records.
    #[inline]
    fn flow(&mut self, subject: Subject, snapshot: &Snapshot, event: FlowEvent, values: Values) {
        self.end_run();
        self.push(event.words(subject.now, subject.connection, snapshot, values));
    }

    /// Writes the other kinds of records.
    fn write(&mut self, subject: Subject, snapshot: &Snapshot, what: What) {
        self.end_run();
        let Subject { now: at, connection } = subject;
        let &Snapshot { state, phase, limited_by, .. } = snapshot;
        self.push(Record { at, connection, state, phase, limited_by, what }.words());
    }
}
